// SPDX-License-Identifier: GPL-2.0
/*
 * A pause of the buffer of a CPU interrupts that CPU once at most, and no other CPU.
 * Another pause of the same buffer interrupts none.
 * All CPUs are busy meanwhile, so that no interrupt is saved because one idles.
 *
 * There are two ways to find out. The calls of the function by which a pause asks a
 * CPU are counted exactly. Whatever else a pause may do to a CPU is among all of its
 * function call interrupts, together with what isn't the pause's: therefore they are
 * compared with those of an equal time without pauses, and a machine that is busy
 * with other things just then is asked again.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "function_calls.h"
#include "overwrite_test.h"

#define CPUS_MAX	64
#define PAUSES		400
/* By turns there are so many pauses, and nothing for as long. */
#define PAUSES_AT_ONCE	20
/* By how much two equal times may differ, and how often it is tried to be less. */
#define DIFFERENCE	(PAUSES / 4)
#define TRIES		10
/* Called by a CPU that is asked by a pause. */
#define PAUSE_FUNCTION	"rb_pause_answer"

/* Of each CPU, in the order in which the fixture has them. */
struct interrupts {
	long	of[CPUS_MAX];
};

struct cost {
	int			cpus[CPUS_MAX];
	int			nr_cpus;
	struct perf_overwrite	ow[CPUS_MAX];
	pid_t			busy[CPUS_MAX];
	int			calls[CPUS_MAX];
};

FIXTURE(pause_cost)
{
	struct cost	test;
};

FIXTURE_VARIANT(pause_cost)
{
	/* Whether the pause's own calls are counted, rather than all there are. */
	bool	exact;
};

FIXTURE_VARIANT_ADD(pause_cost, calls)
{
	.exact = true,
};

FIXTURE_VARIANT_ADD(pause_cost, interrupts)
{
	.exact = false,
};

FIXTURE_SETUP(pause_cost)
{
	struct cost *test = &self->test;
	struct perf_event_attr attr = NAME_EVENT(true);
	struct interrupts interrupts;

	test->nr_cpus = allowed_cpus(test->cpus, CPUS_MAX);
	if (test->nr_cpus < 2)
		SKIP(return, "needs two CPUs");
	if (!variant->exact && !count_call_interrupts(test->cpus, test->nr_cpus, interrupts.of))
		SKIP(return, "/proc/interrupts doesn't count function call interrupts");
	ASSERT_EQ(0, go_to_cpu(test->cpus[0]));

	for (int i = 0; i < test->nr_cpus; i++) {
		int fd;

		fd = open_event(_metadata, &attr, -1, test->cpus[i]);
		if (fd < 0)
			return;
		ASSERT_EQ(0, perf_overwrite_map(&test->ow[i], fd, 1, false)) {
			TH_LOG("mmap: %s", strerror(errno));
		}
		if (!variant->exact)
			continue;
		test->calls[i] = open_function_calls(tracepoint_id("csd", "csd_function_entry"),
						     PAUSE_FUNCTION, test->cpus[i]);
		if (test->calls[i] < 0)
			SKIP(return, "can't count the calls of " PAUSE_FUNCTION "(): %s",
			     strerror(errno));
	}
	for (int i = 1; i < test->nr_cpus; i++) {
		int status;

		/* This itself keeps the first one busy. */
		test->busy[i] = fork_tied();
		if (!test->busy[i]) {
			if (go_to_cpu(test->cpus[i]))
				_exit(1);
			raise(SIGSTOP);
			for (;;)
				asm volatile("");
		}
		ASSERT_LT(0, test->busy[i]);
		/* It is there, and goes on. */
		ASSERT_EQ(test->busy[i], waitpid(test->busy[i], &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, kill(test->busy[i], SIGCONT));
	}
}

FIXTURE_TEARDOWN(pause_cost)
{
	struct cost *test = &self->test;

	for (int i = 0; i < test->nr_cpus; i++) {
		if (test->busy[i] > 0) {
			/* It has been busy to the end. */
			EXPECT_EQ(0, waitpid(test->busy[i], NULL, WNOHANG));
			stop_child(_metadata, test->busy[i]);
		}
		if (test->calls[i] > 0)
			EXPECT_EQ(0, close(test->calls[i]));
		if (test->ow[i].meta) {
			EXPECT_EQ(0, perf_overwrite_unmap(&test->ow[i]));
			EXPECT_EQ(0, close(test->ow[i].fd));
		}
	}
}

typedef void (*step_t)(struct __test_metadata *_metadata, const struct cost *test);

/* How often PAUSES steps had each CPU call the function. */
static void count_calls(struct __test_metadata *_metadata, const struct cost *test, step_t step,
			struct interrupts *calls)
{
	for (int i = 0; i < test->nr_cpus; i++)
		ASSERT_EQ(0, ioctl(test->calls[i], PERF_EVENT_IOC_RESET, 0));
	for (int n = 0; n < PAUSES; n++)
		step(_metadata, test);
	for (int i = 0; i < test->nr_cpus; i++) {
		__u64 count;

		ASSERT_EQ(sizeof(count), read(test->calls[i], &count, sizeof(count)));
		calls->of[i] = count;
	}
}

/* How many interrupts PAUSES steps gave each CPU more than an equal time did. */
static void compare_interrupts(struct __test_metadata *_metadata, const struct cost *test,
			       step_t step, struct interrupts *more)
{
	memset(more, 0, sizeof(*more));
	for (int n = 0; n < PAUSES; n += PAUSES_AT_ONCE) {
		struct interrupts before, between, after;
		__u64 begin, end;

		ASSERT_TRUE(count_call_interrupts(test->cpus, test->nr_cpus, before.of));
		begin = now_ns();
		for (int i = 0; i < PAUSES_AT_ONCE; i++)
			step(_metadata, test);
		end = now_ns();
		ASSERT_TRUE(count_call_interrupts(test->cpus, test->nr_cpus, between.of));
		end += now_ns() - begin;
		while (now_ns() < end)
			;
		ASSERT_TRUE(count_call_interrupts(test->cpus, test->nr_cpus, after.of));
		for (int i = 0; i < test->nr_cpus; i++)
			more->of[i] += between.of[i] - before.of[i] -
				       (after.of[i] - between.of[i]);
	}
}

enum whom {
	NOBODY,
	SECOND,
	ALL_BUT_FIRST,
};

static bool is_asked(enum whom whom, int i)
{
	return (whom == SECOND && i == 1) || (whom == ALL_BUT_FIRST && i);
}

/* Checks that PAUSES steps disturb each CPU that they may ask once, and nobody else. */
static void check_steps(struct __test_metadata *_metadata, const struct cost *test, bool exact,
			step_t step, enum whom whom)
{
	struct interrupts interrupts;
	int tries = 0;
	bool quiet;

	if (exact) {
		count_calls(_metadata, test, step, &interrupts);
		for (int i = 0; i < test->nr_cpus; i++) {
			TH_LOG("CPU %d: %ld calls", test->cpus[i], interrupts.of[i]);
			EXPECT_LE(interrupts.of[i], is_asked(whom, i) ? PAUSES : 0);
			/* That they are counted at all. */
			if (is_asked(whom, i))
				EXPECT_LT(0, interrupts.of[i]);
		}
		return;
	}
	do {
		quiet = true;
		compare_interrupts(_metadata, test, step, &interrupts);
		/*
		 * Not of the first CPU, where the pausing thread runs. It is idle while
		 * a pause sleeps, and busy CPUs ask an idle one to balance the load.
		 */
		for (int i = 1; i < test->nr_cpus; i++) {
			TH_LOG("CPU %d: %ld interrupts more", test->cpus[i], interrupts.of[i]);
			quiet &= interrupts.of[i] <=
				 DIFFERENCE + (is_asked(whom, i) ? PAUSES : 0);
		}
	} while (!quiet && ++tries < TRIES);
	EXPECT_TRUE(quiet);
}

static void pause_second(struct __test_metadata *_metadata, const struct cost *test)
{
	ASSERT_EQ(0, perf_overwrite_pause(test->ow[1].fd));
	ASSERT_EQ(0, perf_overwrite_resume(test->ow[1].fd));
}

static void pause_first(struct __test_metadata *_metadata, const struct cost *test)
{
	ASSERT_EQ(0, perf_overwrite_pause(test->ow[0].fd));
	ASSERT_EQ(0, perf_overwrite_resume(test->ow[0].fd));
}

static void pause_again(struct __test_metadata *_metadata, const struct cost *test)
{
	ASSERT_EQ(0, perf_overwrite_pause(test->ow[1].fd));
}

static void pause_in_two_steps(struct __test_metadata *_metadata, const struct cost *test)
{
	ASSERT_EQ(0, perf_overwrite_pause_start(test->ow[1].fd));
	pause_second(_metadata, test);
}

static void pause_all(struct __test_metadata *_metadata, const struct cost *test)
{
	for (int i = 0; i < test->nr_cpus; i++)
		ASSERT_EQ(0, perf_overwrite_pause_start(test->ow[i].fd));
	for (int i = 0; i < test->nr_cpus; i++)
		ASSERT_EQ(0, perf_overwrite_pause(test->ow[i].fd));
	for (int i = 0; i < test->nr_cpus; i++)
		ASSERT_EQ(0, perf_overwrite_resume(test->ow[i].fd));
}

/* Of an event of another CPU, which takes an interrupt of it. */
static void read_second(struct __test_metadata *_metadata, const struct cost *test)
{
	struct event_counts counts;

	ASSERT_EQ(sizeof(counts), read(test->ow[1].fd, &counts, sizeof(counts)));
}

/* That the interrupts tell anything: at some time there are as many as were made. */
TEST_F(pause_cost, interrupts_are_counted)
{
	const struct cost *test = &self->test;
	struct interrupts interrupts;
	int tries = 0;

	if (variant->exact) {
		/* These are others, though. */
		count_calls(_metadata, test, read_second, &interrupts);
		for (int i = 0; i < test->nr_cpus; i++)
			EXPECT_EQ(0, interrupts.of[i]);
		return;
	}
	do {
		compare_interrupts(_metadata, test, read_second, &interrupts);
	} while (interrupts.of[1] < PAUSES - DIFFERENCE && ++tries < TRIES);
	EXPECT_GT(TRIES, tries);
}

TEST_F(pause_cost, own_cpu_once)
{
	check_steps(_metadata, &self->test, variant->exact, pause_second, SECOND);
}

/* Where the pausing thread runs itself there is nobody to be interrupted. */
TEST_F(pause_cost, this_cpu_never)
{
	check_steps(_metadata, &self->test, variant->exact, pause_first, NOBODY);
}

TEST_F(pause_cost, paused_already)
{
	struct cost *test = &self->test;

	ASSERT_EQ(0, perf_overwrite_pause(test->ow[1].fd));
	check_steps(_metadata, &self->test, variant->exact, pause_again, NOBODY);
	ASSERT_EQ(0, perf_overwrite_resume(test->ow[1].fd));
}

/* The one interrupt is that of the start: to wait afterwards takes no other. */
TEST_F(pause_cost, start_then_wait)
{
	check_steps(_metadata, &self->test, variant->exact, pause_in_two_steps, SECOND);
}

/* All buffers: each CPU is interrupted for its own, not for those of others. */
TEST_F(pause_cost, all_cpus)
{
	check_steps(_metadata, &self->test, variant->exact, pause_all, ALL_BUT_FIRST);
}

/* Started but not waited for, it is paused nevertheless, on any kernel. */
TEST_F(pause_cost, started_is_paused)
{
	struct perf_overwrite *ow = &self->test.ow[0];
	__u64 head;

	write_names(0, 10, 0);
	ASSERT_EQ(0, perf_overwrite_pause_start(ow->fd));
	head = perf_overwrite_head(ow);
	ASSERT_NE(0, head);
	write_names(10, 5, 0);
	ASSERT_EQ(head, perf_overwrite_head(ow));
	ASSERT_EQ(5, lost_count(ow->fd));
	ASSERT_EQ(0, perf_overwrite_pause_start(ow->fd));
	ASSERT_EQ(0, perf_overwrite_resume(ow->fd));
	write_names(15, 1, 0);
	ASSERT_NE(head, perf_overwrite_head(ow));
	ASSERT_EQ(5, lost_count(ow->fd));
}

TEST_HARNESS_MAIN
