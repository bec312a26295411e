// SPDX-License-Identifier: GPL-2.0
/*
 * A call that gets no memory fails by ENOMEM and leaves all as it was. Fault injection
 * makes each allocation of each call fail once: CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC,
 * CONFIG_FAULT_INJECTION_DEBUG_FS. The calls are those that map a buffer, redirect an
 * event, pause, and make, fill, arm and fire a set. Pausing and redirecting allocate
 * nothing, and can't fail for that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#if __has_include("trigger.h")
#include "trigger.h"
#endif

#define PAGES	4

/* Fit into the buffer, so that all are found. */
#define NAMES	20

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

static int open_fault(const char *capability, const char *name, int flags)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", capability, name);
	return open(path, flags | O_CLOEXEC);
}

static bool set_fault(const char *capability, const char *name, const char *value)
{
	int fd = open_fault(capability, name, O_WRONLY);
	bool set = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return set;
}

/* Whether nobody else has allocations fail. */
static bool is_unused(const char *capability)
{
	int fd = open_fault(capability, "probability", O_RDONLY);
	char text[16] = "";
	bool unused = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && !atoi(text);

	if (fd >= 0)
		close(fd);
	return unused;
}

/*
 * That allocations which may wait fail as well, and any pages, and that the kernel
 * doesn't print its stack each time. It stays so: without a probability, and without a
 * task that asks for them, there are no faults.
 */
static bool set_faults(void)
{
	return is_unused("failslab") && is_unused("fail_page_alloc") &&
	       set_fault("failslab", "ignore-gfp-wait", "N") &&
	       set_fault("failslab", "verbose", "0") &&
	       set_fault("fail_page_alloc", "ignore-gfp-wait", "N") &&
	       set_fault("fail_page_alloc", "ignore-gfp-highmem", "N") &&
	       set_fault("fail_page_alloc", "min-order", "0") &&
	       set_fault("fail_page_alloc", "verbose", "0");
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

/*
 * More pages than a user has free, a power of two: from then on each page of his is
 * counted as pinned.
 */
static unsigned int free_pages(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_mlock_kb", "re");
	unsigned long long kib = 0;
	unsigned int pages = 1;

	if (file) {
		if (fscanf(file, "%llu", &kib) != 1)
			kib = 0;
		fclose(file);
	}
	kib *= sysconf(_SC_NPROCESSORS_ONLN);
	while (pages * (unsigned long long)sysconf(_SC_PAGESIZE) <= kib * 1024)
		pages *= 2;
	return pages;
}

/* The event @fd writes to @ow, @other would to what a test gives it: it is disabled. */
FIXTURE(alloc_fails)
{
	struct perf_overwrite	free;	/* takes what isn't counted */
	struct perf_overwrite	ow;
	struct perf_overwrite	another;
	int			fd;
	int			dummy;
	int			other;
	int			nth;	/* the calling thread's fail-nth */
};

FIXTURE_SETUP(alloc_fails)
{
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_event_attr names = NAME_EVENT(1);

	self->nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (self->nth < 0 || !set_faults())
		SKIP(return, "no fault injection in this kernel, no permission, or it is used");
	self->fd = open_event(_metadata, &names, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, PAGES, false));
	names.comm = 0;
	self->dummy = open_event(_metadata, &names, 0, -1);
	ASSERT_LE(0, self->dummy);
	ASSERT_EQ(0, perf_overwrite_map(&self->free, self->dummy, free_pages(), false));
	self->other = open_event(_metadata, &faults, 0, -1);
	ASSERT_LE(0, self->other);
	/* Nor does a page of this program fail meanwhile. */
	ASSERT_EQ(0, mlockall(MCL_CURRENT));
}

FIXTURE_TEARDOWN(alloc_fails)
{
	EXPECT_EQ(0, close(self->other));
	EXPECT_EQ(0, perf_overwrite_unmap(&self->free));
	EXPECT_EQ(0, close(self->dummy));
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, close(self->nth));
}

/* Has the allocation number @nth fail from now on, 0 for none. */
static bool fail_nth(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	return pwrite(fd, text, length, 0) == length;
}

/* Whether that allocation has come and failed, or -1 with errno set. */
static int has_failed(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return -1;
	return !atoi(text);
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
 * succeeds: it may do without one. Returns how many of them have failed.
 */
static unsigned int each_fails(struct __test_metadata *_metadata,
			       FIXTURE_DATA(alloc_fails) *self,
			       int (*call)(FIXTURE_DATA(alloc_fails) *self),
			       int (*undo)(FIXTURE_DATA(alloc_fails) *self, int result))
{
	const long before = pinned();
	int result = call(self), failed = 1;
	unsigned int nth;

	/* The first time all that it needs of this program comes in. */
	ASSERT_LE(0, result);
	ASSERT_EQ(0, undo(self, result));
	ASSERT_LE(0, before);
	ASSERT_EQ(before, pinned());
	for (nth = 1; failed; nth++) {
		int error;

		ASSERT_TRUE(fail_nth(self->nth, nth));
		result = call(self);
		error = errno;
		failed = has_failed(self->nth);
		ASSERT_TRUE(fail_nth(self->nth, 0));
		ASSERT_LE(0, failed);

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

/* Fails if its pages weren't counted, as then it shows nothing that they aren't. */
static int undo_map(FIXTURE_DATA(alloc_fails) *self, int result)
{
	const long before = pinned();

	if (perf_overwrite_unmap(&self->another))
		return -1;
	return before - pinned() == (PAGES + 1) * sysconf(_SC_PAGESIZE) / 1024 ? 0 : -1;
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
	ASSERT_EQ(0, each_fails(_metadata, self, call_redirect, undo_redirect));
}

TEST_F(alloc_fails, pause)
{
	/* Those of others do fail. */
	ASSERT_LT(0, each_fails(_metadata, self, call_map, undo_map));
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
