// SPDX-License-Identifier: GPL-2.0
/*
 * How a reader puts the buffers of a set together that a trigger has stopped: records
 * that came late are dropped, and the window is what all buffers cover. It is the same
 * whether the kernel stops them or, where it has no triggers, the reader.
 *
 * A task on each CPU makes page faults, which are written to the CPU's buffer. Faults of
 * this task are the trigger.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#include "perf_overwrite_set.h"

#define PAGES		8
#define AREA_PAGES	64
#define MAX_CPUS	4
#define ROUNDS		30
#define CUT		1000
#define UNTIL		1500

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Records in any order: those without a time count, and tell nothing of times. */
TEST(span_of_records)
{
	static const __u64 times[] = { 0, CUT - 1, CUT, CUT + 1, UNTIL, UNTIL + 1, UNTIL + 500 };
	const struct perf_overwrite_cut cut = { .time = CUT, .until = UNTIL };
	const unsigned int count = ARRAY_SIZE(times);

	for (unsigned int first = 0; first < count; first++) {
		struct perf_overwrite_span span = { };

		EXPECT_EQ(0, perf_overwrite_span_late_by(&span, &cut));
		for (unsigned int i = 0; i < count; i++) {
			/* Three steps at a time come to each of the seven. */
			__u64 time = times[(first + 3 * i) % count];

			EXPECT_EQ(time <= UNTIL, perf_overwrite_span_add(&span, &cut, time));
		}
		EXPECT_EQ(CUT - 1, span.oldest);
		EXPECT_EQ(UNTIL + 500, span.newest);
		EXPECT_EQ(5, span.records);
		EXPECT_EQ(2, span.after);
		EXPECT_EQ(2, span.late);
		EXPECT_EQ(500, perf_overwrite_span_late_by(&span, &cut));
	}
}

/* From the latest of the oldest on, where it doesn't matter when that buffer comes. */
TEST(window_of_spans)
{
	const struct perf_overwrite_cut cut = { .time = CUT, .until = UNTIL };
	const struct {
		__u64	since, oldest[3], from;
		bool	empty;
	} cases[] = {
		{ 0, { 10, 20, 30 }, 30, false },
		{ 0, { 30, 20, 10 }, 30, false },
		{ 0, { 10, 30, 20 }, 30, false },
		/* Since then only. */
		{ 25, { 10, 20, 15 }, 25, false },
		{ 25, { 10, 26, 15 }, 26, false },
		/* The last moment, and none at all. */
		{ 0, { 10, UNTIL, 20 }, UNTIL, false },
		{ 0, { 10, UNTIL + 1, 20 }, UNTIL + 1, true },
		{ UNTIL + 1, { 10, 20, 30 }, UNTIL + 1, true },
		/* A buffer of which nothing is known. */
		{ 0, { 10, 0, 20 }, -1ULL, true },
		{ 0, { 0, 10, 20 }, -1ULL, true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_overwrite_window window;

		perf_overwrite_window_begin(&window, &cut, cases[i].since);
		for (int b = 0; b < 3; b++) {
			struct perf_overwrite_span span = { .oldest = cases[i].oldest[b] };

			perf_overwrite_window_narrow(&window, &span);
		}
		EXPECT_EQ(cases[i].from, window.from) {
			TH_LOG("case %u", i);
		}
		EXPECT_EQ(UNTIL, window.until);
		EXPECT_EQ(cases[i].empty, perf_overwrite_window_is_empty(&window));
	}
}

/* A sample of a fault. */
struct fault_record {
	struct perf_event_header	header;
	__u64				id;
	__u64				time;
	__u64				addr;
};

static __u64 time_of(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_SAMPLE ?
	       ((const struct fault_record *)header)->time : 0;
}

FIXTURE(overwrite_set)
{
	struct perf_overwrite		ow[MAX_CPUS];
	int				mine[MAX_CPUS];
	__u64				mine_id[MAX_CPUS];
	pid_t				load[MAX_CPUS];
	int				cpus[MAX_CPUS];
	int				count;
	struct fault_area		area;
	struct perf_overwrite_set	set;
};

FIXTURE_VARIANT(overwrite_set)
{
	__u64	depth_ns;
};

FIXTURE_VARIANT_ADD(overwrite_set, at_once)
{
	.depth_ns = 0,
};

FIXTURE_VARIANT_ADD(overwrite_set, after_a_time)
{
	.depth_ns = 2000000,
};

static void run_load(const struct fault_area *area, int cpu)
{
	if (go_to_cpu(cpu))
		_exit(1);
	for (unsigned int seq = 0; ; seq++)
		make_fault(area, seq);
}

FIXTURE_SETUP(overwrite_set)
{
	struct perf_overwrite_set_attr set = {
		.clock = CLOCK_MONOTONIC, .depth_ns = variant->depth_ns,
	};
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ADDR);

	attr.use_clockid = 1;
	attr.clockid = set.clock;
	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));
	self->count = allowed_cpus(self->cpus, MAX_CPUS);
	ASSERT_LT(0, self->count);
	for (int i = 0; i < self->count; i++) {
		int fd = open_event(_metadata, &attr, -1, self->cpus[i]);

		if (fd < 0 || map_event(_metadata, &self->ow[i], fd, PAGES, false))
			return;
	}
	ASSERT_EQ(0, perf_overwrite_set_open(&self->set, self->ow[0].fd, &set));
	for (int i = 0; i < self->count; i++)
		ASSERT_EQ(0, perf_overwrite_set_join(&self->set, &self->ow[i]));

	/* A reader that stops the buffers by itself is woken up by each sample. */
	attr.wakeup_events = !perf_overwrite_set_in_kernel(&self->set);
	for (int i = 0; i < self->count; i++) {
		self->mine[i] = open_event(_metadata, &attr, 0, self->cpus[i]);
		ASSERT_LE(0, self->mine[i]);
		self->mine_id[i] = event_id(self->mine[i]);
		ASSERT_EQ(0, ioctl(self->mine[i], PERF_EVENT_IOC_SET_OUTPUT, self->ow[i].fd));
		ASSERT_EQ(0, perf_overwrite_set_add(&self->set, self->mine[i], &self->ow[i], 1));
		ASSERT_EQ(0, ioctl(self->ow[i].fd, PERF_EVENT_IOC_ENABLE, 0));
		self->load[i] = fork_tied();
		if (!self->load[i])
			run_load(&self->area, self->cpus[i]);
		ASSERT_LT(0, self->load[i]);
	}
}

FIXTURE_TEARDOWN(overwrite_set)
{
	for (int i = 0; i < self->count; i++) {
		if (self->load[i] > 0) {
			kill(self->load[i], SIGKILL);
			waitpid(self->load[i], NULL, 0);
		}
	}
	perf_overwrite_set_close(&self->set);
}

/* Of the buffer that a trigger's sample was written to: when that was, 0 if it isn't there. */
static __u64 find_trigger(const struct perf_overwrite *ow, __u64 id)
{
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;
	__u64 time = 0;

	perf_overwrite_begin(&walk, ow);
	while ((header = perf_overwrite_next(&walk, space)))
		if (header->type == PERF_RECORD_SAMPLE && space[1] == id)
			time = time_of(header);
	return time;
}

/*
 * Checks what the header's functions tell of a buffer against all of its records.
 * Returns the time of the oldest one.
 */
static __u64 check_buffer(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
			  const struct perf_overwrite_cut *cut, struct perf_overwrite_span *span)
{
	size_t all = 0, in_time = 0, after = 0, kept = 0;
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;
	__u64 oldest = 0, newest = 0;

	perf_overwrite_begin(&walk, ow);
	while ((header = perf_overwrite_next(&walk, space))) {
		__u64 time = time_of(header);

		all++;
		in_time += time <= cut->until;
		after += time > cut->time && time <= cut->until;
		if (time)
			oldest = time;
		newest = time > newest ? time : newest;
	}

	memset(span, 0, sizeof(*span));
	perf_overwrite_begin(&walk, ow);
	while ((header = perf_overwrite_next_until(&walk, space, span, cut, time_of))) {
		EXPECT_GE(cut->until, time_of(header));
		kept++;
	}
	EXPECT_EQ(in_time, kept);
	EXPECT_EQ(in_time, span->records);
	EXPECT_EQ(after, span->after);
	EXPECT_EQ(all - in_time, span->late);
	EXPECT_EQ(oldest, span->oldest);
	EXPECT_EQ(newest, span->newest);
	EXPECT_EQ(newest > cut->until ? newest - cut->until : 0,
		  perf_overwrite_span_late_by(span, cut));
	return oldest;
}

TEST_F(overwrite_set, window_of_all)
{
	unsigned int late = 0, windows = 0;

	for (int round = 0; round < ROUNDS; round++) {
		int mine = round % self->count;
		__u64 heads[MAX_CPUS], latest = 0, time;
		struct perf_overwrite_window window;
		struct pollfd polled[MAX_CPUS];
		struct perf_overwrite_cut cut;

		ASSERT_EQ(0, go_to_cpu(self->cpus[mine]));
		ASSERT_EQ(0, perf_overwrite_set_arm(&self->set));
		/* From the second round on all buffers narrow the window. */
		for (int i = 0; round && i < self->count; i++)
			while (perf_overwrite_written(0, perf_overwrite_head(&self->ow[i])) <=
			       self->ow[i].size)
				ASSERT_TRUE(is_alive(self->load[i]));
		usleep(round * 500);
		ASSERT_EQ(0, ioctl(self->mine[mine], PERF_EVENT_IOC_ENABLE, 0));
		make_fault(&self->area, round);
		ASSERT_EQ(0, ioctl(self->mine[mine], PERF_EVENT_IOC_DISABLE, 0));
		while (!perf_overwrite_set_stopped(&self->set))
			poll(polled, perf_overwrite_set_poll(&self->set, polled),
			     perf_overwrite_set_timeout(&self->set));
		ASSERT_EQ(0, perf_overwrite_set_read(&self->set, &cut));
		EXPECT_EQ(self->mine_id[mine], cut.id);
		EXPECT_EQ(variant->depth_ns, cut.until - cut.time);
		EXPECT_EQ(!perf_overwrite_set_in_kernel(&self->set), cut.by_reader);

		time = find_trigger(&self->ow[mine], cut.id);
		if (time)
			EXPECT_LE(time, cut.time);
		if (time && cut.by_reader) {
			perf_overwrite_cut_at(&cut, time);
			EXPECT_EQ(time, cut.time);
			EXPECT_EQ(time + variant->depth_ns, cut.until);
		}

		perf_overwrite_window_begin(&window, &cut, 0);
		for (int i = 0; i < self->count; i++) {
			struct perf_overwrite_span span;
			__u64 oldest;

			heads[i] = perf_overwrite_head(&self->ow[i]);
			oldest = check_buffer(_metadata, &self->ow[i], &cut, &span);
			late += span.late;
			if (perf_overwrite_written(0, heads[i]) <= self->ow[i].size)
				continue;
			perf_overwrite_window_narrow(&window, &span);
			if (oldest > latest)
				latest = oldest;
		}
		EXPECT_EQ(latest, window.from);
		EXPECT_EQ(cut.until, window.until);
		EXPECT_EQ(latest > cut.until, perf_overwrite_window_is_empty(&window));
		windows += !perf_overwrite_window_is_empty(&window);
		/* All of this is true of what is stopped. */
		for (int i = 0; i < self->count; i++)
			EXPECT_EQ(heads[i], perf_overwrite_head(&self->ow[i]));
	}
	TH_LOG("%u records came late, %u of %u snapshots have a window", late, windows, ROUNDS);
}

TEST_HARNESS_MAIN
