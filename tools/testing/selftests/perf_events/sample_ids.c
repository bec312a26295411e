// SPDX-License-Identifier: GPL-2.0
/*
 * Which pid and tid a sample has: those of the task that made it, as the pid
 * namespace sees them in which the event was opened, and a tid of -1 from the
 * moment when a task has none any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

struct ids {
	__u32	pid, tid;
};

struct ids_record {
	struct perf_event_header	header;
	struct ids			ids;
};

/* What a task finds out about itself, shared with whom it tells. */
struct report {
	int		error;
	struct ids	own, sampled;
};

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

static int newest_ids(const struct perf_overwrite *ow, struct ids *ids)
{
	struct perf_overwrite_walk walk;
	struct ids_record *record;

	perf_overwrite_begin(&walk, ow);
	record = (struct ids_record *)perf_overwrite_next(&walk, space);
	if (!record || record->header.type != PERF_RECORD_SAMPLE ||
	    record->header.size != sizeof(*record))
		return -ENODATA;
	*ids = record->ids;
	return 0;
}

static int fault_once(void)
{
	struct fault_area area;

	if (map_fault_area(&area, 1))
		return -errno;
	make_fault(&area, 0);
	munmap(area.base, area.page_size);
	return 0;
}

/* A task has itself sampled. */
static void *report_ids(void *arg)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID);
	struct report *report = arg;
	struct perf_overwrite ow;
	int fd;

	report->own = (struct ids) { getpid(), syscall(__NR_gettid) };
	report->error = -1;
	fd = perf_overwrite_open(&attr, 0, -1, -1);
	if (fd < 0 || perf_overwrite_map(&ow, fd, 1, false) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		report->error = -errno;
		return NULL;
	}
	report->error = fault_once();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	if (!report->error)
		report->error = newest_ids(&ow, &report->sampled);
	perf_overwrite_unmap(&ow);
	close(fd);
	return NULL;
}

static void report_of_thread(struct report *report)
{
	pthread_t thread;

	report->error = -pthread_create(&thread, NULL, report_ids, report);
	if (!report->error)
		pthread_join(thread, NULL);
}

FIXTURE(sample_ids)
{
	struct report	*report;
};

FIXTURE_SETUP(sample_ids)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID);
	int fd = open_event(_metadata, &attr, 0, -1);

	if (fd < 0)
		return;
	ASSERT_EQ(0, close(fd));
	self->report = mmap(NULL, sizeof(*self->report), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->report);
}

FIXTURE_TEARDOWN(sample_ids)
{
	EXPECT_EQ(0, munmap(self->report, sizeof(*self->report)));
}

TEST_F(sample_ids, of_a_thread)
{
	struct report *report = self->report;

	report_of_thread(report);
	ASSERT_EQ(0, report->error);
	ASSERT_NE(report->own.pid, report->own.tid);
	ASSERT_EQ(report->own.pid, report->sampled.pid);
	ASSERT_EQ(report->own.tid, report->sampled.tid);
}

/* What the children have from then on; false if this was a reason to skip. */
static bool new_pid_namespace(struct __test_metadata *_metadata)
{
	if (!unshare(CLONE_NEWPID))
		return true;
	if (errno == EPERM)
		SKIP(return false, "no permission to make a pid namespace");
	ASSERT_EQ(EINVAL, errno);
	SKIP(return false, "no pid namespaces in this kernel");
}

TEST_F(sample_ids, seen_from_within_a_namespace)
{
	struct report *report = self->report;
	int status;
	pid_t pid;

	if (!new_pid_namespace(_metadata))
		return;
	pid = fork();
	if (!pid) {
		report_of_thread(report);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	ASSERT_EQ(0, report->error);
	ASSERT_EQ(1, report->own.pid);
	ASSERT_NE(1, report->own.tid);
	ASSERT_EQ(report->own.pid, report->sampled.pid);
	ASSERT_EQ(report->own.tid, report->sampled.tid);
}

TEST_F(sample_ids, seen_from_around_a_namespace)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID);
	struct report *report = self->report;
	struct perf_overwrite ow;
	struct ids ids;
	int fd, status, go[2];
	char byte = 0;
	pid_t pid;

	if (!new_pid_namespace(_metadata))
		return;
	ASSERT_EQ(0, pipe(go));
	pid = fork();
	if (!pid) {
		report->own.pid = getpid();
		report->error = read(go[0], &byte, 1) == 1 ? fault_once() : -EPIPE;
		_exit(0);
	}
	ASSERT_LT(0, pid);

	fd = open_event(_metadata, &attr, pid, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 1, false));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(1, write(go[1], &byte, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, report->error);

	ASSERT_EQ(1, report->own.pid);
	ASSERT_EQ(0, newest_ids(&ow, &ids));
	ASSERT_EQ((__u32)pid, ids.pid);
	ASSERT_EQ((__u32)pid, ids.tid);

	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
	ASSERT_EQ(0, close(go[0]));
	ASSERT_EQ(0, close(go[1]));
}

static void *return_at_once(void *arg)
{
	return arg;
}

/* The last that a thread does is to switch away; its tid is gone by then. */
TEST_F(sample_ids, of_a_thread_that_has_exited)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_TRACEPOINT,
		.size		= sizeof(attr),
		.sample_type	= PERF_SAMPLE_TID,
		.sample_period	= 1,
		.write_backward	= 1,
		.disabled	= 1,
	};
	long long id = tracepoint_id("sched", "sched_switch");
	int cpu = pin_to_cpu(), fd;
	struct perf_overwrite_walk walk;
	struct ids_record *record;
	unsigned int gone = 0, tries;
	struct perf_overwrite ow;
	pthread_t thread;

	if (id < 0)
		SKIP(return, "no tracepoint sched:sched_switch to be seen");
	attr.config = id;
	ASSERT_LE(0, cpu);
	fd = open_event(_metadata, &attr, -1, cpu);
	if (fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 16, false));

	/* It can be joined before it has switched away for the last time. */
	for (tries = 0; !gone && tries < 100; tries++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		ASSERT_EQ(0, pthread_create(&thread, NULL, return_at_once, NULL));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		usleep(10000);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));

		perf_overwrite_begin_new(&walk, &ow);
		while ((record = (void *)perf_overwrite_next(&walk, space))) {
			ASSERT_EQ(PERF_RECORD_SAMPLE, record->header.type);
			if (record->ids.pid == (__u32)getpid() &&
			    record->ids.tid == (__u32)-1)
				gone++;
		}
	}
	ASSERT_LT(0, gone);

	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
