// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF program that is attached to an event decides about each overflow, before
 * the default handler writes a sample in the event's direction.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "fault_filter.h"
#include "overwrite_test.h"

#define FAULTS	36

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

struct filter {
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			fd;
	int			program;
};

FIXTURE(overflow_filter)
{
	struct filter	test;
};

FIXTURE_VARIANT(overflow_filter)
{
	bool	backward;
};

FIXTURE_VARIANT_ADD(overflow_filter, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(overflow_filter, backward)
{
	.backward = true,
};

FIXTURE_SETUP(overflow_filter)
{
	struct filter *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);

	test->program = open_fault_filter(_metadata);
	if (test->program < 0)
		return;

	attr.write_backward = variant->backward;
	test->fd = open_event(_metadata, &attr, 0, -1);
	if (test->fd < 0)
		return;
	ASSERT_EQ(0, map_filtered_area(&test->area, FAULTS));
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->fd, 8, true));
}

FIXTURE_TEARDOWN(overflow_filter)
{
	struct filter *test = &self->test;

	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->fd));
	EXPECT_EQ(0, close(test->program));
}

/* Checks that there are samples of the faults that pass, or of all. */
static unsigned int check_samples(struct __test_metadata *_metadata,
				  struct filter *test,
				  bool backward, bool filtered)
{
	__u64 head = perf_overwrite_head(&test->ow), position = 0;
	unsigned int pages = test->area.pages, seen = 0;
	struct perf_event_header *record;
	struct perf_overwrite_walk walk;

	perf_overwrite_begin(&walk, &test->ow);
	for (unsigned int i = 0; i < pages; i++) {
		unsigned int page = backward ? pages - 1 - i : i;

		if (filtered && !passes_filter(page))
			continue;
		record = backward ? perf_overwrite_next(&walk, space) :
				forward_next(&test->ow, &position, head, space);
		ASSERT_NE(NULL, record);
		ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
		ASSERT_EQ(fault_address(&test->area, page), space[1]);
		seen++;
	}
	record = backward ? perf_overwrite_next(&walk, space) :
			forward_next(&test->ow, &position, head, space);
	ASSERT_EQ(NULL, record);
	return seen;
}

static void make_faults(struct __test_metadata *_metadata,
			struct filter *test)
{
	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_ENABLE, 0));
	for (unsigned int page = 0; page < test->area.pages; page++)
		make_fault(&test->area, page);
	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_DISABLE, 0));
}

TEST_F(overflow_filter, without_program)
{
	struct filter *test = &self->test;

	make_faults(_metadata, test);
	ASSERT_EQ(test->area.pages,
		  check_samples(_metadata, test, variant->backward, false));
}

TEST_F(overflow_filter, with_program)
{
	struct filter *test = &self->test;

	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_SET_BPF, test->program));
	make_faults(_metadata, test);
	ASSERT_EQ(test->area.pages / 4,
		  check_samples(_metadata, test, variant->backward, true));
	/* What was filtered isn't lost. */
	ASSERT_EQ(0, lost_count(test->fd));
}

TEST_HARNESS_MAIN
