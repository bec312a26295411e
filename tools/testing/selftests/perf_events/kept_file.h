/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a test changes of the machine, a sysctl or whether a CPU is online, is to be as it was
 * when the test is over, however that ends: a test that is killed, by its time limit or by
 * the user, runs no teardown. So another process, of a session of its own, restores it.
 */
#ifndef _SELFTESTS_KEPT_FILE_H
#define _SELFTESTS_KEPT_FILE_H

#include "overwrite_test.h"

struct kept_file {
	pid_t	keeper;
	/* Of a pipe that the keeper reads from: it restores the file when this is closed. */
	int	pipe;
};

static inline void restore_later(int pipe, const char *path, const char *text)
{
	char byte;

	setsid();
	if (read(pipe, &byte, 1) < 0)
		_exit(1);
	/* What is being closed meanwhile may have to be gone before. */
	for (int tries = 0; write_text(path, text); tries++) {
		if (tries == 100)
			_exit(1);
		usleep(100000);
	}
	_exit(0);
}

/*
 * From now on the file, of one line, will have its present contents when the test is over.
 * Call this before events are opened: the keeper has what the test has open. Returns 0, or
 * -1 with errno set.
 */
static inline int keep_file(struct kept_file *kept, const char *path)
{
	FILE *file = access(path, W_OK) ? NULL : fopen(path, "re");
	char text[64];
	int pipes[2];
	char *line;

	if (!file)
		return -1;
	line = fgets(text, sizeof(text), file);
	fclose(file);
	if (!line || pipe2(pipes, O_CLOEXEC))
		return -1;
	kept->keeper = fork();
	if (!kept->keeper) {
		close(pipes[1]);
		restore_later(pipes[0], path, text);
	}
	close(pipes[0]);
	kept->pipe = pipes[1];
	return kept->keeper < 0 ? -1 : 0;
}

/* Restores it now, if it is kept. Returns 0, or -1 if that failed. */
static inline int restore_file(struct kept_file *kept)
{
	int status;

	if (kept->keeper <= 0)
		return 0;
	/* Not by closing: children may have the other end, too. */
	if (write(kept->pipe, "", 1) != 1 ||
	    waitpid(kept->keeper, &status, 0) != kept->keeper || status)
		return -1;
	kept->keeper = 0;
	close(kept->pipe);
	return 0;
}

static inline int keep_online(struct kept_file *kept, int cpu)
{
	char path[ONLINE_PATH_SIZE];

	return keep_file(kept, online_path(path, cpu));
}

#endif /* _SELFTESTS_KEPT_FILE_H */
