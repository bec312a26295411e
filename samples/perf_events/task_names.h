/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the flight recorder knows about records that are no samples, and about
 * the names of tasks, which it has from them.
 *
 * A name belongs to a task at a time: of a snapshot's records, each is shown with
 * the name that its task had when it was written, whatever became of the task until
 * it is printed. What tells of the names doesn't stand among those records, where
 * it would be overwritten, but in buffers of its own that are read to the end: when
 * they fill up, and when a snapshot was taken. Tasks that are older than the
 * recording are looked up in /proc when it begins.
 */
#ifndef _SAMPLES_TASK_NAMES_H
#define _SAMPLES_TASK_NAMES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#define TASK_NAME_SIZE	17

/* From then on the task has this name, or that of its parent, or is gone. */
struct task_name {
	__u64	time;
	__u32	tid;
	__u32	parent;		/* 0 if it has a name of its own */
	bool	gone;
	char	name[TASK_NAME_SIZE];
};

/* How many of these are kept at least before some are forgotten. */
#define TASK_NAMES_MIN	65536

/* All that was told. */
struct task_names {
	struct task_name	*names;
	size_t			count, room, limit;
	bool			sorted;
	bool			in_namespace;	/* of PIDs: outside of it a task's is 0 */
};

/* A name may have any bytes: those that would disturb a line or a terminal as numbers. */
static inline void printable_name(char *text, size_t size, const char *name)
{
	size_t length = 0;

	for (text[0] = '\0'; *name && length + 5 <= size; name++)
		length += snprintf(text + length, size - length,
				   *name >= ' ' && *name <= '~' ? "%c" : "\\x%02x",
				   (unsigned char)*name);
}

static inline int compare_task_names(const void *one, const void *other)
{
	const struct task_name *a = one, *b = other;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return 0;
}

static inline int compare_times(const void *one, const void *other)
{
	__u64 a = *(const __u64 *)one, b = *(const __u64 *)other;

	return a < b ? -1 : a > b;
}

static inline void sort_task_names(struct task_names *names)
{
	if (!names->sorted)
		qsort(names->names, names->count, sizeof(*names->names), compare_task_names);
	names->sorted = true;
}

/*
 * What is known of the task at this time: the latest that isn't later and isn't its
 * end, as a task may write records after that. NULL if nothing is.
 */
static inline const struct task_name *task_name_at(const struct task_names *names,
						   __u32 tid, __u64 time)
{
	size_t begin = 0, end = names->count;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		const struct task_name *name = &names->names[middle];

		if (name->tid < tid || (name->tid == tid && name->time <= time))
			begin = middle + 1;
		else
			end = middle;
	}
	while (begin-- && names->names[begin].tid == tid)
		if (!names->names[begin].gone)
			return &names->names[begin];
	return NULL;
}

/*
 * What the task was called at this time. A new one is called like its parent. The
 * names have to be sorted.
 */
static inline const char *find_task_name(const struct task_names *names, __u32 tid,
					 __u64 time)
{
	const struct task_name *name = task_name_at(names, tid, time);

	/* Parents were there before: this ends, whatever was told. */
	while (name && name->parent)
		name = name->time ? task_name_at(names, name->parent, name->time - 1) : NULL;
	if (!tid)
		return names->in_namespace ? "?" : "<idle>";
	return name ? name->name : "?";
}

/*
 * Makes room: of what is older than the newer half, forgets the names that their
 * tasks don't have any more, and the tasks that are gone.
 */
static inline void forget_task_names(struct task_names *names)
{
	__u64 *times = malloc(names->count * sizeof(*times)), old = 0;
	size_t kept = 0;

	sort_task_names(names);
	for (size_t i = 0; i < names->count; i++) {
		struct task_name *name = &names->names[i];

		if (name->parent) {
			snprintf(name->name, sizeof(name->name), "%s",
				 find_task_name(names, name->tid, name->time));
			name->parent = 0;
		}
		if (times)
			times[i] = name->time;
	}
	if (times) {
		qsort(times, names->count, sizeof(*times), compare_times);
		old = times[names->count / 2];
	}
	free(times);

	for (size_t i = 0; i < names->count; i++) {
		const struct task_name *next = &names->names[i + 1];

		if (i + 1 < names->count && next->tid == names->names[i].tid) {
			if (next->time <= old)
				continue;
		} else if (names->names[i].gone && names->names[i].time <= old) {
			continue;
		}
		names->names[kept++] = names->names[i];
	}
	names->count = kept;
	/* There may be so many tasks. */
	names->limit = kept > TASK_NAMES_MIN / 2 ? 2 * kept : TASK_NAMES_MIN;
}

static inline void add_task_name(struct task_names *names, const struct task_name *name)
{
	if (!names->limit)
		names->limit = TASK_NAMES_MIN;
	if (names->count >= names->limit)
		forget_task_names(names);
	if (names->count == names->room) {
		names->room = names->room ? 2 * names->room : 1024;
		names->names = resize(names->names, names->room * sizeof(*names->names));
	}
	names->names[names->count++] = *name;
	names->sorted = false;
}

/* A newline may be in it, too: only the one at its end isn't the name's. */
static inline bool read_task_name(const char *path, char *name)
{
	FILE *file = fopen(path, "r");
	size_t length = 0;

	if (file) {
		length = fread(name, 1, TASK_NAME_SIZE, file);
		fclose(file);
	}
	if (!length)
		return false;
	name[length - 1] = '\0';
	return true;
}

/* Adds the names that all tasks have now, as of @time. */
static inline void read_task_names(struct task_names *names, __u64 time)
{
	struct dirent *process, *thread;
	DIR *processes, *threads;
	char path[64];

	processes = opendir("/proc");
	while (processes && (process = readdir(processes))) {
		snprintf(path, sizeof(path), "/proc/%.20s/task", process->d_name);
		if (process->d_name[0] < '0' || process->d_name[0] > '9')
			continue;
		threads = opendir(path);
		while (threads && (thread = readdir(threads))) {
			struct task_name name = {
				.time = time,
				.tid = strtoul(thread->d_name, NULL, 10),
			};

			snprintf(path, sizeof(path), "/proc/%u/comm", name.tid);
			if (!name.tid)
				continue;
			if (read_task_name(path, name.name))
				add_task_name(names, &name);
		}
		if (threads)
			closedir(threads);
	}
	if (processes)
		closedir(processes);
}

/* The records that are no samples, without what sample_id_all adds. */
union side_band {
	struct perf_event_header	header;
	struct {
		struct perf_event_header	header;
		__u32				pid, tid;
		char				name[TASK_NAME_SIZE - 1];
		__u64				end;
	} comm;
	struct {
		struct perf_event_header	header;
		__u32				pid, ppid, tid, ptid;
	} task;
	struct {
		struct perf_event_header	header;
		__u64				id, lost;
	} lost;
};

/* A copy, with zeroes for what a short record doesn't have. */
static inline union side_band side_band(const struct perf_event_header *header)
{
	union side_band record;
	size_t size = header->size;

	memset(&record, 0, sizeof(record));
	memcpy(&record, header, size < sizeof(record) ? size : sizeof(record));
	/* A name is terminated by the kernel, and here in any case. */
	if (header->type == PERF_RECORD_COMM)
		record.comm.end = 0;
	return record;
}

static inline __u64 lost_records(const struct perf_event_header *header)
{
	return side_band(header).lost.lost;
}

/* Learns what the record, which was written at @time, tells about the names of tasks. */
static inline void note_task_name(struct task_names *names,
				  const struct perf_event_header *header, __u64 time)
{
	union side_band record = side_band(header);
	struct task_name name = { .time = time };

	switch (header->type) {
	case PERF_RECORD_COMM:
		name.tid = record.comm.tid;
		snprintf(name.name, sizeof(name.name), "%s", record.comm.name);
		break;
	case PERF_RECORD_FORK:
		name.tid = record.task.tid;
		name.parent = record.task.ptid;
		break;
	case PERF_RECORD_EXIT:
		name.tid = record.task.tid;
		name.gone = true;
		break;
	default:
		return;
	}
	add_task_name(names, &name);
}

static inline const char *side_band_name(const struct perf_event_header *header)
{
	switch (header->type) {
	case PERF_RECORD_COMM:
		return "comm";
	case PERF_RECORD_FORK:
		return "fork";
	case PERF_RECORD_EXIT:
		return "exit";
	case PERF_RECORD_LOST:
		return "lost";
	case PERF_RECORD_THROTTLE:
		return "throttle";
	case PERF_RECORD_UNTHROTTLE:
		return "unthrottle";
	default:
		return "other";
	}
}

/* What stands behind the name. */
static inline void print_side_band(const struct perf_event_header *header)
{
	union side_band record = side_band(header);
	char name[4 * TASK_NAME_SIZE + 5];

	switch (header->type) {
	case PERF_RECORD_COMM:
		printable_name(name, sizeof(name), record.comm.name);
		printf("%s-%u", name, record.comm.tid);
		break;
	case PERF_RECORD_FORK:
		printf("%u by %u", record.task.tid, record.task.ptid);
		break;
	case PERF_RECORD_EXIT:
		printf("%u", record.task.tid);
		break;
	case PERF_RECORD_LOST:
		printf("%llu records", (unsigned long long)record.lost.lost);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		break;
	default:
		printf("type %u, %u bytes", header->type, header->size);
	}
}

#endif /* _SAMPLES_TASK_NAMES_H */
