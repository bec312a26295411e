/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmarks share: counting instructions, events with a buffer, one line per figure.
 *
 * They run in a guest whose time-stamp counter advances by one with each instruction (ICOUNT=1),
 * and die at once on any other machine. There is one CPU, so that all that disturbs is the timer
 * tick: each batch starts right after one and ends before the next.
 */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Records are multiples of 8 bytes, so 512 of one size are whole pages: each batch has its
 * records at all places that a page has, equally often, wherever it starts.
 */
#define BATCH		512
#define BATCHES		9

static inline uint64_t instructions(void)
{
	return __builtin_ia32_rdtsc();
}

__attribute__((format(printf, 1, 2), noreturn))
static inline void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("error: ", stderr);
	vfprintf(stderr, format, args);
	fputs("\n", stderr);
	va_end(args);
	exit(1);
}

#define ARRAY_SIZE(_a)	(sizeof(_a) / sizeof((_a)[0]))

static inline void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		die("can't write %s: %s", path, strerror(errno));
}

/* What the counter advances by for so many instructions, the reading of it aside. */
static inline uint64_t nops_100(void)
{
	uint64_t start = instructions();

	__asm__ volatile(".rept 100; nop; .endr" ::: "memory");
	return instructions() - start;
}

static inline uint64_t nops_1100(void)
{
	uint64_t start = instructions();

	__asm__ volatile(".rept 1100; nop; .endr" ::: "memory");
	return instructions() - start;
}

/* The cheapest system call that there is: it fails. */
static inline void call_close(void *arg)
{
	(void)arg;
	syscall(__NR_close, -1);
}

/*
 * An interrupt shows as a leap of the counter in a loop of few instructions. What runs when its
 * handler is done, softirqs and threads, belongs to it, too: wait until there was none for a
 * while.
 */
#define QUIET		20000

static inline uint64_t wait_for_tick(void)
{
	uint64_t last = instructions(), now, leap = 0;

	for (;; last = now) {
		now = instructions();
		if (now - last > 200)
			leap = now;
		else if (leap && now - leap > QUIET)
			return leap;
	}
}

/* One instruction is one nanosecond. */
static inline uint64_t tick_period(void)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &t))
		die("clock_getres: %s", strerror(errno));
	return t.tv_nsec;
}

/*
 * The same without the instructions that waiting takes, as the clock doesn't wait for a CPU that
 * sleeps: the coarse clock says when the last tick was.
 */
static inline void sleep_past_tick(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &t))
		die("clock_gettime: %s", strerror(errno));
	t.tv_nsec += tick_period() + 2 * QUIET;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		die("clock_nanosleep failed");
}

static inline void bench_init(void)
{
	struct sched_param param = { .sched_priority = 1 };
	uint64_t a, b;

	if (sysconf(_SC_NPROCESSORS_ONLN) != 1)
		die("there are several CPUs: run it by scripts/bench, in a guest with ICOUNT=1");
	/* An interrupt may meet one of them, hardly all. */
	for (int i = 0; i < 5; i++) {
		a = nops_100();
		b = nops_1100();
		if (b - a == 1000)
			break;
	}
	if (b - a != 1000)
		die("1000 instructions count as %llu: run it by scripts/bench, with ICOUNT=1",
		    (unsigned long long)(b - a));

	/* Threads of the kernel that have work run when we sleep, not amidst a batch. */
	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
	if (sched_setscheduler(0, SCHED_FIFO, &param) || mlockall(MCL_CURRENT))
		die("no real-time priority or locked memory: %s", strerror(errno));
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/*
 * The instructions of n calls of op, the loop included. Not inlined, so that it is the same loop
 * with and without a record.
 */
__attribute__((noinline, unused))
static uint64_t batch(void (*op)(void *), void *arg, unsigned int n)
{
	uint64_t start, end;

	start = instructions();
	for (unsigned int i = 0; i < n; i++)
		op(arg);
	end = instructions();
	if (end - start + 2 * QUIET > tick_period())
		die("a batch of %u takes %llu instructions, a tick is %llu: make it smaller", n,
		    (unsigned long long)(end - start), (unsigned long long)tick_period());
	return end - start;
}

static inline void count_batches(void (*before)(void *), void (*op)(void *), void *arg,
				 unsigned int n, uint64_t count[BATCHES])
{
	/* The first one is for whatever happens only once. */
	for (int i = -1; i < BATCHES; i++) {
		uint64_t c;

		if (before)
			before(arg);
		wait_for_tick();
		c = batch(op, arg, n);
		if (i >= 0)
			count[i] = c;
	}
}

/*
 * Run some batches, with before(arg) ahead of each, and return what one takes. They must not
 * differ but for the few that met something rare; if most do, there is something that we don't
 * know of.
 */
static inline uint64_t measure(const char *what, void (*before)(void *), void (*op)(void *),
			       void *arg, unsigned int n)
{
	uint64_t count[BATCHES], least = UINT64_MAX;
	unsigned int same = 0;

	count_batches(before, op, arg, n, count);
	for (int i = 0; i < BATCHES; i++)
		least = count[i] < least ? count[i] : least;
	for (int i = 0; i < BATCHES; i++)
		same += count[i] == least;
	if (same <= BATCHES / 2) {
		fprintf(stderr, "error: %s: equal batches differ:", what);
		for (int i = 0; i < BATCHES; i++)
			fprintf(stderr, " %llu", (unsigned long long)count[i]);
		fprintf(stderr, "\n");
		exit(1);
	}
	return least;
}

/* The mean, for what doesn't come in whole pages: there batches do differ. */
static inline double measure_mean(void (*before)(void *), void (*op)(void *), void *arg,
				  unsigned int n)
{
	uint64_t count[BATCHES], sum = 0;

	count_batches(before, op, arg, n, count);
	for (int i = 0; i < BATCHES; i++)
		sum += count[i];
	return (double)sum / BATCHES;
}

/*
 * A figure, as scripts/bench reads it: its name, and what each record takes; '-' if there is
 * none.
 */
static inline void print_figure(const char *name, double value)
{
	printf("figure %s %.2f\n", name, value);
}

static inline void print_none(const char *name)
{
	printf("figure %s -\n", name);
}

/* What a sample consists of where nothing else is said, as perf record would ask for it. */
#define SAMPLE	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
		 PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

static inline unsigned int tracepoint_id(const char *name)
{
	char path[200];
	unsigned int id;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%u", &id) != 1)
		die("no tracepoint %s: is tracefs mounted?", name);
	fclose(f);
	return id;
}

/* Samples of each hit of a tracepoint. */
static inline struct perf_event_attr tracepoint_event(const char *name, uint64_t sample_type)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.config = tracepoint_id(name),
		.sample_period = 1,
		.sample_type = sample_type,
	};
}

struct buffer {
	int fd;
	size_t size;
	int backward;
	int writable;
	struct perf_event_mmap_page *user;
};

/* Open an event of this task; -1 if the kernel knows no such attribute, dies for other reasons. */
static inline int open_event(struct perf_event_attr *attr, int pid, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = syscall(__NR_perf_event_open, attr, pid, cpu, -1, 0);
	if (fd < 0 && errno == EINVAL && attr->write_backward)
		return -1;
	if (fd < 0)
		die("perf_event_open: %s", strerror(errno));
	return fd;
}

/* Map a buffer of a size in bytes for b->fd. */
static inline void map_buffer(struct buffer *b, size_t size, int writable)
{
	b->size = size;
	b->writable = writable;
	b->user = mmap(NULL, size + sysconf(_SC_PAGESIZE), PROT_READ | (writable ? PROT_WRITE : 0),
		       MAP_SHARED, b->fd, 0);
	if (b->user == MAP_FAILED)
		die("mmap of %zu bytes: %s", size, strerror(errno));
}

/* An event of a CPU that isn't enabled, with the smallest buffer. */
static inline void open_disabled(struct buffer *b, int cpu)
{
	struct perf_event_attr attr = tracepoint_event("sched/sched_switch", PERF_SAMPLE_TIME);

	attr.disabled = 1;
	b->fd = open_event(&attr, -1, cpu);
	map_buffer(b, 4096, 0);
}

/* An event of this task with a buffer, whose wakeups are as rare as can be; -1 as open_event(). */
static inline int open_buffer(struct buffer *b, struct perf_event_attr *attr, size_t size,
			      int writable)
{
	attr->watermark = 1;
	attr->wakeup_watermark = size;
	b->fd = open_event(attr, 0, -1);
	if (b->fd < 0)
		return -1;
	b->backward = attr->write_backward;
	map_buffer(b, size, writable);
	return 0;
}

static inline void close_buffer(struct buffer *b)
{
	munmap(b->user, b->size + sysconf(_SC_PAGESIZE));
	close(b->fd);
}

static inline void enable(int fd)
{
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		die("PERF_EVENT_IOC_ENABLE: %s", strerror(errno));
}

static inline uint64_t event_count(int fd)
{
	uint64_t value;

	if (read(fd, &value, sizeof(value)) != sizeof(value))
		die("can't read the event's count: %s", strerror(errno));
	return value;
}

/* Bytes that were written since head was what it was. */
static inline uint64_t written(const struct buffer *b, uint64_t head)
{
	return b->backward ? head - b->user->data_head : b->user->data_head - head;
}

/* Make room: the reader of a writable buffer is always up to date. */
static inline void consume(struct buffer *b)
{
	if (b->writable)
		__atomic_store_n(&b->user->data_tail, b->user->data_head, __ATOMIC_RELEASE);
}

static inline void go_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("can't go to CPU %d: %s", cpu, strerror(errno));
}

/* Function call interrupts of all CPUs so far. */
static inline unsigned long function_calls(void)
{
	FILE *f = fopen("/proc/interrupts", "r");
	unsigned long sum = 0, n;
	int counted = 0;
	char line[4096];

	if (!f)
		die("can't read /proc/interrupts: %s", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		char *at = strchr(line, ':'), *end;

		if (!at || !strstr(line, "Function call interrupts"))
			continue;
		for (at++; n = strtoul(at, &end, 10), end != at; at = end)
			sum += n;
		counted = 1;
	}
	fclose(f);
	if (!counted)
		die("/proc/interrupts counts no function call interrupts");
	return sum;
}

#endif /* BENCH_H */
