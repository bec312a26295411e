// SPDX-License-Identifier: GPL-2.0
/*
 * Records of every size, from the smallest sample with contents (16 bytes) to
 * the largest that perf writes, in buffers of 1 to 512 pages.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

/* What isn't the dumped stack: header, ADDR, size of the dump, size of its use. */
#define STACK_RECORD_FIXED	(sizeof(struct perf_event_header) + 3 * sizeof(__u64))

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(overwrite_sizes)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			fd;
	size_t			stack;
};

FIXTURE_VARIANT(overwrite_sizes)
{
	size_t		record_size;
	unsigned int	pages;
	unsigned int	laps;
	/* Whether records of this size ever cross the end of the buffer. */
	bool		straddles;
};

/* 16 divides all buffers. */
FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_16_pages_1)
{
	.record_size = 16,
	.pages = 1,
	.laps = 6,
	.straddles = false,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_16_pages_64)
{
	.record_size = 16,
	.pages = 64,
	.laps = 3,
	.straddles = false,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_24_pages_1)
{
	.record_size = 24,
	.pages = 1,
	.laps = 6,
	.straddles = true,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_24_pages_32)
{
	.record_size = 24,
	.pages = 32,
	.laps = 3,
	.straddles = true,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_40_pages_1)
{
	.record_size = 40,
	.pages = 1,
	.laps = 6,
	.straddles = true,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_1000_pages_2)
{
	.record_size = 1000,
	.pages = 2,
	.laps = 20,
	.straddles = true,
};

/* One record and a piece of the next. */
FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_4088_pages_1)
{
	.record_size = 4088,
	.pages = 1,
	.laps = 600,
	.straddles = true,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_4096_pages_8)
{
	.record_size = 4096,
	.pages = 8,
	.laps = 10,
	.straddles = false,
};

/* The largest there is: the next multiple of 8 isn't a size any more. */
FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_65528_pages_16)
{
	.record_size = 65528,
	.pages = 16,
	.laps = 20,
	.straddles = true,
};

FIXTURE_VARIANT_ADD(overwrite_sizes, bytes_65528_pages_512)
{
	.record_size = 65528,
	.pages = 512,
	.laps = 4,
	.straddles = true,
};

FIXTURE_SETUP(overwrite_sizes)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);

	if (variant->record_size == 24) {
		attr.sample_type |= PERF_SAMPLE_TID;
	} else if (variant->record_size > 24) {
		self->stack = variant->record_size - STACK_RECORD_FIXED;
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = self->stack;
	}
	if (self->stack && lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	if (map_event(_metadata, &self->ow, self->fd, variant->pages, false))
		return;
	ASSERT_EQ(0, map_fault_area(&self->area, 4096));
}

FIXTURE_TEARDOWN(overwrite_sizes)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* Whether this is the record of fault number @seq, in all its parts. */
static bool is_fault(const struct perf_event_header *record, unsigned int seq,
		     size_t size, size_t stack, const struct fault_area *area)
{
	const __u64 *at = (const __u64 *)(record + 1);
	__u32 ids[2];

	if (record->type != PERF_RECORD_SAMPLE || record->size != size)
		return false;
	if (size == 24) {
		memcpy(ids, at++, sizeof(ids));
		if (ids[0] != (__u32)getpid() || ids[1] != (__u32)syscall(__NR_gettid))
			return false;
	}
	if (*at++ != fault_address(area, seq))
		return false;
	return !stack || (*at++ == stack && stack_is(at, stack, seq));
}

TEST_F(overwrite_sizes, laps)
{
	const size_t size = variant->record_size, fit = self->ow.size / size;
	unsigned int total = variant->laps * fit, end = 0, straddled = 0, walks = 0;
	struct perf_overwrite_walk walk;
	/* About ten looks in a lap, at odd places. */
	unsigned int batch = fit / 10 | 1;

	if (total < variant->laps * self->ow.size / size)
		total = variant->laps * self->ow.size / size;

	/* Touch what will be touched, so that only the area faults below. */
	fault_with_stack(&self->area, 1, STACK_MAX);
	memset(space, 0xff, sizeof(space));

	while (end < total) {
		unsigned int seen = 0;

		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
		for (unsigned int i = 0; i < batch; i++, end++) {
			if (self->stack)
				fault_with_stack(&self->area, end, self->stack);
			else
				make_fault(&self->area, end);
		}
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ((__u64)end * size,
			  perf_overwrite_written(0, perf_overwrite_head(&self->ow)));

		ASSERT_EQ(0, perf_overwrite_pause(self->fd));
		perf_overwrite_begin(&walk, &self->ow);
		for (;;) {
			size_t offset = walk.offset;
			struct perf_event_header *record;

			record = perf_overwrite_next(&walk, space);
			if (!record)
				break;
			straddled += offset + record->size > self->ow.size;
			seen++;
			ASSERT_LE(seen, end);
			ASSERT_TRUE(is_fault(record, end - seen, size, self->stack,
					     &self->area)) {
				TH_LOG("record %u of %zu into the past", seen, fit);
			}
		}
		ASSERT_EQ(0, perf_overwrite_resume(self->fd));
		ASSERT_EQ(end < fit ? end : fit, seen);
		walks++;
	}
	ASSERT_LT(2 * self->ow.size, end * size);
	ASSERT_LT(2, walks);
	ASSERT_EQ(variant->straddles, straddled != 0);
	ASSERT_EQ(0, lost_count(self->fd));
}

TEST_HARNESS_MAIN
