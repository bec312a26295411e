// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder records a command, or processes that run already, with their
 * threads and all that these start from then on, and no other task. It ends when they
 * have ended. With --json each line that it prints is a JSON object, whatever the name
 * of a task is. It prints what it has, however it is ended.
 *
 * All tasks make system calls that are numbered by an argument. The command is this
 * program, which finds that it is by its environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "json_check.h"
#include "overwrite_test.h"
#include "recorder_test.h"

#define CALLS		50
#define AS_COMMAND	"RECORDER_OUTPUT_COMMAND"
#define TRIGGER		"raw_syscalls:sys_exit if id == %d"

/* In JSON, too. */
#define NAME		"a\"b\\c\001\377"
#define NAME_ESCAPED	"\"comm\":\"a\\u0022b\\u005cc\\u0001\\u00ff\""

/* The child's own one. */
#define CHILD_NAME	"child"
#define CHILD_ESCAPED	"\"comm\":\"" CHILD_NAME "\""

#define RECORD \
	"{\"type\":\"record\",\"time\":%llu.%9llu,\"cpu\":%d,\"pid\":%d,\"tid\":%d,%n"

/* Makes the calls that have its number as first argument. */
enum maker {
	MAIN,
	EARLIER_THREAD,		/* than the recording, unless of a command */
	LATER_THREAD,
	CHILD,
	MAKERS,
};

#define NUMBER(_maker)	(0x1000 + (_maker))

static pthread_barrier_t barrier;

static void *make_calls(void *number)
{
	for (int i = 0; i < CALLS; i++)
		syscall(__NR_getppid, number);
	return NULL;
}

static void *make_calls_later(void *number)
{
	pthread_barrier_wait(&barrier);
	return make_calls(number);
}

/* Does all that is to be recorded. @stops: when it is ready, until it is told to go on. */
static void run_task(bool stops)
{
	pthread_t earlier, later;
	pid_t child;

	prctl(PR_SET_NAME, NAME);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&earlier, NULL, make_calls_later, (void *)NUMBER(EARLIER_THREAD)))
		_exit(1);
	if (stops)
		raise(SIGSTOP);
	make_calls((void *)NUMBER(MAIN));
	pthread_barrier_wait(&barrier);
	if (pthread_create(&later, NULL, make_calls, (void *)NUMBER(LATER_THREAD)))
		_exit(1);
	child = fork();
	if (!child) {
		prctl(PR_SET_NAME, CHILD_NAME);
		make_calls((void *)NUMBER(CHILD));
		_exit(0);
	}
	waitpid(child, NULL, 0);
	pthread_join(earlier, NULL);
	pthread_join(later, NULL);
	/* The trigger. */
	syscall(__NR_getpriority, 0, 0);
	_exit(0);
}

static __attribute__((constructor)) void run_as_command(void)
{
	if (getenv(AS_COMMAND))
		run_task(false);
}

FIXTURE(recorder_output)
{
	pid_t		noise;
	pid_t		task;
	pid_t		recorder;
	FILE		*output;
	int		errors;
	/* What was read. */
	__u64		time;
	unsigned long	records;
	unsigned int	calls[MAKERS], of_noise, bad_lines, bad_names, backward;
	int		pid_of[MAKERS];
	char		snapshot[4096], trigger[4096];
};

FIXTURE_VARIANT(recorder_output)
{
	bool	command;
	bool	trigger;
};

FIXTURE_VARIANT_ADD(recorder_output, pid)
{
	.command = false,
};

FIXTURE_VARIANT_ADD(recorder_output, command)
{
	.command = true,
};

FIXTURE_VARIANT_ADD(recorder_output, pid_until_trigger)
{
	.trigger = true,
};

FIXTURE_SETUP(recorder_output)
{
	int status;

	self->errors = -1;
	if (!may_watch_all())
		SKIP(return, "no permission to watch all tasks");
	if (tracepoint_id("raw_syscalls", "sys_enter") < 0)
		SKIP(return, "no tracefs, or no tracepoints of system calls");
	self->noise = fork_tied();
	if (!self->noise) {
		for (;;)
			make_calls((void *)NUMBER(MAIN));
	}
	ASSERT_LT(0, self->noise);
	if (variant->command)
		return;
	self->task = fork_tied();
	if (!self->task)
		run_task(true);
	ASSERT_LT(0, self->task);
	ASSERT_EQ(self->task, waitpid(self->task, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
}

FIXTURE_TEARDOWN(recorder_output)
{
	end_child(self->noise);
	end_child(self->task);
	end_child(self->recorder);
	if (self->output)
		fclose(self->output);
	close(self->errors);
}

static void start_recorder(struct __test_metadata *_metadata,
			   FIXTURE_DATA(recorder_output) *self, bool triggers)
{
	char pid[16], trigger[64], path[PATH_MAX] = { };
	const char *arguments[16] = {
		RECORDER, "--json", "--last", "1000000", "--pages", "1M", "raw_syscalls:sys_enter",
	};
	int output, count = 7;

	if (triggers) {
		snprintf(trigger, sizeof(trigger), TRIGGER, __NR_getpriority);
		arguments[count++] = "--trigger";
		arguments[count++] = trigger;
	}
	if (self->task) {
		snprintf(pid, sizeof(pid), "%d", self->task);
		arguments[count++] = "--pid";
		arguments[count++] = pid;
	} else {
		ASSERT_LT(0, readlink("/proc/self/exe", path, sizeof(path) - 1));
		setenv(AS_COMMAND, "1", 1);
		arguments[count++] = "--";
		arguments[count++] = path;
	}
	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	unsetenv(AS_COMMAND);
	self->output = fdopen(output, "r");
	ASSERT_NE(NULL, self->output);
	wait_for_recorder(_metadata, self->errors);
}

static void note_record(FIXTURE_DATA(recorder_output) *self, const char *line)
{
	unsigned long long seconds, ns;
	int cpu, pid, tid, end = 0;
	__u64 time;

	if (sscanf(line, RECORD, &seconds, &ns, &cpu, &pid, &tid, &end) != 5 || !end) {
		self->bad_lines++;
		return;
	}
	time = seconds * 1000000000 + ns;
	self->backward += time < self->time;
	self->time = time;
	self->records++;
	self->of_noise += pid == self->noise;
	for (int maker = 0; maker < MAKERS; maker++) {
		char fields[128];

		snprintf(fields, sizeof(fields),
			 "\"fields\":{\"id\":%d,\"syscall\":\"getppid\",\"args\":[\"%#x\",",
			 __NR_getppid, NUMBER(maker));
		if (!strstr(line, fields))
			continue;
		self->calls[maker]++;
		self->pid_of[maker] = pid;
		self->bad_names += !strstr(line, maker == CHILD ? CHILD_ESCAPED : NAME_ESCAPED);
	}
}

static void read_output(FIXTURE_DATA(recorder_output) *self)
{
	char line[4096];

	while (fgets(line, sizeof(line), self->output)) {
		self->bad_lines += !is_json_object(line);
		if (!strncmp(line, "{\"type\":\"snapshot\",", 19))
			snprintf(self->snapshot, sizeof(line), "%s", line);
		else if (!strncmp(line, "{\"type\":\"trigger\",", 18))
			snprintf(self->trigger, sizeof(line), "%s", line);
		else
			note_record(self, line);
	}
}

TEST_F(recorder_output, of_tasks)
{
	char records[64], trigger[64];

	start_recorder(_metadata, self, variant->trigger);
	if (self->task) {
		ASSERT_EQ(0, kill(self->task, SIGCONT));
		ASSERT_EQ(self->task, waitpid(self->task, NULL, 0));
		self->task = 0;
	}
	/* It ends by itself. */
	read_output(self);
	check_exit(_metadata, self->recorder, 0);
	self->recorder = 0;

	TH_LOG("%lu records, snapshot: %.120s", self->records, self->snapshot);
	EXPECT_EQ(0, self->bad_lines);
	EXPECT_EQ(0, self->bad_names);
	EXPECT_EQ(0, self->backward);
	EXPECT_EQ(0, self->of_noise);
	for (int maker = 0; maker < MAKERS; maker++)
		EXPECT_EQ(CALLS, self->calls[maker]);
	EXPECT_EQ(self->pid_of[MAIN], self->pid_of[EARLIER_THREAD]);
	EXPECT_EQ(self->pid_of[MAIN], self->pid_of[LATER_THREAD]);
	EXPECT_NE(self->pid_of[MAIN], self->pid_of[CHILD]);
	snprintf(records, sizeof(records), "\"number\":1,\"records\":%lu,", self->records);
	EXPECT_NE(NULL, strstr(self->snapshot, records));
	EXPECT_NE(NULL, strstr(self->snapshot, "\"size\":1048576,"));

	EXPECT_EQ(variant->trigger, !!self->trigger[0]);
	if (variant->trigger) {
		EXPECT_NE(NULL, strstr(self->trigger, "\"came\":true,"));
		snprintf(trigger, sizeof(trigger), "\"fields\":{\"id\":%d,", __NR_getpriority);
		EXPECT_NE(NULL, strstr(self->trigger, trigger));
		EXPECT_NE(NULL, strstr(self->trigger, NAME_ESCAPED));
	}
}

/* Returns 0 after some page faults of this task. */
static int fault(void)
{
	const size_t size = 16 * sysconf(_SC_PAGESIZE);
	char *area;

	area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return -1;
	memset(area, 1, size);
	return munmap(area, size);
}

/* Page faults of this task while the recorder records; then the signal. */
static void fault_and_kill(struct __test_metadata *_metadata, pid_t recorder, int errors,
			   int signal)
{
	wait_for_recorder(_metadata, errors);
	ASSERT_EQ(0, fault());
	ASSERT_EQ(0, kill(recorder, signal));
}

/* Whether the recorder says this up to its end. */
static bool says(int output, const char *text)
{
	FILE *file = fdopen(output, "r");
	char line[4096];
	bool said = false;

	while (file && fgets(line, sizeof(line), file))
		said |= !!strstr(line, text);
	if (file)
		fclose(file);
	return said;
}

FIXTURE(recorder_ends)
{
	pid_t	recorder;
	int	errors;
};

FIXTURE_SETUP(recorder_ends)
{
	self->errors = -1;
	if (!may_watch_all())
		SKIP(return, "no permission to watch all tasks");
}

FIXTURE_TEARDOWN(recorder_ends)
{
	end_child(self->recorder);
	close(self->errors);
}

static void check_end(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_ends) *self,
		      int status)
{
	check_exit(_metadata, self->recorder, status);
	self->recorder = 0;
}

/* With these arguments it is sent the signal, says this, and has recorded something. */
static void check_ended_by(struct __test_metadata *_metadata, FIXTURE_DATA(recorder_ends) *self,
			   const char * const *arguments, int signal, const char *text)
{
	int output;

	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	fault_and_kill(_metadata, self->recorder, self->errors, signal);
	EXPECT_TRUE(says(output, text));
	check_end(_metadata, self, 0);
}

/* A report that can't be written is an error. */
TEST_F(recorder_ends, disk_full)
{
	int pipes[2];

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	self->errors = pipes[0];
	self->recorder = fork_tied();
	if (!self->recorder) {
		dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
		dup2(pipes[1], STDERR_FILENO);
		execl(RECORDER, RECORDER, "--after", "100ms", "page-faults", NULL);
		_exit(127);
	}
	close(pipes[1]);
	ASSERT_LT(0, self->recorder);
	check_end(_metadata, self, 1);
	EXPECT_TRUE(says(dup(self->errors), "can't write what is printed"));
}

/* "wait" ends at once when a signal comes, others don't. */
#define COMMAND_TOLD \
	"trap 'kill $!; echo >&3; exit' TERM; sleep 1000 3>&- & echo >&3; wait"

/* Then the command is told to end, too, and may clean up. */
TEST_F(recorder_ends, command_told)
{
	int pipes[2], output[2];
	char byte;

	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(0, pipe2(output, O_CLOEXEC));
	self->recorder = fork_tied();
	if (!self->recorder) {
		close(pipes[0]);
		dup2(pipes[1], 3);
		dup2(output[1], STDOUT_FILENO);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		execl(RECORDER, RECORDER, "--after", "100ms", "--repeat", "0", "page-faults",
		      "--", "sh", "-c", COMMAND_TOLD, NULL);
		_exit(127);
	}
	close(pipes[1]);
	close(output[1]);
	ASSERT_LT(0, self->recorder);
	EXPECT_EQ(1, read(pipes[0], &byte, 1));
	/* From here on a report can't be written. */
	close(output[0]);
	EXPECT_EQ(1, read(pipes[0], &byte, 1));
	check_end(_metadata, self, 1);
	close(pipes[0]);
}

/* Faults once it is told to, and says so. */
static void fault_when_told(int told, int says)
{
	char byte;

	if (read(told, &byte, 1) != 1 || fault() || write(says, &byte, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* That the last task has gone is noticed, though a signal comes at the same time. */
TEST_F(recorder_ends, signal_at_end_of_tasks)
{
	int tell[2], said[2], output, status;
	pid_t task;
	char pid[16], byte = 0;
	const char * const arguments[] = {
		RECORDER, "--repeat", "0", "--pid", pid, "page-faults", NULL,
	};

	ASSERT_EQ(0, pipe2(tell, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(said, O_CLOEXEC));
	task = fork_tied();
	if (!task)
		fault_when_told(tell[0], said[1]);
	ASSERT_LT(0, task);
	snprintf(pid, sizeof(pid), "%d", task);
	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	wait_for_recorder(_metadata, self->errors);
	EXPECT_EQ(1, write(tell[1], &byte, 1));
	EXPECT_EQ(1, read(said[0], &byte, 1));
	EXPECT_EQ(0, kill(self->recorder, SIGSTOP));
	EXPECT_EQ(self->recorder, waitpid(self->recorder, &status, WUNTRACED));
	end_child(task);
	EXPECT_EQ(0, kill(self->recorder, SIGUSR2));
	EXPECT_EQ(0, kill(self->recorder, SIGCONT));
	EXPECT_TRUE(says(output, "snapshot 2: "));
	check_end(_metadata, self, 0);
	for (int i = 0; i < 2; i++) {
		close(tell[i]);
		close(said[i]);
	}
}

/* Whoever closes the terminal gets what was recorded. */
TEST_F(recorder_ends, hangup)
{
	const char * const arguments[] = { RECORDER, "page-faults", NULL };

	check_ended_by(_metadata, self, arguments, SIGHUP, "snapshot 1: ");
}

/* The end of the command is noticed, whatever the recorder's parent does with SIGCHLD. */
TEST_F(recorder_ends, children_ignored)
{
	const char * const arguments[] = {
		RECORDER, "page-faults", "--", RECORDER, "--help", NULL,
	};
	int output;

	signal(SIGCHLD, SIG_IGN);
	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	signal(SIGCHLD, SIG_DFL);
	EXPECT_TRUE(says(output, "snapshot 1: "));
	check_end(_metadata, self, 0);
}

/* Who ends it doesn't wait for the depth. */
TEST_F(recorder_ends, in_depth)
{
	const char * const arguments[] = {
		RECORDER, "--trigger", "page-faults", "--after-trigger", "1800s",
		"context-switches", NULL,
	};

	check_ended_by(_metadata, self, arguments, SIGTERM,
		       "ended before a trigger had stopped the buffers");
}

/* Nor does whoever ends it after a request, which the depth delays. */
TEST_F(recorder_ends, in_depth_of_request)
{
	const char * const arguments[] = {
		RECORDER, "--trigger", "major-faults", "--after-trigger", "1800s",
		"page-faults", NULL,
	};
	int output;

	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	fault_and_kill(_metadata, self->recorder, self->errors, SIGUSR2);
	ASSERT_EQ(0, kill(self->recorder, SIGTERM));
	EXPECT_TRUE(says(output, "ended before a trigger had stopped the buffers"));
	check_end(_metadata, self, 0);
}

/* But a command that ends, maybe as its trigger came, has all of the depth recorded. */
TEST_F(recorder_ends, command_in_depth)
{
	const char * const arguments[] = {
		RECORDER, "--trigger", "page-faults", "--after-trigger", "200ms",
		"minor-faults", "--", RECORDER, "--help", NULL,
	};
	int output;

	self->recorder = run_recorder(_metadata, arguments, &output, &self->errors);
	EXPECT_TRUE(says(output, ", buffers stopped 200ms later by "));
	check_end(_metadata, self, 0);
}

/* A shell with one job, which it continues when that was stopped. Says so to @told. */
static void run_job(const char *terminal, int told)
{
	int fd, status;
	char say[32];
	pid_t job;

	setsid();
	fd = open(terminal, O_RDWR);
	if (fd < 0 || dup2(fd, STDIN_FILENO) || signal(SIGTTOU, SIG_IGN) == SIG_ERR)
		_exit(2);
	job = fork_tied();
	if (!job) {
		setpgid(0, 0);
		if (tcsetpgrp(STDIN_FILENO, getpid()))
			_exit(3);
		signal(SIGTTOU, SIG_DFL);
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		dup2(STDOUT_FILENO, STDERR_FILENO);
		snprintf(say, sizeof(say), "echo >&%d; exec cat", told);
		execl(RECORDER, RECORDER, "page-faults", "--", "sh", "-c", say, NULL);
		_exit(127);
	}
	if (waitpid(job, &status, WUNTRACED) != job || !WIFSTOPPED(status))
		_exit(4);
	if (tcsetpgrp(STDIN_FILENO, getpid()) || tcsetpgrp(STDIN_FILENO, job) ||
	    kill(-job, SIGCONT) || write(told, "", 1) != 1)
		_exit(5);
	if (waitpid(job, &status, 0) != job || !WIFEXITED(status))
		_exit(6);
	_exit(WEXITSTATUS(status));
}

/*
 * What the terminal's keys do, they do to recorder and command alike: both stop, and run
 * on. If they are to end, the command does, and the recorder after it.
 */
TEST_F(recorder_ends, keys)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), told[2];
	const char *name = ptsname(terminal);
	char byte;

	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || !name)
		SKIP(return, "no terminals");
	ASSERT_EQ(0, pipe(told));
	/* The recorder is a job of this. */
	self->recorder = fork_tied();
	if (!self->recorder)
		run_job(name, told[1]);
	close(told[1]);
	ASSERT_LT(0, self->recorder);
	ASSERT_EQ(1, read(told[0], &byte, 1));
	ASSERT_EQ(1, write(terminal, "\032", 1));
	ASSERT_EQ(1, read(told[0], &byte, 1));
	ASSERT_EQ(1, write(terminal, "\003", 1));
	check_end(_metadata, self, 0);
	close(told[0]);
	close(terminal);
}

/* What a name has that would disturb the report is shown as numbers. */
TEST_F(recorder_ends, odd_name)
{
	const char * const arguments[] = { RECORDER, "--last", "1000000", "page-faults", NULL };
	char name[16], shown[64];

	ASSERT_EQ(0, prctl(PR_GET_NAME, name));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "\nodd\033"));
	snprintf(shown, sizeof(shown), " \\x0aodd\\x1b-%d ", getpid());
	check_ended_by(_metadata, self, arguments, SIGUSR2, shown);
	ASSERT_EQ(0, prctl(PR_SET_NAME, name));
}

/* A task that has no number where the recorder runs isn't the idle task. */
TEST_F(recorder_ends, namespace)
{
	const char * const arguments[] = { RECORDER, "--last", "1000000", "page-faults", NULL };

	if (unshare(CLONE_NEWPID)) {
		ASSERT_TRUE(errno == EINVAL || errno == EPERM);
		SKIP(return, "no pid namespace can be made");
	}
	check_ended_by(_metadata, self, arguments, SIGUSR2, " ?-0 ");
}

/* That the check of what is JSON finds what isn't. */
TEST(json_check)
{
	static const char * const good[] = {
		"{}\n", "{\"a\":[],\"b\":{\"c\":[1,-2.5e3,0.10,\"\\u00ff\\n\"]}}",
		"{ \"a\" : [ true , false , null ] }",
	};
	static const char * const bad[] = {
		"", "[]", "{", "{}}", "{\"a\":}", "{\"a\":1,}", "{\"a\":[1,]}", "{\"a\":[1 2]}",
		"{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":+1}", "{\"a\":0x1}", "{a:1}",
		"{\"a\":nan}", "{\"a\":\"\001\"}", "{\"a\":\"\377\"}", "{\"a\":\"\\x41\"}",
		"{\"a\":\"\\u00g0\"}", "{\"a\":\"b}", "{\"a\":'b'}", "{\"a\" 1}", "{\"a\":1} {}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_TRUE(is_json_object(good[i])) {
			TH_LOG("%s", good[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_FALSE(is_json_object(bad[i])) {
			TH_LOG("%s", bad[i]);
		}
	}
}

TEST_HARNESS_MAIN
