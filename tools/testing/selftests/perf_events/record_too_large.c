// SPDX-License-Identifier: GPL-2.0
/*
 * A record that is larger than the buffer isn't written: not in part, and not
 * over itself, as its header, which is at data_head, would be gone and with it
 * the way to all older records. It is counted lost.
 *
 * An overwritable buffer takes whatever fits, up to the size of the data area. A
 * writable one keeps a byte free, or a full buffer would look like an empty one.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

/* What isn't the dumped stack: header, ADDR, size of the dump, size of its use. */
#define STACK_RECORD_FIXED	(sizeof(struct perf_event_header) + 3 * sizeof(__u64))
#define NAMES			7
#define TRIES			3
#define ROUNDS			40

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Small records are those of names, large ones those of faults. */
struct large {
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			names, faults;
	unsigned int		fault;
	size_t			size, stack;
	unsigned char		*before;
};

static void set_up(struct __test_metadata *_metadata, struct large *test,
		   bool backward, bool writable, size_t size)
{
	struct perf_event_attr attr = NAME_EVENT(backward);

	test->size = size;
	test->stack = size - STACK_RECORD_FIXED;
	if (size >= PERF_OVERWRITE_RECORD_MAX)
		SKIP(return, "no record is as large as %zu bytes", size);
	test->names = open_event(_metadata, &attr, 0, -1);
	if (test->names < 0)
		return;

	attr = FAULT_EVENT(PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER);
	attr.sample_stack_user = test->stack;
	attr.write_backward = backward;
	if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	test->faults = open_event(_metadata, &attr, 0, -1);
	if (test->faults < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->names, 1, writable));
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_SET_OUTPUT, test->names));
	ASSERT_EQ(0, map_fault_area(&test->area, 4096));
	test->before = malloc(test->ow.size);
	ASSERT_NE(NULL, test->before);
	/* Touch what will be touched, so that only the area faults below. */
	touch_stack();
	test->fault = 1;
	fault_with_stack(&test->area, test->fault, STACK_MAX);
	memset(space, 0xff, sizeof(space));
}

static void tear_down(struct __test_metadata *_metadata, struct large *test)
{
	free(test->before);
	ASSERT_EQ(0, perf_overwrite_unmap(&test->ow));
	ASSERT_EQ(0, close(test->faults));
	ASSERT_EQ(0, close(test->names));
}

static void make_large(struct __test_metadata *_metadata, struct large *test)
{
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_ENABLE, 0));
	fault_with_stack(&test->area, ++test->fault, test->stack);
	ASSERT_EQ(0, ioctl(test->faults, PERF_EVENT_IOC_DISABLE, 0));
}

/* Makes large records, which must leave all as it is and be counted. */
static void check_refused(struct __test_metadata *_metadata, struct large *test,
			  unsigned int count)
{
	__u64 head = perf_overwrite_head(&test->ow), lost = lost_count(test->faults);

	memcpy(test->before, test->ow.data, test->ow.size);
	for (unsigned int i = 1; i <= count; i++) {
		make_large(_metadata, test);
		ASSERT_EQ(head, perf_overwrite_head(&test->ow));
		ASSERT_EQ(0, memcmp(test->before, test->ow.data, test->ow.size));
		ASSERT_EQ(lost + i, lost_count(test->faults));
	}
}

/* Makes a large record, which must be all that is written, and whole. */
static void check_written(struct __test_metadata *_metadata, struct large *test,
			  bool backward)
{
	const struct perf_event_header *record = (const struct perf_event_header *)space;
	__u64 older = perf_overwrite_head(&test->ow);
	struct perf_overwrite_walk walk;

	make_large(_metadata, test);
	begin_since(&walk, &test->ow, older, backward);
	ASSERT_EQ(test->size, walk.left);
	ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
	ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
	ASSERT_EQ(test->size, record->size);
	ASSERT_EQ(fault_address(&test->area, test->fault), space[1]);
	ASSERT_EQ(test->stack, space[2]);
	ASSERT_TRUE(stack_is(&space[3], test->stack, test->fault));
}

static void drain(struct perf_overwrite *ow)
{
	perf_overwrite_set_tail(ow, perf_overwrite_head(ow));
}

FIXTURE(record_too_large)
{
	struct large	test;
};

FIXTURE_VARIANT(record_too_large)
{
	bool	backward;
	bool	writable;
	/* The size of the large record: pages, and bytes more. */
	int	pages;
	int	bytes;
};

FIXTURE_VARIANT_ADD(record_too_large, forward_readonly_four_pages)
{
	.backward = false,
	.writable = false,
	.pages = 4,
};

FIXTURE_VARIANT_ADD(record_too_large, backward_readonly_four_pages)
{
	.backward = true,
	.writable = false,
	.pages = 4,
};

FIXTURE_VARIANT_ADD(record_too_large, forward_writable_four_pages)
{
	.backward = false,
	.writable = true,
	.pages = 4,
};

FIXTURE_VARIANT_ADD(record_too_large, backward_writable_four_pages)
{
	.backward = true,
	.writable = true,
	.pages = 4,
};

/* The smallest that doesn't fit. */
FIXTURE_VARIANT_ADD(record_too_large, forward_readonly_page_and_8)
{
	.backward = false,
	.writable = false,
	.pages = 1,
	.bytes = 8,
};

FIXTURE_VARIANT_ADD(record_too_large, backward_readonly_page_and_8)
{
	.backward = true,
	.writable = false,
	.pages = 1,
	.bytes = 8,
};

FIXTURE_VARIANT_ADD(record_too_large, forward_writable_page)
{
	.backward = false,
	.writable = true,
	.pages = 1,
};

FIXTURE_VARIANT_ADD(record_too_large, backward_writable_page)
{
	.backward = true,
	.writable = true,
	.pages = 1,
};

FIXTURE_SETUP(record_too_large)
{
	set_up(_metadata, &self->test, variant->backward, variant->writable,
	       variant->pages * sysconf(_SC_PAGESIZE) + variant->bytes);
}

FIXTURE_TEARDOWN(record_too_large)
{
	tear_down(_metadata, &self->test);
}

/* Nothing is in its way, and yet. */
TEST_F(record_too_large, empty_buffer)
{
	check_refused(_metadata, &self->test, TRIES);
	ASSERT_EQ(0, perf_overwrite_head(&self->test.ow));
}

/* All small records stay, and the next one brings the number of large ones. */
TEST_F(record_too_large, small_stay)
{
	const struct lost_record *loss = (const struct lost_record *)space;
	struct large *test = &self->test;
	unsigned int names = 0, losses = 0;
	struct perf_overwrite_walk walk;

	write_names(0, NAMES, 0);
	ASSERT_NE(0, perf_overwrite_head(&test->ow));
	check_refused(_metadata, test, TRIES);
	write_names(NAMES, 1, 0);

	begin_since(&walk, &test->ow, 0, variant->backward);
	while (perf_overwrite_next(&walk, space)) {
		if (loss->header.type == PERF_RECORD_LOST) {
			ASSERT_EQ(sizeof(*loss), loss->header.size);
			ASSERT_EQ(TRIES, loss->lost);
			losses++;
			continue;
		}
		ASSERT_TRUE(is_name(&loss->header,
				    variant->backward ? NAMES - names : names, 0));
		names++;
	}
	ASSERT_EQ(0, walk.left);
	ASSERT_EQ(NAMES + 1, names);
	ASSERT_EQ(1, losses);
	ASSERT_EQ(0, lost_count(test->names));
}

/* The same after laps, with the head at odd places. */
TEST_F(record_too_large, after_laps)
{
	struct large *test = &self->test;
	size_t bytes = 0;

	for (unsigned int seq = 0; bytes < 8 * test->ow.size; seq += 31) {
		bytes += write_names(seq, 31, 0);
		if (variant->writable)
			drain(&test->ow);
		check_refused(_metadata, test, 1);
	}
	ASSERT_EQ(0, lost_count(test->names));
}

FIXTURE(record_fits)
{
	struct large	test;
};

FIXTURE_VARIANT(record_fits)
{
	bool	backward;
	bool	writable;
	/* By how much it is smaller than the data area. */
	int	spare;
};

FIXTURE_VARIANT_ADD(record_fits, forward_readonly)
{
	.backward = false,
	.writable = false,
	.spare = 0,
};

FIXTURE_VARIANT_ADD(record_fits, backward_readonly)
{
	.backward = true,
	.writable = false,
	.spare = 0,
};

FIXTURE_VARIANT_ADD(record_fits, forward_writable)
{
	.backward = false,
	.writable = true,
	.spare = 8,
};

FIXTURE_VARIANT_ADD(record_fits, backward_writable)
{
	.backward = true,
	.writable = true,
	.spare = 8,
};

/* The largest that fits. */
FIXTURE_SETUP(record_fits)
{
	set_up(_metadata, &self->test, variant->backward, variant->writable,
	       sysconf(_SC_PAGESIZE) - variant->spare);
}

FIXTURE_TEARDOWN(record_fits)
{
	tear_down(_metadata, &self->test);
}

TEST_F(record_fits, empty_buffer)
{
	check_written(_metadata, &self->test, variant->backward);
	ASSERT_EQ(0, lost_count(self->test.faults));
}

/* Over whatever was there before, wherever it begins. */
TEST_F(record_fits, after_laps)
{
	struct large *test = &self->test;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		write_names(round, round % 8, 0);
		if (variant->writable)
			drain(&test->ow);
		check_written(_metadata, test, variant->backward);
		if (variant->writable)
			drain(&test->ow);
	}
	ASSERT_EQ(0, lost_count(test->faults));
	ASSERT_EQ(0, lost_count(test->names));
}

/* Without the news of a loss, which it leaves no room for: they come later. */
TEST_F(record_fits, after_loss)
{
	const struct lost_record *loss = (const struct lost_record *)space;
	struct large *test = &self->test;

	for (unsigned int round = 1; round <= ROUNDS; round++) {
		unsigned int names = 0, losses = 0;
		struct perf_overwrite_walk walk;
		__u64 older;

		ASSERT_EQ(0, perf_overwrite_pause(test->names));
		write_names(0, round, 0);
		ASSERT_EQ(0, perf_overwrite_resume(test->names));
		check_written(_metadata, test, variant->backward);
		if (variant->writable)
			drain(&test->ow);

		older = perf_overwrite_head(&test->ow);
		write_names(round, 1, 0);
		begin_since(&walk, &test->ow, older, variant->backward);
		while (perf_overwrite_next(&walk, space)) {
			if (loss->header.type == PERF_RECORD_LOST) {
				ASSERT_EQ(round, loss->lost);
				losses++;
				continue;
			}
			ASSERT_TRUE(is_name(&loss->header, round, 0));
			names++;
		}
		ASSERT_EQ(0, walk.left);
		ASSERT_EQ(1, names);
		ASSERT_EQ(1, losses);
		if (variant->writable)
			drain(&test->ow);
	}
	ASSERT_EQ(0, lost_count(test->faults));
}

TEST_HARNESS_MAIN
