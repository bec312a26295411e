/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of the perf ring buffer's head, for both directions.
 *
 * Everything here is in bytes, unless it says pages, and is a pure function of
 * its arguments: nothing is loaded, stored or locked, so that any context may
 * call it and a test can enumerate it.
 *
 * - A head is a position in an endless stream and wraps at the word. Only its
 *   lowest bits say where in the buffer it is. It starts at 0, moves up when
 *   the buffer is written forward and down when it is written backward. A
 *   reservation lies between the head before it and the head after it:
 *
 *	forward		[old head, new head)	oldest record at the lowest position
 *	backward	[new head, old head)	newest record at the lowest position
 *
 * - A tail is where the reader of a writable mapping has got to, counted like
 *   the head. It comes from user space: any value is possible.
 *
 * - The size of the data area and the number of data pages are powers of two,
 *   and not 0.
 *
 * A difference of two positions is kept in an unsigned long before it is
 * compared with something. For a kernel this makes no difference. A test can
 * compile this file with a narrower type in place of unsigned long, whose wrap
 * it can reach.
 */
#ifndef _KERNEL_EVENTS_RING_BUFFER_HEAD_H
#define _KERNEL_EVENTS_RING_BUFFER_HEAD_H

#include <linux/types.h>

/**
 * rb_head_reserve - the head after a reservation
 * @head: the head before it
 * @size: bytes to reserve
 * @backward: the direction of the buffer
 *
 * Return: the position at the other end of the reservation, modulo the word.
 */
static __always_inline unsigned long
rb_head_reserve(unsigned long head, unsigned long size, bool backward)
{
	return backward ? head - size : head + size;
}

/**
 * rb_head_start - where in the stream a reservation starts
 * @old: the head before the reservation
 * @new: the head after it
 * @backward: the direction of the buffer
 *
 * Return: the position of the reservation's first byte. Records are written
 * from their first byte up in both directions.
 */
static __always_inline unsigned long
rb_head_start(unsigned long old, unsigned long new, bool backward)
{
	return backward ? new : old;
}

/**
 * rb_head_bytes - how much was ever reserved
 * @head: the head
 * @backward: the direction of the buffer
 *
 * Return: the bytes reserved since the head was 0, modulo the word.
 */
static __always_inline unsigned long
rb_head_bytes(unsigned long head, bool backward)
{
	return backward ? -head : head;
}

/**
 * rb_head_crossed - whether a watermark was crossed
 * @bytes: what rb_head_bytes() says
 * @stamp: what it said when the watermark was last crossed
 * @watermark: how many bytes may be written without a wakeup
 *
 * Return: true if more than @watermark bytes were reserved since @stamp.
 */
static __always_inline bool
rb_head_crossed(unsigned long bytes, unsigned long stamp,
		unsigned long watermark)
{
	unsigned long since = bytes - stamp;

	return since > watermark;
}

/**
 * rb_head_has_space - whether a reservation spares what wasn't read yet
 * @head: the head before the reservation
 * @tail: the reader's position
 * @data_size: bytes of the data area, a power of two
 * @size: bytes to reserve
 * @backward: the direction of the buffer
 *
 * One byte always stays free: with it in use, a full buffer could not be told
 * from an empty one.
 *
 * Return: true if @size bytes fit.
 */
static __always_inline bool
rb_head_has_space(unsigned long head, unsigned long tail,
		  unsigned long data_size, unsigned long size, bool backward)
{
	unsigned long used = backward ? tail - head : head - tail;
	unsigned long space = (data_size - 1) - (used & (data_size - 1));

	return size <= space;
}

/**
 * rb_head_has_room - whether a reservation spares what isn't published yet
 * @head: the head before the reservation
 * @published: the head when a writer last published it
 * @data_size: bytes of the data area
 * @size: bytes to reserve
 * @backward: the direction of the buffer
 *
 * For overwritable buffers, where only records that are still being written are
 * to be spared: at most @data_size bytes lie between @published and @head.
 *
 * Return: true if @size bytes fit beside them.
 */
static __always_inline bool
rb_head_has_room(unsigned long head, unsigned long published,
		 unsigned long data_size, unsigned long size, bool backward)
{
	unsigned long used = backward ? published - head : head - published;
	unsigned long room = data_size - used;

	return size <= room;
}

/**
 * rb_head_page - which data page a position is in
 * @pos: the position
 * @page_shift: log2 of the bytes in a data page
 * @nr_pages: number of data pages, a power of two
 *
 * Return: the index of the data page, less than @nr_pages.
 */
static __always_inline unsigned long
rb_head_page(unsigned long pos, unsigned int page_shift,
	     unsigned long nr_pages)
{
	return (pos >> page_shift) & (nr_pages - 1);
}

/**
 * rb_head_page_offset - where in its data page a position is
 * @pos: the position
 * @page_shift: log2 of the bytes in a data page
 *
 * Return: bytes from the start of the page.
 */
static __always_inline unsigned long
rb_head_page_offset(unsigned long pos, unsigned int page_shift)
{
	unsigned long page_size = 1UL << page_shift;

	return pos & (page_size - 1);
}

#endif /* _KERNEL_EVENTS_RING_BUFFER_HEAD_H */
