/* SPDX-License-Identifier: GPL-2.0 */
/* The flight recorder's data, and what all of its parts need. */
#ifndef _SAMPLES_FLIGHT_RECORDER_H
#define _SAMPLES_FLIGHT_RECORDER_H

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_overwrite.h"
#include "perf_overwrite_set.h"
#include "trace_format.h"

#define NSEC_PER_SEC		1000000000LL

/* All events have these, in this order; IP, ADDR and RAW stand between them. */
#define SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | \
			 PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* Ends with one line that says what to do. */
#define die(_format, ...)							\
do {										\
	fflush(stdout);								\
	fprintf(stderr, "flight_recorder: " _format "\n", ##__VA_ARGS__);	\
	exit(1);								\
} while (0)

static inline void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory)
		die("out of memory");
	return memory;
}

static inline void *resize(void *memory, size_t size)
{
	memory = realloc(memory, size);
	if (!memory)
		die("out of memory");
	return memory;
}

/* The first line of a small file, or an empty one. */
static inline void read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "r");

	line[0] = '\0';
	if (!file)
		return;
	if (fgets(line, size, file))
		line[strcspn(line, "\n")] = '\0';
	fclose(file);
}

#include "task_names.h"

/* As long as this, or until so much is written. */
struct depth {
	__u64		ns;
	__u64		bytes;
	const char	*text;
};

struct options {
	__u64		after;		/* nanoseconds, 0 if not given */
	unsigned long	repeat;		/* snapshots, 0 for no end */
	bool		repeats;	/* this was given */
	unsigned long	pages;
	unsigned long	last;
	bool		lossless;
	const char	* const *events;
	int		nr_events;
	const char	**triggers;
	int		nr_triggers;
	const char	*of_triggers;	/* an option that needs one */
	struct depth	depth;		/* after a trigger */
	struct depth	holdoff;
	bool		rearm;
	pid_t		*pids;
	int		nr_pids;
	bool		json;
	bool		all_cpus;	/* whatever the command does */
	char		**command;
};

/* Whether those of --pid or of the command are watched, and not all. */
static inline bool of_tasks(const struct options *options)
{
	return options->nr_pids || (options->command && !options->all_cpus);
}

/* An event that was asked for, or a trigger. */
struct kind {
	const char		*name;
	const char		*filter;	/* NULL if there is none */
	bool			tracepoint;
	bool			syscall_id;
	struct perf_event_attr	attr;
	struct trace_format	format;
};

/*
 * One CPU: a buffer, and an event of each kind and target that writes to it. To lose
 * nothing it takes two buffers: while one is read the events write to the spare one.
 */
struct channel {
	int			cpu;
	int			*fds;		/* of the first kind first, -1: of no task */
	__u64			*ids;
	struct perf_overwrite	ow;
	struct perf_overwrite	spare;
	struct perf_overwrite	names;		/* writable: read to its end */
	struct perf_overwrite_walk walk;
	unsigned char		*store;		/* the records of a snapshot */
	size_t			records;
	bool			lapped;		/* older ones were overwritten */
	struct perf_overwrite_span span;	/* of a set that was stopped */
};

struct recorder {
	const struct options	*options;
	struct kind		*kinds;		/* the triggers come last */
	int			nr_kinds;
	struct kind		holder;		/* of a buffer */
	pid_t			*targets;	/* tasks, or -1 for all */
	int			nr_targets;
	int			nr_fds;		/* of each CPU */
	struct channel		*channels;
	int			nr_channels;
	bool			counts_lost;	/* PERF_FORMAT_LOST is there */
	bool			freezes;	/* a pause waits for writers */
	unsigned long		snapshots;
	__u64			samples;	/* in all snapshots */
	struct perf_overwrite_set set;		/* if there are triggers */
	struct perf_overwrite_cut cut;
	bool			ending;		/* this snapshot is the last one */
	bool			cut_short;	/* it didn't wait for the depth */
	__u64			armed_at, since;	/* last, and for the snapshot */
	struct pollfd		*polled;	/* signals, buffers of names, tasks, the set */
	unsigned int		nr_polled;
	int			*task_fds;	/* one of each task */
	int			nr_alive;	/* of those that are polled */
	bool			gone;		/* all of them, untold yet */
	struct task_names	names;
};

/* A record of a snapshot. */
struct entry {
	__u64				time;
	const struct perf_event_header	*header;
	const struct channel		*channel;
	const struct kind		*kind;
	__u64				id;
	__u32				pid, tid;
	size_t				order;
};

static inline long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

#endif /* _SAMPLES_FLIGHT_RECORDER_H */
