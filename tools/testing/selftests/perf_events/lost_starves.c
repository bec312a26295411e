// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_RECORD_LOST causes no more losses: a record that the buffer has room for is
 * written, even if it could never be written together with PERF_RECORD_LOST. That
 * stays due then, with its exact count, until a record leaves room for it.
 *
 * These are writable buffers of one page, emptied before each large record, so
 * that nothing but the size of the record decides.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

/* What isn't the dumped stack: header, ADDR, size of the dump, size of its use. */
#define STACK_RECORD_FIXED	(sizeof(struct perf_event_header) + 3 * sizeof(__u64))
#define LOST_SIZE		sizeof(struct lost_record)
/* The number of all names: all are of one size. */
#define NAME			0
#define ROUNDS			10
#define REFUSED			3

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Small records are those of names, large ones those of faults. */
struct starving {
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			names, faults;
	unsigned int		fault;
	size_t			stack;
};

FIXTURE(lost_starves)
{
	struct starving	test;
};

FIXTURE_VARIANT(lost_starves)
{
	bool	backward;
	/* By how much the large record is smaller than the data area. */
	size_t	spare;
	/* Whether PERF_RECORD_LOST goes with it into the empty buffer. */
	bool	together;
};

/* The largest record there is: one byte stays free, and sizes divide by 8. */
FIXTURE_VARIANT_ADD(lost_starves, forward_largest)
{
	.backward = false,
	.spare = 8,
	.together = false,
};

FIXTURE_VARIANT_ADD(lost_starves, backward_largest)
{
	.backward = true,
	.spare = 8,
	.together = false,
};

/* With the news it would fill all of the area, where one byte has to stay free. */
FIXTURE_VARIANT_ADD(lost_starves, forward_first_alone)
{
	.backward = false,
	.spare = LOST_SIZE,
	.together = false,
};

FIXTURE_VARIANT_ADD(lost_starves, backward_first_alone)
{
	.backward = true,
	.spare = LOST_SIZE,
	.together = false,
};

/* Eight bytes less, and both fit. */
FIXTURE_VARIANT_ADD(lost_starves, forward_last_together)
{
	.backward = false,
	.spare = LOST_SIZE + 8,
	.together = true,
};

FIXTURE_VARIANT_ADD(lost_starves, backward_last_together)
{
	.backward = true,
	.spare = LOST_SIZE + 8,
	.together = true,
};

FIXTURE_SETUP(lost_starves)
{
	struct starving *test = &self->test;
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	size_t page_size = sysconf(_SC_PAGESIZE);

	if (page_size > STACK_MAX / 2)
		SKIP(return, "no record is as large as a page of %zu bytes", page_size);
	test->names = open_event(_metadata, &attr, 0, -1);
	if (test->names < 0)
		return;

	attr = FAULT_EVENT(PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER);
	test->stack = page_size - variant->spare - STACK_RECORD_FIXED;
	attr.sample_stack_user = test->stack;
	attr.write_backward = variant->backward;
	if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	test->faults = open_event(_metadata, &attr, 0, -1);
	if (test->faults < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->names, 1, true));
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_SET_OUTPUT, test->names));
	ASSERT_EQ(0, map_fault_area(&test->area, 4096));
	/* Touch what will be touched, so that only the area faults below. */
	touch_stack();
	test->fault = 1;
	fault_with_stack(&test->area, test->fault, STACK_MAX);
	memset(space, 0xff, sizeof(space));
}

FIXTURE_TEARDOWN(lost_starves)
{
	struct starving *test = &self->test;

	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->faults));
	EXPECT_EQ(0, close(test->names));
}

static void drain(struct perf_overwrite *ow)
{
	perf_overwrite_set_tail(ow, perf_overwrite_head(ow));
}

static void make_large(struct __test_metadata *_metadata,
		       struct starving *test)
{
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_ENABLE, 0));
	fault_with_stack(&test->area, ++test->fault, test->stack);
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_DISABLE, 0));
}

/* Fills the buffer until @refused names didn't fit, and empties it. */
static void lose_names(struct __test_metadata *_metadata,
		       struct starving *test, unsigned int refused)
{
	__u64 before = lost_count(test->names);

	while (lost_count(test->names) < before + refused)
		write_names(NAME, 1, 0);
	drain(&test->ow);
}

/*
 * Checks what was written since the head was @older: the large record or a name,
 * and the news of @lost records unless that is 0. Which is first isn't promised.
 */
static void check_written(struct __test_metadata *_metadata,
			  struct starving *test, bool backward,
			  __u64 older, bool large, __u64 lost)
{
	const struct lost_record *loss = (const struct lost_record *)space;
	struct perf_overwrite_walk walk;
	unsigned int records = 0, losses = 0;

	begin_since(&walk, &test->ow, older, backward);
	while (perf_overwrite_next(&walk, space)) {
		if (loss->header.type == PERF_RECORD_LOST) {
			ASSERT_EQ(LOST_SIZE, loss->header.size);
			ASSERT_EQ(event_id(large ? test->faults : test->names), loss->id);
			ASSERT_EQ(lost, loss->lost);
			losses++;
			continue;
		}
		records++;
		if (!large) {
			ASSERT_TRUE(is_name(&loss->header, NAME, 0));
			continue;
		}
		ASSERT_EQ(PERF_RECORD_SAMPLE, loss->header.type);
		ASSERT_EQ(STACK_RECORD_FIXED + test->stack, loss->header.size);
		ASSERT_EQ(fault_address(&test->area, test->fault), space[1]);
		ASSERT_EQ(test->stack, space[2]);
		ASSERT_TRUE(stack_is(&space[3], test->stack, test->fault));
	}
	ASSERT_EQ(0, walk.left);
	ASSERT_EQ(1, records);
	ASSERT_EQ(lost != 0, losses);
}

/* What a large record needs is nothing but an empty buffer. */
TEST_F(lost_starves, large_after_loss)
{
	struct starving *test = &self->test;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int refused = 1 + round % REFUSED;
		__u64 lost, older;

		lose_names(_metadata, test, refused);
		lost = lost_count(test->names);

		/* Once, or with the news of the loss before it still due. */
		for (unsigned int i = 0; i <= round % 2; i++) {
			__u64 due = variant->together && !i ? refused : 0;

			older = perf_overwrite_head(&test->ow);
			make_large(_metadata, test);
			ASSERT_NE(older, perf_overwrite_head(&test->ow)) {
				TH_LOG("round %u: large record %u is refused", round, i);
			}
			check_written(_metadata, test, variant->backward, older, true, due);
			drain(&test->ow);
		}
		ASSERT_EQ(0, lost_count(test->faults));

		older = perf_overwrite_head(&test->ow);
		write_names(NAME, 1, 0);
		check_written(_metadata, test, variant->backward, older, false,
			      variant->together ? 0 : refused);
		drain(&test->ow);
		ASSERT_EQ(lost, lost_count(test->names));
	}
}

/* A buffer that isn't empty has no room for it: that is one more loss, no less. */
TEST_F(lost_starves, no_room)
{
	struct starving *test = &self->test;
	unsigned int refused = 2;
	__u64 older, filled;

	lose_names(_metadata, test, refused);
	older = perf_overwrite_head(&test->ow);
	write_names(NAME, 1, 0);
	check_written(_metadata, test, variant->backward, older, false, refused);

	filled = perf_overwrite_head(&test->ow);
	for (unsigned int i = 1; i <= REFUSED; i++) {
		make_large(_metadata, test);
		ASSERT_EQ(filled, perf_overwrite_head(&test->ow));
		ASSERT_EQ(i, lost_count(test->faults));
	}
	drain(&test->ow);

	make_large(_metadata, test);
	ASSERT_NE(filled, perf_overwrite_head(&test->ow));
	check_written(_metadata, test, variant->backward, filled, true,
		      variant->together ? REFUSED : 0);
	ASSERT_EQ(REFUSED, lost_count(test->faults));
	drain(&test->ow);

	older = perf_overwrite_head(&test->ow);
	write_names(NAME, 1, 0);
	check_written(_metadata, test, variant->backward, older, false,
		      variant->together ? 0 : REFUSED);
}

/* Records that leave room for the news bring it at once, as ever. */
TEST_F(lost_starves, small_brings_news)
{
	struct starving *test = &self->test;

	for (unsigned int refused = 1; refused <= REFUSED; refused++) {
		__u64 older;

		lose_names(_metadata, test, refused);
		older = perf_overwrite_head(&test->ow);
		write_names(NAME, 1, 0);
		check_written(_metadata, test, variant->backward, older, false, refused);
		drain(&test->ow);
	}
}

TEST_HARNESS_MAIN
