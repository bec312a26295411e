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

#define COMMAND_GRACE_SECONDS	5

/* While it runs. */
static pid_t running_command;

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

/* Lets it clean up, whatever the recorder ends for. */
static inline void end_command(void)
{
	struct timespec grace = { .tv_sec = COMMAND_GRACE_SECONDS };
	sigset_t child;

	if (!running_command)
		return;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	kill(running_command, SIGTERM);
	while (waitpid(running_command, NULL, WNOHANG) != running_command) {
		if (sigtimedwait(&child, NULL, &grace) < 0 && errno == EAGAIN) {
			kill(running_command, SIGKILL);
			waitpid(running_command, NULL, 0);
			break;
		}
	}
	running_command = 0;
}

static inline void run_command(pid_t pid, char **command, int go, int failed)
{
	int error = 0;

	if (write(go, "", 1) != 1)
		die("can't start '%s': %s", command[0], strerror(errno));
	close(go);
	/* Is at its end when the command was executed. */
	if (read(failed, &error, sizeof(error)) == sizeof(error))
		die("can't run '%s': %s", command[0], strerror(error));
	close(failed);
	running_command = pid;
	/* The command has what we were started with. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || atexit(end_command))
		die("can't end '%s' when the recorder ends: %s", command[0], strerror(errno));
}

#endif /* _SAMPLES_FLIGHT_COMMAND_H */
