/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a program uses triggers: sets of buffers that a sample freezes.
 *
 *	int set = perf_trigger_set(event, &attr);	of any event
 *
 *	perf_trigger_join(set, event);			each buffer, by an event
 *	perf_trigger_add(set, trigger);			each trigger
 *	perf_trigger_arm(set, &generation);		0 at first
 *	poll(set, POLLIN);
 *	perf_trigger_read(set, &report, buffers, max);
 *	...						read the buffers
 *	perf_trigger_arm(set, &generation);
 */
#ifndef _SELFTESTS_TRIGGER_H
#define _SELFTESTS_TRIGGER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/perf_trigger.h>

/* Returns a descriptor, or -1 with errno set: to ENOTTY by kernels without triggers. */
static inline int perf_trigger_set(int event_fd, struct perf_trigger_attr *attr)
{
	attr->size = sizeof(*attr);
	return ioctl(event_fd, PERF_EVENT_IOC_TRIGGER_SET, attr);
}

static inline int perf_trigger_join(int set, int event_fd)
{
	return ioctl(set, PERF_TRIGGER_IOC_JOIN, event_fd);
}

static inline int perf_trigger_add(int set, int event_fd)
{
	return ioctl(set, PERF_TRIGGER_IOC_ADD, event_fd);
}

static inline int perf_trigger_arm(int set, __u64 *generation)
{
	return ioctl(set, PERF_TRIGGER_IOC_ARM, generation);
}

static inline int perf_trigger_fire(int set)
{
	return ioctl(set, PERF_TRIGGER_IOC_FIRE);
}

/* What the kernel doesn't know of yet is 0. */
static inline void perf_trigger_copy(void *to, size_t size, const void *from, size_t known)
{
	memset(to, 0, size);
	memcpy(to, from, known < size ? known : size);
}

/*
 * Waits until all buffers are frozen, unless the descriptor doesn't block, and says
 * what has fired, and what became of up to @max buffers, in the order that they have
 * joined in. Kernels to come may know more of both than this program: the report
 * itself, which comes first, says how much there is.
 *
 * Returns 0, or -1 with errno set.
 */
static inline int perf_trigger_read(int set, struct perf_trigger_report *report,
				    struct perf_trigger_buffer *buffers, unsigned int max)
{
	const struct perf_trigger_report *head;
	ssize_t space;
	char *from;

	if (read(set, report, sizeof(*report)) < 0)
		return -1;
	if (max > report->nr)
		max = report->nr;
	space = report->size + (size_t)max * report->buffer_size;
	from = malloc(space);
	if (!from)
		return -1;
	/* Somebody else may arm the set meanwhile. */
	if (read(set, from, space) != space) {
		free(from);
		return -1;
	}
	head = (const struct perf_trigger_report *)from;
	perf_trigger_copy(report, sizeof(*report), from, head->size);
	for (unsigned int i = 0; i < max; i++)
		perf_trigger_copy(&buffers[i], sizeof(*buffers),
				  from + head->size + (size_t)i * head->buffer_size,
				  head->buffer_size);
	free(from);
	return 0;
}

#endif /* _SELFTESTS_TRIGGER_H */
