// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that can't be right fail with the errno that perf_overwrite.rst gives for them,
 * and leave the buffer and its events as they were.
 *
 * Other programs test the errnos that go with what they test: mapping_mode (writable
 * mappings), write_direction, set_output_inherit, pause_output, sample_size (BPF),
 * alloc_fails (ENOMEM), map_twice (EPERM).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define PAGES		2

FIXTURE(overwrite_errors)
{
	struct perf_event_attr	attr;
	struct perf_overwrite	ow;
	size_t			page_size;
	int			owner;	/* of the buffer */
	int			other;	/* as the owner, without a buffer */
	int			cpu;
};

FIXTURE_VARIANT(overwrite_errors)
{
	bool backward;
};

FIXTURE_VARIANT_ADD(overwrite_errors, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(overwrite_errors, backward)
{
	.backward = true,
};

FIXTURE_SETUP(overwrite_errors)
{
	self->attr = (struct perf_event_attr)NAME_EVENT(variant->backward);
	self->page_size = sysconf(_SC_PAGESIZE);
	self->owner = -1;
	self->other = -1;
	self->cpu = pin_to_cpu();
	ASSERT_LE(0, self->cpu);
	self->owner = open_event(_metadata, &self->attr, 0, self->cpu);
	if (self->owner < 0)
		return;
	self->other = open_event(_metadata, &self->attr, 0, self->cpu);
	ASSERT_LE(0, self->other);
	if (map_event(_metadata, &self->ow, self->owner, PAGES, false))
		return;
}

FIXTURE_TEARDOWN(overwrite_errors)
{
	if (self->ow.meta)
		EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	close(self->other);
	close(self->owner);
}

static void *map_pages(int fd, size_t pages, int flags)
{
	return mmap(NULL, pages * sysconf(_SC_PAGESIZE), PROT_READ, flags, fd, 0);
}

/* A long: other kernels refuse the -1 of an int, which set_output_inherit tests. */
static int set_output(int fd, long output)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, output);
}

/* So many events still write to the owner's buffer. */
static void check_owner(struct __test_metadata *_metadata,
			FIXTURE_DATA(overwrite_errors) *self, unsigned int writers)
{
	__u64 before = perf_overwrite_head(&self->ow), after, written;
	size_t bytes = write_names(0, 1, 0);

	after = perf_overwrite_head(&self->ow);
	written = self->attr.write_backward ? perf_overwrite_written(before, after) :
					      after - before;
	EXPECT_EQ(writers * bytes, written);
}

TEST_F(overwrite_errors, mmap)
{
	struct perf_event_attr inherited = self->attr;
	int fd;

	EXPECT_EQ(MAP_FAILED, map_pages(self->other, 1 + 3, MAP_SHARED));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, map_pages(self->other, 1 + PAGES, MAP_PRIVATE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, map_pages(self->owner, 1 + 2 * PAGES, MAP_SHARED));
	EXPECT_EQ(EINVAL, errno);

	inherited.inherit = 1;
	inherited.read_format = 0;
	fd = open_event(_metadata, &inherited, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(MAP_FAILED, map_pages(fd, 1 + PAGES, MAP_SHARED));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(fd));
	check_owner(_metadata, self, 1);
}

/* Some kernels map the buffer of the other event. The last munmap() ends the redirection. */
TEST_F(overwrite_errors, mmap_of_redirected)
{
	void *area;

	ASSERT_EQ(0, set_output(self->other, self->owner));
	area = map_pages(self->other, 1 + PAGES, MAP_SHARED);
	if (area == MAP_FAILED) {
		EXPECT_EQ(EBUSY, errno);
		check_owner(_metadata, self, 2);
	} else {
		EXPECT_EQ(0, munmap(area, (1 + PAGES) * self->page_size));
		check_owner(_metadata, self, 1);
	}
}

TEST_F(overwrite_errors, part_of_a_mapping)
{
	char *area = (char *)self->ow.meta;

	EXPECT_EQ(-1, munmap(area + PAGES * self->page_size, self->page_size));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, mprotect(area, self->page_size, PROT_NONE));
	EXPECT_EQ(EINVAL, errno);
	check_owner(_metadata, self, 1);
}

TEST_F(overwrite_errors, set_output_argument)
{
	int file = open("/dev/null", O_RDONLY), closed = dup(file);

	ASSERT_LE(0, file);
	ASSERT_LE(0, closed);
	ASSERT_EQ(0, close(closed));
	EXPECT_EQ(-1, set_output(self->other, closed));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, set_output(self->other, file));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, set_output(self->other, -2));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, set_output(self->other, self->other));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(file));
	check_owner(_metadata, self, 1);
}

TEST_F(overwrite_errors, set_output_of_mapped)
{
	struct perf_overwrite ow;

	if (map_event(_metadata, &ow, self->other, PAGES, false))
		return;
	EXPECT_EQ(-1, set_output(self->other, self->owner));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, set_output(self->other, -1));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	check_owner(_metadata, self, 1);
}

TEST_F(overwrite_errors, set_output_without_buffer)
{
	struct perf_overwrite ow;
	int fd = open_event(_metadata, &self->attr, 0, self->cpu);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, set_output(self->other, fd));
	EXPECT_EQ(EINVAL, errno);
	if (map_event(_metadata, &ow, fd, PAGES, false))
		return;
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	EXPECT_EQ(-1, set_output(self->other, fd));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(fd));
	check_owner(_metadata, self, 1);
}

/* An event of another CPU, of another task, or with another clock. */
TEST_F(overwrite_errors, set_output_of_another)
{
	struct perf_event_attr clock = self->attr;
	struct perf_overwrite ow;
	int fd, task;
	pid_t child;

	fd = open_event(_metadata, &self->attr, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, set_output(fd, self->owner));
	EXPECT_EQ(EINVAL, errno);

	/* The buffer of a task that is bound to no CPU. */
	if (map_event(_metadata, &ow, fd, PAGES, false))
		return;
	EXPECT_EQ(-1, set_output(self->other, fd));
	EXPECT_EQ(EINVAL, errno);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	ASSERT_LT(0, child);
	task = open_event(_metadata, &self->attr, child, -1);
	EXPECT_LE(0, task);
	EXPECT_EQ(-1, set_output(task, fd));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	ASSERT_EQ(0, close(task));
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));

	clock.use_clockid = 1;
	clock.clockid = CLOCK_MONOTONIC_RAW;
	fd = open_event(_metadata, &clock, 0, self->cpu);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, set_output(fd, self->owner));
	EXPECT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(fd));
	check_owner(_metadata, self, 1);
}

/* What can't be done by ioctl() can't be done when an event is opened. */
TEST_F(overwrite_errors, open_with_output)
{
	struct perf_event_attr clock = self->attr;
	int fd;

	clock.use_clockid = 1;
	clock.clockid = CLOCK_MONOTONIC_RAW;
	EXPECT_EQ(-1, perf_overwrite_open(&clock, 0, self->cpu, self->owner));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, perf_overwrite_open(&self->attr, 0, self->cpu, self->other));
	EXPECT_EQ(EINVAL, errno);
	check_owner(_metadata, self, 1);

	fd = perf_overwrite_open(&self->attr, 0, self->cpu, self->owner);
	ASSERT_LE(0, fd);
	check_owner(_metadata, self, 2);
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
