// SPDX-License-Identifier: GPL-2.0
/*
 * The first page of a mapping tells about the event that is mapped: its count
 * and its times. Events whose output is redirected to the same buffer leave
 * that alone.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <sys/resource.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define OWN_FAULTS	7
#define OTHER_FAULTS	50

/* What a kernel keeps up to date in the page; it is read while nothing changes it. */
struct page_state {
	__u32	lock, index;
	__s64	offset;
	__u64	time_enabled, time_running;
};

static struct page_state page_state(const struct perf_overwrite *ow)
{
	struct perf_event_mmap_page *meta = ow->meta;

	return (struct page_state) {
		.lock = __atomic_load_n(&meta->lock, __ATOMIC_RELAXED),
		.index = __atomic_load_n(&meta->index, __ATOMIC_RELAXED),
		.offset = __atomic_load_n(&meta->offset, __ATOMIC_RELAXED),
		.time_enabled = __atomic_load_n(&meta->time_enabled, __ATOMIC_RELAXED),
		.time_running = __atomic_load_n(&meta->time_running, __ATOMIC_RELAXED),
	};
}

/* The steps after which a kernel brings the page of an event up to date. */
static int do_reset(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_RESET, 0);
}

static int do_enable(int fd)
{
	return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* A nap that is over before it began, on a busy machine, switches nothing. */
static int do_switch(int fd)
{
	struct rusage first, then;

	if (getrusage(RUSAGE_SELF, &first))
		return -1;
	do {
		if (usleep(1000) || getrusage(RUSAGE_SELF, &then))
			return -1;
	} while (then.ru_nvcsw == first.ru_nvcsw);

	return 0;
}

FIXTURE(user_page)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			own;
	int			other;
};

FIXTURE_VARIANT(user_page)
{
	int	(*step)(int fd);
	/* Whether the event counts when the step is taken. */
	bool	enabled;
};

FIXTURE_VARIANT_ADD(user_page, reset)
{
	.step = do_reset,
	.enabled = false,
};

FIXTURE_VARIANT_ADD(user_page, reset_enabled)
{
	.step = do_reset,
	.enabled = true,
};

FIXTURE_VARIANT_ADD(user_page, enable)
{
	.step = do_enable,
	.enabled = false,
};

FIXTURE_VARIANT_ADD(user_page, schedule)
{
	.step = do_switch,
	.enabled = true,
};

static void count_faults(struct __test_metadata *_metadata, struct fault_area *area,
			 int fd, unsigned int faults)
{
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (unsigned int seq = 0; seq < faults; seq++)
		make_fault(area, seq);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
}

FIXTURE_SETUP(user_page)
{
	struct perf_event_attr attr = FAULT_EVENT(0);

	/* These count and write nothing. */
	attr.sample_period = 0;
	attr.write_backward = 0;
	ASSERT_EQ(0, map_fault_area(&self->area, OTHER_FAULTS));
	make_fault(&self->area, 0);

	self->own = open_event(_metadata, &attr, 0, -1);
	if (self->own < 0)
		return;
	self->other = open_event(_metadata, &attr, 0, -1);
	/* It is mapped with a count of its own, and with times. */
	count_faults(_metadata, &self->area, self->own, OWN_FAULTS);
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->own, 1, true));
}

FIXTURE_TEARDOWN(user_page)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->own));
	EXPECT_EQ(0, close(self->other));
}

/* Mapping shows the event as it is, not as it will be some time. */
TEST_F(user_page, of_the_mapped_event)
{
	struct event_counts counts;
	struct page_state first, then;

	ASSERT_EQ(sizeof(counts), read(self->own, &counts, sizeof(counts)));
	ASSERT_LE(OWN_FAULTS, counts.value);
	first = page_state(&self->ow);
	ASSERT_EQ(0, first.lock % 2);
	ASSERT_EQ(0, first.index);
	ASSERT_EQ(counts.value, first.offset);
	ASSERT_LT(0, first.time_running);
	ASSERT_LE(first.time_running, first.time_enabled);

	if (variant->enabled)
		ASSERT_EQ(0, ioctl(self->own, PERF_EVENT_IOC_ENABLE, 0));
	first = page_state(&self->ow);
	ASSERT_EQ(0, variant->step(self->own));
	then = page_state(&self->ow);
	ASSERT_EQ(0, then.lock % 2);
	ASSERT_NE(first.lock, then.lock);
}

TEST_F(user_page, not_of_a_redirected_event)
{
	struct page_state first, then;

	ASSERT_EQ(0, ioctl(self->other, PERF_EVENT_IOC_SET_OUTPUT, self->own));
	first = page_state(&self->ow);
	count_faults(_metadata, &self->area, self->other, OTHER_FAULTS);
	if (variant->enabled)
		ASSERT_EQ(0, ioctl(self->other, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, variant->step(self->other));
	then = page_state(&self->ow);

	EXPECT_EQ(first.lock, then.lock);
	EXPECT_EQ(first.index, then.index);
	EXPECT_EQ(first.offset, then.offset);
	EXPECT_EQ(first.time_enabled, then.time_enabled);
	EXPECT_EQ(first.time_running, then.time_running);
}

TEST_HARNESS_MAIN
