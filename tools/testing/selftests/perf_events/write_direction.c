// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer is written in one direction: an event of the other one can't be
 * made to write to it, neither by ioctl() nor when it is opened.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(write_direction)
{
	struct perf_overwrite	ow;
	int			owner;
	int			cpu;
};

FIXTURE_VARIANT(write_direction)
{
	bool	owner_backward;
	bool	event_backward;
	bool	per_cpu;
	int	error;
};

FIXTURE_VARIANT_ADD(write_direction, forward_into_forward)
{
	.owner_backward = false,
	.event_backward = false,
	.error = 0,
};

FIXTURE_VARIANT_ADD(write_direction, backward_into_forward)
{
	.owner_backward = false,
	.event_backward = true,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(write_direction, forward_into_backward)
{
	.owner_backward = true,
	.event_backward = false,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(write_direction, backward_into_backward)
{
	.owner_backward = true,
	.event_backward = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(write_direction, forward_into_forward_per_cpu)
{
	.owner_backward = false,
	.event_backward = false,
	.per_cpu = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(write_direction, backward_into_forward_per_cpu)
{
	.owner_backward = false,
	.event_backward = true,
	.per_cpu = true,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(write_direction, forward_into_backward_per_cpu)
{
	.owner_backward = true,
	.event_backward = false,
	.per_cpu = true,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(write_direction, backward_into_backward_per_cpu)
{
	.owner_backward = true,
	.event_backward = true,
	.per_cpu = true,
	.error = 0,
};

FIXTURE_SETUP(write_direction)
{
	struct perf_event_attr attr = NAME_EVENT(variant->owner_backward);

	self->cpu = -1;
	if (variant->per_cpu) {
		self->cpu = pin_to_cpu();
		ASSERT_LE(0, self->cpu);
	}
	self->owner = open_event(_metadata, &attr, 0, self->cpu);
	if (self->owner < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->owner, 1, false));
}

FIXTURE_TEARDOWN(write_direction)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->owner));
}

/* Checks that one more name makes @records more records in the buffer. */
static void check_records(struct __test_metadata *_metadata,
			  const struct perf_overwrite *ow, bool backward,
			  unsigned int seq, unsigned int records)
{
	__u64 older = perf_overwrite_head(ow), position = older, newer, bytes;
	struct perf_overwrite_walk walk;

	bytes = write_names(seq, 1, 0) * records;
	newer = perf_overwrite_head(ow);
	ASSERT_EQ(bytes, backward ? perf_overwrite_written(older, newer) : newer - older);

	perf_overwrite_begin_at(&walk, ow, newer, bytes);
	for (unsigned int i = 0; i < records; i++) {
		struct perf_event_header *record;

		record = backward ? perf_overwrite_next(&walk, space) :
				    forward_next(ow, &position, newer, space);
		ASSERT_NE(NULL, record);
		ASSERT_TRUE(is_name(record, seq, 0));
	}
}

TEST_F(write_direction, by_ioctl)
{
	struct perf_event_attr attr = NAME_EVENT(variant->event_backward);
	struct perf_overwrite own;
	int event;

	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	check_records(_metadata, &self->ow, variant->owner_backward, 0, 1);

	if (!variant->error) {
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
		check_records(_metadata, &self->ow, variant->owner_backward, 1, 2);
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L));
		check_records(_metadata, &self->ow, variant->owner_backward, 2, 1);
		ASSERT_EQ(0, close(event));
		return;
	}

	ASSERT_EQ(-1, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	ASSERT_EQ(variant->error, errno);
	check_records(_metadata, &self->ow, variant->owner_backward, 1, 1);

	/* Refused, but sound: it can have a buffer of its own. */
	ASSERT_EQ(0, perf_overwrite_map(&own, event, 1, false));
	check_records(_metadata, &own, variant->event_backward, 2, 1);
	ASSERT_EQ(-1, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	ASSERT_EQ(variant->error, errno);
	check_records(_metadata, &own, variant->event_backward, 3, 1);
	ASSERT_EQ(0, perf_overwrite_unmap(&own));
	ASSERT_EQ(0, close(event));
}

TEST_F(write_direction, by_open_flag)
{
	static const unsigned long grouping[] = { 0, PERF_FLAG_FD_NO_GROUP };
	struct perf_event_attr attr = NAME_EVENT(variant->event_backward);
	int event;

	/* What is refused below isn't the event as such. */
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	ASSERT_EQ(0, close(event));

	for (size_t i = 0; i < ARRAY_SIZE(grouping); i++) {
		check_records(_metadata, &self->ow, variant->owner_backward, 3 * i, 1);

		event = syscall(__NR_perf_event_open, &attr, 0, self->cpu, self->owner,
				grouping[i] | PERF_FLAG_FD_OUTPUT | PERF_FLAG_FD_CLOEXEC);
		if (variant->error) {
			ASSERT_EQ(-1, event);
			ASSERT_EQ(variant->error, errno);
			check_records(_metadata, &self->ow, variant->owner_backward,
				      3 * i + 1, 1);
			continue;
		}
		ASSERT_LE(0, event);
		check_records(_metadata, &self->ow, variant->owner_backward,
			      3 * i + 1, 2);
		ASSERT_EQ(0, close(event));
		check_records(_metadata, &self->ow, variant->owner_backward,
			      3 * i + 2, 1);
	}
}

TEST_HARNESS_MAIN
