// SPDX-License-Identifier: GPL-2.0
/*
 * What a buffer holds and what its head says, for both directions of writing
 * and both kinds of mapping. Only the backward one with a read-only mapping can
 * be decoded from its head and has the latest records; the others show what
 * sets it apart.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define LAPS	4

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(overwrite_read)
{
	struct perf_overwrite	ow;
	int			fd;
};

FIXTURE_VARIANT(overwrite_read)
{
	bool	backward;
	bool	writable;
	/* Whether full means that the oldest records give way, not the newest. */
	bool	keeps_newest;
};

/*
 *   oldest, in part   ...   newest | head
 *   <------------ a whole lap ---->|
 *
 * The sizes lead away from the past, and where the oldest begins is unknown.
 */
FIXTURE_VARIANT_ADD(overwrite_read, forward_readonly)
{
	.backward = false,
	.writable = false,
	.keeps_newest = true,
};

/*
 *   tail | oldest ... the last that fitted | head, the rest was lost
 */
FIXTURE_VARIANT_ADD(overwrite_read, forward_writable)
{
	.backward = false,
	.writable = true,
	.keeps_newest = false,
};

/*
 *   head | newest ... oldest, in part
 *        |<------- a whole lap ----->
 */
FIXTURE_VARIANT_ADD(overwrite_read, backward_readonly)
{
	.backward = true,
	.writable = false,
	.keeps_newest = true,
};

/*
 *   the rest was lost, head | the last that fitted ... oldest | tail
 */
FIXTURE_VARIANT_ADD(overwrite_read, backward_writable)
{
	.backward = true,
	.writable = true,
	.keeps_newest = false,
};

FIXTURE_SETUP(overwrite_read)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, variant->writable));
}

FIXTURE_TEARDOWN(overwrite_read)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* Bytes written so far, by the head. */
static __u64 head_bytes(const struct perf_overwrite *ow, bool backward)
{
	__u64 head = perf_overwrite_head(ow);

	return backward ? perf_overwrite_written(0, head) : head;
}

TEST_F(overwrite_read, empty)
{
	struct perf_overwrite_walk walk;

	ASSERT_EQ(0, perf_overwrite_head(&self->ow));
	perf_overwrite_begin(&walk, &self->ow);
	ASSERT_EQ(NULL, perf_overwrite_next(&walk, space));

	/* It is the buffer of a live event, not just any zeroes. */
	ASSERT_EQ(write_names(0, 1, 0), head_bytes(&self->ow, variant->backward));
}

/* Less than a lap: all four hold everything, and the head says how much. */
TEST_F(overwrite_read, first_lap)
{
	const unsigned int count = names_that_fit(self->ow.size / 32, self->ow.size, 0);
	struct perf_overwrite_walk walk;
	__u64 position = 0, bytes;
	unsigned int seen = 0;

	ASSERT_LT(self->ow.size / 64, count);
	bytes = write_names(0, count, 0);
	ASSERT_EQ(bytes, head_bytes(&self->ow, variant->backward));

	if (!variant->backward) {
		struct perf_event_header *record;

		while ((record = forward_next(&self->ow, &position, bytes, space))) {
			ASSERT_TRUE(is_name(record, seen, 0));
			seen++;
		}
		ASSERT_EQ(count, seen);
		return;
	}

	perf_overwrite_begin(&walk, &self->ow);
	while (perf_overwrite_next(&walk, space)) {
		ASSERT_LT(seen, count);
		seen++;
		ASSERT_TRUE(is_name((void *)space, count - seen, 0));
	}
	ASSERT_EQ(count, seen);
	ASSERT_EQ(bytes, walk.covered);
}

/*
 * The head is the front of the newest record, or its end, after any number of
 * laps.
 */
static void check_newest_at_head(struct __test_metadata *_metadata,
				 struct perf_overwrite *ow, bool backward)
{
	size_t size = ow->size;
	__u64 bytes = 0;

	for (unsigned int seq = 0; bytes < LAPS * size; seq++) {
		size_t offset = perf_overwrite_head(ow), record;
		struct perf_overwrite_walk walk;
		bool found;

		record = write_names(seq, 1, 0);
		bytes += record;
		ASSERT_EQ(bytes, head_bytes(ow, backward));

		/* Knowing the size, the test finds the front of a forward one. */
		if (backward)
			offset -= record;
		perf_overwrite_copy(space, ow->data, size, offset & (size - 1), record);
		ASSERT_TRUE(is_name((void *)space, seq, 0));

		/* A reader knows nothing but the head. */
		perf_overwrite_begin(&walk, ow);
		found = perf_overwrite_next(&walk, space) && is_name((void *)space, seq, 0);
		ASSERT_EQ(backward, found);
	}
}

/* A full writable buffer refuses the newest records, and counts them. */
static void check_oldest_kept(struct __test_metadata *_metadata,
			      struct perf_overwrite *ow, bool backward)
{
	unsigned int total = LAPS * ow->size / 24, kept = 0;
	struct perf_event_header *record;
	struct perf_overwrite_walk walk;
	__u64 position = 0, bytes = 0;

	/* One byte stays free, as in any circular buffer that can be empty. */
	while (bytes + name_record_size(kept, 0) <= ow->size - 1)
		bytes += name_record_size(kept++, 0);

	write_names(0, kept + 1, 0);
	ASSERT_EQ(bytes, head_bytes(ow, backward));
	ASSERT_EQ(1, lost_count(ow->fd));

	/* The next record comes with one of the loss: there is no room for it. */
	write_names(kept + 1, total - kept - 1, 0);
	ASSERT_EQ(bytes, head_bytes(ow, backward));
	ASSERT_EQ(total - kept, lost_count(ow->fd));

	perf_overwrite_begin_at(&walk, ow, perf_overwrite_head(ow), bytes);
	for (unsigned int i = 0; i < kept; i++) {
		record = backward ? perf_overwrite_next(&walk, space) :
				    forward_next(ow, &position, bytes, space);
		ASSERT_NE(NULL, record);
		ASSERT_TRUE(is_name(record, backward ? kept - 1 - i : i, 0));
	}
	record = backward ? perf_overwrite_next(&walk, space) :
			    forward_next(ow, &position, bytes, space);
	ASSERT_EQ(NULL, record);
}

TEST_F(overwrite_read, many_laps)
{
	if (variant->keeps_newest)
		check_newest_at_head(_metadata, &self->ow, variant->backward);
	else
		check_oldest_kept(_metadata, &self->ow, variant->backward);
}

TEST_HARNESS_MAIN
