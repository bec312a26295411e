// SPDX-License-Identifier: GPL-2.0
/*
 * The flight recorder shows each record with the name that its task had when it was
 * written: of a task that was there before the recording, of one that came later, of
 * one that had another name before, and of one that has ended, whether or not they
 * still exist when all of this is printed.
 *
 * The recorder is started with its output in a pipe, which isn't read while the tasks
 * are there. It can't have printed more than fits into the pipe, and into what reads it,
 * when they are gone.
 * What the buffer has of their names was overwritten by their own records before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define RECORDER	"./flight_recorder"
#define PAGES		256
/* Records of a task, so many of which are left, and what is more than a buffer takes. */
#define CALLS		400
#define LAP		(PAGES * 4096 / 64)

/* Much less than is printed of one task; stdio takes as much. */
#define PIPE_BYTES	4096

enum task {
	EARLIER,	/* than the recording */
	LATER,
	RENAMED,
	GONE,		/* before the snapshot */
	TASKS,
};

static const char * const names[TASKS] = {
	[EARLIER]	= "is earlier",
	[LATER]		= "comes later",
	[RENAMED]	= "is renamed",
	[GONE]		= "goes",
};

/* What it is called then, and makes its last calls as. */
#define NEW_NAME	"has a new name"

struct recording {
	int	cpu;
	pid_t	tasks[TASKS];
	pid_t	recorder;
	int	output, errors;
};

FIXTURE(recorder_names)
{
	struct recording	test;
};

static void make_calls(unsigned long count)
{
	while (count--)
		syscall(__NR_getppid);
}

/* Stops until it is told to go on, if it lives longer than its calls. */
static void run_task(enum task task, int cpu)
{
	prctl(PR_SET_NAME, names[task]);
	if (go_to_cpu(cpu))
		_exit(1);
	raise(SIGSTOP);
	if (task == GONE)
		make_calls(LAP);
	make_calls(CALLS);
	if (task == RENAMED) {
		prctl(PR_SET_NAME, NEW_NAME);
		make_calls(CALLS);
	}
	if (task == GONE)
		_exit(0);
	raise(SIGSTOP);
	_exit(0);
}

static void start_task(struct __test_metadata *_metadata, struct recording *test, enum task task)
{
	int status;

	test->tasks[task] = fork_tied();
	if (!test->tasks[task])
		run_task(task, test->cpu);
	ASSERT_LT(0, test->tasks[task]);
	ASSERT_EQ(test->tasks[task], waitpid(test->tasks[task], &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
}

/* Has it make its calls, and waits until it has. */
static void let_go(struct __test_metadata *_metadata, struct recording *test, enum task task)
{
	int status;

	ASSERT_EQ(0, kill(test->tasks[task], SIGCONT));
	ASSERT_EQ(test->tasks[task], waitpid(test->tasks[task], &status, WUNTRACED));
	ASSERT_EQ(task == GONE, WIFEXITED(status));
	if (task == GONE)
		test->tasks[task] = 0;
}

static void start_recorder(struct __test_metadata *_metadata, struct recording *test)
{
	int output[2], errors[2];
	char pages[16];

	snprintf(pages, sizeof(pages), "%lu", PAGES * 4096UL / sysconf(_SC_PAGESIZE));
	ASSERT_EQ(0, pipe2(output, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(errors, O_CLOEXEC));
	ASSERT_LE(PIPE_BYTES, fcntl(output[1], F_SETPIPE_SZ, PIPE_BYTES));
	test->recorder = fork_tied();
	if (!test->recorder) {
		dup2(output[1], STDOUT_FILENO);
		dup2(errors[1], STDERR_FILENO);
		execl(RECORDER, RECORDER, "--last", "1000000", "--pages", pages,
		      "raw_syscalls:sys_enter", NULL);
		_exit(127);
	}
	ASSERT_LT(0, test->recorder);
	ASSERT_EQ(0, close(output[1]));
	ASSERT_EQ(0, close(errors[1]));
	test->output = output[0];
	test->errors = errors[0];
}

/* The recorder says in a line that it records, or why it doesn't. */
static void wait_for_recorder(struct __test_metadata *_metadata, struct recording *test)
{
	char said[512];
	ssize_t length = read(test->errors, said, sizeof(said) - 1);

	ASSERT_LT(0, length);
	said[length] = 0;
	if (strstr(said, "tracefs") || strstr(said, "permission"))
		SKIP(return, "%s", said);
	ASSERT_NE(NULL, strstr(said, "recording")) {
		TH_LOG("%s", said);
	}
}

FIXTURE_SETUP(recorder_names)
{
	struct recording *test = &self->test;

	test->cpu = pin_to_cpu();
	ASSERT_LE(0, test->cpu);
	if (geteuid())
		SKIP(return, "not root, who may watch all tasks");
	start_task(_metadata, test, EARLIER);
	start_recorder(_metadata, test);
	wait_for_recorder(_metadata, test);
}

FIXTURE_TEARDOWN(recorder_names)
{
	struct recording *test = &self->test;

	for (int task = 0; task < TASKS; task++)
		stop_child(_metadata, test->tasks[task]);
	stop_child(_metadata, test->recorder);
	if (test->recorder > 0) {
		EXPECT_EQ(0, close(test->output));
		EXPECT_EQ(0, close(test->errors));
	}
}

/* The task of a line "  CPU TIME  NAME-TID ...": whether it has this tid, and this name. */
static bool is_of(const char *line, pid_t tid, const char *name, bool *named)
{
	char text[32];
	const char *at;

	snprintf(text, sizeof(text), "-%d ", tid);
	at = strstr(line, text);
	if (!at || !strstr(at, "raw_syscalls:sys_enter"))
		return false;
	*named = at - line >= (ptrdiff_t)strlen(name) &&
		 !strncmp(at - strlen(name), name, strlen(name)) && at[-strlen(name) - 1] == ' ';
	return true;
}

TEST_F(recorder_names, as_they_were)
{
	struct recording *test = &self->test;
	unsigned int records[TASKS] = {}, renamed = 0, misnamed = 0;
	pid_t tids[TASKS];
	char line[1024];
	FILE *output;

	for (int task = LATER; task < TASKS; task++)
		start_task(_metadata, test, task);
	memcpy(tids, test->tasks, sizeof(tids));
	/* First the one whose calls take all of the buffer. */
	for (int task = TASKS - 1; task >= 0; task--)
		let_go(_metadata, test, task);

	ASSERT_EQ(0, kill(test->recorder, SIGUSR2));
	output = fdopen(test->output, "r");
	ASSERT_NE(NULL, output);
	/* It prints: the snapshot was taken. From here on nobody can be looked up. */
	ASSERT_NE(NULL, fgets(line, sizeof(line), output));
	for (int task = 0; task < GONE; task++) {
		ASSERT_EQ(0, kill(test->tasks[task], SIGKILL));
		ASSERT_EQ(test->tasks[task], waitpid(test->tasks[task], NULL, 0));
		test->tasks[task] = 0;
	}

	while (fgets(line, sizeof(line), output)) {
		for (int task = 0; task < TASKS; task++) {
			bool named, with_new_name;

			if (!is_of(line, tids[task], names[task], &named))
				continue;
			records[task]++;
			if (task == RENAMED && is_of(line, tids[task], NEW_NAME, &with_new_name) &&
			    with_new_name) {
				renamed++;
				named = true;
			}
			if (!named && !misnamed++)
				TH_LOG("%s is shown as: %s", names[task], line);
		}
	}
	ASSERT_EQ(test->recorder, waitpid(test->recorder, NULL, 0));
	test->recorder = 0;
	ASSERT_EQ(0, fclose(output));
	ASSERT_EQ(0, close(test->errors));

	for (int task = 0; task < TASKS; task++) {
		TH_LOG("%s: %u records", names[task], records[task]);
		EXPECT_LE(CALLS, records[task]);
	}
	EXPECT_LE(CALLS, renamed);
	EXPECT_GT(records[RENAMED], renamed);
	EXPECT_EQ(0, misnamed);
}

TEST_HARNESS_MAIN
