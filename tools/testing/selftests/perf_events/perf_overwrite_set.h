/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sets of overwritable buffers (see perf_overwrite.h) that a sample of an event stops
 * all at once, its trigger.
 *
 *	struct perf_overwrite_set set;
 *	struct perf_overwrite_set_attr attr = { .clock = CLOCK_MONOTONIC };
 *	struct perf_overwrite_cut cut;
 *
 *	perf_overwrite_set_open(&set, fd, &attr);	of any of the events
 *	perf_overwrite_set_join(&set, &ow);		each buffer
 *	perf_overwrite_set_add(&set, fd, &ow, period);	each trigger, which writes there
 *	perf_overwrite_set_arm(&set);
 *	count = perf_overwrite_set_poll(&set, fds);
 *	while (!perf_overwrite_set_stopped(&set)) {
 *		poll(fds, count, perf_overwrite_set_timeout(&set));
 *		for each of fds:			its task or CPU has gone
 *			if (fds[i].revents & (POLLHUP | POLLERR))
 *				fds[i].fd = -1;
 *	}
 *	perf_overwrite_set_read(&set, &cut);
 *	perf_overwrite_window_begin(&window, &cut, 0);
 *	for each buffer:
 *		memset(&span, 0, sizeof(span));
 *		perf_overwrite_begin(&walk, &ow);
 *		while ((record = perf_overwrite_next_until(&walk, space, &span, &cut, time_of)))
 *			use(record);
 *		if (perf_overwrite_lapped(&walk))
 *			perf_overwrite_window_narrow(&window, &span);
 *	perf_overwrite_set_arm(&set);			all run on
 *
 * The cut is a time, and no promise that the buffers stop at one instant: CPUs learn of
 * the trigger at different times, and may write records that are later than the cut and
 * the depth. A reader drops these late records. What remains of all buffers can be
 * compared in the window that all of them cover, from the latest of their oldest records
 * to the cut and the depth. Where the depth is also a number of bytes, a buffer that
 * has taken these is stopped earlier: from its newest record on nothing is known.
 *
 * Kernels with triggers stop the buffers by themselves, see linux/perf_trigger.h. On
 * others the program does it: a trigger wakes it, if that was opened with
 * attr.wakeup_events = 1, and it pauses all buffers. Until it has, they run on. Then
 * cut.by_reader is set, cut.time is when the program got to know, and of the depth only
 * the time counts. A program that finds the trigger's record knows better, and corrects
 * that by perf_overwrite_cut_at().
 */
#ifndef _SELFTESTS_PERF_OVERWRITE_SET_H
#define _SELFTESTS_PERF_OVERWRITE_SET_H

#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "perf_overwrite.h"

#if defined(__has_include)
#if __has_include("trigger.h")
#define PERF_OVERWRITE_TRIGGERS
#include "trigger.h"
#endif
#endif

/**
 * struct perf_overwrite_set_attr - what a set does when its trigger comes
 * @clock:	attr.clockid of all events
 * @depth_ns:	the time for which the buffers run on then, 0 for not at all
 * @depth_bytes: the bytes that each takes at most in that time, 0 for any number
 * @holdoff_ns:	the time after arming in which no sample stops anything
 * @holdoff_bytes: the bytes that the trigger's buffer has to take first
 */
struct perf_overwrite_set_attr {
	clockid_t	clock;
	__u64		depth_ns;
	__u64		depth_bytes;
	__u64		holdoff_ns;
	__u64		holdoff_bytes;
};

/**
 * struct perf_overwrite_cut - what has stopped a set
 * @id:		of the event whose sample it was, 0 if it was none
 * @time:	that sample isn't later
 * @until:	@time and the depth
 * @suppressed:	samples of triggers that came later
 * @held_off:	those that came too early
 * @by_reader:	this kernel has no triggers
 * @no_record:	the sample was dropped
 */
struct perf_overwrite_cut {
	__u64	id;
	__u64	time;
	__u64	until;
	__u64	suppressed;
	__u64	held_off;
	bool	by_reader;
	bool	no_record;
};

/* A trigger, or a buffer. The kernel knows them, other kernels don't. */
struct perf_overwrite_member {
	int			fd;
	struct perf_overwrite	*ow;
	__u64			id;
	__u64			period;
	__u64			count;		/* of its samples, as far as it is known */
	__u64			armed_at;	/* head of the buffer */
};

struct perf_overwrite_members {
	struct perf_overwrite_member	*member;
	unsigned int			count;
};

/**
 * struct perf_overwrite_set - buffers and their triggers
 * @fd:		the kernel's set, -1 if this kernel has none
 * @attr:	as given
 * @generation:	how often it was armed
 * @armed:	no more than this: neither fired nor stopped
 * @runs_on:	fired, and not yet paused: the depth, where the program stops the buffers
 * @armed_at:	when that was
 * @cut:	what is known of it, while the program stops the buffers
 * @buffers:	that have joined
 * @triggers:	that were added
 */
struct perf_overwrite_set {
	int				fd;
	struct perf_overwrite_set_attr	attr;
	__u64				generation;
	bool				armed;
	bool				runs_on;
	__u64				armed_at;
	struct perf_overwrite_cut	cut;
	struct perf_overwrite_members	buffers;
	struct perf_overwrite_members	triggers;
};

static inline __u64 perf_overwrite_set_now(const struct perf_overwrite_set *set)
{
	struct timespec time;

	clock_gettime(set->attr.clock, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Moves the cut to where the program found the trigger's record. */
static inline void perf_overwrite_cut_at(struct perf_overwrite_cut *cut, __u64 time)
{
	cut->until -= cut->time - time;
	cut->time = time;
}

/**
 * struct perf_overwrite_span - the times of a buffer's records, when its set is stopped
 * @oldest:	the first one that the buffer has, 0 if it has none
 * @newest:	the last one, be it late
 * @records:	how many count
 * @after:	how many of these are later than the cut
 * @late:	how many don't count, as they are later than the cut and the depth
 *
 * All zeroes at first. perf_overwrite_span_add() adds to it.
 */
struct perf_overwrite_span {
	__u64	oldest;
	__u64	newest;
	size_t	records;
	size_t	after;
	size_t	late;
};

/**
 * struct perf_overwrite_window - the time that all buffers of a set cover
 * @from:	the latest of the oldest records
 * @until:	the cut and the depth
 */
struct perf_overwrite_window {
	__u64	from;
	__u64	until;
};

/**
 * perf_overwrite_span_add - add a record, or tell that it has to be dropped
 * @span:	of its buffer
 * @cut:	what has stopped the set
 * @time:	of the record, 0 if it has none, which counts in any case
 *
 * Records may come in any order.
 *
 * Return: whether the record counts: it isn't later than the cut and the depth.
 */
static inline bool perf_overwrite_span_add(struct perf_overwrite_span *span,
					   const struct perf_overwrite_cut *cut, __u64 time)
{
	if (time && (!span->oldest || time < span->oldest))
		span->oldest = time;
	if (time > span->newest)
		span->newest = time;
	if (time > cut->until) {
		span->late++;
		return false;
	}
	span->records++;
	span->after += time > cut->time;
	return true;
}

/**
 * perf_overwrite_span_late_by - how much later than the depth a buffer was stopped
 * @span:	of the buffer
 * @cut:	what has stopped the set
 *
 * Return: the time, as far as the records tell.
 */
static inline __u64 perf_overwrite_span_late_by(const struct perf_overwrite_span *span,
						const struct perf_overwrite_cut *cut)
{
	return span->newest > cut->until ? span->newest - cut->until : 0;
}

/**
 * perf_overwrite_next_until - go to the next older record that counts
 * @walk:	as of perf_overwrite_next()
 * @space:	as of perf_overwrite_next()
 * @span:	of the buffer, to which the record is added
 * @cut:	what has stopped the set
 * @time_of:	tells the time of a record, by the clock of the set, or 0
 *
 * Records that came late are dropped.
 *
 * Return: as perf_overwrite_next().
 */
static inline struct perf_event_header *
perf_overwrite_next_until(struct perf_overwrite_walk *walk, void *space,
			  struct perf_overwrite_span *span, const struct perf_overwrite_cut *cut,
			  __u64 (*time_of)(const struct perf_event_header *header))
{
	struct perf_event_header *header;

	do {
		header = perf_overwrite_next(walk, space);
	} while (header && !perf_overwrite_span_add(span, cut, time_of(header)));
	return header;
}

/**
 * perf_overwrite_window_begin - begin with the window of no buffer
 * @window:	to be narrowed by each buffer
 * @cut:	what has stopped the set
 * @since:	when the buffers began to take records, 0 for a long time ago
 */
static inline void perf_overwrite_window_begin(struct perf_overwrite_window *window,
					       const struct perf_overwrite_cut *cut, __u64 since)
{
	window->from = since;
	window->until = cut->until;
}

/**
 * perf_overwrite_window_narrow - narrow the window to what a buffer covers, too
 * @window:	of the set
 * @span:	of a buffer whose oldest records were overwritten
 *
 * A buffer that has all records since it began to take them doesn't narrow the window:
 * it covers the time before its oldest record, too.
 */
static inline void perf_overwrite_window_narrow(struct perf_overwrite_window *window,
						const struct perf_overwrite_span *span)
{
	/* Of no time is it known that it is covered. */
	if (!span->oldest)
		window->from = -1ULL;
	else if (span->oldest > window->from)
		window->from = span->oldest;
}

/**
 * perf_overwrite_window_is_empty - whether there is no time that all buffers cover
 * @window:	of the set
 *
 * Return: whether it is so.
 */
static inline bool perf_overwrite_window_is_empty(const struct perf_overwrite_window *window)
{
	return window->from > window->until;
}

/* What the kernel does, where it can. ENOTTY: it can't. */
#ifdef PERF_OVERWRITE_TRIGGERS
static inline int perf_overwrite_kernel_set(const struct perf_overwrite_set *set, int fd)
{
	const struct perf_overwrite_set_attr *attr = &set->attr;
	struct perf_trigger_attr trigger = {
		.flags		= attr->depth_ns ? 0 : PERF_TRIGGER_AT_ONCE,
		.depth_ns	= attr->depth_ns,
		.depth_bytes	= attr->depth_bytes,
		.holdoff_ns	= attr->holdoff_ns,
		.holdoff_bytes	= attr->holdoff_bytes,
	};

	return perf_trigger_set(fd, &trigger);
}

static inline int perf_overwrite_kernel_cut(const struct perf_overwrite_set *set,
					    struct perf_overwrite_cut *cut)
{
	struct perf_trigger_report report;

	if (perf_trigger_read(set->fd, &report, NULL, 0))
		return -1;
	*cut = (struct perf_overwrite_cut) {
		.id		= report.id,
		.time		= report.time,
		.until		= report.until,
		.suppressed	= report.suppressed,
		.held_off	= report.held_off,
		.no_record	= report.flags & PERF_TRIGGER_NO_RECORD,
	};
	return 0;
}
#else
static inline int perf_trigger_no(void)
{
	errno = ENOTTY;
	return -1;
}

#define perf_overwrite_kernel_set(...)	perf_trigger_no()
#define perf_overwrite_kernel_cut(...)	perf_trigger_no()
#define perf_trigger_join(...)		perf_trigger_no()
#define perf_trigger_add(...)		perf_trigger_no()
#define perf_trigger_arm(...)		perf_trigger_no()
#define perf_trigger_fire(...)		perf_trigger_no()
#endif

/* Returns 0, or -1 with errno set. */
static inline int perf_overwrite_set_open(struct perf_overwrite_set *set, int fd,
					  const struct perf_overwrite_set_attr *attr)
{
	memset(set, 0, sizeof(*set));
	set->attr = *attr;
	set->fd = perf_overwrite_kernel_set(set, fd);
	return set->fd < 0 && errno != ENOTTY ? -1 : 0;
}

/* Whether the kernel stops the buffers by itself. */
static inline bool perf_overwrite_set_in_kernel(const struct perf_overwrite_set *set)
{
	return set->fd >= 0;
}

static inline int perf_overwrite_set_remember(struct perf_overwrite_members *members, int fd,
					      struct perf_overwrite *ow)
{
	struct perf_overwrite_member *more, member = { .fd = fd, .ow = ow };

	if (ioctl(fd, PERF_EVENT_IOC_ID, &member.id))
		return -1;
	more = realloc(members->member, (members->count + 1) * sizeof(*more));
	if (!more)
		return -1;
	more[members->count++] = member;
	members->member = more;
	return 0;
}

/* The set is to stop this buffer. Returns 0, or -1 with errno set. */
static inline int perf_overwrite_set_join(struct perf_overwrite_set *set,
					  struct perf_overwrite *ow)
{
	if (set->fd >= 0 && perf_trigger_join(set->fd, ow->fd))
		return -1;
	return perf_overwrite_set_remember(&set->buffers, ow->fd, ow);
}

/*
 * Samples of the event are to stop the set; they are written to @ow, which has joined.
 * @period is its attr.sample_period. The first that read() returns of the event has to
 * be its count. Where the program stops the buffers, that tells how many samples came.
 *
 * Returns 0, or -1 with errno set.
 */
static inline int perf_overwrite_set_add(struct perf_overwrite_set *set, int fd,
					 struct perf_overwrite *ow, __u64 period)
{
	if (set->fd >= 0 && perf_trigger_add(set->fd, fd))
		return -1;
	if (perf_overwrite_set_remember(&set->triggers, fd, ow))
		return -1;
	set->triggers.member[set->triggers.count - 1].period = period ? period : 1;
	return 0;
}

/* How often the trigger came since it was asked last. */
static inline __u64 perf_overwrite_set_came(struct perf_overwrite_member *trigger)
{
	__u64 counts[8], came;

	if (read(trigger->fd, counts, sizeof(counts)) < (ssize_t)sizeof(counts[0]))
		return 0;
	counts[0] /= trigger->period;
	came = counts[0] - trigger->count;
	trigger->count = counts[0];
	return came;
}

/* Has all buffers run on, and the next trigger stop them. Returns 0, or -1 with errno set. */
static inline int perf_overwrite_set_arm(struct perf_overwrite_set *set)
{
	if (set->fd >= 0)
		return perf_trigger_arm(set->fd, &set->generation);

	for (unsigned int i = 0; i < set->buffers.count; i++)
		if (perf_overwrite_resume(set->buffers.member[i].fd) && errno != EINVAL)
			return -1;
	for (unsigned int i = 0; i < set->triggers.count; i++) {
		struct perf_overwrite_member *trigger = &set->triggers.member[i];

		perf_overwrite_set_came(trigger);
		trigger->armed_at = perf_overwrite_head(trigger->ow);
	}
	memset(&set->cut, 0, sizeof(set->cut));
	set->armed_at = perf_overwrite_set_now(set);
	set->armed = true;
	set->runs_on = false;
	set->generation++;
	return 0;
}

/*
 * Pauses all buffers: starts with all, so that none waits for the waiting for another.
 * One that isn't mapped any more is no buffer: EINVAL.
 */
static inline int perf_overwrite_set_pause(struct perf_overwrite_set *set)
{
	const struct perf_overwrite_members *buffers = &set->buffers;

	for (unsigned int i = 0; i < buffers->count; i++)
		if (perf_overwrite_pause_start(buffers->member[i].fd) && errno != EINVAL)
			return -1;
	for (unsigned int i = 0; i < buffers->count; i++)
		if (perf_overwrite_pause(buffers->member[i].fd) && errno != EINVAL)
			return -1;
	/* Without membarrier a moment has to do: writers don't sleep. */
	if (buffers->count && !perf_overwrite_freezes(buffers->member[0].fd) &&
	    perf_overwrite_drain())
		usleep(10000);
	return 0;
}

/* What is left of the depth, in nanoseconds. */
static inline __u64 perf_overwrite_set_left(const struct perf_overwrite_set *set)
{
	__u64 time = perf_overwrite_set_now(set);

	return time < set->cut.until ? set->cut.until - time : 0;
}

/* The program stops the buffers, if their depth is over. */
static inline int perf_overwrite_set_finish(struct perf_overwrite_set *set)
{
	if (!set->runs_on || perf_overwrite_set_left(set))
		return 0;
	set->runs_on = false;
	return perf_overwrite_set_pause(set);
}

/* The program is to stop the buffers, because of that event if any. */
static inline int perf_overwrite_set_stop(struct perf_overwrite_set *set, __u64 id)
{
	struct perf_overwrite_cut *cut = &set->cut;

	cut->id = id;
	cut->time = perf_overwrite_set_now(set);
	cut->until = cut->time + set->attr.depth_ns;
	cut->by_reader = true;
	set->armed = false;
	set->runs_on = true;
	return perf_overwrite_set_finish(set);
}

/* How long poll() may wait, in milliseconds, until perf_overwrite_set_stopped() has to be asked. */
static inline int perf_overwrite_set_timeout(const struct perf_overwrite_set *set)
{
	/* What is left of a millisecond is one. An hour is the most. */
	return set->runs_on ? (int)(perf_overwrite_set_left(set) / 1000000) + 1 : -1;
}

/*
 * Stops the buffers without a trigger, if none came before. Returns 0, 1 if one came, or
 * -1 with errno set.
 */
static inline int perf_overwrite_set_fire(struct perf_overwrite_set *set)
{
	if (set->fd < 0)
		return set->armed ? perf_overwrite_set_stop(set, 0) : 1;
	if (!perf_trigger_fire(set->fd))
		return 0;
	return errno == EALREADY ? 1 : -1;
}

static inline bool perf_overwrite_set_holds_off(const struct perf_overwrite_set *set,
						const struct perf_overwrite_member *trigger)
{
	return perf_overwrite_set_now(set) - set->armed_at < set->attr.holdoff_ns ||
	       perf_overwrite_written(trigger->armed_at, perf_overwrite_head(trigger->ow)) <
	       set->attr.holdoff_bytes;
}

/*
 * Whether all buffers are stopped. On kernels without triggers stops them, if one came:
 * this is to be called after each wakeup.
 */
static inline bool perf_overwrite_set_stopped(struct perf_overwrite_set *set)
{
	struct pollfd polled = { .fd = set->fd, .events = POLLIN };

	if (set->fd >= 0)
		return poll(&polled, 1, 0) == 1 && polled.revents & POLLIN;

	for (unsigned int i = 0; i < set->triggers.count && set->armed; i++) {
		struct perf_overwrite_member *trigger = &set->triggers.member[i];
		__u64 came = perf_overwrite_set_came(trigger);

		if (!came)
			continue;
		if (perf_overwrite_set_holds_off(set, trigger)) {
			set->cut.held_off += came;
		} else {
			set->cut.suppressed += came - 1;
			perf_overwrite_set_stop(set, trigger->id);
		}
	}
	perf_overwrite_set_finish(set);
	return !set->armed && !set->runs_on && set->generation;
}

/* How many descriptors have to be polled. */
static inline unsigned int perf_overwrite_set_nr_polled(const struct perf_overwrite_set *set)
{
	return set->fd >= 0 ? 1 : set->buffers.count;
}

/* Says which. Returns how many. */
static inline unsigned int perf_overwrite_set_poll(const struct perf_overwrite_set *set,
						   struct pollfd *polled)
{
	unsigned int count = perf_overwrite_set_nr_polled(set);

	for (unsigned int i = 0; i < count; i++)
		polled[i] = (struct pollfd) {
			.fd = set->fd >= 0 ? set->fd : set->buffers.member[i].fd,
			.events = POLLIN,
		};
	return count;
}

/* Waits until the set that has been fired is stopped. Returns 0, or -1 with errno set. */
static inline int perf_overwrite_set_read(struct perf_overwrite_set *set,
					  struct perf_overwrite_cut *cut)
{
	if (set->fd >= 0)
		return perf_overwrite_kernel_cut(set, cut);

	while (set->runs_on) {
		poll(NULL, 0, perf_overwrite_set_timeout(set));
		if (perf_overwrite_set_finish(set))
			return -1;
	}
	for (unsigned int i = 0; i < set->triggers.count; i++)
		set->cut.suppressed += perf_overwrite_set_came(&set->triggers.member[i]);
	*cut = set->cut;
	return 0;
}

/*
 * The buffers run on. On kernels with triggers those don't that the program has paused by
 * itself.
 */
static inline void perf_overwrite_set_close(struct perf_overwrite_set *set)
{
	if (set->fd >= 0)
		close(set->fd);
	else if (!set->armed)
		for (unsigned int i = 0; i < set->buffers.count; i++)
			perf_overwrite_resume(set->buffers.member[i].fd);
	free(set->buffers.member);
	free(set->triggers.member);
}

#endif /* _SELFTESTS_PERF_OVERWRITE_SET_H */
