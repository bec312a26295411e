/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the flight recorder knows about records that are no samples, and about
 * the names of tasks, which it has from them.
 */
#ifndef _SELFTESTS_TASK_NAMES_H
#define _SELFTESTS_TASK_NAMES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#define TASK_NAME_SIZE	17

/*
 * The names of tasks, as far as records told them: a hash table with open
 * addressing which forgets a name for a newer one when it has no place left.
 * The snapshot that told a name is kept: a later one may have been overwritten
 * before the next snapshot.
 */
#define TASK_NAMES_SLOTS	4096
#define TASK_NAMES_PROBES	8

struct task_names {
	unsigned long		snapshot;
	struct {
		__u32		tid;
		unsigned long	snapshot;
		char		name[TASK_NAME_SIZE];
	} slots[TASK_NAMES_SLOTS];
};

static inline void set_task_name(struct task_names *names, __u32 tid, const char *name)
{
	unsigned int slot = tid % TASK_NAMES_SLOTS;

	for (int i = 0; i < TASK_NAMES_PROBES; i++) {
		unsigned int other = (tid + i) % TASK_NAMES_SLOTS;

		if (!names->slots[other].tid || names->slots[other].tid == tid) {
			slot = other;
			break;
		}
	}
	names->slots[slot].tid = tid;
	names->slots[slot].snapshot = names->snapshot;
	snprintf(names->slots[slot].name, TASK_NAME_SIZE, "%s", name);
}

static inline bool read_task_name(__u32 tid, char name[TASK_NAME_SIZE])
{
	char path[64];
	bool read;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	read = fgets(name, TASK_NAME_SIZE, file);
	if (read)
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	return read;
}

/*
 * What the task is called: by a record of this snapshot, else by /proc, else,
 * if it has gone, by an earlier record.
 */
static inline void find_task_name(const struct task_names *names, __u32 tid,
				  char name[TASK_NAME_SIZE])
{
	const char *told = tid ? "?" : "<idle>";
	unsigned long snapshot = 0;

	for (int i = 0; tid && i < TASK_NAMES_PROBES; i++) {
		unsigned int slot = (tid + i) % TASK_NAMES_SLOTS;

		if (names->slots[slot].tid == tid) {
			told = names->slots[slot].name;
			snapshot = names->slots[slot].snapshot;
			break;
		}
	}
	if (!tid || snapshot == names->snapshot || !read_task_name(tid, name))
		snprintf(name, TASK_NAME_SIZE, "%s", told);
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

/* Learns what the record tells about the names of tasks. */
static inline void note_task_name(struct task_names *names,
				  const struct perf_event_header *header)
{
	union side_band record = side_band(header);
	char name[TASK_NAME_SIZE];

	if (header->type == PERF_RECORD_COMM) {
		set_task_name(names, record.comm.tid, record.comm.name);
	} else if (header->type == PERF_RECORD_FORK) {
		/* A new task is called like the one that made it. */
		find_task_name(names, record.task.ptid, name);
		set_task_name(names, record.task.tid, name);
	}
}

static inline void print_side_band(const struct perf_event_header *header)
{
	union side_band record = side_band(header);

	switch (header->type) {
	case PERF_RECORD_COMM:
		printf("%-22s %s-%u", "comm", record.comm.name, record.comm.tid);
		break;
	case PERF_RECORD_FORK:
		printf("%-22s %u by %u", "fork", record.task.tid, record.task.ptid);
		break;
	case PERF_RECORD_EXIT:
		printf("%-22s %u", "exit", record.task.tid);
		break;
	case PERF_RECORD_LOST:
		printf("%-22s %llu records", "lost", (unsigned long long)record.lost.lost);
		break;
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		printf("%-22s", header->type == PERF_RECORD_THROTTLE ? "throttle" : "unthrottle");
		break;
	default:
		printf("record type %u, %u bytes", header->type, header->size);
	}
}

#endif /* _SELFTESTS_TASK_NAMES_H */
