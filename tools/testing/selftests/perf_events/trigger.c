// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers: the sample of an event freezes the buffers of a set. The trigger's own
 * record is the newest one of its buffer, what comes later is counted, the set says
 * what happened, and whatever goes away meanwhile does no harm.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include <linux/hw_breakpoint.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#include "trigger.h"
#include "trigger_test.h"

#define PAGES		8
#define FIRINGS		200
#define SETS		16
/* To kill a task before it is done. */
#define MOST_TRIES	10

/*
 * A task's names are written to a buffer, as are samples of its page faults: these
 * are the trigger. No privilege is needed.
 */
FIXTURE(trigger)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			names;
	int			faults;
	__u64			faults_id;
	int			set;
	__u64			generation;
};

FIXTURE_SETUP(trigger)
{
	struct perf_event_attr names = NAME_EVENT(1);
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_ADDR);

	self->set = -1;
	self->names = open_event(_metadata, &names, 0, -1);
	if (self->names < 0)
		return;
	if (map_event(_metadata, &self->ow, self->names, PAGES, false))
		return;
	self->faults = open_event(_metadata, &faults, 0, -1);
	if (self->faults < 0)
		return;
	ASSERT_EQ(0, ioctl(self->faults, PERF_EVENT_IOC_SET_OUTPUT, self->names));
	ASSERT_EQ(0, ioctl(self->faults, PERF_EVENT_IOC_ID, &self->faults_id));
	ASSERT_EQ(0, map_fault_area(&self->area, 64));
	self->set = open_set(_metadata, self->names, at_once());
}

FIXTURE_TEARDOWN(trigger)
{
	close(self->set);
	close(self->faults);
	close(self->names);
}

/* Makes a set of other ways the fixture's. */
static void reopen(struct __test_metadata *_metadata, FIXTURE_DATA(trigger) *self,
		   struct perf_trigger_attr attr)
{
	close(self->set);
	self->set = open_set(_metadata, self->names, attr);
	self->generation = 0;
}

static void build(struct __test_metadata *_metadata, FIXTURE_DATA(trigger) *self)
{
	ASSERT_EQ(0, perf_trigger_join(self->set, self->names));
	ASSERT_EQ(0, perf_trigger_add(self->set, self->faults));
}

/* Exactly one fault is sampled, that of page @seq. */
static void one_fault(FIXTURE_DATA(trigger) *self, unsigned int seq)
{
	sample_fault(self->faults, &self->area, seq);
}

TEST_F(trigger, own_record_is_newest)
{
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	unsigned int count = firings(FIRINGS);
	__u64 head, before;

	build(_metadata, self);
	for (unsigned int i = 0; i < count; i++) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		ASSERT_EQ(i + 1, self->generation);
		write_names(i * 20, 10, 0);
		one_fault(self, i);
		before = perf_overwrite_head(&self->ow);
		write_names(i * 20 + 10, 10, 0);

		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		head = perf_overwrite_head(&self->ow);
		EXPECT_EQ(before, head);
		EXPECT_EQ(fault_address(&self->area, i), newest_sample(&self->ow));
		EXPECT_EQ(self->generation, report.generation);
		EXPECT_EQ(self->faults_id, report.id);
		EXPECT_EQ(0, report.flags);
		EXPECT_EQ(1, report.nr);
		EXPECT_EQ(0, report.suppressed);
		EXPECT_EQ(0, report.held_off);
		EXPECT_EQ(head, buffer.head);
		EXPECT_EQ(0, buffer.records);
		EXPECT_EQ(-1, buffer.cpu);
		/* It stays so. */
		write_names(0, 10, 0);
		EXPECT_EQ(head, perf_overwrite_head(&self->ow));
	}
	/* Nothing was lost but what met the frozen buffer. */
	EXPECT_EQ(20ULL * count, lost_count(self->names));
}

TEST_F(trigger, poll_and_read)
{
	struct perf_trigger_report report, small;
	struct perf_trigger_buffer buffer;
	char large[1024];
	int flags;

	build(_metadata, self);
	flags = fcntl(self->set, F_GETFL);
	ASSERT_EQ(0, fcntl(self->set, F_SETFL, flags | O_NONBLOCK));

	EXPECT_FALSE(is_readable(self->set, 0));
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_FALSE(is_readable(self->set, 0));
	EXPECT_EQ(-1, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(EAGAIN, errno);

	/* By user space, which is one call. */
	ASSERT_EQ(0, perf_trigger_fire(self->set));
	EXPECT_TRUE(is_readable(self->set, -1));
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(PERF_TRIGGER_BY_USER, report.flags);
	EXPECT_EQ(0, report.id);
	EXPECT_EQ(report.time, report.until);
	/* A front of it, and no part of a buffer. */
	EXPECT_EQ(-1, read(self->set, &small, sizeof(small) - 1));
	EXPECT_EQ(ENOSPC, errno);
	EXPECT_EQ(sizeof(small), read(self->set, &small, sizeof(small)));
	EXPECT_EQ(0, memcmp(&report, &small, sizeof(small)));
	EXPECT_EQ(sizeof(small), read(self->set, large, sizeof(small) + sizeof(buffer) - 1));
	EXPECT_EQ(sizeof(small) + sizeof(buffer), read(self->set, large, sizeof(large)));
	EXPECT_EQ(0, memcmp(&buffer, large + report.size, sizeof(buffer)));
	EXPECT_EQ(-1, syscall(__NR_read, self->set, 8, sizeof(small)));
	EXPECT_EQ(EFAULT, errno);
	one_fault(self, 0);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(1, report.suppressed);

	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_FALSE(is_readable(self->set, 0));
}

TEST_F(trigger, depth_in_bytes)
{
	struct perf_trigger_attr attr = { .depth_ns = LONG_NS, .depth_bytes = 240 };
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 before, taken;

	reopen(_metadata, self, attr);
	build(_metadata, self);
	for (unsigned int i = 0; i < 20; i++) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		one_fault(self, i);
		before = perf_overwrite_head(&self->ow);
		write_names(0, 20, 0);
		/* Not by the time: that would be a minute. */
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		taken = perf_overwrite_written(before, perf_overwrite_head(&self->ow));
		EXPECT_LE(taken, 240);
		EXPECT_LT(240 - 32, taken);
		EXPECT_EQ(taken, buffer.bytes);
		EXPECT_EQ(LONG_NS, report.until - report.time);
		EXPECT_LE(7, buffer.records);
		EXPECT_GE(10, buffer.records);
	}
}

TEST_F(trigger, depth_in_time)
{
	struct perf_trigger_attr attr = { .depth_ns = 20 * 1000000 };
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 before, start;

	reopen(_metadata, self, attr);
	build(_metadata, self);
	for (unsigned int i = 0; i < 5; i++) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		start = now_ns();
		one_fault(self, i);
		before = perf_overwrite_head(&self->ow);
		/* Every other time it is quiet. */
		if (i & 1)
			write_names(0, 5, 0);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(perf_overwrite_written(before, perf_overwrite_head(&self->ow)),
			  buffer.bytes);
		if (!(i & 1))
			EXPECT_EQ(0, buffer.records);
		EXPECT_EQ(20 * 1000000, report.until - report.time);
		/* By another clock, whose rate may be another. */
		EXPECT_LE(start + attr.depth_ns - attr.depth_ns / 100, now_ns());
	}
}

TEST_F(trigger, hold_off)
{
	struct perf_trigger_attr attr = at_once();
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 start;

	attr.holdoff_bytes = 1024;
	reopen(_metadata, self, attr);
	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	one_fault(self, 0);
	one_fault(self, 1);
	EXPECT_FALSE(is_readable(self->set, 0));
	write_names(0, 60, 0);
	one_fault(self, 2);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(2, report.held_off);
	EXPECT_EQ(fault_address(&self->area, 2), newest_sample(&self->ow));

	attr.holdoff_bytes = 0;
	attr.holdoff_ns = 50 * 1000000;
	reopen(_metadata, self, attr);
	build(_metadata, self);
	start = now_ns();
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	for (unsigned int i = 3; !is_readable(self->set, 10); i++)
		one_fault(self, i);
	EXPECT_LE(start + attr.holdoff_ns, now_ns());
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(self->faults_id, report.id);
}

/* Each part of a readv() begins with the report. */
TEST_F(trigger, readv)
{
	struct perf_trigger_report reports[2];
	struct iovec parts[2] = {
		{ .iov_base = &reports[0], .iov_len = sizeof(reports[0]) },
		{ .iov_base = &reports[1], .iov_len = sizeof(reports[1]) },
	};

	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	one_fault(self, 0);
	ASSERT_EQ(sizeof(reports), readv(self->set, parts, 2));
	EXPECT_EQ(0, memcmp(&reports[0], &reports[1], sizeof(reports[0])));
	EXPECT_EQ(self->faults_id, reports[0].id);
	EXPECT_EQ(1, reports[0].nr);
	EXPECT_EQ(0, reports[0].__reserved);
}

TEST_F(trigger, generation)
{
	struct perf_trigger_attr attr = { .depth_ns = LONG_NS, .depth_bytes = 64 };
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 stale = 1;

	reopen(_metadata, self, attr);
	EXPECT_EQ(-1, perf_trigger_arm(self->set, &self->generation));
	EXPECT_EQ(ENXIO, errno);
	build(_metadata, self);
	EXPECT_EQ(-1, perf_trigger_fire(self->set));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, perf_trigger_arm(self->set, &stale));
	EXPECT_EQ(ESTALE, errno);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_EQ(-1, perf_trigger_arm(self->set, &self->generation));
	EXPECT_EQ(EALREADY, errno);
	ASSERT_EQ(0, perf_trigger_fire(self->set));
	EXPECT_EQ(-1, perf_trigger_fire(self->set));
	EXPECT_EQ(EALREADY, errno);
	EXPECT_EQ(-1, perf_trigger_arm(self->set, &self->generation));
	EXPECT_EQ(EINPROGRESS, errno);
	write_names(0, 10, 0);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	stale = 0;
	EXPECT_EQ(-1, perf_trigger_arm(self->set, &stale));
	EXPECT_EQ(ESTALE, errno);
	EXPECT_EQ(-1, ioctl(self->set, PERF_TRIGGER_IOC_ARM, 8));
	EXPECT_EQ(EFAULT, errno);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_EQ(2, self->generation);
}

static int attr_error(int event, struct perf_trigger_attr attr, __u32 size)
{
	struct {
		struct perf_trigger_attr	attr;
		__u64				more;
	} large = { .attr = attr };
	int set;

	large.attr.size = size & 0xffff;
	large.more = size >> 16;
	set = ioctl(event, PERF_EVENT_IOC_TRIGGER_SET, &large);
	if (set >= 0) {
		close(set);
		return 0;
	}
	/* As perf_event_open() does. */
	if (errno == E2BIG && large.attr.size != sizeof(attr))
		return -1;
	return errno;
}

TEST_F(trigger, bad_attributes)
{
	struct perf_trigger_attr attr = at_once();
	const __u32 size = sizeof(attr);

	EXPECT_EQ(0, attr_error(self->names, attr, size));
	EXPECT_EQ(0, attr_error(self->names, attr, size + 8));
	EXPECT_EQ(E2BIG, attr_error(self->names, attr, 0));
	EXPECT_EQ(E2BIG, attr_error(self->names, attr, size - 8));
	EXPECT_EQ(E2BIG, attr_error(self->names, attr, (size + 8) | 1U << 16));
	EXPECT_EQ(E2BIG, attr_error(self->names, attr, 0xfff8));

	attr.flags |= 2;
	EXPECT_EQ(EINVAL, attr_error(self->names, attr, size));
	/* At once, and not. */
	attr = at_once();
	attr.depth_ns = 1;
	EXPECT_EQ(EINVAL, attr_error(self->names, attr, size));
	/* Neither. */
	attr = (struct perf_trigger_attr) { };
	EXPECT_EQ(EINVAL, attr_error(self->names, attr, size));
	/* Bytes that may never come. */
	attr.depth_bytes = 8;
	EXPECT_EQ(EINVAL, attr_error(self->names, attr, size));
	attr.depth_ns = 1;
	EXPECT_EQ(0, attr_error(self->names, attr, size));
	attr.depth_ns = -1ULL;
	EXPECT_EQ(ERANGE, attr_error(self->names, attr, size));
	attr.depth_ns = 1;
	attr.depth_bytes = -1ULL;
	EXPECT_EQ(ERANGE, attr_error(self->names, attr, size));
	attr = at_once();
	attr.holdoff_ns = -1ULL;
	EXPECT_EQ(ERANGE, attr_error(self->names, attr, size));
	attr.holdoff_ns = 0;
	attr.holdoff_bytes = -1ULL;
	EXPECT_EQ(ERANGE, attr_error(self->names, attr, size));

	EXPECT_EQ(-1, ioctl(self->names, PERF_EVENT_IOC_TRIGGER_SET, 8));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F(trigger, bad_members)
{
	struct perf_event_attr counter = NAME_EVENT(1);
	struct perf_event_attr clocked = NAME_EVENT(1);
	struct perf_event_attr bpf_output = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
	};
	struct perf_overwrite bare, other_clock;
	struct perf_trigger_attr attr = {
		.depth_ns = 1,
		.depth_bytes = (PAGES + 1) * self->area.page_size,
	};
	int fd, clock, other;

	EXPECT_ERROR(EBADF, perf_trigger_join(self->set, -1));
	EXPECT_ERROR(EBADF, perf_trigger_join(self->set, 0));
	EXPECT_ERROR(EBADF, perf_trigger_join(self->set, self->set));
	EXPECT_ERROR(EBADF, perf_trigger_add(self->set, self->set));
	EXPECT_ERROR(ENOTTY, ioctl(self->set, PERF_EVENT_IOC_ENABLE, 0));

	fd = open_event(_metadata, &counter, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_ERROR(ENXIO, perf_trigger_join(self->set, fd));
	EXPECT_ERROR(EINVAL, perf_trigger_add(self->set, fd));
	if (map_event(_metadata, &bare, fd, 0, false))
		return;
	EXPECT_STREQ("size", fd_info(fd, "paused-by"));
	EXPECT_ERROR(ENOBUFS, perf_trigger_join(self->set, fd));

	clocked.use_clockid = 1;
	clocked.clockid = CLOCK_MONOTONIC;
	clock = open_event(_metadata, &clocked, 0, -1);
	ASSERT_LE(0, clock);
	if (map_event(_metadata, &other_clock, clock, 1, false))
		return;
	EXPECT_ERROR(EXDEV, perf_trigger_join(self->set, clock));

	other = perf_trigger_set(self->names, &attr);
	ASSERT_LE(0, other);
	EXPECT_ERROR(ERANGE, perf_trigger_join(other, self->names));
	close(other);
	attr = at_once();
	attr.holdoff_bytes = PAGES * self->area.page_size + 1;
	other = perf_trigger_set(self->names, &attr);
	ASSERT_LE(0, other);
	EXPECT_ERROR(ERANGE, perf_trigger_join(other, self->names));
	close(other);

	/* A program's records overflow nothing. A kernel without BPF has none. */
	other = open_event(_metadata, &bpf_output, 0, -1);
	if (other >= 0) {
		EXPECT_ERROR(EOPNOTSUPP, perf_trigger_add(self->set, other));
		close(other);
	}

	build(_metadata, self);
	EXPECT_ERROR(EEXIST, perf_trigger_join(self->set, self->names));
	/* It is the buffer that has joined. */
	EXPECT_ERROR(EEXIST, perf_trigger_join(self->set, self->faults));
	EXPECT_ERROR(EEXIST, perf_trigger_add(self->set, self->faults));

	attr = at_once();
	other = perf_trigger_set(self->names, &attr);
	ASSERT_LE(0, other);
	EXPECT_ERROR(EBUSY, perf_trigger_join(other, self->names));
	EXPECT_ERROR(EBUSY, perf_trigger_add(other, self->faults));

	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	close(clock);
	clock = open_event(_metadata, &counter, 0, -1);
	ASSERT_LE(0, clock);
	ASSERT_EQ(0, perf_overwrite_unmap(&other_clock));
	if (map_event(_metadata, &other_clock, clock, 1, false))
		return;
	EXPECT_ERROR(EALREADY, perf_trigger_join(self->set, clock));

	/* Both are free when their set is gone. */
	close(self->set);
	self->set = -1;
	EXPECT_EQ(0, perf_trigger_join(other, self->names));
	EXPECT_EQ(0, perf_trigger_add(other, self->faults));
	close(other);
	close(clock);
	close(fd);
}

/* The ioctl's pause and the trigger's are separate, and fdinfo tells them apart. */
static bool paused_by(int fd, const char *by)
{
	const char *value = fd_info(fd, "paused-by");

	return value && !strcmp(value, by);
}

TEST_F(trigger, pause_is_separate)
{
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 head;

	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_TRUE(paused_by(self->names, ""));
	one_fault(self, 0);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_TRUE(paused_by(self->names, "trigger"));
	head = perf_overwrite_head(&self->ow);
	ASSERT_EQ(0, perf_overwrite_resume(self->names));
	write_names(0, 5, 0);
	EXPECT_EQ(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(0, perf_overwrite_pause(self->names));
	EXPECT_TRUE(paused_by(self->names, "ioctl trigger"));
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	EXPECT_TRUE(paused_by(self->names, "ioctl"));
	write_names(0, 5, 0);
	EXPECT_EQ(head, perf_overwrite_head(&self->ow));

	/* The trigger's record is dropped by the other pause, and this is told. */
	one_fault(self, 1);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(PERF_TRIGGER_NO_RECORD, report.flags);
	ASSERT_EQ(0, perf_overwrite_resume(self->names));
	EXPECT_EQ(head, perf_overwrite_head(&self->ow));

	/* The set takes its own pause with it. */
	close(self->set);
	self->set = -1;
	EXPECT_TRUE(paused_by(self->names, ""));
	write_names(0, 5, 0);
	EXPECT_NE(head, perf_overwrite_head(&self->ow));
}

/* An inherited event's trigger is its parent's. */
TEST_F(trigger, fired_by_child)
{
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_ADDR);
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	__u64 id;

	/* One child is there before the event is made a trigger, the other comes later. */
	for (int late = 0; late < 2; late++) {
		int event, go[2];
		pid_t pid;

		faults.inherit = 1;
		event = open_event(_metadata, &faults, 0, -1);
		ASSERT_LE(0, event);
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_ID, &id));
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->names));
		reopen(_metadata, self, at_once());
		if (self->set < 0)
			return;
		ASSERT_EQ(0, perf_trigger_join(self->set, self->names));
		if (late) {
			ASSERT_EQ(0, perf_trigger_add(self->set, event));
			ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		}

		ASSERT_EQ(0, pipe(go));
		pid = fork();
		if (!pid) {
			char byte;

			close(go[1]);
			if (read(go[0], &byte, 1) != 1)
				_exit(1);
			ioctl(event, PERF_EVENT_IOC_ENABLE);
			madvise(self->area.base, self->area.page_size, MADV_DONTNEED);
			*(volatile unsigned char *)self->area.base;
			_exit(0);
		}
		ASSERT_LT(0, pid);
		if (!late) {
			ASSERT_EQ(0, perf_trigger_add(self->set, event));
			ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		}
		ASSERT_EQ(1, write(go[1], "", 1));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(id, report.id);
		close(go[0]);
		close(go[1]);
		close(event);
	}
}

/*
 * Two processes that map an event by themselves unmap it at the same time: whoever is
 * the last one for the buffer need not be the last one for the event. The buffer has
 * left the set then, and nothing of the set touches it any more.
 */
#define UNMAPPINGS	200

TEST_F(trigger, unmapped_by_two)
{
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	int go[2], done[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(done));
	for (unsigned int i = 0; i < UNMAPPINGS; i++) {
		struct perf_event_attr names = NAME_EVENT(1);
		struct perf_overwrite ow, mine;
		int event;

		event = open_event(_metadata, &names, 0, -1);
		ASSERT_LE(0, event);
		if (map_event(_metadata, &ow, event, 1, false))
			return;
		reopen(_metadata, self, at_once());
		if (self->set < 0)
			return;
		ASSERT_EQ(0, perf_trigger_join(self->set, event));
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));

		pid = fork();
		if (!pid) {
			/* What is mapped isn't inherited. */
			if (perf_overwrite_map(&mine, event, 1, false) ||
			    write(done[1], "", 1) != 1 || read(go[0], &byte, 1) != 1)
				_exit(1);
			perf_overwrite_unmap(&mine);
			_exit(0);
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(1, read(done[0], &byte, 1));
		ASSERT_EQ(1, write(go[1], "", 1));
		ASSERT_EQ(0, perf_overwrite_unmap(&ow));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));

		ASSERT_EQ(0, perf_trigger_fire(self->set));
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(PERF_TRIGGER_GONE, buffer.flags);
		EXPECT_EQ(0, buffer.head);
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		close(event);
	}
	close(go[0]);
	close(go[1]);
	close(done[0]);
	close(done[1]);
}

/* Whatever is closed first, and when. */
TEST_F(trigger, closed_in_any_order)
{
	struct perf_trigger_attr depth = { .depth_ns = 3 * 1000000, .depth_bytes = 64 };
	static const char orders[][5] = {
		"sfnm", "sfmn", "snfm", "snmf", "smfn", "smnf", "fsnm", "fsmn", "fnsm",
		"fnms", "fmsn", "fmns", "nsfm", "nsmf", "nfsm", "nfms", "nmsf", "nmfs",
		"msfn", "msnf", "mfsn", "mfns", "mnsf", "mnfs",
	};

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(orders); i++) {
		FIXTURE_DATA(trigger) one = { .area = self->area };
		struct perf_event_attr names = NAME_EVENT(1);
		struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_ADDR);
		const char *order = orders[i / 2];

		one.names = open_event(_metadata, &names, 0, -1);
		ASSERT_LE(0, one.names);
		if (map_event(_metadata, &one.ow, one.names, 1, false))
			return;
		one.faults = open_event(_metadata, &faults, 0, -1);
		ASSERT_LE(0, one.faults);
		ASSERT_EQ(0, ioctl(one.faults, PERF_EVENT_IOC_SET_OUTPUT, one.names));
		one.set = open_set(_metadata, one.names, i & 1 ? depth : at_once());
		if (one.set < 0)
			return;
		build(_metadata, &one);
		ASSERT_EQ(0, perf_trigger_arm(one.set, &one.generation));
		/* Before each of them in turn it is fired. */
		for (unsigned int when = 0; order[when]; when++) {
			if (when == i % 4)
				one_fault(&one, i);
			write_names(0, 5, 0);
			switch (order[when]) {
			case 's':
				close(one.set);
				break;
			case 'f':
				close(one.faults);
				break;
			case 'n':
				close(one.names);
				break;
			case 'm':
				ASSERT_EQ(0, perf_overwrite_unmap(&one.ow));
				break;
			}
		}
	}
}

/* A buffer that is gone is told of, and the trigger's output may go elsewhere. */
TEST_F(trigger, buffer_goes)
{
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;

	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	ASSERT_EQ(0, ioctl(self->faults, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	one_fault(self, 0);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(PERF_TRIGGER_NO_RECORD, report.flags);
	EXPECT_EQ(0, buffer.flags);

	ASSERT_EQ(0, ioctl(self->faults, PERF_EVENT_IOC_SET_OUTPUT, self->names));
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
	one_fault(self, 1);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(PERF_TRIGGER_GONE, buffer.flags);
	EXPECT_EQ(0, buffer.head);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));

	/* It may be mapped anew, and is another one then. */
	if (map_event(_metadata, &self->ow, self->names, PAGES, false))
		return;
	one_fault(self, 2);
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(PERF_TRIGGER_GONE, buffer.flags);
	EXPECT_EQ(0, buffer.head);
	write_names(0, 5, 0);
	EXPECT_NE(0, perf_overwrite_head(&self->ow));
}

/* All of it is for a user without privileges, too, with events of his own. */
TEST_F(trigger, unprivileged)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		FIXTURE_DATA(trigger) one = { .area = self->area };
		struct perf_event_attr names = NAME_EVENT(1);
		struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_ADDR);
		struct perf_trigger_attr attr = at_once();
		struct perf_trigger_report report;
		struct perf_trigger_buffer buffer;

		if (become_nobody())
			_exit(KSFT_SKIP);
		one.names = perf_overwrite_open(&names, 0, -1, -1);
		if (one.names < 0)
			_exit(errno == EACCES || errno == EPERM ? KSFT_SKIP : 2);
		if (perf_overwrite_map(&one.ow, one.names, 1, false))
			_exit(3);
		one.faults = perf_overwrite_open(&faults, 0, -1, -1);
		if (one.faults < 0 || ioctl(one.faults, PERF_EVENT_IOC_SET_OUTPUT, one.names))
			_exit(4);
		one.set = perf_trigger_set(one.names, &attr);
		if (one.set < 0 || perf_trigger_join(one.set, one.names) ||
		    perf_trigger_add(one.set, one.faults))
			_exit(5);
		for (int i = 0; i < 10; i++) {
			if (perf_trigger_arm(one.set, &one.generation))
				_exit(6);
			one_fault(&one, i);
			if (perf_trigger_read(one.set, &report, &buffer, 1))
				_exit(7);
			if (newest_sample(&one.ow) != fault_address(&one.area, i))
				_exit(8);
		}
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "no events without privileges");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* An event for each set to be its trigger. False if the test is to be skipped. */
static bool open_triggers(struct __test_metadata *_metadata, int *events)
{
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_ADDR);

	for (int i = 0; i < SETS; i++) {
		events[i] = open_event(_metadata, &faults, 0, -1);
		if (events[i] < 0)
			return false;
	}
	return true;
}

static void close_triggers(struct __test_metadata *_metadata, const int *events)
{
	for (int i = 0; i < SETS; i++)
		ASSERT_EQ(0, close(events[i]));
}

/*
 * A process that was given sets by another one closes them without waiting: it goes to
 * sleep less often than once for each.
 */
TEST(closed_by_another)
{
	int status, ready[2], events[SETS], sets[SETS];
	pid_t pid;

	if (!open_triggers(_metadata, events))
		return;
	for (int i = 0; i < SETS; i++) {
		sets[i] = open_set(_metadata, events[i], at_once());
		if (sets[i] < 0)
			return;
		/* Nobody would wait for a set without triggers and buffers. */
		ASSERT_EQ(0, perf_trigger_add(sets[i], events[i]));
	}
	ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		struct rusage before, after;
		char byte;

		if (read(ready[0], &byte, 1) != 1 || getrusage(RUSAGE_SELF, &before))
			_exit(1);
		for (int i = 0; i < SETS; i++)
			if (close(sets[i]))
				_exit(2);
		if (getrusage(RUSAGE_SELF, &after))
			_exit(3);
		_exit(after.ru_nvcsw - before.ru_nvcsw < SETS ? 0 : 4);
	}
	ASSERT_LT(0, pid);
	for (int i = 0; i < SETS; i++)
		ASSERT_EQ(0, close(sets[i]));
	ASSERT_EQ(1, write(ready[1], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	close_triggers(_metadata, events);
}

/*
 * In a child: sets of its own, each with a trigger, and how often it has slept until then.
 * Returns the first one's descriptor: those that come later are higher.
 */
static int make_sets(const int *events, int told)
{
	struct perf_trigger_attr attr = at_once();
	struct rusage before;
	int first = -1;

	for (int i = 0; i < SETS; i++) {
		int set = perf_trigger_set(events[i], &attr);

		if (set < 0)
			_exit(errno == ENOTTY ? KSFT_SKIP : 1);
		if (perf_trigger_add(set, events[i]))
			_exit(2);
		first = i ? first : set;
	}
	if (getrusage(RUSAGE_SELF, &before) ||
	    write(told, &before, sizeof(before)) != sizeof(before))
		_exit(3);
	return first;
}

/* Nor does a task that exits with sets of its own. */
TEST(exit_of_creator)
{
	int status, told[2], events[SETS];
	struct rusage before, after;
	pid_t pid;

	if (!open_triggers(_metadata, events))
		return;
	ASSERT_EQ(0, pipe2(told, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		make_sets(events, told[1]);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, wait4(pid, &status, 0, &after));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "no triggers in this kernel");
	ASSERT_EQ(0, WEXITSTATUS(status));
	ASSERT_EQ((ssize_t)sizeof(before), read(told[0], &before, sizeof(before)));
	EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, SETS);
	close_triggers(_metadata, events);
}

/* How often a task has slept, -1 if there is none. */
static long sleeps_of(pid_t pid)
{
	char path[64], line[256];
	long sleeps = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %ld", &sleeps);
	if (file)
		fclose(file);
	return sleeps;
}

/*
 * Nor does a task that is killed while it waits. It closes all sets by one call, and ends
 * only when the kernel has let go of the last of them.
 */
TEST(kill_of_creator)
{
	int status, told[2], events[SETS], tries = 0;
	struct rusage before, after;
	pid_t pid;

	if (!open_triggers(_metadata, events))
		return;
	/* Again, if it was done before it was killed. */
	do {
		ASSERT_EQ(0, pipe2(told, O_CLOEXEC));
		pid = fork();
		if (!pid) {
			int first = make_sets(events, told[1]);

			_exit(syscall(__NR_close_range, first, ~0U, 0) ? 4 : 0);
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(0, close(told[1]));
		if (read(told[0], &before, sizeof(before)) == (ssize_t)sizeof(before)) {
			/* Until it waits for the first of them. */
			while (sleeps_of(pid) <= before.ru_nvcsw && is_alive(pid))
				usleep(100);
			ASSERT_EQ(0, kill(pid, SIGKILL));
		}
		ASSERT_EQ(0, close(told[0]));
		ASSERT_EQ(pid, wait4(pid, &status, 0, &after));
		if (WIFEXITED(status) && WEXITSTATUS(status) == KSFT_SKIP)
			SKIP(return, "no triggers in this kernel");
	} while (WIFEXITED(status) && !WEXITSTATUS(status) && ++tries < MOST_TRIES);
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, SETS);
	close_triggers(_metadata, events);
}

/*
 * What may be a trigger, as far as a machine without a PMU has it: events whose samples
 * are taken by the task itself, in an exception, in an interrupt, and in the scheduler,
 * which holds a run queue's lock.
 */
static volatile unsigned long watched;

static void probed(void)
{
	asm volatile("" : : : "memory");
}

static void call_probed(int set)
{
	void (*call)(void) = probed;

	(void)set;
	/* What it calls isn't known to the compiler, hence not inlined. */
	asm volatile("" : "+r" (call));
	call();
}

static void write_watched(int set)
{
	(void)set;
	watched++;
}

static void call_kernel(int set)
{
	(void)set;
	syscall(__NR_getpriority, 0, 0);
}

/* The time may be over before the task has gone to sleep. */
static void be_switched(int set)
{
	while (!is_readable(set, 0))
		usleep(1);
}

static void use_time(int set)
{
	while (!is_readable(set, 0))
		;
}

/* The function probed() of this program. Returns 0, or -1 if the kernel has no uprobes. */
static int probe_user(struct perf_event_attr *attr)
{
	unsigned long start, end, offset, at = (unsigned long)probed;
	static char path[256];
	char line[512];
	FILE *file;
	ssize_t len;

	file = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	if (!file)
		return -1;
	if (fscanf(file, "%u", &attr->type) != 1)
		attr->type = -1;
	fclose(file);

	len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	file = fopen("/proc/self/maps", "re");
	if (len < 0 || !file)
		return -1;
	path[len] = 0;
	attr->config = 0;
	attr->uprobe_path = (unsigned long)path;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    start <= at && at < end)
			attr->probe_offset = at - start + offset;
	}
	fclose(file);
	return attr->probe_offset ? 0 : -1;
}

static int watch_user(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->config = 0;
	attr->bp_type = HW_BREAKPOINT_W;
	attr->bp_addr = (unsigned long)&watched;
	attr->bp_len = sizeof(watched);
	return 0;
}

/* The system call that call_kernel() makes, by the names that architectures give it. */
static int break_kernel(struct perf_event_attr *attr)
{
	static const char * const names[] = {
		"__ia32_sys_getpriority", "__x64_sys_getpriority", "__arm64_sys_getpriority",
		"__s390x_sys_getpriority", "__riscv_sys_getpriority", "sys_getpriority",
	};
	/* The first is that of programs of 32 bits, also where there is the second. */
	const size_t first = sizeof(long) == sizeof(__u32) ? 0 : 1;
	FILE *file = fopen("/proc/kallsyms", "re");
	size_t best = ARRAY_SIZE(names);
	unsigned long long address;
	char line[512], name[256];

	if (!file)
		return -1;
#ifdef __powerpc__
	/* Its breakpoints only watch data. */
	fclose(file);
	return -1;
#endif
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s", &address, name) != 2 || !address)
			continue;
		for (size_t i = first; i < best; i++) {
			if (!strcmp(name, names[i])) {
				best = i;
				attr->bp_addr = address;
			}
		}
	}
	fclose(file);
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->config = 0;
	attr->bp_type = HW_BREAKPOINT_X;
	attr->bp_len = kernel_long();
	return attr->bp_addr ? 0 : -1;
}

static int sample_clock(struct perf_event_attr *attr)
{
	attr->config = PERF_COUNT_SW_CPU_CLOCK;
	attr->sample_period = 100000;
	return 0;
}

static int sample_switches(struct perf_event_attr *attr)
{
	attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	return 0;
}

FIXTURE(trigger_by)
{
	struct perf_overwrite	ow;
	int			names;
	int			event;
	__u64			id;
	int			set;
	__u64			generation;
};

FIXTURE_VARIANT(trigger_by)
{
	int	(*choose)(struct perf_event_attr *attr);
	void	(*make)(int set);
};

FIXTURE_VARIANT_ADD(trigger_by, uprobe)
{
	.choose = probe_user, .make = call_probed,
};

FIXTURE_VARIANT_ADD(trigger_by, watchpoint)
{
	.choose = watch_user, .make = write_watched,
};

FIXTURE_VARIANT_ADD(trigger_by, kernel_breakpoint)
{
	.choose = break_kernel, .make = call_kernel,
};

FIXTURE_VARIANT_ADD(trigger_by, interrupt)
{
	.choose = sample_clock, .make = use_time,
};

FIXTURE_VARIANT_ADD(trigger_by, scheduler)
{
	.choose = sample_switches, .make = be_switched,
};

FIXTURE_SETUP(trigger_by)
{
	struct perf_event_attr names = NAME_EVENT(1);
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);

	self->set = -1;
	self->event = -1;
	if (variant->choose(&attr))
		SKIP(return, "this kernel has no such events");
	attr.exclude_kernel = 0;
	self->names = open_event(_metadata, &names, 0, -1);
	if (self->names < 0)
		return;
	if (map_event(_metadata, &self->ow, self->names, PAGES, false))
		return;
	self->set = open_set(_metadata, self->names, at_once());
	if (self->set < 0)
		return;
	self->event = perf_overwrite_open(&attr, 0, -1, -1);
	if (self->event < 0 && attr.type == PERF_TYPE_BREAKPOINT &&
	    (errno == ENODEV || errno == ENOENT || errno == ENOSPC || errno == EOPNOTSUPP))
		SKIP(return, "no breakpoint: %s", strerror(errno));
	if (self->event < 0)
		self->event = open_event(_metadata, &attr, 0, -1);
	if (self->event < 0)
		return;
	self->id = event_id(self->event);
	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_SET_OUTPUT, self->names));
}

FIXTURE_TEARDOWN(trigger_by)
{
	close(self->set);
	close(self->event);
	close(self->names);
}

TEST_F(trigger_by, own_record_is_newest)
{
	unsigned int count = firings(FIRINGS);
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;

	ASSERT_EQ(0, perf_trigger_join(self->set, self->names));
	ASSERT_EQ(0, perf_trigger_add(self->set, self->event));
	for (unsigned int i = 0; i < count; i++) {
		__u64 head;

		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		write_names(i * 20, 10, 0);
		ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_ENABLE));
		variant->make(self->set);
		ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_DISABLE));
		head = perf_overwrite_head(&self->ow);
		write_names(i * 20 + 10, 10, 0);

		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(self->id, report.id);
		EXPECT_EQ(self->id, newest_sample(&self->ow));
		EXPECT_EQ(0, report.flags);
		EXPECT_EQ(self->generation, report.generation);
		EXPECT_EQ(head, buffer.head);
		EXPECT_EQ(0, buffer.records);
		EXPECT_EQ(head, perf_overwrite_head(&self->ow));
	}
}

TEST_HARNESS_MAIN
