// SPDX-License-Identifier: GPL-2.0
/*
 * Whom a pause disturbs: the buffer of a CPU is paused with one interrupt of that
 * CPU at most, and with none of any other; pausing it again interrupts nobody.
 * All CPUs are busy meanwhile, so that no interrupt is saved because one idles.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define CPUS_MAX	64
#define PAUSES		400
/* What else may happen to a CPU during that many pauses. */
#define BACKGROUND	(PAUSES / 4)

/* Of each CPU, by its number. */
struct interrupts {
	unsigned long	of[CPUS_MAX];
};

FIXTURE(pause_cost)
{
	int			cpus[CPUS_MAX];
	int			nr_cpus;
	struct perf_overwrite	ow[CPUS_MAX];
	pid_t			busy[CPUS_MAX];
	struct interrupts	before, now;
};

/* Counts the function call interrupts of each CPU. False if nobody does. */
static bool count_interrupts(struct interrupts *interrupts)
{
	FILE *file = fopen("/proc/interrupts", "re");
	int columns[CPUS_MAX], nr_columns = 0;
	bool found = false;
	size_t size = 0;
	char *line = NULL, *at;

	if (!file)
		return false;
	/* The columns are those of the CPUs that are online. */
	if (getline(&line, &size, file) > 0) {
		at = line;
		while ((at = strstr(at, "CPU")) && nr_columns < CPUS_MAX)
			columns[nr_columns++] = strtol(at + 3, &at, 10);
	}
	while (!found && getline(&line, &size, file) > 0) {
		if (!strstr(line, "Function call interrupts"))
			continue;
		found = true;
		at = strchr(line, ':') + 1;
		for (int i = 0; i < nr_columns; i++) {
			unsigned long count = strtoul(at, &at, 10);

			if (columns[i] < CPUS_MAX)
				interrupts->of[columns[i]] = count;
		}
	}
	free(line);
	fclose(file);
	return found;
}

FIXTURE_SETUP(pause_cost)
{
	struct perf_event_attr attr = NAME_EVENT(true);

	self->nr_cpus = allowed_cpus(self->cpus, CPUS_MAX);
	if (self->nr_cpus < 2)
		SKIP(return, "needs two CPUs");
	if (!count_interrupts(&self->before))
		SKIP(return, "/proc/interrupts doesn't count function call interrupts");
	ASSERT_EQ(0, go_to_cpu(self->cpus[0]));

	for (int i = 0; i < self->nr_cpus; i++) {
		int fd;

		ASSERT_GT(CPUS_MAX, self->cpus[i]);
		fd = open_event(_metadata, &attr, -1, self->cpus[i]);
		if (fd < 0)
			return;
		ASSERT_EQ(0, perf_overwrite_map(&self->ow[i], fd, 1, false)) {
			TH_LOG("mmap: %s", strerror(errno));
		}
		/* This itself keeps the first one busy. */
		if (!i)
			continue;
		self->busy[i] = fork();
		ASSERT_LE(0, self->busy[i]);
		if (!self->busy[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (go_to_cpu(self->cpus[i]))
				_exit(1);
			for (;;)
				asm volatile("");
		}
	}
	/* Until they are there, and all that comes with it is over. */
	usleep(100000);
	ASSERT_TRUE(count_interrupts(&self->before));
}

FIXTURE_TEARDOWN(pause_cost)
{
	for (int i = 0; i < self->nr_cpus; i++) {
		if (self->busy[i] > 0) {
			/* It has been busy to the end. */
			ASSERT_EQ(0, waitpid(self->busy[i], NULL, WNOHANG));
			kill(self->busy[i], SIGKILL);
			ASSERT_EQ(self->busy[i], waitpid(self->busy[i], NULL, 0));
		}
		if (self->ow[i].meta) {
			ASSERT_EQ(0, perf_overwrite_unmap(&self->ow[i]));
			ASSERT_EQ(0, close(self->ow[i].fd));
		}
	}
}

/* How many interrupts a CPU had from one counting to the other. */
static unsigned long interrupted(const struct interrupts *before,
				 const struct interrupts *now, int cpu)
{
	return now->of[cpu] - before->of[cpu];
}

#define INTERRUPTED(_i)	interrupted(&self->before, &self->now, self->cpus[_i])

/* Checks that no CPU but the @own-th one was disturbed, and that one by @most. */
#define CHECK_INTERRUPTS(_own, _most)					\
do {									\
	ASSERT_TRUE(count_interrupts(&self->now));			\
	for (int i = 0; i < self->nr_cpus; i++) {			\
		TH_LOG("CPU %d: %lu interrupts", self->cpus[i], INTERRUPTED(i));	\
		EXPECT_LE(INTERRUPTED(i), BACKGROUND + (i == (_own) ? (_most) : 0));	\
	}								\
} while (0)

/* That the count tells anything: to read an event of another CPU takes one. */
TEST_F(pause_cost, interrupts_are_counted)
{
	struct event_counts counts;

	for (int i = 0; i < PAUSES; i++)
		ASSERT_EQ(sizeof(counts), read(self->ow[1].fd, &counts, sizeof(counts)));
	ASSERT_TRUE(count_interrupts(&self->now));
	ASSERT_LE(PAUSES, INTERRUPTED(1));
}

TEST_F(pause_cost, own_cpu_once)
{
	for (int i = 0; i < PAUSES; i++) {
		ASSERT_EQ(0, perf_overwrite_pause(self->ow[1].fd));
		ASSERT_EQ(0, perf_overwrite_resume(self->ow[1].fd));
	}
	CHECK_INTERRUPTS(1, PAUSES);
}

/* Where the pausing thread runs itself there is nobody to be interrupted. */
TEST_F(pause_cost, this_cpu_never)
{
	for (int i = 0; i < PAUSES; i++) {
		ASSERT_EQ(0, perf_overwrite_pause(self->ow[0].fd));
		ASSERT_EQ(0, perf_overwrite_resume(self->ow[0].fd));
	}
	CHECK_INTERRUPTS(-1, 0);
}

TEST_F(pause_cost, paused_already)
{
	for (int i = 0; i < PAUSES; i++)
		ASSERT_EQ(0, perf_overwrite_pause(self->ow[1].fd));
	CHECK_INTERRUPTS(-1, 0);
	ASSERT_EQ(0, perf_overwrite_resume(self->ow[1].fd));
}

/* The one interrupt is that of the start: to wait afterwards takes no other. */
TEST_F(pause_cost, start_then_wait)
{
	for (int i = 0; i < PAUSES; i++) {
		ASSERT_EQ(0, perf_overwrite_pause_start(self->ow[1].fd));
		ASSERT_EQ(0, perf_overwrite_pause(self->ow[1].fd));
		ASSERT_EQ(0, perf_overwrite_resume(self->ow[1].fd));
	}
	CHECK_INTERRUPTS(1, PAUSES);
}

/* All buffers: each CPU is interrupted for its own, not for those of others. */
TEST_F(pause_cost, all_cpus)
{
	for (int n = 0; n < PAUSES; n++) {
		for (int i = 0; i < self->nr_cpus; i++)
			ASSERT_EQ(0, perf_overwrite_pause_start(self->ow[i].fd));
		for (int i = 0; i < self->nr_cpus; i++)
			ASSERT_EQ(0, perf_overwrite_pause(self->ow[i].fd));
		for (int i = 0; i < self->nr_cpus; i++)
			ASSERT_EQ(0, perf_overwrite_resume(self->ow[i].fd));
	}
	ASSERT_TRUE(count_interrupts(&self->now));
	for (int i = 0; i < self->nr_cpus; i++)
		EXPECT_LE(INTERRUPTED(i), BACKGROUND + (i ? PAUSES : 0));
}

/* Started but not waited for, it is paused nevertheless, on any kernel. */
TEST_F(pause_cost, started_is_paused)
{
	struct perf_overwrite *ow = &self->ow[0];
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
