/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the flight recorder watches: every CPU, or some tasks and what they start.
 *
 * An event that children inherit can be mapped only if it is bound to a CPU, so that
 * one CPU writes to a buffer at a time. Hence tasks have an event for each CPU, too,
 * and those of all tasks share the CPU's buffer.
 */
#ifndef _SAMPLES_FLIGHT_TARGETS_H
#define _SAMPLES_FLIGHT_TARGETS_H

#include <dirent.h>
#include <sys/resource.h>

#include "flight_recorder.h"

/* Once, or its records would be there twice. */
static inline void add_target(struct recorder *recorder, pid_t pid)
{
	for (int t = 0; t < recorder->nr_targets; t++)
		if (recorder->targets[t] == pid)
			return;
	recorder->targets = resize(recorder->targets, (recorder->nr_targets + 1) *
				   sizeof(*recorder->targets));
	recorder->targets[recorder->nr_targets++] = pid;
}

static inline void add_threads(struct recorder *recorder, pid_t pid)
{
	struct dirent *thread;
	char path[32];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	if (!threads)
		die("--pid: there is no process %d: see ps", pid);
	while ((thread = readdir(threads)))
		if (thread->d_name[0] >= '0' && thread->d_name[0] <= '9')
			add_target(recorder, atoi(thread->d_name));
	closedir(threads);
}

/* @command is what waits to be executed, 0 if nothing does. */
static inline void find_targets(struct recorder *recorder, pid_t command)
{
	const struct options *options = recorder->options;
	struct rlimit files;

	for (int i = 0; i < options->nr_pids; i++)
		add_threads(recorder, options->pids[i]);
	if (!recorder->nr_targets)
		add_target(recorder, of_tasks(options) ? command : -1);
	recorder->nr_fds = recorder->nr_kinds * recorder->nr_targets;

	/* Many threads on many CPUs take many descriptors: have all that we may. */
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

#endif /* _SAMPLES_FLIGHT_TARGETS_H */
