/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of overwritable buffers share: records whose number, sizes and
 * contents are known exactly.
 *
 * These are PERF_RECORD_COMM: a task that renames itself by prctl() makes every
 * event of its own with attr.comm write one record with the new name, at once
 * and in its own context. Record number n is made by the name of number n; its
 * length varies so that the records are of two sizes (24 and 32 bytes, without
 * sample_id_all), neither of which makes all of them fit a page.
 *
 * The others are samples of page faults: record number n is made by touching
 * page n of an area for the first time, and carries the page's address and, if
 * it is to be large, a piece of the stack full of words of that number.
 *
 * What the harness knows of a case is shared by the case and all its children, and
 * once an assertion has failed each ASSERT_*() that comes next jumps, whether it holds
 * or not. Hence a teardown has only EXPECT_*(), or it would leave the case's children
 * to the next one; and a child that has just been forked has none.
 */
#ifndef _SELFTESTS_OVERWRITE_TEST_H
#define _SELFTESTS_OVERWRITE_TEST_H

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "perf_overwrite.h"

/*
 * What a test waits for either happens, however busy the machine is, or the test
 * hangs: no case has a time limit of its own, but this one.
 */
#ifndef TEST_LIMIT
#define TEST_LIMIT		1200
#endif
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	TEST_LIMIT

/*
 * fork() of a child that ends with this process, which may be as early as before the
 * child runs at all: an assertion ends it, and an endless child would be left over.
 */
static inline pid_t fork_tied(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* 0 if it is the first of a new pid namespace. */
		if (getppid() && getppid() != parent)
			_exit(1);
	}
	return pid;
}

#define NAME_SIZE	16

struct comm_record {
	struct perf_event_header	header;
	__u32				pid, tid;
	char				name[NAME_SIZE];
};

struct lost_record {
	struct perf_event_header	header;
	__u64				id, lost;
};

/* What perf_log_throttle() writes. */
struct throttle_record {
	struct perf_event_header	header;
	__u64				time, id, stream_id;
};

/* Any event may have these, where ticks come late or not at all. */
static inline bool is_of_throttling(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_THROTTLE ||
	       header->type == PERF_RECORD_UNTHROTTLE;
}

/* What a read() of an event returns for NAME_EVENT's read_format. */
struct event_counts {
	__u64	value, id, lost;
};

/* The size of a long of the kernel, also for programs of 32 bits on one of 64. */
static inline size_t kernel_long(void)
{
	struct utsname names;

	if (!uname(&names) && !strcmp(names.machine, "x86_64"))
		return sizeof(__u64);
	return sizeof(long);
}

/* An event that writes records of names and nothing else. */
#define NAME_EVENT(_backward)						\
	((struct perf_event_attr) {					\
		.type		= PERF_TYPE_SOFTWARE,			\
		.size		= sizeof(struct perf_event_attr),	\
		.config		= PERF_COUNT_SW_DUMMY,			\
		.read_format	= PERF_FORMAT_ID | PERF_FORMAT_LOST,	\
		.exclude_kernel	= 1,					\
		.exclude_hv	= 1,					\
		.comm		= 1,					\
		.write_backward	= (_backward),				\
	})

/*
 * Opens an event as a test's set-up. Missing privilege or perf events are a
 * reason to skip, with -1 returned; that write_backward is missing is none.
 */
static inline int open_event(struct __test_metadata *_metadata,
			     struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = perf_overwrite_open(attr, pid, cpu, -1), error = errno;

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		SKIP(return -1, "no permission to open a perf event");
	if (fd < 0 && access("/proc/sys/kernel/perf_event_paranoid", F_OK))
		SKIP(return -1, "no perf events in this kernel");
	ASSERT_LE(0, fd) {
		TH_LOG("perf_event_open: %s", strerror(error));
	}
	return fd;
}

/*
 * Becomes a user whom limits apply to, if it isn't one. Returns 0, or -1 with errno set: a
 * user namespace may have no other one.
 */
static inline int become_nobody(void)
{
	const uid_t nobody = 65534;

	if (geteuid())
		return 0;
	return setgroups(0, NULL) || setresgid(nobody, nobody, nobody) ||
	       setresuid(nobody, nobody, nobody) ? -1 : 0;
}

/* Ends a child, if there is one. For teardowns, too. */
static inline void stop_child(struct __test_metadata *_metadata, pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
}

/*
 * Maps the buffer of an event as a test's set-up, as perf_overwrite_map() does. That
 * so much may not be locked is a reason to skip, with -1 returned.
 */
static inline int map_event(struct __test_metadata *_metadata, struct perf_overwrite *ow,
			    int fd, unsigned long pages, bool writable)
{
	if (!perf_overwrite_map(ow, fd, pages, writable))
		return 0;
	ASSERT_EQ(EPERM, errno);
	SKIP(return -1, "no permission to lock %lu pages", pages);
}

static inline __u64 now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Whether a child hasn't exited: what it should do it may still do. */
static inline bool is_alive(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

/* As /proc shows it: S sleeps, D sleeps where only a fatal signal ends it, if any does. */
static inline char task_state(pid_t pid)
{
	char path[64], line[512], *name_end;
	char state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(line, sizeof(line), file)) {
		name_end = strrchr(line, ')');
		if (name_end && name_end[1] == ' ')
			state = name_end[2];
	}
	fclose(file);
	return state;
}

/* The name of record number @seq: 5 to 13 digits. */
static inline void make_name(char name[NAME_SIZE], unsigned int seq)
{
	snprintf(name, NAME_SIZE, "%0*u", 5 + seq % 9, seq % 100000);
}

/* The size of record number @seq, which ends with @trailer bytes of ids. */
static inline size_t name_record_size(unsigned int seq, size_t trailer)
{
	size_t text = 5 + seq % 9 + 1;

	return sizeof(struct perf_event_header) + 2 * sizeof(__u32) +
	       (text + 7) / 8 * 8 + trailer;
}

/* Writes the records from number @first on. Returns how many bytes they take. */
static inline size_t write_names(unsigned int first, unsigned int count,
				 size_t trailer)
{
	char name[NAME_SIZE];
	size_t bytes = 0;

	for (unsigned int seq = first; seq < first + count; seq++) {
		make_name(name, seq);
		prctl(PR_SET_NAME, name);
		bytes += name_record_size(seq, trailer);
	}
	return bytes;
}

/* Whether this is record number @seq of this very task, in all its parts. */
static inline bool is_name(const struct perf_event_header *header,
			   unsigned int seq, size_t trailer)
{
	const struct comm_record *record = (const struct comm_record *)header;
	char name[NAME_SIZE];

	make_name(name, seq);
	return header->type == PERF_RECORD_COMM &&
	       header->size == name_record_size(seq, trailer) &&
	       record->pid == (__u32)getpid() &&
	       record->tid == (__u32)syscall(__NR_gettid) &&
	       !strcmp(record->name, name);
}

/* How many of the records before number @end fit into @size bytes, newest first. */
static inline unsigned int names_that_fit(unsigned int end, size_t size, size_t trailer)
{
	unsigned int count = 0;

	while (count < end) {
		size_t next = name_record_size(end - 1 - count, trailer);

		if (next > size)
			break;
		size -= next;
		count++;
	}
	return count;
}

/* How many pages of 4 KiB a page is: so many times more it takes to fill a buffer. */
static inline unsigned int page_scale(void)
{
	return sysconf(_SC_PAGESIZE) / 4096;
}

/* Pages that aren't there until they are touched. */
struct fault_area {
	unsigned char	*base;
	size_t		page_size;
	unsigned int	pages;
};

/* An event that writes samples of page faults, of what @_sample_type says. */
#define FAULT_EVENT(_sample_type)					\
	((struct perf_event_attr) {					\
		.type		= PERF_TYPE_SOFTWARE,			\
		.size		= sizeof(struct perf_event_attr),	\
		.config		= PERF_COUNT_SW_PAGE_FAULTS,		\
		.sample_type	= (_sample_type),			\
		.sample_period	= 1,					\
		.read_format	= PERF_FORMAT_ID | PERF_FORMAT_LOST,	\
		.disabled	= 1,					\
		.exclude_kernel	= 1,					\
		.exclude_hv	= 1,					\
		.write_backward	= 1,					\
	})

/*
 * Whether the architecture dumps no user stacks: @attr can be opened, but not
 * with them.
 */
static inline bool lacks_stack_dump(struct perf_event_attr attr, pid_t pid)
{
	int fd = perf_overwrite_open(&attr, pid, -1, -1);

	if (fd >= 0) {
		close(fd);
		return false;
	}
	attr.sample_type &= ~(__u64)PERF_SAMPLE_STACK_USER;
	fd = perf_overwrite_open(&attr, pid, -1, -1);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Returns 0, or -1 with errno set. */
static inline int map_fault_area(struct fault_area *area, unsigned int pages)
{
	area->page_size = sysconf(_SC_PAGESIZE);
	area->pages = pages;
	area->base = mmap(NULL, pages * area->page_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area->base == MAP_FAILED)
		return -1;
	/* One page at a time; a kernel that has no other pages refuses this. */
	madvise(area->base, pages * area->page_size, MADV_NOHUGEPAGE);
	return 0;
}

static inline __u64 fault_address(const struct fault_area *area, unsigned int seq)
{
	return (unsigned long)area->base + seq % area->pages * area->page_size;
}

/*
 * Makes fault number @seq. Number 0 and each one that begins a new round through
 * the area empties it first.
 */
static inline void make_fault(const struct fault_area *area, unsigned int seq)
{
	if (seq % area->pages == 0)
		madvise(area->base, area->pages * area->page_size, MADV_DONTNEED);
	/* Loads the byte, whoever may want it. */
	asm volatile("" : : "r" (area->base[seq % area->pages * area->page_size]));
}

/* Goes on with a forward buffer at @position, up to @head. */
static inline struct perf_event_header *
forward_next(const struct perf_overwrite *ow, __u64 *position, __u64 head, void *space)
{
	struct perf_overwrite_walk walk;
	struct perf_event_header *record;

	perf_overwrite_begin_at(&walk, ow, *position, head - *position);
	record = perf_overwrite_next(&walk, space);
	*position += walk.covered;
	return record;
}

/*
 * Begins a walk through what was written since the head was @older: less than a
 * lap, the first of it first if the buffer is written forward, else the last.
 */
static inline void begin_since(struct perf_overwrite_walk *walk,
			       const struct perf_overwrite *ow, __u64 older, bool backward)
{
	__u64 head = perf_overwrite_head(ow);

	if (backward)
		perf_overwrite_begin_at(walk, ow, head, perf_overwrite_written(older, head));
	else
		perf_overwrite_begin_at(walk, ow, older, head - older);
}

/* The CPUs on which this may run, up to @max. Returns how many. */
static inline int allowed_cpus(int *cpus, int max)
{
	int count = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE && count < max; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[count++] = cpu;
	return count;
}

/* Returns 0, or -1 with errno set. */
static inline int go_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

/* Stays on the CPU on which it is, which is returned, or -1 with errno set. */
static inline int pin_to_cpu(void)
{
	int cpu = sched_getcpu();

	return go_to_cpu(cpu) ? -1 : cpu;
}

/* Returns 0, or -1 with errno set. */
static inline int write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	int ret;

	if (!file)
		return -1;
	ret = fputs(text, file);
	return fclose(file) || ret < 0 ? -1 : 0;
}

static inline int write_number(const char *path, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", number);
	return write_text(path, text);
}

#define ONLINE_PATH_SIZE	64

static inline const char *online_path(char path[ONLINE_PATH_SIZE], int cpu)
{
	snprintf(path, ONLINE_PATH_SIZE, "/sys/devices/system/cpu/cpu%d/online", cpu);
	return path;
}

/* Returns 0, or -1 with errno set. */
static inline int set_online(int cpu, bool online)
{
	char path[ONLINE_PATH_SIZE];

	return write_number(online_path(path, cpu), online);
}

/* Returns the number in a small file, or -1. */
static inline int read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	int number = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

/* The attr.config of a tracepoint's event, or -1 if tracefs doesn't show the tracepoint. */
static inline long long tracepoint_id(const char *group, const char *name)
{
	static const char * const roots[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	long long id = -1;

	for (int i = 0; i < 2 && id < 0; i++) {
		char path[256];
		FILE *file;

		snprintf(path, sizeof(path), "%s/events/%s/%s/id", roots[i], group, name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fscanf(file, "%lld", &id) != 1)
			id = -1;
		fclose(file);
	}
	return id;
}

static inline __u64 lost_count(int fd)
{
	struct event_counts counts;

	if (read(fd, &counts, sizeof(counts)) != sizeof(counts))
		return -1;
	return counts.lost;
}

static inline __u64 event_id(int fd)
{
	__u64 id = 0;

	return ioctl(fd, PERF_EVENT_IOC_ID, &id) ? 0 : id;
}

#endif /* _SELFTESTS_OVERWRITE_TEST_H */
