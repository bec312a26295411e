// SPDX-License-Identifier: GPL-2.0
/*
 * A call that gets no memory fails by ENOMEM and leaves all as it was. Fault injection
 * makes each allocation of each call fail once: CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC,
 * CONFIG_FAULT_INJECTION_DEBUG_FS. A pause allocates nothing, and can't fail for that.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#if __has_include("trigger.h")
#include "trigger.h"
#endif

#define PAGES	4

/* Fit into the buffer, so that all are found. */
#define NAMES	20

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Returns 0, or -1 with errno set. */
static int set_fault(const char *capability, const char *name, const char *value)
{
	char path[128];
	int fd, ret;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", capability, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, value, strlen(value)) < 0 ? -1 : 0;
	close(fd);
	return ret;
}

/*
 * That allocations which may wait fail as well, of single pages, too, and that the kernel
 * doesn't print its stack each time. It stays so: without a task that asks for them,
 * there are no faults.
 */
static int set_faults(void)
{
	if (set_fault("failslab", "ignore-gfp-wait", "N") ||
	    set_fault("failslab", "verbose", "0") ||
	    set_fault("fail_page_alloc", "ignore-gfp-wait", "N") ||
	    set_fault("fail_page_alloc", "min-order", "0") ||
	    set_fault("fail_page_alloc", "verbose", "0"))
		return -1;
	return 0;
}

/* The pages that this process has pinned, as the kernel counts them, in KiB. */
static long pinned(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* The event @fd writes to @ow, @other would to what a test gives it: it is disabled. */
FIXTURE(alloc_fails)
{
	struct perf_overwrite	ow;
	struct perf_overwrite	another;
	int			fd;
	int			other;
	int			nth;	/* the calling thread's fail-nth */
};

FIXTURE_SETUP(alloc_fails)
{
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_event_attr names = NAME_EVENT(1);

	self->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (self->nth < 0 || set_faults())
		SKIP(return, "no fault injection in this kernel, or no permission for it");
	self->fd = open_event(_metadata, &names, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, PAGES, false));
	self->other = open_event(_metadata, &faults, 0, -1);
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(alloc_fails)
{
	ASSERT_EQ(0, close(self->other));
	ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(0, close(self->nth));
}

/* Has the allocation number @nth fail from now on, 0 for none. */
static bool fail_nth(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	return pwrite(fd, text, length, 0) == length;
}

/* Whether that allocation has come and failed. */
static bool has_failed(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
}

/* The buffer takes all records, and they can be read. */
static void check_buffer(struct __test_metadata *_metadata,
			 const FIXTURE_DATA(alloc_fails) *self, unsigned int first)
{
	struct perf_overwrite_walk walk;

	write_names(first, NAMES, 0);
	perf_overwrite_begin(&walk, &self->ow);
	for (unsigned int seq = first + NAMES; seq-- > first;) {
		struct perf_event_header *record = perf_overwrite_next(&walk, space);

		ASSERT_NE(NULL, record);
		ASSERT_TRUE(is_name(record, seq, 0));
	}
}

/*
 * Does @call until none of its allocations has failed, and @undo each time that it
 * succeeds. Returns how many of them have failed.
 */
static unsigned int each_fails(struct __test_metadata *_metadata,
			       FIXTURE_DATA(alloc_fails) *self,
			       int (*call)(FIXTURE_DATA(alloc_fails) *self),
			       int (*undo)(FIXTURE_DATA(alloc_fails) *self, int result))
{
	const long before = pinned();
	bool failed = true;
	unsigned int nth;

	ASSERT_LE(0, before);
	for (nth = 1; failed; nth++) {
		int result, error;

		ASSERT_TRUE(fail_nth(self->nth, nth));
		result = call(self);
		error = errno;
		failed = has_failed(self->nth);
		ASSERT_TRUE(fail_nth(self->nth, 0));

		if (result < 0) {
			ASSERT_TRUE(failed && error == ENOMEM) {
				TH_LOG("allocation %u: %s, %s", nth, strerror(error),
				       failed ? "which failed" : "which hasn't come");
			}
		} else {
			ASSERT_EQ(0, undo(self, result));
		}
		ASSERT_EQ(before, pinned());
		check_buffer(_metadata, self, nth * NAMES);
	}
	return nth - 2;
}

static int call_map(FIXTURE_DATA(alloc_fails) *self)
{
	return perf_overwrite_map(&self->another, self->other, PAGES, false);
}

static int undo_map(FIXTURE_DATA(alloc_fails) *self, int result)
{
	return perf_overwrite_unmap(&self->another);
}

static int call_redirect(FIXTURE_DATA(alloc_fails) *self)
{
	return ioctl(self->other, PERF_EVENT_IOC_SET_OUTPUT, self->fd);
}

static int undo_redirect(FIXTURE_DATA(alloc_fails) *self, int result)
{
	return ioctl(self->other, PERF_EVENT_IOC_SET_OUTPUT, -1);
}

static int call_pause(FIXTURE_DATA(alloc_fails) *self)
{
	return perf_overwrite_pause(self->fd);
}

static int call_pause_start(FIXTURE_DATA(alloc_fails) *self)
{
	return perf_overwrite_pause_start(self->fd);
}

static int undo_pause(FIXTURE_DATA(alloc_fails) *self, int result)
{
	return perf_overwrite_resume(self->fd);
}

TEST_F(alloc_fails, map)
{
	ASSERT_LT(0, each_fails(_metadata, self, call_map, undo_map));
}

TEST_F(alloc_fails, redirect)
{
	each_fails(_metadata, self, call_redirect, undo_redirect);
}

TEST_F(alloc_fails, pause)
{
	ASSERT_EQ(0, each_fails(_metadata, self, call_pause, undo_pause));
	ASSERT_EQ(0, each_fails(_metadata, self, call_pause_start, undo_pause));
}

#ifdef _SELFTESTS_TRIGGER_H
/* The life of a set, up to where it has fired. */
static int call_trigger(FIXTURE_DATA(alloc_fails) *self)
{
	struct perf_trigger_attr attr = { .flags = PERF_TRIGGER_AT_ONCE };
	int set = perf_trigger_set(self->fd, &attr);
	struct perf_trigger_report report;
	__u64 generation = 0;
	int error;

	if (set < 0)
		return -1;
	if (!perf_trigger_join(set, self->fd) && !perf_trigger_add(set, self->other) &&
	    !perf_trigger_arm(set, &generation) && !perf_trigger_fire(set) &&
	    read(set, &report, sizeof(report)) == sizeof(report))
		return set;
	error = errno;
	close(set);
	errno = error;
	return -1;
}

static int undo_trigger(FIXTURE_DATA(alloc_fails) *self, int result)
{
	return close(result);
}

TEST_F(alloc_fails, trigger)
{
	struct perf_trigger_attr attr = { .flags = PERF_TRIGGER_AT_ONCE };
	int set = perf_trigger_set(self->fd, &attr);

	if (set < 0 && errno == ENOTTY)
		SKIP(return, "no triggers in this kernel");
	ASSERT_LE(0, set);
	ASSERT_EQ(0, close(set));
	ASSERT_EQ(0, ioctl(self->other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	ASSERT_LT(0, each_fails(_metadata, self, call_trigger, undo_trigger));
}
#endif

TEST_HARNESS_MAIN
