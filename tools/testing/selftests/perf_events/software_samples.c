// SPDX-License-Identifier: GPL-2.0
/*
 * Several software events of one kind in a context: each overflow makes a sample
 * of each event, and each sample is that event's own, in its id and in its size.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define EVENTS	3
#define FAULTS	50

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(software_samples)
{
	struct perf_overwrite	ows[EVENTS];
	struct fault_area	area;
	int			fds[EVENTS];
	__u64			ids[EVENTS];
};

FIXTURE_VARIANT(software_samples)
{
	/* What each event asks for besides its id and the address. */
	__u64	sample_types[EVENTS];
	/* The size that follows from it. */
	size_t	sizes[EVENTS];
};

FIXTURE_VARIANT_ADD(software_samples, alike)
{
	.sample_types = { 0, 0, 0 },
	.sizes = { 24, 24, 24 },
};

FIXTURE_VARIANT_ADD(software_samples, growing)
{
	.sample_types = { 0, PERF_SAMPLE_CPU, PERF_SAMPLE_CPU | PERF_SAMPLE_STACK_USER },
	.sizes = { 24, 32, 32 + 8 + 256 + 8 },
};

FIXTURE_VARIANT_ADD(software_samples, shrinking)
{
	.sample_types = { PERF_SAMPLE_CPU | PERF_SAMPLE_STACK_USER, PERF_SAMPLE_CPU, 0 },
	.sizes = { 32 + 8 + 256 + 8, 32, 24 },
};

FIXTURE_SETUP(software_samples)
{
	ASSERT_EQ(0, map_fault_area(&self->area, FAULTS));
	make_fault(&self->area, 0);
	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER |
							  PERF_SAMPLE_ADDR |
							  variant->sample_types[i]);

		/* Nothing of this depends on the direction. */
		attr.write_backward = 0;
		if (variant->sample_types[i] & PERF_SAMPLE_STACK_USER)
			attr.sample_stack_user = 256;
		if (attr.sample_stack_user && lacks_stack_dump(attr, 0))
			SKIP(return, "no dumps of the user's stack on this architecture");
		self->fds[i] = open_event(_metadata, &attr, 0, -1);
		if (self->fds[i] < 0)
			return;
		self->ids[i] = event_id(self->fds[i]);
		ASSERT_EQ(0, perf_overwrite_map(&self->ows[i], self->fds[i], 8, true));
	}
}

FIXTURE_TEARDOWN(software_samples)
{
	for (int i = 0; i < EVENTS; i++) {
		EXPECT_EQ(0, perf_overwrite_unmap(&self->ows[i]));
		EXPECT_EQ(0, close(self->fds[i]));
	}
}

TEST_F(software_samples, own_id_and_size)
{
	for (int i = 0; i < EVENTS; i++)
		ASSERT_EQ(0, ioctl(self->fds[i], PERF_EVENT_IOC_ENABLE, 0));
	for (unsigned int seq = 0; seq < FAULTS; seq++)
		make_fault(&self->area, seq);
	for (int i = 0; i < EVENTS; i++)
		ASSERT_EQ(0, ioctl(self->fds[i], PERF_EVENT_IOC_DISABLE, 0));

	for (int i = 0; i < EVENTS; i++) {
		__u64 head = perf_overwrite_head(&self->ows[i]), position = 0;

		ASSERT_EQ(FAULTS * variant->sizes[i], head) {
			TH_LOG("event %d", i);
		}
		for (unsigned int seq = 0; seq < FAULTS; seq++) {
			struct perf_event_header *record;

			record = forward_next(&self->ows[i], &position, head, space);
			ASSERT_NE(NULL, record);
			ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
			ASSERT_EQ(variant->sizes[i], record->size);
			ASSERT_EQ(self->ids[i], space[1]) {
				TH_LOG("event %d", i);
			}
			ASSERT_EQ(fault_address(&self->area, seq), space[2]);
		}
	}
}

TEST_HARNESS_MAIN
