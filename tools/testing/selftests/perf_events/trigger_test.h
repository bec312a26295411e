/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of triggers share. */
#ifndef _SELFTESTS_TRIGGER_TEST_H
#define _SELFTESTS_TRIGGER_TEST_H

#include <poll.h>
#include <stdlib.h>

#include "overwrite_test.h"
#include "trigger.h"

#define LONG_NS		(60 * 1000000000ULL)
#define TRIGGER_PAGES	8

#define EXPECT_ERROR(_errno, _call) do {				\
	errno = 0;							\
	EXPECT_EQ(-1, _call);						\
	EXPECT_EQ(_errno, errno);					\
} while (0)

/* How often to fire: as often as always, or as TRIGGER_FIRINGS in the environment says. */
static inline unsigned int firings(unsigned int always)
{
	const char *number = getenv("TRIGGER_FIRINGS");

	return number && atoi(number) > 0 ? atoi(number) : always;
}

static inline struct perf_trigger_attr at_once(void)
{
	return (struct perf_trigger_attr) { .flags = PERF_TRIGGER_AT_ONCE };
}

/* A set of @event, or -1 and the test skipped if this kernel has none. */
static inline int open_set(struct __test_metadata *_metadata, int event,
			   struct perf_trigger_attr attr)
{
	int set = perf_trigger_set(event, &attr), error = errno;

	if (set < 0 && error == ENOTTY)
		SKIP(return -1, "no triggers in this kernel");
	ASSERT_LE(0, set) {
		TH_LOG("PERF_EVENT_IOC_TRIGGER_SET: %s", strerror(error));
	}
	return set;
}

static inline bool is_readable(int set, int timeout)
{
	struct pollfd poll_fd = { .fd = set, .events = POLLIN };

	return poll(&poll_fd, 1, timeout) == 1 && poll_fd.revents == POLLIN;
}

/* What the line @name of the descriptor's fdinfo says, or NULL if there is none. */
static inline const char *fd_info(int fd, const char *name)
{
	static char line[256];
	size_t length = strlen(name);
	const char *value = NULL;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, name, length) || strncmp(line + length, ":\t", 2))
			continue;
		value = line + length + 2;
		break;
	}
	if (file)
		fclose(file);
	return value;
}

static inline long fd_info_number(int fd, const char *name)
{
	const char *value = fd_info(fd, name);

	return value ? atol(value) : -1;
}

static inline bool has_state(int set, const char *state)
{
	const char *value = fd_info(set, "trigger-state");

	return value && !strcmp(value, state);
}

static inline __u64 first_sample(const struct perf_overwrite *ow, bool only_newest)
{
	static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
	struct perf_overwrite_walk walk;
	struct perf_event_header *record;

	perf_overwrite_begin(&walk, ow);
	while ((record = perf_overwrite_next(&walk, space))) {
		if (record->type == PERF_RECORD_SAMPLE)
			return *(__u64 *)(record + 1);
		if (only_newest)
			break;
	}
	return 0;
}

/*
 * What the sample that is the newest record begins with, or 0: the address of a fault,
 * or an event's id.
 */
static inline __u64 newest_sample(const struct perf_overwrite *ow)
{
	return first_sample(ow, true);
}

/* The same of the newest one of the samples: other records may be newer. */
static inline __u64 latest_sample(const struct perf_overwrite *ow)
{
	return first_sample(ow, false);
}

/* A task's names are written to a buffer, as are samples of its page faults: a trigger. */
struct recorded {
	struct perf_overwrite	ow;
	int			names;
	int			faults;
	__u64			id;	/* of the faults */
};

#define NOT_RECORDED	((struct recorded) { .names = -1, .faults = -1 })

/*
 * Opens the events of @pid as a test's set-up, without any privilege if the task is
 * one's own. Returns 0, or -1 and the test skipped.
 */
static inline int open_recorded(struct __test_metadata *_metadata, struct recorded *recorded,
				pid_t pid, struct perf_event_attr faults)
{
	struct perf_event_attr names = NAME_EVENT(1);

	recorded->names = open_event(_metadata, &names, pid, -1);
	if (recorded->names < 0)
		return -1;
	if (map_event(_metadata, &recorded->ow, recorded->names, TRIGGER_PAGES, false))
		return -1;
	recorded->faults = open_event(_metadata, &faults, pid, -1);
	if (recorded->faults < 0)
		return -1;
	ASSERT_EQ(0, ioctl(recorded->faults, PERF_EVENT_IOC_SET_OUTPUT, recorded->names));
	recorded->id = event_id(recorded->faults);
	return 0;
}

static inline void close_recorded(struct recorded *recorded)
{
	close(recorded->faults);
	close(recorded->names);
	if (recorded->ow.meta)
		perf_overwrite_unmap(&recorded->ow);
}

/* Exactly one fault of this task is sampled, that of page @seq. */
static inline void sample_fault(int event, const struct fault_area *area, unsigned int seq)
{
	if (seq % area->pages == 0)
		madvise(area->base, area->pages * area->page_size, MADV_DONTNEED);
	ioctl(event, PERF_EVENT_IOC_ENABLE);
	asm volatile("" : : "r" (area->base[seq % area->pages * area->page_size]));
	ioctl(event, PERF_EVENT_IOC_DISABLE);
}

#endif /* _SELFTESTS_TRIGGER_TEST_H */
