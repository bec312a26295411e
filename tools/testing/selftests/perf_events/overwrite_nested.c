// SPDX-License-Identifier: GPL-2.0
/*
 * A head that can be seen covers whole records only, even if a record is written
 * in the midst of another: what is nested isn't published before what it is
 * nested in is done.
 *
 * One task makes samples that take long, with a large piece of its stack. A word
 * near the beginning of that piece is watched: when the kernel, in the midst of
 * the one sample, reads it, the watchpoint makes the other one. The reader
 * doesn't pause, but looks at the newest records as soon as the head tells of
 * them: that is when a head which came too early shows.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <linux/hw_breakpoint.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

#define BUFFER_BYTES	(1024 * 1024)
#define STACK_BYTES	65000
#define WATCHED_WORD	64
#define GLANCES		1000
#define GLANCES_PER_LOOK	32
#define SECONDS_MIN	1
#define SECONDS_MAX	12

/* Enough for a pair of records, and a power of two for the walk. */
#define NEWEST_BYTES	(2 * PERF_OVERWRITE_RECORD_MAX)

struct sample {
	struct perf_event_header	header;
	__u64				id;
	__u64				addr;
	__u64				stack_size;
	__u64				stack[STACK_BYTES / sizeof(__u64)];
	__u64				stack_used;
};

#define HIT_SIZE	offsetof(struct sample, stack_size)

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
static unsigned char newest[NEWEST_BYTES];

struct writer {
	pthread_t		thread;
	pid_t			tid;		/* 0 until it runs */
	bool			begin;
	bool			stop;
	int			cpu;
	struct fault_area	area;
	const __u64		*watched;
};

struct nested {
	struct perf_overwrite	ow;
	struct writer		writer;
	int			fault, watch;
	__u64			fault_id, watch_id;
	unsigned int		glances, nested, looks, faults, hits;
};

FIXTURE(overwrite_nested)
{
	struct nested	test;
};

static void *write_on(void *argument)
{
	struct writer *writer = argument;
	__u64 words[STACK_MAX / sizeof(__u64)];

	if (go_to_cpu(writer->cpu))
		return NULL;
	writer->watched = &words[WATCHED_WORD];
	__atomic_store_n(&writer->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->begin, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (unsigned int seq = 0; !__atomic_load_n(&writer->stop, __ATOMIC_RELAXED); seq++) {
		for (size_t i = 0; i < STACK_BYTES / sizeof(__u64); i++)
			words[i] = stack_word(seq, i);
		asm volatile("" : : "r" (words) : "memory");
		make_fault(&writer->area, seq);
	}
	return NULL;
}

FIXTURE_SETUP(overwrite_nested)
{
	struct nested *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER |
						  PERF_SAMPLE_ADDR |
						  PERF_SAMPLE_STACK_USER);
	struct writer *writer = &test->writer;
	int cpus[2];
	pid_t tid;

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, go_to_cpu(cpus[0]));
	ASSERT_EQ(0, map_fault_area(&writer->area, 4096));
	writer->cpu = cpus[1];
	ASSERT_EQ(0, pthread_create(&writer->thread, NULL, write_on, writer));
	while (!(tid = __atomic_load_n(&writer->tid, __ATOMIC_ACQUIRE)))
		usleep(1000);

	attr.sample_stack_user = STACK_BYTES;
	if (lacks_stack_dump(attr, tid))
		SKIP(return, "no dumps of the user's stack on this architecture");
	test->fault = open_event(_metadata, &attr, tid, -1);
	if (test->fault < 0)
		return;

	attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.bp_type = HW_BREAKPOINT_RW;
	attr.bp_addr = (unsigned long)writer->watched;
	attr.bp_len = HW_BREAKPOINT_LEN_8;
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	test->watch = perf_overwrite_open(&attr, tid, -1, -1);
	if (test->watch < 0 && (errno == ENOSPC || errno == EOPNOTSUPP ||
				errno == ENODEV || errno == ENOENT))
		SKIP(return, "no hardware breakpoints: %s", strerror(errno));
	if (test->watch >= 0)
		close(test->watch);
	test->watch = open_event(_metadata, &attr, tid, -1);
	if (test->watch < 0)
		return;
	if (perf_overwrite_map(&test->ow, test->fault,
			       BUFFER_BYTES / sysconf(_SC_PAGESIZE), false)) {
		ASSERT_EQ(EPERM, errno);
		SKIP(return, "no permission to lock %u bytes", BUFFER_BYTES);
	}
	ASSERT_EQ(0, ioctl(test->watch, PERF_EVENT_IOC_SET_OUTPUT, test->fault));
	test->fault_id = event_id(test->fault);
	test->watch_id = event_id(test->watch);
	ASSERT_EQ(0, ioctl(test->fault, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, ioctl(test->watch, PERF_EVENT_IOC_ENABLE, 0));
}

FIXTURE_TEARDOWN(overwrite_nested)
{
	struct nested *test = &self->test;

	__atomic_store_n(&test->writer.stop, true, __ATOMIC_RELAXED);
	__atomic_store_n(&test->writer.begin, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(test->writer.thread, NULL));
	ASSERT_EQ(0, perf_overwrite_unmap(&test->ow));
	ASSERT_EQ(0, close(test->watch));
	ASSERT_EQ(0, close(test->fault));
}

/* The word @offset bytes behind the head: records consist of whole ones. */
static __u64 word_at(const struct perf_overwrite *ow, __u64 head, size_t offset)
{
	return *(const __u64 *)(ow->data + ((head + offset) & (ow->size - 1)));
}

static bool is_other(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_THROTTLE ||
	       header->type == PERF_RECORD_UNTHROTTLE;
}

/* Whether the end of a record belongs to the address that is at its front. */
static bool is_end(__u64 addr, __u64 last_word, __u64 used, const struct fault_area *area)
{
	/* What else may have faulted has other words there, or fewer. */
	if (addr < fault_address(area, 0) || addr > fault_address(area, area->pages - 1))
		return true;
	return used == STACK_BYTES && addr == fault_address(area, last_word >> 32);
}

/*
 * A glance, as soon as possible: the hit at the head, and both ends of the
 * task's record behind it, the last of which is written last.
 */
static void glance(struct __test_metadata *_metadata, struct nested *test, __u64 head)
{
	const struct perf_overwrite *ow = &test->ow;
	struct perf_event_header header;
	__u64 word, id, used, last, addr;
	size_t offset = 0;

	for (;;) {
		word = word_at(ow, head, offset);
		id = word_at(ow, head, offset + offsetof(struct sample, id));
		memcpy(&header, &word, sizeof(header));
		if (header.size < sizeof(header) ||
		    (!is_other(&header) && id != test->watch_id))
			break;
		offset += header.size;
		/* Never, but this has to end whatever the memory holds. */
		if (offset > NEWEST_BYTES)
			return;
	}
	used = word_at(ow, head, offset + offsetof(struct sample, stack_used));
	last = word_at(ow, head, offset + offsetof(struct sample, stack_used) - sizeof(last));
	addr = word_at(ow, head, offset + offsetof(struct sample, addr));

	/* Far from being overwritten, or it doesn't count: matches B. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (perf_overwrite_written(head, perf_overwrite_head(ow)) > ow->size / 2)
		return;

	ASSERT_EQ(PERF_RECORD_SAMPLE, header.type);
	ASSERT_EQ(sizeof(struct sample), header.size);
	ASSERT_EQ(test->fault_id, id);
	ASSERT_TRUE(is_end(addr, last, used, &test->writer.area)) {
		TH_LOG("address %#llx, last word %#llx, used %llu, %zu bytes behind the head",
		       addr, last, used, offset);
	}
	test->glances++;
	test->nested += offset != 0;
}

/* Everything that is new, and some more. */
static void look(struct __test_metadata *_metadata, struct nested *test, __u64 head)
{
	const struct sample *sample = (const struct sample *)space;
	const __u64 *last = &sample->stack[STACK_BYTES / sizeof(__u64) - 1];
	struct perf_overwrite_walk walk = {
		.data = newest,
		.size = sizeof(newest),
		.left = sizeof(newest),
	};

	perf_overwrite_copy(newest, test->ow.data, test->ow.size,
			    head & (test->ow.size - 1), sizeof(newest));
	/* As above. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (perf_overwrite_written(head, perf_overwrite_head(&test->ow)) > test->ow.size / 2)
		return;

	while (perf_overwrite_next(&walk, space)) {
		if (is_other(&sample->header))
			continue;
		ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
		if (sample->id == test->watch_id) {
			ASSERT_EQ(HIT_SIZE, sample->header.size);
			test->hits++;
			continue;
		}
		ASSERT_EQ(test->fault_id, sample->id);
		ASSERT_EQ(sizeof(*sample), sample->header.size);
		ASSERT_EQ(STACK_BYTES, sample->stack_size);
		ASSERT_TRUE(is_end(sample->addr, *last, sample->stack_used,
				   &test->writer.area));
		if (sample->addr == fault_address(&test->writer.area, *last >> 32)) {
			ASSERT_TRUE(stack_is(sample->stack, STACK_BYTES, *last >> 32));
			test->faults++;
		}
	}
	/* It ended where the copy did, within a record, and nowhere else. */
	ASSERT_LT(walk.left, sizeof(*sample));
	test->looks++;
}

/* Some time, and more if the machine is too busy to see much in it. */
static bool enough(const struct nested *test, time_t seconds)
{
	if (seconds < SECONDS_MIN)
		return false;
	return test->glances >= GLANCES || seconds >= SECONDS_MAX;
}

TEST_F(overwrite_nested, published_is_whole)
{
	struct nested *test = &self->test;
	unsigned int heads = 0, polls = 0;
	time_t begin = time(NULL);
	__u64 last = 0;

	__atomic_store_n(&test->writer.begin, true, __ATOMIC_RELEASE);
	while (polls++ % 1024 || !enough(test, time(NULL) - begin)) {
		__u64 head = perf_overwrite_head(&test->ow);

		/* Something new, and old records behind it rather than nothing. */
		if (head == last || perf_overwrite_written(0, head) < test->ow.size)
			continue;
		last = head;
		glance(_metadata, test, head);
		if (heads++ % GLANCES_PER_LOOK == 0)
			look(_metadata, test, head);
	}
	TH_LOG("%u glances, %u of them at hits, %u looks at %u faults and %u hits",
	       test->glances, test->nested, test->looks, test->faults, test->hits);
	if (test->faults && !test->hits)
		SKIP(return, "the kernel's accesses to user memory don't hit watchpoints");
	ASSERT_LT(0, test->nested);
	ASSERT_LT(0, test->faults);
	ASSERT_LT(0, test->hits);
}

TEST_HARNESS_MAIN
