/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
#ifndef _UAPI_LINUX_PERF_TRIGGER_H
#define _UAPI_LINUX_PERF_TRIGGER_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Triggers: a sample of one event freezes the buffers of many.
 *
 * PERF_EVENT_IOC_TRIGGER_SET, of an event whose clock is to be that of all, returns
 * the descriptor of a set. Buffers join it, events become its triggers, it is armed.
 * The first sample of a trigger fires it: each buffer takes records for the time
 * and the bytes that the set was created with, and is frozen then. When all are,
 * the descriptor can be read, and says what happened.
 *
 * PERF_TRIGGER_IOC_JOIN	the argument is the descriptor of an event that
 *				writes to the buffer
 * PERF_TRIGGER_IOC_ADD		the argument is the descriptor of an event
 * PERF_TRIGGER_IOC_ARM		the argument points to the generation that was
 *				read, 0 at first, and is given the new one; all
 *				buffers run on
 * PERF_TRIGGER_IOC_FIRE	without a sample
 */
#define PERF_EVENT_IOC_TRIGGER_SET		_IOWR('$', 12, __u32)
#define PERF_TRIGGER_IOC_JOIN			_IO('$', 32)
#define PERF_TRIGGER_IOC_ADD			_IO('$', 33)
#define PERF_TRIGGER_IOC_ARM			_IOWR('$', 34, __u64)
#define PERF_TRIGGER_IOC_FIRE			_IO('$', 35)

#define PERF_TRIGGER_ATTR_SIZE_VER0		40	/* first published struct */
#define PERF_TRIGGER_REPORT_SIZE_VER0		72	/* first published struct */

/* perf_trigger_attr::flags */
#define PERF_TRIGGER_AT_ONCE	(1U << 0)	/* no depth: freeze at once */

/**
 * struct perf_trigger_attr - what a set does when it is fired, and when it isn't
 * @size: of this struct, treated as that of struct perf_event_attr is, but that it has
 *	to be told: 0 is refused
 * @flags: PERF_TRIGGER_AT_ONCE, or 0 and a depth
 * @depth_ns: the time that buffers take records for after the sample
 * @depth_bytes: the bytes that each takes at most in that time, 0 for any number
 * @holdoff_ns: the time after arming in which no sample fires
 * @holdoff_bytes: the bytes that the trigger's buffer has to take first, since then, if
 *	it is one of the set
 */
struct perf_trigger_attr {
	__u32	size;
	__u32	flags;
	__u64	depth_ns;
	__u64	depth_bytes;
	__u64	holdoff_ns;
	__u64	holdoff_bytes;
};

/* perf_trigger_report::flags */
#define PERF_TRIGGER_BY_USER	(1U << 0)	/* PERF_TRIGGER_IOC_FIRE, no event */
#define PERF_TRIGGER_NO_RECORD	(1U << 1)	/* the sample is in no buffer of the set */

/**
 * struct perf_trigger_report - what a read() of a set returns first
 *
 * A read() of less than all returns as much of this struct as it asks for, but not less
 * than PERF_TRIGGER_REPORT_SIZE_VER0, and as many whole buffers as fit behind it. All of
 * it has @size + @nr * @buffer_size bytes. It can be read again until the set is armed,
 * and is the same then, but for @suppressed, for @held_off if a sample was under way, and
 * for buffers that became PERF_TRIGGER_GONE.
 *
 * @size: of this struct: where the first struct perf_trigger_buffer is
 * @buffer_size: of each of these
 * @nr: of these
 * @flags: PERF_TRIGGER_BY_USER, PERF_TRIGGER_NO_RECORD
 * @generation: for PERF_TRIGGER_IOC_ARM
 * @id: of the event that fired, see PERF_EVENT_IOC_ID
 * @time: of the cut: that sample was taken before, by the clock of the set
 * @until: @time and the depth: what buffers have that is later is for the reader to
 *	drop
 * @suppressed: samples of triggers since then
 * @held_off: samples of triggers that came too early
 * @cpu: that fired
 * @__reserved: 0
 */
struct perf_trigger_report {
	__u32	size;
	__u32	buffer_size;
	__u32	nr;
	__u32	flags;
	__u64	generation;
	__u64	id;
	__u64	time;
	__u64	until;
	__u64	suppressed;
	__u64	held_off;
	__s32	cpu;
	__u32	__reserved;
};

/* perf_trigger_buffer::flags */
#define PERF_TRIGGER_GONE	(1U << 0)	/* it isn't mapped any more */

/**
 * struct perf_trigger_buffer - what a read() of a set returns for each buffer
 * @id: of the event that it joined by
 * @head: data_head, frozen; 0 if it was gone before
 * @records: that it took since its writers found the set fired, 0 without a depth
 * @bytes: the same in bytes
 * @cpu: that writes to it, or -1
 * @flags: PERF_TRIGGER_GONE
 */
struct perf_trigger_buffer {
	__u64	id;
	__u64	head;
	__u64	records;
	__u64	bytes;
	__s32	cpu;
	__u32	flags;
};

#endif /* _UAPI_LINUX_PERF_TRIGGER_H */
