// SPDX-License-Identifier: GPL-2.0
/*
 * The first mapping of a buffer decides for all mappings. If it is writable, the
 * kernel overwrites no record that hasn't been read according to data_tail. Else it
 * overwrites the oldest records, and ignores data_tail.
 *
 * A writer to the mapping of an overwritable buffer would be told that its tail
 * counts when it doesn't, and could damage what other readers see. So none is let
 * in, neither by mmap() nor by mprotect(). Readers are welcome in both modes.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(mapping_mode)
{
	struct perf_overwrite	ow;
	int			fd;
	/* An event that writes to the same buffer, and whether that may be mapped here. */
	int			sharing;
	bool			maps_sharing;
	size_t			bytes;
	size_t			page_size;
};

FIXTURE_VARIANT(mapping_mode)
{
	bool	backward;
	bool	writable;
};

FIXTURE_VARIANT_ADD(mapping_mode, forward_readonly)
{
	.backward = false,
	.writable = false,
};

FIXTURE_VARIANT_ADD(mapping_mode, forward_writable)
{
	.backward = false,
	.writable = true,
};

FIXTURE_VARIANT_ADD(mapping_mode, backward_readonly)
{
	.backward = true,
	.writable = false,
};

FIXTURE_VARIANT_ADD(mapping_mode, backward_writable)
{
	.backward = true,
	.writable = true,
};

FIXTURE_SETUP(mapping_mode)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	struct perf_overwrite second;

	self->page_size = sysconf(_SC_PAGESIZE);
	self->bytes = 2 * self->page_size;
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, variant->writable));

	/* It writes nothing by itself: records are counted more easily so. */
	attr.comm = 0;
	self->sharing = open_event(_metadata, &attr, 0, -1);
	if (self->sharing < 0)
		return;
	ASSERT_EQ(0, ioctl(self->sharing, PERF_EVENT_IOC_SET_OUTPUT, self->fd));

	/* Newer kernels have buffers mapped through the events that they came with. */
	self->maps_sharing = !perf_overwrite_map(&second, self->sharing, 1, false);
	if (self->maps_sharing) {
		/* This ends what was redirected, too. */
		ASSERT_EQ(0, perf_overwrite_unmap(&second));
		ASSERT_EQ(0, ioctl(self->sharing, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	} else {
		ASSERT_EQ(EBUSY, errno);
	}
}

FIXTURE_TEARDOWN(mapping_mode)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->sharing));
	EXPECT_EQ(0, close(self->fd));
}

/* Checks that one more name is one more record, in every mapping of the buffer. */
static void check_records(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
			  bool backward, unsigned int seq)
{
	__u64 older = perf_overwrite_head(ow);
	struct perf_overwrite_walk walk;
	size_t bytes = write_names(seq, 1, 0);

	begin_since(&walk, ow, older, backward);
	ASSERT_EQ(bytes, walk.left);
	ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
	ASSERT_TRUE(is_name((struct perf_event_header *)space, seq, 0));
}

/* A second mapping to write to is for buffers whose first one is. */
TEST_F(mapping_mode, second_writable)
{
	static const int prots[] = { PROT_READ | PROT_WRITE, PROT_WRITE };
	const int fds[] = { self->fd, self->sharing };
	/* What would be refused in any case is tried in any case. */
	size_t nr = variant->writable && !self->maps_sharing ? 1 : 2;
	unsigned int seq = 0;
	void *area;

	check_records(_metadata, &self->ow, variant->backward, seq++);
	for (size_t i = 0; i < nr; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(prots); j++) {
			area = mmap(NULL, self->bytes, prots[j], MAP_SHARED, fds[i], 0);
			if (variant->writable) {
				ASSERT_NE(MAP_FAILED, area);
				ASSERT_EQ(0, munmap(area, self->bytes));
			} else {
				ASSERT_EQ(MAP_FAILED, area) {
					TH_LOG("descriptor %zu, protection %zu", i, j);
				}
				ASSERT_EQ(i && !self->maps_sharing ? EBUSY : EINVAL, errno);
			}
			check_records(_metadata, &self->ow, variant->backward, seq++);
		}
	}
	ASSERT_EQ(0, lost_count(self->fd));
}

/* Nor is one made writable later: not as a whole, not in part, not a second one. */
TEST_F(mapping_mode, mprotect)
{
	const int fds[] = { self->fd, self->fd, self->sharing };
	unsigned int seq = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds) - !self->maps_sharing; i++) {
		struct perf_overwrite second = self->ow;
		unsigned char *area;

		/* First the first one, then others. */
		ASSERT_TRUE(!i || !perf_overwrite_map(&second, fds[i], 1, false));
		area = (unsigned char *)second.meta;
		for (size_t offset = 0; offset < self->bytes; offset += self->page_size) {
			size_t bytes = offset ? self->page_size : self->bytes;
			int ret = mprotect(area + offset, bytes, PROT_READ | PROT_WRITE);

			if (variant->writable) {
				ASSERT_EQ(0, ret);
			} else {
				ASSERT_EQ(-1, ret) {
					TH_LOG("mapping %zu, from byte %zu on", i, offset);
				}
				ASSERT_EQ(EACCES, errno);
			}
			check_records(_metadata, &self->ow, variant->backward, seq++);
		}
		ASSERT_EQ(variant->writable ? 0 : -1,
			  mprotect(area, self->page_size, PROT_READ | PROT_WRITE));
		/* To take rights away is always possible. */
		ASSERT_EQ(0, mprotect(area, self->bytes, PROT_READ));
		check_records(_metadata, &self->ow, variant->backward, seq++);
		ASSERT_TRUE(!i || !perf_overwrite_unmap(&second));
	}
	ASSERT_EQ(0, lost_count(self->fd));
}

/* Who only reads may always look on, and sees what all see. */
TEST_F(mapping_mode, second_readonly)
{
	const int fds[] = { self->fd, self->sharing };
	unsigned int seq = 0;

	check_records(_metadata, &self->ow, variant->backward, seq++);
	for (size_t i = 0; i < ARRAY_SIZE(fds) - !self->maps_sharing; i++) {
		struct perf_overwrite second;

		ASSERT_EQ(0, perf_overwrite_map(&second, fds[i], 1, false));
		for (int n = 0; n < 3; n++) {
			check_records(_metadata, &second, variant->backward, seq++);
			ASSERT_EQ(perf_overwrite_head(&self->ow), perf_overwrite_head(&second));
			ASSERT_EQ(0, memcmp(self->ow.data, second.data, self->ow.size));
		}
		ASSERT_EQ(0, perf_overwrite_unmap(&second));
	}
}

/* The mode stays what it was, whatever else was mapped or refused meanwhile. */
TEST_F(mapping_mode, mode_stays)
{
	const unsigned int count = 4 * self->ow.size / sizeof(struct comm_record);
	struct perf_overwrite second;
	size_t bytes;

	/* The opposite of the first one: refused, or a reader beside a writer. */
	if (!perf_overwrite_map(&second, self->fd, 1, !variant->writable))
		perf_overwrite_unmap(&second);
	bytes = write_names(0, count, 0);
	ASSERT_LT(2 * self->ow.size, bytes);
	if (variant->writable) {
		ASSERT_LT(0, lost_count(self->fd));
	} else {
		__u64 head = perf_overwrite_head(&self->ow);

		ASSERT_EQ(0, lost_count(self->fd));
		ASSERT_EQ(bytes, variant->backward ? perf_overwrite_written(0, head) : head);
	}
}

/* The decision lasts as long as there is a mapping, and no longer. */
TEST_F(mapping_mode, decided_anew)
{
	ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, !variant->writable));
	ASSERT_EQ(0, perf_overwrite_head(&self->ow));
	check_records(_metadata, &self->ow, variant->backward, 0);
	write_names(0, self->ow.size / 8, 0);
	ASSERT_EQ(!variant->writable, lost_count(self->fd) != 0);
}

/* Without data there is no mode: the control page may be mapped either way. */
TEST_F(mapping_mode, no_data_pages)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	struct perf_overwrite first, second;
	int other;

	other = open_event(_metadata, &attr, 0, -1);
	if (other < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&first, other, 0, variant->writable));
	ASSERT_EQ(0, perf_overwrite_map(&second, other, 0, true));
	ASSERT_EQ(0, mprotect(first.meta, self->page_size, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, perf_overwrite_unmap(&second));
	ASSERT_EQ(0, perf_overwrite_unmap(&first));
	ASSERT_EQ(0, close(other));
}

FIXTURE(mapping_tail)
{
	struct perf_overwrite	ow;
	int			fd;
};

FIXTURE_VARIANT(mapping_tail)
{
	bool	backward;
};

FIXTURE_VARIANT_ADD(mapping_tail, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(mapping_tail, backward)
{
	.backward = true,
};

FIXTURE_SETUP(mapping_tail)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, true));
}

FIXTURE_TEARDOWN(mapping_tail)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* The tail is that of the buffer: it counts through any mapping of a writable one. */
TEST_F(mapping_tail, through_second)
{
	const unsigned int count = 4 * self->ow.size / sizeof(struct comm_record);
	struct perf_overwrite second;
	__u64 lost, head;

	ASSERT_EQ(0, perf_overwrite_map(&second, self->fd, 1, false));
	ASSERT_EQ(0, mprotect(second.meta, second.size + sysconf(_SC_PAGESIZE),
			      PROT_READ | PROT_WRITE));
	write_names(0, count, 0);
	lost = lost_count(self->fd);
	ASSERT_LT(0, lost);

	head = perf_overwrite_head(&self->ow);
	write_names(0, 1, 0);
	ASSERT_EQ(head, perf_overwrite_head(&self->ow));
	perf_overwrite_set_tail(&second, head);
	write_names(0, 1, 0);
	ASSERT_NE(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(lost + 1, lost_count(self->fd));
	ASSERT_EQ(0, perf_overwrite_unmap(&second));
}

TEST_HARNESS_MAIN
