// SPDX-License-Identifier: GPL-2.0
/*
 * Reading an overwritable buffer without a pause, while a writer writes as fast as it
 * can: copy it, load the head again, keep the part that can't have changed meanwhile.
 * The records in that part are whole and without a gap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define SNAPSHOTS	300
#define SNAPSHOTS_MOVED	20
#define SECONDS_MIN	3
#define SECONDS_MAX	8

/* A multiple of the 9 lengths of names: the next number is 0 again. */
#define NUMBERS		99999

/* The largest record, twice: see perf_overwrite_begin_running(). */
#define MARGIN		(2 * sizeof(struct comm_record))

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

struct writer {
	pthread_t	thread;
	pid_t		tid;		/* 0 until it runs */
	bool		begin;
	bool		stop;
	int		cpu;
};

FIXTURE(overwrite_running)
{
	struct perf_overwrite	ow;
	struct writer		writer;
	unsigned char		*copy;
	int			fd;
};

FIXTURE_VARIANT(overwrite_running)
{
	unsigned int	pages;
};

FIXTURE_VARIANT_ADD(overwrite_running, page_1)
{
	.pages = 1,
};

FIXTURE_VARIANT_ADD(overwrite_running, pages_16)
{
	.pages = 16,
};

FIXTURE_VARIANT_ADD(overwrite_running, pages_256)
{
	.pages = 256,
};

static void *write_on(void *argument)
{
	struct writer *writer = argument;

	if (go_to_cpu(writer->cpu))
		return NULL;
	__atomic_store_n(&writer->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->begin, __ATOMIC_ACQUIRE))
		usleep(1000);
	for (unsigned int seq = 0; !__atomic_load_n(&writer->stop, __ATOMIC_RELAXED); seq++)
		write_names(seq % NUMBERS, 1, 0);
	return NULL;
}

FIXTURE_SETUP(overwrite_running)
{
	struct perf_event_attr attr = NAME_EVENT(true);
	int cpus[2];
	pid_t tid;

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, go_to_cpu(cpus[0]));
	self->writer.cpu = cpus[1];
	ASSERT_EQ(0, pthread_create(&self->writer.thread, NULL, write_on, &self->writer));
	while (!(tid = __atomic_load_n(&self->writer.tid, __ATOMIC_ACQUIRE)))
		usleep(1000);
	self->fd = open_event(_metadata, &attr, tid, -1);
	if (self->fd < 0)
		return;
	if (map_event(_metadata, &self->ow, self->fd, variant->pages, false))
		return;
	self->copy = malloc(self->ow.size);
	ASSERT_NE(NULL, self->copy);
	/* There from the start, or copying is all page faults. */
	memset(self->copy, 0, self->ow.size);
}

FIXTURE_TEARDOWN(overwrite_running)
{
	__atomic_store_n(&self->writer.stop, true, __ATOMIC_RELAXED);
	__atomic_store_n(&self->writer.begin, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, pthread_join(self->writer.thread, NULL));
	free(self->copy);
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* Whether this is record number @seq of the writer, in all its parts. */
static bool is_written(const struct perf_event_header *header, unsigned int seq, pid_t tid)
{
	const struct comm_record *record = (const struct comm_record *)header;
	char name[NAME_SIZE];

	make_name(name, seq);
	return header->type == PERF_RECORD_COMM &&
	       header->size == name_record_size(seq, 0) &&
	       record->pid == (__u32)getpid() && record->tid == (__u32)tid &&
	       !strcmp(record->name, name);
}

/* The number in the name of a whole record. */
static unsigned int number_of(const struct perf_event_header *header)
{
	return strtoul(((const struct comm_record *)header)->name, NULL, 10);
}

/*
 * Many snapshots or some time, and enough of them that somebody wrote to, or, if they
 * are rare, more time. In any case there is one of those, and one of a full buffer.
 */
static bool enough(unsigned int kept, unsigned int moved, unsigned int full, time_t seconds)
{
	if (!kept || !moved || !full || (kept < SNAPSHOTS && seconds < SECONDS_MIN))
		return false;
	return moved >= SNAPSHOTS_MOVED || seconds >= SECONDS_MAX;
}

TEST_F(overwrite_running, kept_is_whole)
{
	unsigned int kept = 0, dropped = 0, moved = 0, full = 0;
	time_t begin = time(NULL);
	__u64 records = 0;

	__atomic_store_n(&self->writer.begin, true, __ATOMIC_RELEASE);
	while (!enough(kept, moved, full, time(NULL) - begin)) {
		__u64 before = perf_overwrite_head(&self->ow), seen = 0;
		struct perf_event_header *record;
		struct perf_overwrite_walk walk;
		unsigned int seq = 0;

		if (!perf_overwrite_begin_running(&walk, &self->ow, self->copy, MARGIN)) {
			dropped++;
			continue;
		}
		moved += before != perf_overwrite_head(&self->ow);
		full += perf_overwrite_written(0, before) > self->ow.size;

		while ((record = perf_overwrite_next(&walk, space))) {
			seq = seen ? (seq + NUMBERS - 1) % NUMBERS : number_of(record);
			ASSERT_TRUE(is_written(record, seq, self->writer.tid)) {
				TH_LOG("record %llu of snapshot %u, %zu bytes from the end",
				       seen, kept, walk.left);
			}
			seen++;
		}
		/* Up to the place where one was cut, unless the buffer isn't full. */
		if (perf_overwrite_written(0, before) > self->ow.size)
			ASSERT_LT(walk.left, sizeof(struct comm_record));
		records += seen;
		kept++;
		usleep(500);
	}
	TH_LOG("%u snapshots kept, %u dropped, the head moved in %u; %llu records", kept,
	       dropped, moved, records);
	ASSERT_LT(0, records);
	/* There was somebody to be protected from, and more than a lap. */
	ASSERT_LT(0, moved);
	ASSERT_LT(0, full);
}

TEST_HARNESS_MAIN
