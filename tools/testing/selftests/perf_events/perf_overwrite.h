/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The reference way to read an overwritable perf buffer.
 *
 * A perf buffer mapped without PROT_WRITE is overwritable: the kernel ignores
 * data_tail and always writes, so the buffer holds the latest records. With
 * attr.write_backward records are laid down towards lower offsets, and
 * data_head is the first byte of the newest record:
 *
 *              data_head & mask
 *                     v
 *   +-----------------+--------+------+-----------+--------+-----+---------+
 *   | ..older records | newest | prev | the third | ...    | ... | older.. |
 *   +-----------------+--------+------+-----------+--------+-----+---------+
 *     <- the kernel    a reader walks to the right, into the past, and at the
 *        writes here   end of the buffer goes on at its start ->
 *
 * Going from record to record, by the size in each header, a reader comes back
 * to where it began after the whole buffer. The oldest record has usually been
 * overwritten in part by the newest: it doesn't fit in what is left to cover
 * and is dropped. In a buffer that isn't full yet the walk meets memory which
 * was never written: a header of zeroes, which no record has.
 *
 * In short, for one buffer:
 *
 *	struct perf_overwrite ow;
 *	struct perf_overwrite_walk walk;
 *	struct perf_event_header *record;
 *	static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
 *
 *	fd = perf_overwrite_open(&attr, -1, cpu, -1);
 *	perf_overwrite_map(&ow, fd, pages, false);
 *	...
 *	perf_overwrite_pause(fd);
 *	if (!perf_overwrite_freezes(fd))
 *		perf_overwrite_drain();
 *	perf_overwrite_begin(&walk, &ow);
 *	while ((record = perf_overwrite_next(&walk, space)))
 *		use(record);
 *	perf_overwrite_resume(fd);
 *
 * perf_overwrite_begin_new() instead of perf_overwrite_begin() walks only
 * what was written since the last walk that it began. perf_overwrite_set.h is about
 * many buffers that a sample stops.
 *
 * Positions
 *
 * data_head starts at 0 and decreases by the size of each record, modulo the
 * kernel's word: 2^64, or 2^32 on a 32-bit kernel, which publishes its head
 * extended with zeroes. -data_head is the number of bytes ever written, and
 * the difference of two heads what was written between them, both modulo that
 * word.
 *
 * Memory ordering
 *
 * The kernel stores a record, then executes its barrier B, then stores
 * data_head. A reader loads data_head, executes C, then loads records: C makes
 * sure that it sees all bytes of what the head that it has seen covers. D, a
 * full barrier between loads of records and the store of data_tail, is only
 * needed for writable mappings, where the tail hands space back to the kernel;
 * it pairs with A. The letters are those of perf_output_put_handle() in
 * kernel/events/ring_buffer.c.
 */
#ifndef _SELFTESTS_PERF_OVERWRITE_H
#define _SELFTESTS_PERF_OVERWRITE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/membarrier.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* The size of a record is 16 bits wide. */
#define PERF_OVERWRITE_RECORD_MAX	65536

/**
 * struct perf_overwrite - a mapped buffer
 * @fd:		an event that writes to the buffer
 * @meta:	the control page: data_head and data_tail are here
 * @data:	first byte of the data area
 * @size:	bytes of the data area, a power of two; 0 if there is none
 * @seen:	data_head when perf_overwrite_begin_new() was called last
 */
struct perf_overwrite {
	int				fd;
	struct perf_event_mmap_page	*meta;
	const unsigned char		*data;
	size_t				size;
	__u64				seen;
};

/**
 * struct perf_overwrite_walk - a position in a walk through a buffer
 * @data:	memory that is walked, used as a ring
 * @size:	bytes of it, a power of two
 * @offset:	where the next record begins, less than @size
 * @left:	bytes not covered yet
 * @covered:	bytes of the records that were returned so far
 * @missed:	only new records: bytes written since the last time that were
 *		overwritten before they could be read, 0 if the buffer was large
 *		enough. The record that was cut in two counts in @left at the end.
 */
struct perf_overwrite_walk {
	const unsigned char	*data;
	size_t			size;
	size_t			offset;
	size_t			left;
	size_t			covered;
	__u64			missed;
};

/* Returns a file descriptor, or -1 with errno set. */
static inline int perf_overwrite_open(struct perf_event_attr *attr, pid_t pid,
				      int cpu, int output_fd)
{
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;

	attr->size = sizeof(*attr);
	if (output_fd != -1)
		flags |= PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_NO_GROUP;

	return syscall(__NR_perf_event_open, attr, pid, cpu, output_fd, flags);
}

/*
 * Maps the control page and @pages data pages. A mapping that is not @writable
 * is an overwritable one: this is what tells the kernel.
 *
 * Returns 0, or -1 with errno set.
 */
static inline int perf_overwrite_map(struct perf_overwrite *ow, int fd,
				     size_t pages, bool writable)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *area;

	area = mmap(NULL, (1 + pages) * page_size, prot, MAP_SHARED, fd, 0);
	if (area == MAP_FAILED)
		return -1;

	ow->fd = fd;
	ow->meta = area;
	ow->data = (unsigned char *)area + page_size;
	ow->size = pages * page_size;
	ow->seen = 0;
	return 0;
}

static inline int perf_overwrite_unmap(struct perf_overwrite *ow)
{
	return munmap(ow->meta, ow->size + sysconf(_SC_PAGESIZE));
}

/* PERF_PAUSE_OUTPUT and PERF_PAUSE_OUTPUT_START, which older headers don't have. */
#define PERF_OVERWRITE_PAUSE		1
#define PERF_OVERWRITE_PAUSE_START	2

/*
 * From now on records are counted as lost instead of being written. Any
 * event that writes to the buffer will do.
 *
 * Where perf_overwrite_freezes(), when this has returned 0 no writer is in flight,
 * and neither data_head nor the data changes until the buffer is resumed. For events
 * of tasks that takes some milliseconds: see perf_overwrite_pause_start().
 *
 * Elsewhere see perf_overwrite_drain().
 */
static inline int perf_overwrite_pause(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_OVERWRITE_PAUSE);
}

/*
 * The same without waiting for writers in flight. To pause many buffers, call this
 * for all of them, and then perf_overwrite_pause() for each: the grace periods pass
 * together. Older kernels take it for perf_overwrite_pause().
 */
static inline int perf_overwrite_pause_start(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_OVERWRITE_PAUSE_START);
}

static inline int perf_overwrite_resume(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
}

/*
 * Whether a pause waits for writers in flight: the kernels that show the state of
 * the output in the fdinfo of an event, which has to have a buffer, are those.
 */
static inline bool perf_overwrite_freezes(int fd)
{
	char path[64], text[1024];
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	length = read(info, text, sizeof(text) - 1);
	close(info);
	if (length < 0)
		return false;
	text[length] = 0;
	return strstr(text, "output-paused:");
}

/*
 * On kernels whose pause doesn't freeze the buffer a writer on another CPU that
 * had passed the check of the paused flag may still be writing when the pause
 * returns. Writers are RCU readers, hence a grace period, which is what this kind
 * of membarrier is, waits for them. One call after the pausing of any number of
 * buffers is enough.
 *
 * It also waits for writers that loaded the old buffer before
 * PERF_EVENT_IOC_SET_OUTPUT directed their event elsewhere. They would lose their
 * records if that buffer was paused. Kernels whose pause freezes the buffer have
 * such a record written to the other one.
 *
 * Returns 0, or -1 with errno set: with EINVAL on a kernel with nohz_full CPUs,
 * where a reader has to wait by itself for the head not to move.
 */
static inline int perf_overwrite_drain(void)
{
	return syscall(__NR_membarrier, MEMBARRIER_CMD_SHARED, 0, 0);
}

/* Reads data_head such that all that it covers can be read after it. */
static inline __u64 perf_overwrite_head(const struct perf_overwrite *ow)
{
#if __SIZEOF_LONG__ >= 8
	/* C, matches the kernel's B, see above. */
	return __atomic_load_n(&ow->meta->data_head, __ATOMIC_ACQUIRE);
#else
	__u64 head, again;

	/* It is loaded in two halves, which have to belong together. */
	do {
		head = ow->meta->data_head;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		again = ow->meta->data_head;
		/* C, matches the kernel's B, see above. */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (head != again);
	return head;
#endif
}

/*
 * Writable mappings only: hands everything from @tail into the past back to
 * the kernel.
 */
static inline void perf_overwrite_set_tail(struct perf_overwrite *ow, __u64 tail)
{
	/* D, matches the kernel's A, see above. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ow->meta->data_tail = tail;
}

/*
 * Bytes written from the moment when data_head was @older until it was @newer.
 *
 * A 64-bit kernel's head has one of its upper bits set from the first record
 * on, and keeps one for the next 2^64 - 2^32 bytes, so two small heads are
 * those of a 32-bit kernel. There, and only there, 4 GiB between two loads
 * can't be told from nothing.
 */
static inline __u64 perf_overwrite_written(__u64 older, __u64 newer)
{
	if (!(older >> 32) && !(newer >> 32))
		return (__u32)(older - newer);
	return older - newer;
}

/* Begins a walk at @head, through no more than the @limit newest bytes. */
static inline void perf_overwrite_begin_at(struct perf_overwrite_walk *walk,
					   const struct perf_overwrite *ow,
					   __u64 head, __u64 limit)
{
	walk->data = ow->data;
	walk->size = ow->size;
	walk->offset = ow->size ? head & (ow->size - 1) : 0;
	walk->left = limit < ow->size ? limit : ow->size;
	walk->covered = 0;
	walk->missed = 0;
}

/*
 * Begins a walk through the whole buffer. It isn't limited to -data_head bytes:
 * on a 32-bit kernel that is a small number again after 4 GiB, and memory that
 * was never written ends the walk in any case.
 */
static inline void perf_overwrite_begin(struct perf_overwrite_walk *walk,
					const struct perf_overwrite *ow)
{
	perf_overwrite_begin_at(walk, ow, perf_overwrite_head(ow), ow->size);
}

/* Begins a walk through what was written since the last call. */
static inline void perf_overwrite_begin_new(struct perf_overwrite_walk *walk,
					    struct perf_overwrite *ow)
{
	__u64 head = perf_overwrite_head(ow);
	__u64 written = perf_overwrite_written(ow->seen, head);

	perf_overwrite_begin_at(walk, ow, head, written);
	if (written > ow->size)
		walk->missed = written - ow->size;
	ow->seen = head;
}

/* Copies from a ring: what straddles its end becomes contiguous. */
static inline void perf_overwrite_copy(void *to, const unsigned char *ring,
				       size_t size, size_t offset, size_t bytes)
{
	size_t first = size - offset < bytes ? size - offset : bytes;

	memcpy(to, ring + offset, first);
	memcpy((unsigned char *)to + first, ring, bytes - first);
}

/*
 * Returns the next older record, or NULL if there is no whole one left. @space
 * takes PERF_OVERWRITE_RECORD_MAX bytes and is aligned for __u64.
 *
 * What is returned is a copy: contiguous, and unchanging even if the buffer is
 * written to. No content of the memory makes this read outside of it or go on
 * for ever; sizes that the kernel doesn't write end the walk.
 */
static inline struct perf_event_header *
perf_overwrite_next(struct perf_overwrite_walk *walk, void *space)
{
	struct perf_event_header header;

	/* Positions are multiples of 8: a header doesn't straddle the end. */
	if (walk->left < sizeof(header) || walk->offset % sizeof(__u64))
		return NULL;

	/* Once: what is checked here has to be what is used below. */
	memcpy(&header, walk->data + walk->offset, sizeof(header));
	__atomic_signal_fence(__ATOMIC_SEQ_CST);

	/* Never written, or no record. */
	if (header.size < sizeof(header) || header.size % sizeof(__u64))
		return NULL;

	/* The oldest one, overwritten in part. */
	if (header.size > walk->left)
		return NULL;

	perf_overwrite_copy(space, walk->data, walk->size, walk->offset,
			    header.size);
	memcpy(space, &header, sizeof(header));

	walk->offset = (walk->offset + header.size) & (walk->size - 1);
	walk->left -= header.size;
	walk->covered += header.size;
	return space;
}

/*
 * Whether records older than those of a walk, which is at its end, were overwritten
 * before it could read them. A head tells that of no buffer of a 32-bit kernel, see
 * perf_overwrite_begin(); memory that was never written does. Of a buffer that its
 * records fill to the byte, it isn't known: then true is returned.
 */
static inline bool perf_overwrite_lapped(const struct perf_overwrite_walk *walk)
{
	struct perf_event_header header;

	if (walk->missed || walk->left < sizeof(header))
		return walk->missed || walk->covered == walk->size;
	memcpy(&header, walk->data + walk->offset, sizeof(header));
	return header.size;
}

/*
 * Takes a snapshot without pausing, into @copy, which has room for ow->size
 * bytes, and begins a walk through that part of it which is known to be whole.
 *
 * Writers overwrite the oldest records first. data_head, loaded again after the
 * copy, tells how far they came, except for @margin: the bytes that they may
 * have written beyond that head. These are the record that is being written and,
 * since B orders the head only before the records that follow the next one, the
 * record before it, each together with the records of the interrupts that came
 * between. For events in one context this is twice the largest record and the
 * PERF_RECORD_LOST in front of it. How many interrupts come, nothing bounds: pause
 * the buffer of such events.
 *
 * Returns false if nothing could be kept: the writers were faster.
 */
static inline bool perf_overwrite_begin_running(struct perf_overwrite_walk *walk,
						const struct perf_overwrite *ow,
						unsigned char *copy, size_t margin)
{
	__u64 head = perf_overwrite_head(ow);
	__u64 spoilt;

	memcpy(copy, ow->data, ow->size);

	/*
	 * The loads of the records come before that of the head: a
	 * reader that has seen some byte of a record sees the head of the record
	 * before the previous one. Matches B.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	spoilt = perf_overwrite_written(head, perf_overwrite_head(ow)) + margin;
	if (spoilt >= ow->size)
		return false;

	perf_overwrite_begin_at(walk, ow, head, ow->size - spoilt);
	walk->data = copy;
	return true;
}

#endif /* _SELFTESTS_PERF_OVERWRITE_H */
