/* SPDX-License-Identifier: GPL-2.0 */
/* The command that the flight recorder runs while it records. */
#ifndef _SAMPLES_FLIGHT_COMMAND_H
#define _SAMPLES_FLIGHT_COMMAND_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "flight_recorder.h"

#define COMMAND_GRACE_SECONDS	2

/*
 * Starts the command, which waits until a byte is written to *@go; if that is closed
 * it isn't run. It stays in our process group: the terminal, and a shell's control of
 * its jobs, take us for one. Returns its pid.
 */
static inline pid_t start_command(char **command, int *go, int *failed)
{
	int hold[2], result[2], error;
	char byte;
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC) || pipe2(result, O_CLOEXEC))
		die("can't make a pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("can't start '%s': %s", command[0], strerror(errno));
	if (!pid) {
		sigset_t none;

		close(hold[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(hold[0], &byte, 1) != 1)
			_exit(126);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(command[0], command);
		error = errno;
		if (write(result[1], &error, sizeof(error)) < 0)
			_exit(126);
		_exit(127);
	}
	close(hold[0]);
	close(result[1]);
	*go = hold[1];
	*failed = result[0];
	return pid;
}

static inline void run_command(char **command, int go, int failed)
{
	int error = 0;

	if (write(go, "", 1) != 1)
		die("can't start '%s': %s", command[0], strerror(errno));
	close(go);
	/* Is at its end when the command was executed. */
	if (read(failed, &error, sizeof(error)) == sizeof(error))
		die("can't run '%s': %s", command[0], strerror(error));
	close(failed);
}

static inline void end_command(pid_t pid)
{
	struct timespec grace = { .tv_sec = COMMAND_GRACE_SECONDS };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, WNOHANG) != pid) {
		if (sigtimedwait(&child, NULL, &grace) < 0 && errno == EAGAIN) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			break;
		}
	}
}

#endif /* _SAMPLES_FLIGHT_COMMAND_H */
