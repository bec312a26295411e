/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the fuzzer share: random numbers, the state that all processes see, and slots,
 * which are the events of a process with their mappings.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "perf_overwrite.h"
#include "trigger.h"

#define WORKERS		6
#define THREADS		2
#define SLOTS		12
#define SETS		3
#define MAX_PAGES	64
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Newer than the headers here may be. */
#define FORMAT_LOST	(1U << 4)

/* What is counted, with what the user reads of it. */
#define COUNTERS(count)						\
	count(FROZEN, "paused buffers looked at twice")		\
	count(WALKS, "walks through paused buffers")		\
	count(RECORDS, "records in them")			\
	count(LAPPED, "walks that ended at a cut record")	\
	count(SAMPLES, "samples whose contents have their size")	\
	count(READS, "reads of values, sizes compared")		\
	count(REPORTS, "buffers compared with a set's report")	\
	count(PINNED, "processes that had pages pinned, and none in the end") \
	count(HOTPLUGS, "CPUs that went or came")		\
	count(DIRECTED, "events opened into another's buffer")	\
	count(WRITABLE, "mappings made writable")		\
	count(REFUSED, "changes to a part of a mapping or to its size, refused") \
	count(EXECUTED, "programs executed")				\
	count(KEPT, "events that a worker kept when it executed itself") \
	count(TORN, "mappings that it had then")

#define COUNTER_ID(_name, _text)	COUNT_##_name,
enum counter { COUNTERS(COUNTER_ID) NR_COUNTERS };

#define MAX_OPS		64

/* One thread at its work, for the watchdog. */
struct progress {
	const char	*op;
	uint64_t	since;		/* ns, 0 between calls */
	uint64_t	epoch, step;
	unsigned int	image;
	pid_t		pid;
};

struct slot {
	int			fd;
	bool			foreign;	/* of the parent, which reads it */
	bool			of_cpu;		/* of all tasks on a CPU */
	bool			scribble;	/* step_walk() may write to its user page */
	bool			mapped, writable;
	bool			busy;		/* closing, mapping and reading exclude each other */
	struct perf_event_attr	attr;
	struct perf_overwrite	ow;
	uint64_t		head;		/* the last one seen */
	uint64_t		id;
};

struct shared {
	bool		failed, stop;
	uint64_t	seed;
	unsigned long	counts[NR_COUNTERS];
	unsigned long	calls[MAX_OPS], done[MAX_OPS];
	struct progress	progress[WORKERS][THREADS];
	/* Resumes by any process of a worker: a paused buffer may change meanwhile. */
	unsigned long	resumes_begun[WORKERS];
	/* A thread is at one, or its child, which may be killed amidst it. */
	bool		resuming[WORKERS][THREADS][2];
	/* For a worker that executes itself: all else is new then. */
	struct slot	slots[WORKERS][SLOTS];
	unsigned int	tracepoints[16], nr_tracepoints;
	int		programs[4], output_map;
};

/* Another mapping of some event, which nobody reads. */
struct wild {
	void	*area;
	size_t	size;
};

struct fuzz_set {
	int		fd;
	__u64		generation;
};

extern struct shared *shared;
extern struct slot slots[SLOTS];
extern int worker_nr;
/* All samples begin with their events' ids; attr_of() knows these. */
extern bool identified;
const struct perf_event_attr *attr_of(uint64_t id);
extern __thread int thread_nr;
extern __thread uint64_t at_step;
extern __thread bool in_child;

/* splitmix64: each step of each thread has a state of its own, whatever calls returned before. */
struct random {
	uint64_t	state;
};

static inline uint64_t next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline struct random random_of(uint64_t seed, uint64_t worker, uint64_t epoch, uint64_t step)
{
	struct random r = { seed };

	r.state = next(&r) + worker;
	r.state = next(&r) + epoch;
	r.state = next(&r) + step;
	return r;
}

static inline unsigned int below(struct random *r, unsigned int n)
{
	return (next(r) >> 16) % n;
}

static inline bool one_in(struct random *r, unsigned int n)
{
	return !below(r, n);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline void count(enum counter counter, unsigned long n)
{
	__atomic_fetch_add(&shared->counts[counter], n, __ATOMIC_RELAXED);
}

/* Tells of the first violation, and has everybody stop. */
__attribute__((format(printf, 1, 2)))
static inline void violation(const char *format, ...)
{
	struct progress *p = &shared->progress[worker_nr][thread_nr];
	char text[512];
	va_list args;

	if (__atomic_exchange_n(&shared->failed, true, __ATOMIC_SEQ_CST))
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("FAIL seed %llu, worker %d, thread %d, epoch %llu, image %u, step %llu, %s: %s\n",
	       (unsigned long long)shared->seed, worker_nr, thread_nr,
	       (unsigned long long)p->epoch, p->image, (unsigned long long)at_step,
	       p->op ? p->op : "-", text);
	fflush(stdout);
}

/* A slot that is busy is left alone: what is random already needn't wait. */
static inline bool slot_take(struct slot *s)
{
	return !__atomic_exchange_n(&s->busy, true, __ATOMIC_ACQUIRE);
}

static inline void slot_give(struct slot *s)
{
	__atomic_store_n(&s->busy, false, __ATOMIC_RELEASE);
}

#endif /* FUZZ_H */
