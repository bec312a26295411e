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
 *
 * A buffer that hardly has room for the one sample is where a nested one can't be
 * written beside it: it must be left out, or each would overwrite the other.
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
#define FAULTS_UNWATCHED	20

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

/* A data area for a sample and some hits, and stack to make a hit too large. */
#define TIGHT_BYTES	65536
#define TIGHT_STACK	600
#define TIGHT_ROUNDS	20

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

/* An event that writes a sample when the kernel accesses the word at @_word. */
#define WATCH_EVENT(_word, _backward)					\
	((struct perf_event_attr) {					\
		.type		= PERF_TYPE_BREAKPOINT,			\
		.size		= sizeof(struct perf_event_attr),	\
		.bp_type	= HW_BREAKPOINT_RW,			\
		.bp_addr	= (unsigned long)(_word),		\
		.bp_len		= sizeof(long),				\
		.sample_type	= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR,	\
		.sample_period	= 1,					\
		.read_format	= PERF_FORMAT_ID | PERF_FORMAT_LOST,	\
		.disabled	= 1,					\
		.exclude_user	= 1,					\
		.exclude_hv	= 1,					\
		.write_backward	= (_backward),				\
	})

/* Whether there are no watchpoints at all, with errno set. */
static bool lacks_watchpoints(struct perf_event_attr attr, pid_t tid)
{
	int fd = perf_overwrite_open(&attr, tid, -1, -1);

	if (fd >= 0) {
		close(fd);
		return false;
	}
	return errno == ENOSPC || errno == EOPNOTSUPP || errno == ENODEV || errno == ENOENT;
}

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

	attr = WATCH_EVENT(writer->watched, true);
	if (lacks_watchpoints(attr, tid))
		SKIP(return, "no hardware breakpoints: %s", strerror(errno));
	test->watch = open_event(_metadata, &attr, tid, -1);
	if (test->watch < 0)
		return;
	if (map_event(_metadata, &test->ow, test->fault, BUFFER_BYTES / sysconf(_SC_PAGESIZE),
		      false))
		return;
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
	EXPECT_EQ(0, pthread_join(test->writer.thread, NULL));
	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->watch));
	EXPECT_EQ(0, close(test->fault));
}

/* The word @offset bytes behind the head: records consist of whole ones. */
static __u64 word_at(const struct perf_overwrite *ow, __u64 head, size_t offset)
{
	return *(const __u64 *)(ow->data + ((head + offset) & (ow->size - 1)));
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
		    (!is_of_throttling(&header) && id != test->watch_id))
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
		if (is_of_throttling(&sample->header))
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

/* Whether so many samples were made without a hit that none will come. */
static bool watches_nothing(struct __test_metadata *_metadata, const struct nested *test)
{
	struct event_counts counts;

	if (test->faults < FAULTS_UNWATCHED || test->hits)
		return false;
	ASSERT_EQ(sizeof(counts), read(test->watch, &counts, sizeof(counts)));
	return !counts.value;
}

/*
 * All that there is to be seen was seen, and this much of it; or, if the machine is
 * too busy to see much, for some time.
 */
static bool enough(struct __test_metadata *_metadata, const struct nested *test,
		   time_t seconds)
{
	if (watches_nothing(_metadata, test))
		return true;
	if (seconds < SECONDS_MIN || !test->nested || !test->faults || !test->hits)
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
	while (polls++ % 1024 || !enough(_metadata, test, time(NULL) - begin)) {
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
	if (watches_nothing(_metadata, test))
		SKIP(return, "the kernel's accesses to user memory don't hit watchpoints");
	ASSERT_LT(0, test->nested);
	ASSERT_LT(0, test->faults);
	ASSERT_LT(0, test->hits);
}

struct tight {
	struct perf_overwrite	ow;
	struct fault_area	area;
	unsigned long		watched;
	int			fault, watch;
	__u64			fault_id, watch_id;
};

FIXTURE(nested_tight)
{
	struct tight	test;
};

FIXTURE_VARIANT(nested_tight)
{
	bool	backward;
	/* Whether a hit finds a place beside the sample in which it happens. */
	bool	fits;
};

FIXTURE_VARIANT_ADD(nested_tight, forward_fits)
{
	.backward = false,
	.fits = true,
};

FIXTURE_VARIANT_ADD(nested_tight, backward_fits)
{
	.backward = true,
	.fits = true,
};

FIXTURE_VARIANT_ADD(nested_tight, forward_too_large)
{
	.backward = false,
	.fits = false,
};

FIXTURE_VARIANT_ADD(nested_tight, backward_too_large)
{
	.backward = true,
	.fits = false,
};

/* Makes a fault as fault_with_stack() does, and returns where the watched word is. */
static unsigned long fault_watched(const struct fault_area *area, unsigned int seq)
{
	__u64 words[STACK_MAX / sizeof(__u64)];

	for (size_t i = 0; i < STACK_BYTES / sizeof(__u64); i++)
		words[i] = stack_word(seq, i);
	asm volatile("" : : "r" (words) : "memory");
	make_fault(area, seq);
	asm volatile("" : : "r" (words) : "memory");
	return (unsigned long)&words[WATCHED_WORD];
}

FIXTURE_SETUP(nested_tight)
{
	struct tight *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER |
						  PERF_SAMPLE_ADDR |
						  PERF_SAMPLE_STACK_USER);

	if (sysconf(_SC_PAGESIZE) > TIGHT_BYTES)
		SKIP(return, "a page is larger than %u bytes", TIGHT_BYTES);
	attr.sample_stack_user = STACK_BYTES;
	attr.write_backward = variant->backward;
	if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	test->fault = open_event(_metadata, &attr, 0, -1);
	if (test->fault < 0)
		return;
	ASSERT_EQ(0, map_fault_area(&test->area, 4096));
	attr = WATCH_EVENT(&test->area, variant->backward);
	if (lacks_watchpoints(attr, 0))
		SKIP(return, "no hardware breakpoints: %s", strerror(errno));
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->fault,
					TIGHT_BYTES / sysconf(_SC_PAGESIZE), false));
	test->fault_id = event_id(test->fault);
}

FIXTURE_TEARDOWN(nested_tight)
{
	struct tight *test = &self->test;

	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->fault));
}

/*
 * Checks what fault number @seq wrote since the head was @older: its own sample,
 * whole, and hits. Adds to the numbers of hits, and of hits told to be lost.
 */
static void check_tight(struct __test_metadata *_metadata, const struct tight *test,
			bool backward, __u64 older, unsigned int seq,
			__u64 *hits, __u64 *lost)
{
	const struct lost_record *loss = (const struct lost_record *)space;
	const struct sample *sample = (const struct sample *)space;
	struct perf_overwrite_walk walk;
	unsigned int faults = 0;

	begin_since(&walk, &test->ow, older, backward);
	ASSERT_LE(walk.left, test->ow.size);
	while (perf_overwrite_next(&walk, space)) {
		if (sample->header.type == PERF_RECORD_LOST) {
			*lost += loss->lost;
			continue;
		}
		ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
		if (sample->id == test->watch_id) {
			ASSERT_EQ(HIT_SIZE, sample->header.size);
			++*hits;
			continue;
		}
		ASSERT_EQ(test->fault_id, sample->id);
		ASSERT_EQ(sizeof(*sample), sample->header.size);
		ASSERT_EQ(fault_address(&test->area, seq), sample->addr);
		ASSERT_EQ(STACK_BYTES, sample->stack_size);
		ASSERT_TRUE(stack_is(sample->stack, STACK_BYTES, seq));
		faults++;
	}
	ASSERT_EQ(0, walk.left) {
		TH_LOG("fault %u: %zu bytes can't be read", seq, walk.left);
	}
	ASSERT_EQ(1, faults);
}

/* Of what is together more than the buffer the nested samples are lost, and counted. */
TEST_F(nested_tight, outer_is_whole)
{
	struct tight *test = &self->test;
	struct perf_event_attr attr;
	struct event_counts counts;
	__u64 hits = 0, lost = 0;

	for (unsigned int seq = 1; seq <= TIGHT_ROUNDS + 1; seq++) {
		__u64 older = perf_overwrite_head(&test->ow);
		unsigned long watched;

		/* In the first round all of the stack gets its pages, and its place is learnt. */
		if (seq > 1) {
			ASSERT_EQ(0, ioctl(test->fault, PERF_EVENT_IOC_ENABLE, 0));
			ASSERT_EQ(0, ioctl(test->watch, PERF_EVENT_IOC_ENABLE, 0));
		}
		watched = fault_watched(&test->area, seq);
		if (seq > 1) {
			ASSERT_EQ(0, ioctl(test->watch, PERF_EVENT_IOC_DISABLE, 0));
			ASSERT_EQ(0, ioctl(test->fault, PERF_EVENT_IOC_DISABLE, 0));
			ASSERT_EQ(attr.bp_addr, watched);
			check_tight(_metadata, test, variant->backward, older, seq,
				    &hits, &lost);
			continue;
		}
		attr = WATCH_EVENT(watched, variant->backward);
		if (!variant->fits) {
			attr.sample_type |= PERF_SAMPLE_STACK_USER;
			attr.sample_stack_user = TIGHT_STACK;
		}
		test->watch = open_event(_metadata, &attr, 0, -1);
		if (test->watch < 0)
			return;
		test->watch_id = event_id(test->watch);
		ASSERT_EQ(0, ioctl(test->watch, PERF_EVENT_IOC_SET_OUTPUT, test->fault));
	}

	ASSERT_EQ(sizeof(counts), read(test->watch, &counts, sizeof(counts)));
	if (!counts.value)
		SKIP(return, "the kernel's accesses to user memory don't hit watchpoints");
	ASSERT_EQ(0, lost_count(test->fault));
	ASSERT_EQ(counts.value, hits + counts.lost);
	if (variant->fits) {
		ASSERT_EQ(0, counts.lost);
	} else {
		/* All but those of the last round have been told. */
		ASSERT_EQ(0, hits);
		ASSERT_LT(0, lost);
		ASSERT_LT(lost, counts.lost);
	}
	ASSERT_EQ(0, close(test->watch));
}

TEST_HARNESS_MAIN
