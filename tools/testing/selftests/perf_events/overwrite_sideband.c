// SPDX-License-Identifier: GPL-2.0
/*
 * The records that aren't samples, between samples, in an overwritable backward
 * buffer: COMM, MMAP2, FORK and EXIT, of a task and of its children, each in
 * its place on the way into the past.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

/* For pages of 4 KiB. */
#define ROUNDS	60

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* What is at the end of each record, the samples' contents being the same. */
struct trailer {
	__u32	pid, tid;
	__u64	time;
	__u32	cpu, reserved;
	__u64	id;
};

union record {
	struct perf_event_header	header;
	struct comm_record		comm;
	struct {
		struct perf_event_header	header;
		__u64				id;
		__u32				pid, tid;
		__u64				time;
		__u64				addr;
		__u32				cpu, reserved;
	} sample;
	struct {
		struct perf_event_header	header;
		__u32				pid, tid;
		__u64				addr, len, pgoff;
		__u32				major, minor;
		__u64				inode, generation;
		__u32				prot, flags;
		char				name[8];
	} mmap2;
	struct {
		struct perf_event_header	header;
		__u32				pid, ppid, tid, ptid;
		__u64				time;
	} task;
};

/*
 * What one round does, in this order. The last three are done by a child, and
 * what it does besides (it faults in its own copies of pages) isn't in the area.
 */
enum step {
	SAMPLE,
	COMM,
	MMAP2,
	FORK,
	CHILD_COMM,
	CHILD_SAMPLE,
	EXIT,
	STEPS,
};

struct round {
	pid_t		child;
	unsigned long	mapped;
};

struct sideband {
	struct perf_overwrite	ow;
	struct fault_area	area;
	struct round		*rounds;
	unsigned int		nr_rounds;
	int			fd;
	int			cpu;
	__u64			id;
};

FIXTURE(overwrite_sideband)
{
	struct sideband	test;
};

FIXTURE_SETUP(overwrite_sideband)
{
	struct sideband *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER |
						  PERF_SAMPLE_TID |
						  PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ADDR |
						  PERF_SAMPLE_CPU);

	attr.comm = 1;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.task = 1;
	attr.sample_id_all = 1;
	attr.inherit = 1;
	test->cpu = pin_to_cpu();
	ASSERT_LE(0, test->cpu);
	test->nr_rounds = ROUNDS * page_scale();
	test->rounds = calloc(test->nr_rounds, sizeof(*test->rounds));
	ASSERT_NE(NULL, test->rounds);
	ASSERT_EQ(0, map_fault_area(&test->area, 2 * test->nr_rounds + 1));
	test->fd = open_event(_metadata, &attr, 0, test->cpu);
	if (test->fd < 0)
		return;
	test->id = event_id(test->fd);
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->fd, 2, false));
}

FIXTURE_TEARDOWN(overwrite_sideband)
{
	struct sideband *test = &self->test;

	free(test->rounds);
	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->fd));
}

/* The number of the fault that is made in @round. */
static unsigned int fault_of(unsigned int round, bool child)
{
	return 1 + 2 * round + child;
}

static void do_round(struct __test_metadata *_metadata,
		     struct sideband *test, unsigned int round)
{
	struct round *done = &test->rounds[round];
	void *mapped;
	int status;

	make_fault(&test->area, fault_of(round, false));
	write_names(2 * round, 1, 0);
	mapped = mmap(NULL, test->area.page_size, PROT_READ | PROT_EXEC,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mapped);
	ASSERT_EQ(0, munmap(mapped, test->area.page_size));
	done->mapped = (unsigned long)mapped;

	done->child = fork();
	if (!done->child) {
		write_names(2 * round + 1, 1, 0);
		make_fault(&test->area, fault_of(round, true));
		_exit(0);
	}
	ASSERT_LT(0, done->child);
	ASSERT_EQ(done->child, waitpid(done->child, &status, 0));
	ASSERT_EQ(0, status);
}

/* A fault that the test didn't mean to make, of one of its tasks. */
static bool is_other_fault(const union record *record, const struct fault_area *area)
{
	return record->header.type == PERF_RECORD_SAMPLE &&
	       (record->sample.addr < fault_address(area, 0) ||
		record->sample.addr > fault_address(area, area->pages - 1));
}

static void check_step(struct __test_metadata *_metadata,
		       struct sideband *test, unsigned int round,
		       enum step step, const union record *record)
{
	const struct round *done = &test->rounds[round];
	bool child = step >= CHILD_COMM;
	pid_t pid = child ? done->child : getpid();
	char name[NAME_SIZE];

	switch (step) {
	case SAMPLE:
	case CHILD_SAMPLE:
		ASSERT_EQ(PERF_RECORD_SAMPLE, record->header.type);
		ASSERT_EQ(sizeof(record->sample), record->header.size);
		ASSERT_EQ(fault_address(&test->area, fault_of(round, child)),
			  record->sample.addr);
		ASSERT_EQ(pid, record->sample.pid);
		break;
	case COMM:
	case CHILD_COMM:
		make_name(name, 2 * round + child);
		ASSERT_EQ(PERF_RECORD_COMM, record->header.type);
		ASSERT_EQ(name_record_size(2 * round + child, sizeof(struct trailer)),
			  record->header.size);
		ASSERT_STREQ(name, record->comm.name);
		ASSERT_EQ(pid, record->comm.pid);
		break;
	case MMAP2:
		ASSERT_EQ(PERF_RECORD_MMAP2, record->header.type);
		ASSERT_EQ(sizeof(record->mmap2) + sizeof(struct trailer),
			  record->header.size);
		ASSERT_EQ(pid, record->mmap2.pid);
		ASSERT_EQ(done->mapped, record->mmap2.addr);
		ASSERT_EQ(test->area.page_size, record->mmap2.len);
		ASSERT_EQ(PROT_READ | PROT_EXEC, record->mmap2.prot);
		ASSERT_STREQ("//anon", record->mmap2.name);
		break;
	case FORK:
	case EXIT:
		ASSERT_EQ(step == FORK ? PERF_RECORD_FORK : PERF_RECORD_EXIT,
			  record->header.type);
		ASSERT_EQ(sizeof(record->task) + sizeof(struct trailer),
			  record->header.size);
		ASSERT_EQ(done->child, record->task.pid);
		ASSERT_EQ(done->child, record->task.tid);
		ASSERT_EQ(getpid(), record->task.ppid);
		break;
	case STEPS:
		break;
	}
}

/* Who, when and where, as all records tell; the way goes into the past. */
static void check_trailer(struct __test_metadata *_metadata,
			  struct sideband *test,
			  const union record *record, __u64 *later)
{
	struct trailer trailer;

	if (record->header.type == PERF_RECORD_SAMPLE) {
		trailer.id = record->sample.id;
		trailer.time = record->sample.time;
		trailer.cpu = record->sample.cpu;
	} else {
		memcpy(&trailer,
		       (char *)record + record->header.size - sizeof(trailer),
		       sizeof(trailer));
	}
	ASSERT_EQ(test->id, trailer.id);
	ASSERT_EQ(test->cpu, trailer.cpu);
	ASSERT_LE(trailer.time, *later);
	*later = trailer.time;
}

TEST_F(overwrite_sideband, between_samples)
{
	struct sideband *test = &self->test;
	unsigned int straddled = 0;

	for (unsigned int end = 1; end <= test->nr_rounds; end++) {
		const union record *record = (const union record *)space;
		unsigned int round = end - 1, step = STEPS - 1, seen = 0;
		struct perf_overwrite_walk walk;
		__u64 time = -1ULL;

		/* The reader's own faults would be counted as lost. */
		ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_ENABLE, 0));
		do_round(_metadata, test, round);
		ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_DISABLE, 0));

		ASSERT_EQ(0, perf_overwrite_pause(test->fd));
		perf_overwrite_begin(&walk, &test->ow);
		for (;;) {
			size_t offset = walk.offset;

			if (!perf_overwrite_next(&walk, space))
				break;
			straddled += offset + record->header.size > test->ow.size;
			check_trailer(_metadata, test, record, &time);
			if (is_other_fault(record, &test->area))
				continue;
			ASSERT_LT(seen, end * STEPS);
			check_step(_metadata, test, round, step, record);
			seen++;
			if (!step--) {
				step = STEPS - 1;
				round--;
			}
		}
		ASSERT_EQ(0, perf_overwrite_resume(test->fd));

		/* All that was done, or as much as there is room for. */
		ASSERT_LE(STEPS, seen);
		if (walk.covered + sizeof(*record) + sizeof(struct trailer) < test->ow.size)
			ASSERT_EQ(end * STEPS, seen);
	}
	ASSERT_LT(3 * test->ow.size,
		  perf_overwrite_written(0, perf_overwrite_head(&test->ow)));
	ASSERT_NE(0, straddled);
}

TEST_HARNESS_MAIN
