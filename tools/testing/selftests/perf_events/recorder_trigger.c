// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder stops at a trigger: its record is in the report, and is the newest
 * one of its CPU unless a depth was asked for. Nothing in the report is later than the
 * cut and the depth, whatever other CPUs write. Armed again it stops at the next one.
 *
 * On kernels without triggers the recorder pauses the buffers, and says so. It does that
 * late, so that other tasks may have overwritten the trigger's record by then.
 *
 * A task makes system calls that are numbered by an argument, then the one that is the
 * trigger, then some more. The buffer of its CPU takes all of these; CPUs with nothing
 * else to do make calls without an end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#include "perf_overwrite_set.h"
#include "recorder_test.h"

#define TRIGGER		"raw_syscalls:sys_exit if id == %d"
#define PAGES		64
#define MAX_CPUS	64
#define CALLS		100
#define ROUNDS		3

/* The first argument of a call: of those before the trigger, of those after it. */
#define BEFORE(_round)	(0x1000 + (_round))
#define AFTER(_round)	(0x2000 + (_round))

/* No sample is as small: a header, what all have, a number and the size of the raw data. */
#define SAMPLE_LEAST	56
/* More bytes than a round takes up to its trigger, less than two do. */
#define TWO_ROUNDS	(2 * CALLS * 112)

/* What is known of a record that is shown. Times are in microseconds, rounded down. */
struct shown {
	int		cpu;
	__u64		time;
	bool		trigger;
};

/* What a report says. */
struct snapshot {
	struct shown	newest;		/* of the first CPU */
	__u64		latest;			/* of all */
	__u64		oldest;			/* of the task's CPU, 0 for none */
	unsigned int	before, after;		/* calls of this round */
	struct shown	trigger;		/* the line by itself */
	bool		came, by_kernel;
	__u64		cut, until;
	unsigned int	suppressed, held_off;
};

FIXTURE(recorder_trigger)
{
	int	cpus[MAX_CPUS];
	int	count;
	pid_t	load[MAX_CPUS];
	pid_t	task;
	pid_t	recorder;
	FILE	*output;
	int	errors;
	bool	in_kernel;
};

static void run_load(int cpu)
{
	if (go_to_cpu(cpu))
		_exit(1);
	for (;;)
		syscall(__NR_getppid);
}

/* Stops before each round. */
static void run_task(int cpu)
{
	if (go_to_cpu(cpu))
		_exit(1);
	for (int round = 0; round < ROUNDS; round++) {
		raise(SIGSTOP);
		for (int i = 0; i < CALLS; i++)
			syscall(__NR_getppid, BEFORE(round));
		syscall(__NR_getpriority, 0, 0);
		for (int i = 0; i < CALLS; i++)
			syscall(__NR_getppid, AFTER(round));
	}
	raise(SIGSTOP);
	_exit(0);
}

static void wait_for_task(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_trigger) *self)
{
	int status;

	ASSERT_EQ(self->task, waitpid(self->task, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
}

/* Has it make the calls of a round. */
static void next_round(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_trigger) *self)
{
	ASSERT_EQ(0, kill(self->task, SIGCONT));
	wait_for_task(_metadata, self);
}

/* Whether triggers stop buffers by themselves here. */
static bool has_triggers(void)
{
	struct perf_event_attr attr = NAME_EVENT(1);
	struct perf_overwrite_set_attr at_once = { .clock = CLOCK_MONOTONIC };
	struct perf_overwrite_set set;
	int fd = perf_overwrite_open(&attr, 0, -1, -1);
	bool has;

	if (fd < 0)
		return false;
	has = !perf_overwrite_set_open(&set, fd, &at_once) && perf_overwrite_set_in_kernel(&set);
	perf_overwrite_set_close(&set);
	close(fd);
	return has;
}

FIXTURE_SETUP(recorder_trigger)
{
	self->errors = -1;
	if (!may_watch_all())
		SKIP(return, "no permission to watch all tasks");
	if (tracepoint_id("raw_syscalls", "sys_exit") < 0)
		SKIP(return, "no tracefs, or no tracepoints of system calls");
	self->in_kernel = has_triggers();
	self->count = allowed_cpus(self->cpus, MAX_CPUS);
	ASSERT_LT(0, self->count);
	self->task = fork_tied();
	if (!self->task)
		run_task(self->cpus[0]);
	ASSERT_LT(0, self->task);
	wait_for_task(_metadata, self);
	for (int i = 1; i < self->count; i++) {
		self->load[i] = fork_tied();
		if (!self->load[i])
			run_load(self->cpus[i]);
		ASSERT_LT(0, self->load[i]);
	}
}

FIXTURE_TEARDOWN(recorder_trigger)
{
	for (int i = 1; i < self->count; i++)
		end_child(self->load[i]);
	end_child(self->task);
	end_child(self->recorder);
	if (self->output)
		fclose(self->output);
	close(self->errors);
}

/* With the trigger and these arguments, up to four. It says in a line that it is armed. */
static void start_recorder(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_trigger) *self,
			   const char * const more[4])
{
	char trigger[64], pages[16];
	const char * const arguments[] = {
		RECORDER, "--last", "1000000", "--pages", pages, "--trigger", trigger,
		"raw_syscalls:sys_enter", more[0], more[1], more[2], more[3], NULL,
	};
	int output;

	snprintf(pages, sizeof(pages), "%lu", PAGES * 4096UL / sysconf(_SC_PAGESIZE));
	snprintf(trigger, sizeof(trigger), TRIGGER, __NR_getpriority);
	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	self->output = fdopen(output, "r");
	ASSERT_NE(NULL, self->output);
	wait_for_recorder(_metadata, self->errors);
}

/* A line "  CPU SECONDS.MICROSECONDS  NAME-TID  EVENT ...". */
static bool is_record(const char *line, struct shown *shown)
{
	unsigned long long seconds, us;

	if (sscanf(line, "%d %llu.%6llu ", &shown->cpu, &seconds, &us) != 3 ||
	    !strstr(line, " raw_syscalls:"))
		return false;
	shown->time = seconds * 1000000 + us;
	shown->trigger = strstr(line, " raw_syscalls:sys_exit ");
	return true;
}

static void note_record(struct snapshot *snapshot, const struct shown *shown, const char *line,
			FIXTURE_DATA(recorder_trigger) *self, int round)
{
	int cpu = self->cpus[0];
	char task[32], before[32], after[32];

	snprintf(task, sizeof(task), "-%d ", self->task);
	snprintf(before, sizeof(before), " args={%#x,", BEFORE(round));
	snprintf(after, sizeof(after), " args={%#x,", AFTER(round));
	snapshot->before += strstr(line, task) && strstr(line, before);
	snapshot->after += strstr(line, task) && strstr(line, after);
	if (shown->cpu == cpu)
		snapshot->newest = *shown;
	if (shown->time > snapshot->latest)
		snapshot->latest = shown->time;
	if (shown->cpu == cpu && (!snapshot->oldest || shown->time < snapshot->oldest))
		snapshot->oldest = shown->time;
}

/* Reads a report to its end. */
static void read_snapshot(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_trigger) *self,
			  struct snapshot *snapshot, int round)
{
	unsigned long long seconds, us, from[2];
	bool records = true;
	struct shown shown;
	char line[1024];

	memset(snapshot, 0, sizeof(*snapshot));
	while (fgets(line, sizeof(line), self->output)) {
		if (!strncmp(line, "trigger: ", 9)) {
			records = false;
			snapshot->came = true;
		} else if (sscanf(line, "cut at %llu.%llu", &seconds, &us) == 2) {
			snapshot->cut = seconds * 1000000 + us;
			snapshot->by_kernel = strstr(line, " by the kernel");
		} else if (sscanf(line, "all CPUs cover %llu.%llu to %llu.%llu", &from[0], &from[1],
				  &seconds, &us) == 4) {
			snapshot->until = seconds * 1000000 + us;
		} else if (sscanf(line, "samples of triggers: %u suppressed later, %u",
				  &snapshot->suppressed, &snapshot->held_off) == 2) {
			return;
		} else if (is_record(line, &shown)) {
			if (records)
				note_record(snapshot, &shown, line, self, round);
			else
				snapshot->trigger = shown;
		}
	}
	ASSERT_TRUE(false) {
		TH_LOG("the report has no end");
	}
}

/* What holds of each snapshot that a trigger ended. */
static void check_snapshot(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_trigger) *self,
			   const struct snapshot *snapshot, __u64 depth_us)
{
	ASSERT_TRUE(snapshot->came);
	EXPECT_EQ(self->in_kernel, snapshot->by_kernel);
	EXPECT_EQ(self->cpus[0], snapshot->trigger.cpu);
	EXPECT_TRUE(snapshot->trigger.trigger);
	EXPECT_EQ(0, snapshot->suppressed);
	EXPECT_LE(snapshot->trigger.time, snapshot->cut);
	if (snapshot->until)
		EXPECT_EQ(snapshot->cut + depth_us, snapshot->until);
	EXPECT_LE(snapshot->latest, snapshot->cut + depth_us);
	/* All of this round that came before it. */
	EXPECT_EQ(CALLS, snapshot->before);
}

TEST_F(recorder_trigger, at_once)
{
	const struct shown *newest;
	struct snapshot snapshot;

	start_recorder(_metadata, self, (const char * const [4]) {});
	next_round(_metadata, self);
	read_snapshot(_metadata, self, &snapshot, 0);
	check_snapshot(_metadata, self, &snapshot, 0);
	EXPECT_EQ(0, snapshot.after);
	newest = &snapshot.newest;
	EXPECT_TRUE(newest->trigger);
	EXPECT_EQ(snapshot.trigger.time, newest->time);
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;
}

TEST_F(recorder_trigger, after_a_time)
{
	struct snapshot snapshot;

	/* Where the timer comes very late, what came before it is overwritten. */
	for (int round = 0; round < ROUNDS; round++) {
		start_recorder(_metadata, self,
			       (const char * const [4]) { "--after-trigger", "2ms" });
		next_round(_metadata, self);
		read_snapshot(_metadata, self, &snapshot, round);
		check_exit(_metadata, self->recorder, 0);
		self->recorder = 0;
		if (snapshot.oldest && snapshot.oldest <= snapshot.cut)
			break;
		fclose(self->output);
		self->output = NULL;
		close(self->errors);
		self->errors = -1;
	}
	check_snapshot(_metadata, self, &snapshot, 2000);
}

TEST_F(recorder_trigger, after_bytes)
{
	struct snapshot snapshot;

	start_recorder(_metadata, self, (const char * const [4]) { "--after-trigger", "512B,1s" });
	next_round(_metadata, self);
	read_snapshot(_metadata, self, &snapshot, 0);
	/* Only the kernel counts them: the recorder waits for the whole second. */
	if (self->in_kernel) {
		check_snapshot(_metadata, self, &snapshot, 1000000);
		EXPECT_LE(snapshot.after * SAMPLE_LEAST, 512);
	} else {
		EXPECT_FALSE(snapshot.by_kernel);
		EXPECT_LE(snapshot.latest, snapshot.cut + 1000000);
	}
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;
}

TEST_F(recorder_trigger, armed_again)
{
	struct snapshot snapshot;

	start_recorder(_metadata, self, (const char * const [4]) { "--rearm", "--repeat", "3" });
	for (int round = 0; round < ROUNDS; round++) {
		next_round(_metadata, self);
		read_snapshot(_metadata, self, &snapshot, round);
		check_snapshot(_metadata, self, &snapshot, 0);
		EXPECT_EQ(0, snapshot.after);
	}
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;
}

/* Before its first trigger the buffer has taken less than that, before its second one more. */
TEST_F(recorder_trigger, held_off)
{
	struct snapshot snapshot;
	char bytes[16];

	snprintf(bytes, sizeof(bytes), "%uB", TWO_ROUNDS);
	start_recorder(_metadata, self, (const char * const [4]) { "--hold-off", bytes });
	next_round(_metadata, self);
	next_round(_metadata, self);
	read_snapshot(_metadata, self, &snapshot, 1);
	/* A recorder that is told of the first one late may take it for the second one. */
	if (self->in_kernel) {
		check_snapshot(_metadata, self, &snapshot, 0);
		EXPECT_EQ(1, snapshot.held_off);
	} else {
		EXPECT_FALSE(snapshot.by_kernel);
		EXPECT_GE(1, snapshot.held_off);
	}
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;
}

TEST_F(recorder_trigger, by_signal)
{
	struct snapshot snapshot;

	start_recorder(_metadata, self, (const char * const [4]) {});
	ASSERT_EQ(0, kill(self->recorder, SIGUSR2));
	read_snapshot(_metadata, self, &snapshot, 0);
	EXPECT_FALSE(snapshot.came);
	EXPECT_EQ(self->in_kernel, snapshot.by_kernel);
	EXPECT_LE(snapshot.latest, snapshot.cut);
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;
}

TEST_HARNESS_MAIN
