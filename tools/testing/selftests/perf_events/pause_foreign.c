// SPDX-License-Identifier: GPL-2.0
/*
 * A user without privileges has events of a task of its own, and pauses their buffer
 * over and over. That interrupts no CPU where the user never ran, neither if the
 * events are bound to that CPU nor if they follow the task.
 *
 * The pause's own calls are counted where the kernel shows them to us, and must be none.
 * What else interrupts a CPU is counted in a time of equal length without pauses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "function_calls.h"
#include "kept_file.h"
#include "overwrite_test.h"

#define PAUSES		200
#define READS		200
/* The pauses and the times without come in turns, so that both meet the same. */
#define TURNS		10

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
/* Events of tasks of one's own, user space only: what no higher number allows. */
#define PARANOID_MOST	2
/* How often to try to meet a time in which nobody else interrupts the CPU. */
#define TRIES		10

FIXTURE(pause_foreign)
{
	int			cpus[2];
	pid_t			busy;
	/* What the pause calls there, or -1. */
	int			calls;
	struct kept_file	paranoid;
};

FIXTURE_VARIANT(pause_foreign)
{
	bool	bound;
};

FIXTURE_VARIANT_ADD(pause_foreign, task_on_cpu)
{
	.bound = true,
};

FIXTURE_VARIANT_ADD(pause_foreign, task)
{
	.bound = false,
};

/* The function call interrupts of a CPU, -1 if nobody counts them. */
static long count_interrupts(int cpu)
{
	long count;

	return count_call_interrupts(&cpu, 1, &count) ? count : -1;
}

FIXTURE_SETUP(pause_foreign)
{
	int paranoid;

	self->calls = -1;
	if (allowed_cpus(self->cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	if (count_interrupts(self->cpus[1]) < 0)
		SKIP(return, "/proc/interrupts doesn't count function call interrupts");
	paranoid = read_number(PARANOID);
	if (paranoid > PARANOID_MOST &&
	    (keep_file(&self->paranoid, PARANOID) || write_number(PARANOID, PARANOID_MOST)))
		SKIP(return, "perf_event_paranoid is %d", paranoid);
	ASSERT_EQ(0, go_to_cpu(self->cpus[0]));
	self->calls = open_function_calls(tracepoint_id("csd", "csd_function_entry"),
					  "rb_pause_answer", self->cpus[1]);

	/* A CPU that idles is spared by much that would interrupt it. */
	self->busy = fork_tied();
	if (!self->busy) {
		if (go_to_cpu(self->cpus[1]))
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			asm volatile("");
	}
	ASSERT_LT(0, self->busy);
	ASSERT_EQ(self->busy, waitpid(self->busy, NULL, WUNTRACED));
	ASSERT_EQ(0, kill(self->busy, SIGCONT));
}

FIXTURE_TEARDOWN(pause_foreign)
{
	if (self->busy > 0) {
		/* It has been busy to the end. */
		EXPECT_EQ(0, waitpid(self->busy, NULL, WNOHANG));
		stop_child(_metadata, self->busy);
	}
	if (self->calls >= 0)
		EXPECT_EQ(0, close(self->calls));
	EXPECT_EQ(0, restore_file(&self->paranoid));
}

/* What the user finds out, and leaves to those that look after it. */
struct findings {
	bool			denied;
	long			during, without;
	unsigned long long	ns;
	const char		*trouble;
	int			error;
};

static const char *pause_as_nobody(int own_cpu, int cpu, bool bound,
				   struct findings *findings)
{
	struct perf_event_attr attr = NAME_EVENT(true);
	struct perf_overwrite ow = { };
	int fd;

	if (go_to_cpu(own_cpu))
		return "can't stay on a CPU";
	findings->denied = true;
	if (become_nobody())
		return "can't become nobody";
	fd = perf_overwrite_open(&attr, 0, bound ? cpu : -1, -1);
	findings->denied = fd < 0 && (errno == EACCES || errno == EPERM);
	if (fd < 0)
		return "perf_event_open";
	findings->denied = perf_overwrite_map(&ow, fd, 1, false) && errno == EPERM;
	if (!ow.meta)
		return "mmap";

	for (int turn = 0; turn < TURNS; turn++) {
		unsigned long long begin = now_ns(), length;
		long before = count_interrupts(cpu), now;

		for (int i = 0; i < PAUSES / TURNS; i++)
			if (perf_overwrite_pause_start(fd) || perf_overwrite_pause(fd) ||
			    perf_overwrite_resume(fd))
				return "PERF_EVENT_IOC_PAUSE_OUTPUT";
		length = now_ns() - begin;
		now = count_interrupts(cpu);
		findings->during += now - before;
		findings->ns += length;

		for (begin = now_ns(); now_ns() - begin < length; )
			usleep(100);
		findings->without += count_interrupts(cpu) - now;
	}
	return NULL;
}

TEST_F(pause_foreign, interrupts_nobody)
{
	struct findings *findings = mmap(NULL, sizeof(*findings), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, tries = 0;
	__u64 calls = 0;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, findings);
	do {
		memset(findings, 0, sizeof(*findings));
		pid = fork();
		if (!pid) {
			findings->trouble = pause_as_nobody(self->cpus[0], self->cpus[1],
							    variant->bound, findings);
			findings->error = errno;
			_exit(0);
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		if (findings->denied)
			SKIP(return, "%s: %s", findings->trouble, strerror(findings->error));
		ASSERT_EQ(NULL, findings->trouble) {
			TH_LOG("%s: %s", findings->trouble, strerror(findings->error));
		}
		TH_LOG("%d pauses, of %llu us each: %ld interrupts, %ld in as long a time without",
		       PAUSES, findings->ns / 1000 / PAUSES, findings->during,
		       findings->without);
	} while (findings->during >= findings->without + PAUSES / 4 && ++tries < TRIES);
	EXPECT_GT(TRIES, tries);
	if (self->calls >= 0)
		ASSERT_EQ(sizeof(calls), read(self->calls, &calls, sizeof(calls)));
	EXPECT_EQ(0, calls);
}

/* That the count tells anything: to read an event of all tasks there takes one. */
TEST_F(pause_foreign, interrupts_are_counted)
{
	struct perf_event_attr attr = NAME_EVENT(true);
	struct event_counts counts;
	long before;
	int fd;

	fd = open_event(_metadata, &attr, -1, self->cpus[1]);
	if (fd < 0)
		return;
	before = count_interrupts(self->cpus[1]);
	for (int i = 0; i < READS; i++)
		ASSERT_EQ(sizeof(counts), read(fd, &counts, sizeof(counts)));
	EXPECT_LE(before + READS, count_interrupts(self->cpus[1]));
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
