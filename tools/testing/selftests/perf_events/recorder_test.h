/* SPDX-License-Identifier: GPL-2.0 */
/* How tests run the flight recorder. */
#ifndef _SELFTESTS_RECORDER_TEST_H
#define _SELFTESTS_RECORDER_TEST_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORDER	"./flight_recorder"

/* Root in a container may not. */
static inline bool may_watch_all(void)
{
	struct perf_event_attr attr = NAME_EVENT(false);
	int fd = perf_overwrite_open(&attr, -1, sched_getcpu(), -1);

	if (fd < 0)
		return false;
	close(fd);
	return !geteuid();
}

/* Runs it with these arguments, which NULL ends. */
static inline pid_t run_recorder(struct __test_metadata *_metadata,
				 const char * const *arguments, int *output, int *errors)
{
	int pipes[2][2];
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes[0], O_CLOEXEC));
	ASSERT_EQ(0, pipe2(pipes[1], O_CLOEXEC));
	pid = fork_tied();
	if (!pid) {
		dup2(pipes[0][1], STDOUT_FILENO);
		dup2(pipes[1][1], STDERR_FILENO);
		execv(RECORDER, (char * const *)arguments);
		_exit(127);
	}
	ASSERT_LT(0, pid);
	close(pipes[0][1]);
	close(pipes[1][1]);
	*output = pipes[0][0];
	*errors = pipes[1][0];
	return pid;
}

/* It says in a line that it records. */
static inline void wait_for_recorder(struct __test_metadata *_metadata, int errors)
{
	char said[512];
	ssize_t length = read(errors, said, sizeof(said) - 1);

	ASSERT_LT(0, length);
	said[length] = 0;
	ASSERT_NE(NULL, strstr(said, "recording")) {
		TH_LOG("%s", said);
	}
}

static inline void check_exit(struct __test_metadata *_metadata, pid_t recorder, int expected)
{
	int status;

	ASSERT_EQ(recorder, waitpid(recorder, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(expected, WEXITSTATUS(status));
}

static inline void end_child(pid_t pid)
{
	if (pid > 0 && !kill(pid, SIGKILL))
		waitpid(pid, NULL, 0);
}

#endif /* _SELFTESTS_RECORDER_TEST_H */
