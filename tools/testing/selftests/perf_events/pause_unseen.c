// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer of a task's events is also written while its CPU runs another task: a
 * context switch is sampled and recorded for the task that has just been switched out,
 * the waker of a task that sleeps writes its samples, and PERF_RECORD_EXIT comes when
 * the task has given up its events. A pause waits for these writers, too: when it has
 * returned nothing changes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "../kselftest_harness.h"
#include "pause_writer.h"

#define EVENTS		16
#define SWITCH_EVENTS	64
#define EVENTS_MAX	64
#define PAUSES		100
#define EXITS		60
#define EXITS_MAX	1000
#define PROBES		64
/* The record and six words of ids. */
#define EXIT_RECORD_BYTES	(sizeof(struct perf_event_header) + 3 * 8 + 6 * 8)

enum maker {
	SWITCH_SAMPLES,		/* of the task that is switched out */
	SWITCH_RECORDS,
	WAKER_SAMPLES,
	EXIT_RECORDS,
};

FIXTURE(pause_unseen)
{
	struct perf_overwrite	ow;
	unsigned char		*copy;
	int			cpus[2];
	int			fds[EVENTS_MAX];
	int			nr_fds;
	int			probes[PROBES];
	int			nr_probes;
	pid_t			task, partner;
	int			to_task[2], to_partner[2];
};

FIXTURE_VARIANT(pause_unseen)
{
	enum maker	maker;
	bool		bound;		/* events are bound to the CPU */
};

FIXTURE_VARIANT_ADD(pause_unseen, switch_samples_on_cpu)
{
	.maker = SWITCH_SAMPLES,
	.bound = true,
};

FIXTURE_VARIANT_ADD(pause_unseen, switch_samples)
{
	.maker = SWITCH_SAMPLES,
	.bound = false,
};

FIXTURE_VARIANT_ADD(pause_unseen, switch_records_on_cpu)
{
	.maker = SWITCH_RECORDS,
	.bound = true,
};

FIXTURE_VARIANT_ADD(pause_unseen, switch_records)
{
	.maker = SWITCH_RECORDS,
	.bound = false,
};

/* Only events that are bound to a CPU are found there by the waker. */
FIXTURE_VARIANT_ADD(pause_unseen, waker_samples_on_cpu)
{
	.maker = WAKER_SAMPLES,
	.bound = true,
};

FIXTURE_VARIANT_ADD(pause_unseen, exit_records_on_cpu)
{
	.maker = EXIT_RECORDS,
	.bound = true,
};

FIXTURE_VARIANT_ADD(pause_unseen, exit_records)
{
	.maker = EXIT_RECORDS,
	.bound = false,
};

/* Two tasks on one CPU that wake each other, and sleep in between. */
static void play(int from, int to)
{
	char byte;

	touch_stack();
	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(1);
}

/* A task that exits as soon as it is told to. */
static void wait_and_exit(int from)
{
	char byte;

	_exit(read(from, &byte, 1) != 1);
}

static pid_t start_task(struct __test_metadata *_metadata, int cpu, int from, int to)
{
	pid_t pid = fork_tied();

	if (pid) {
		ASSERT_LT(0, pid);
		return pid;
	}
	if (go_to_cpu(cpu))
		_exit(1);
	if (to < 0)
		wait_and_exit(from);
	play(from, to);
	return -1;
}

static struct perf_event_attr attr_of(enum maker maker)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_STACK_USER);

	attr.exclude_kernel = 0;
	attr.disabled = 0;
	attr.sample_stack_user = WRITER_STACK_BYTES;
	switch (maker) {
	case SWITCH_SAMPLES:
		attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
		break;
	case WAKER_SAMPLES:
		attr.type = PERF_TYPE_TRACEPOINT;
		attr.config = tracepoint_id("sched", "sched_waking");
		break;
	case SWITCH_RECORDS:
	case EXIT_RECORDS:
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.context_switch = maker == SWITCH_RECORDS;
		attr.task = maker == EXIT_RECORDS;
		attr.sample_id_all = 1;
		attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				   PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				   PERF_SAMPLE_IDENTIFIER;
		attr.sample_stack_user = 0;
		break;
	}
	return attr;
}

/* Opens the events of a task; all write to the first one's buffer. False if skipped. */
static bool open_events(struct __test_metadata *_metadata,
			FIXTURE_DATA(pause_unseen) *self,
			const FIXTURE_VARIANT(pause_unseen) *variant)
{
	struct perf_event_attr attr = attr_of(variant->maker);
	bool samples = attr.sample_stack_user;
	size_t pages = writer_buffer_pages();
	char filter[32];

	snprintf(filter, sizeof(filter), "pid == %d", self->task);
	if (attr.config == -1ULL)
		SKIP(return false, "no tracepoint sched:sched_waking");
	if (samples && lacks_stack_dump(attr, 0))
		SKIP(return false, "no dumps of the user's stack on this architecture");
	while (self->nr_fds < (samples ? EVENTS : SWITCH_EVENTS)) {
		int fd = open_event(_metadata, &attr, self->task,
				    variant->bound ? self->cpus[1] : -1);

		if (fd < 0)
			return false;
		self->fds[self->nr_fds++] = fd;
		if (variant->maker == WAKER_SAMPLES)
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter));
		if (self->nr_fds > 1) {
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fds[0]));
		} else if (map_event(_metadata, &self->ow, fd, pages, false)) {
			return false;
		}
	}
	return true;
}

static void close_events(struct __test_metadata *_metadata,
			 FIXTURE_DATA(pause_unseen) *self)
{
	if (self->ow.meta)
		EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	memset(&self->ow, 0, sizeof(self->ow));
	while (self->nr_fds)
		EXPECT_EQ(0, close(self->fds[--self->nr_fds]));
}

/*
 * A record without a stack is written in less time than a pause takes to return. Probes
 * in the function that adds the ids prolong it; nobody reads what they count. A kernel
 * without kprobes, or with that function inlined, does without. So does arm, whose
 * kprobes may jump to memory that isn't executable.
 */
static void open_probes(struct __test_metadata *_metadata,
			FIXTURE_DATA(pause_unseen) *self)
{
#ifndef __arm__
	struct perf_event_attr attr = {
		.type = read_number("/sys/bus/event_source/devices/kprobe/type"),
		.kprobe_func = (unsigned long)"__perf_event__output_id_sample",
		.sample_period = 1,
	};

	while (self->nr_probes < PROBES) {
		int fd = perf_overwrite_open(&attr, -1, self->cpus[1], -1);

		if (fd < 0)
			break;
		self->probes[self->nr_probes++] = fd;
	}
#endif
	if (!self->nr_probes)
		TH_LOG("no probes that make a record last: chances are slim");
}

FIXTURE_SETUP(pause_unseen)
{
	if (allowed_cpus(self->cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, go_to_cpu(self->cpus[0]));
	self->copy = malloc(WRITER_BUFFER_BYTES);
	ASSERT_NE(NULL, self->copy);
	ASSERT_EQ(0, pipe2(self->to_task, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(self->to_partner, O_CLOEXEC));
	if (variant->maker == SWITCH_RECORDS || variant->maker == EXIT_RECORDS)
		open_probes(_metadata, self);
}

FIXTURE_TEARDOWN(pause_unseen)
{
	stop_child(_metadata, self->task);
	stop_child(_metadata, self->partner);
	close_events(_metadata, self);
	while (self->nr_probes)
		EXPECT_EQ(0, close(self->probes[--self->nr_probes]));
	free(self->copy);
}

static __u64 lost_records(FIXTURE_DATA(pause_unseen) *self)
{
	__u64 lost = 0;

	for (int i = 0; i < self->nr_fds; i++)
		lost += lost_count(self->fds[i]);
	return lost;
}

/* Not always at the same point of what the writer does. */
static void spin(unsigned int n)
{
	__u64 until = now_ns() + n * 7919 % 50000;

	while (now_ns() < until)
		;
}

/*
 * Whether the buffer differs from its copy, or its head from @head. On a busy machine a
 * writer in flight runs on only while we sleep.
 */
static bool changes(FIXTURE_DATA(pause_unseen) *self, __u64 head)
{
	usleep(2000);
	return memcmp(self->copy, self->ow.data, self->ow.size) ||
	       head != perf_overwrite_head(&self->ow);
}

/* Waits until that many wakings of the task are counted. */
static void wait_for_wakings(struct __test_metadata *_metadata,
			     FIXTURE_DATA(pause_unseen) *self, __u64 count)
{
	struct event_counts counts;

	do {
		ASSERT_TRUE(is_alive(self->task));
		ASSERT_EQ(sizeof(counts), read(self->fds[0], &counts, sizeof(counts)));
	} while (counts.value < count);
}

/*
 * Whether a waker writes samples for the task that it wakes. Newer kernels only count
 * there: the event of a task that sleeps isn't active. A pause has nothing to wait for.
 */
static bool waker_writes(struct __test_metadata *_metadata,
			 FIXTURE_DATA(pause_unseen) *self)
{
	/* When it counts for the second time, it has written the first sample, if any. */
	wait_for_wakings(_metadata, self, 2);
	if (perf_overwrite_head(&self->ow) || lost_records(self))
		return true;

	TH_LOG("a waker only counts on this kernel");
	wait_for_wakings(_metadata, self, PAUSES);
	EXPECT_EQ(0, perf_overwrite_head(&self->ow));
	EXPECT_EQ(0, lost_records(self));
	return false;
}

static void pause_switches(struct __test_metadata *_metadata,
			   FIXTURE_DATA(pause_unseen) *self,
			   const FIXTURE_VARIANT(pause_unseen) *variant)
{
	struct pause_writer view = { };
	unsigned int changed = 0;
	__u64 head = 0;

	self->task = start_task(_metadata, self->cpus[1], self->to_task[0],
				self->to_partner[1]);
	self->partner = start_task(_metadata, self->cpus[1], self->to_partner[0],
				   self->to_task[1]);
	if (!open_events(_metadata, self, variant))
		return;
	view.pid = self->task;
	ASSERT_EQ(1, write(self->to_task[1], "x", 1));
	if (variant->maker == WAKER_SAMPLES && !waker_writes(_metadata, self))
		return;

	for (unsigned int i = 0; i < PAUSES; i++) {
		view.ow = self->ow;
		ASSERT_NE(head, writer_wait(&view, head)) {
			TH_LOG("nothing was written before pause %u", i);
		}
		spin(i);
		ASSERT_EQ(0, perf_overwrite_pause(self->fds[0]));
		head = perf_overwrite_head(&self->ow);
		memcpy(self->copy, self->ow.data, self->ow.size);
		changed += changes(self, head);
		ASSERT_EQ(0, perf_overwrite_resume(self->fds[0]));
	}
	TH_LOG("%d pauses, which %llu records met, %u saw a change", PAUSES,
	       lost_records(self), changed);
	EXPECT_EQ(0, changed);
	/* It went on writing all the time. */
	EXPECT_LT(PAUSES, lost_records(self));
}

static void pause_exits(struct __test_metadata *_metadata,
			FIXTURE_DATA(pause_unseen) *self,
			const FIXTURE_VARIANT(pause_unseen) *variant)
{
	unsigned int changed = 0, met = 0, wrote = 0, i;

	/* Where probes make records last, one exit at least meets a pause. */
	for (i = 0; i < EXITS || (self->nr_probes && !met && i < EXITS_MAX); i++) {
		struct pause_writer view = { };
		__u64 head, lost;
		int status;

		self->task = start_task(_metadata, self->cpus[1], self->to_task[0], -1);
		if (!open_events(_metadata, self, variant))
			return;
		view.ow = self->ow;
		view.pid = self->task;
		ASSERT_EQ(1, write(self->to_task[1], "x", 1));

		/* Every other time before the first record, else after it. */
		if (i % 2)
			writer_wait(&view, 0);
		else
			spin(i);
		ASSERT_EQ(0, perf_overwrite_pause(self->fds[0]));
		head = perf_overwrite_head(&self->ow);
		memcpy(self->copy, self->ow.data, self->ow.size);
		ASSERT_EQ(self->task, waitpid(self->task, &status, 0));
		ASSERT_EQ(0, status);
		self->task = 0;

		changed += changes(self, head);
		lost = lost_records(self);
		wrote += !!head;
		met += head && lost;
		/* Each of the events tells of the exit, wherever that goes. */
		EXPECT_EQ(SWITCH_EVENTS, lost + perf_overwrite_written(0, head) /
					 EXIT_RECORD_BYTES);
		close_events(_metadata, self);
	}
	TH_LOG("%u exits, %u wrote, %u met the pause, %u saw a change", i, wrote, met,
	       changed);
	EXPECT_EQ(0, changed);
	EXPECT_LT(0, wrote);
	if (self->nr_probes)
		EXPECT_LT(0, met);
}

TEST_F(pause_unseen, nothing_changes)
{
	if (variant->maker == EXIT_RECORDS)
		pause_exits(_metadata, self, variant);
	else
		pause_switches(_metadata, self, variant);
}

TEST_HARNESS_MAIN
