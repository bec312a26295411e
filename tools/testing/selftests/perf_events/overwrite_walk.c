// SPDX-License-Identifier: GPL-2.0
/*
 * Walking an overwritable backward buffer from its head into the past: all
 * records that can be there are there, whole, in order, up to the byte, again
 * and again on the way through several laps, for buffers of many sizes and
 * records with and without ids at their ends.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

/* What sample_id_all adds to every record: TID, TIME, CPU, IDENTIFIER. */
struct trailer {
	__u32	pid, tid;
	__u64	time;
	__u32	cpu, reserved;
	__u64	id;
};

#define TRAILER_TYPE	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
			 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(overwrite_walk)
{
	struct perf_overwrite	ow;
	int			fd;
	int			cpu;
	__u64			id;
	size_t			trailer;
};

FIXTURE_VARIANT(overwrite_walk)
{
	unsigned int	pages;
	bool		sample_id_all;
	/* In the course of 'laps' times through the buffer. */
	unsigned int	laps;
	unsigned int	walks;
};

FIXTURE_VARIANT_ADD(overwrite_walk, page_1)
{
	.pages = 1,
	.laps = 8,
	.walks = 100,
};

FIXTURE_VARIANT_ADD(overwrite_walk, page_1_ids)
{
	.pages = 1,
	.sample_id_all = true,
	.laps = 8,
	.walks = 100,
};

FIXTURE_VARIANT_ADD(overwrite_walk, pages_2)
{
	.pages = 2,
	.laps = 4,
	.walks = 60,
};

FIXTURE_VARIANT_ADD(overwrite_walk, pages_16_ids)
{
	.pages = 16,
	.sample_id_all = true,
	.laps = 4,
	.walks = 40,
};

FIXTURE_VARIANT_ADD(overwrite_walk, pages_128)
{
	.pages = 128,
	.laps = 3,
	.walks = 10,
};

FIXTURE_VARIANT_ADD(overwrite_walk, pages_512_ids)
{
	.pages = 512,
	.sample_id_all = true,
	.laps = 3,
	.walks = 7,
};

FIXTURE_SETUP(overwrite_walk)
{
	struct perf_event_attr attr = NAME_EVENT(true);

	if (variant->sample_id_all) {
		attr.sample_type = TRAILER_TYPE;
		attr.sample_id_all = 1;
		self->trailer = sizeof(struct trailer);
	}
	self->cpu = pin_to_cpu();
	ASSERT_LE(0, self->cpu);
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	self->id = event_id(self->fd);
	ASSERT_NE(0, self->id);
	if (map_event(_metadata, &self->ow, self->fd, variant->pages, false))
		return;
}

FIXTURE_TEARDOWN(overwrite_walk)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* The ids at the end of @record, which was written before the time @*later. */
static void check_trailer(struct __test_metadata *_metadata,
			  const struct perf_event_header *record,
			  __u64 id, int cpu, __u64 *later)
{
	struct trailer trailer;

	memcpy(&trailer, (char *)record + record->size - sizeof(trailer), sizeof(trailer));
	ASSERT_EQ(getpid(), trailer.pid);
	ASSERT_EQ(syscall(__NR_gettid), trailer.tid);
	ASSERT_EQ(cpu, trailer.cpu);
	ASSERT_EQ(id, trailer.id);
	ASSERT_LE(trailer.time, *later);
	ASSERT_NE(0, trailer.time);
	*later = trailer.time;
}

TEST_F(overwrite_walk, laps)
{
	unsigned int batch, end = 0, straddled = 0, cut = 0, exact = 0;
	struct perf_overwrite_walk walk;
	size_t size = self->ow.size;
	__u64 bytes = 0;

	/* Odd, so that the walks begin at all kinds of places. */
	batch = variant->laps * (size / (28 + self->trailer)) / variant->walks | 1;

	while (bytes < variant->laps * size) {
		unsigned int seen = 0, fit;
		__u64 time = -1ULL;

		bytes += write_names(end, batch, self->trailer);
		end += batch;
		fit = names_that_fit(end, size, self->trailer);

		ASSERT_EQ(0, perf_overwrite_pause(self->fd));
		perf_overwrite_begin(&walk, &self->ow);
		for (;;) {
			size_t offset = walk.offset;
			struct perf_event_header *record;

			record = perf_overwrite_next(&walk, space);
			if (!record)
				break;
			straddled += offset + record->size > size;
			ASSERT_LT(seen, fit);
			seen++;
			ASSERT_TRUE(is_name(record, end - seen, self->trailer)) {
				TH_LOG("record %u of %u into the past", seen, fit);
			}
			if (self->trailer)
				check_trailer(_metadata, record, self->id,
					      self->cpu, &time);
		}
		ASSERT_EQ(0, perf_overwrite_resume(self->fd));
		ASSERT_EQ(fit, seen);
		ASSERT_EQ(bytes >= size, perf_overwrite_lapped(&walk));

		if (bytes > size) {
			cut += walk.left != 0;
			exact += walk.left == 0;
		} else {
			ASSERT_EQ(bytes, walk.covered);
		}
	}
	ASSERT_EQ(bytes, perf_overwrite_written(0, perf_overwrite_head(&self->ow)));
	ASSERT_EQ(0, lost_count(self->fd));
	ASSERT_LT(0, straddled);
	ASSERT_LT(0, cut);
	TH_LOG("%u records; of the walks %u met one that straddles, %u a cut one, %u none",
	       end, straddled, cut, exact);
}

/* What was written since the last time: nothing, something, more than a lap. */
TEST_F(overwrite_walk, new_since_last_time)
{
	/* In 1/64 of the records that fit. */
	static const unsigned int batches[] = { 0, 1, 3, 0, 24, 70, 150, 2, 80, 7 };
	unsigned int end = 0, lapped = 0;
	struct perf_overwrite_walk walk;

	for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
		unsigned int count, seen = 0, expected;
		size_t bytes;

		count = self->ow.size / (28 + self->trailer) * batches[i] / 64;
		bytes = write_names(end, count, self->trailer);
		end += count;
		expected = names_that_fit(end, self->ow.size, self->trailer);
		if (expected > count)
			expected = count;

		ASSERT_EQ(0, perf_overwrite_pause(self->fd));
		perf_overwrite_begin_new(&walk, &self->ow);
		while (perf_overwrite_next(&walk, space)) {
			seen++;
			ASSERT_TRUE(is_name((void *)space, end - seen, self->trailer));
		}
		ASSERT_EQ(0, perf_overwrite_resume(self->fd));

		ASSERT_EQ(expected, seen);
		ASSERT_EQ(bytes, walk.covered + walk.left + walk.missed);
		lapped += !!walk.missed;
		if (walk.covered < self->ow.size)
			ASSERT_EQ(!!walk.missed, perf_overwrite_lapped(&walk));
	}
	ASSERT_EQ(3, lapped);
}

/* Walks through all of the buffer. Returns how many records there are. */
static unsigned int walk_all(struct perf_overwrite_walk *walk, const struct perf_overwrite *ow)
{
	unsigned int records = 0;

	perf_overwrite_begin(walk, ow);
	while (perf_overwrite_next(walk, space))
		records++;
	return records;
}

/* A 32-bit kernel's head is small again after 4 GiB: only the records tell of the lap. */
TEST(lapped_by_a_small_head)
{
	static struct perf_event_mmap_page meta;
	static __u64 data[512];
	struct perf_overwrite ow = {
		.fd = -1, .size = sizeof(data), .data = (void *)data, .meta = &meta,
	};
	struct perf_event_header header = { .type = PERF_RECORD_COMM, .size = 64 };
	struct perf_overwrite_walk walk;

	meta.data_head = (__u32)-192;
	for (size_t at = sizeof(data) - 192; at < sizeof(data); at += header.size)
		memcpy((char *)data + at, &header, sizeof(header));
	EXPECT_EQ(3, walk_all(&walk, &ow));
	EXPECT_FALSE(perf_overwrite_lapped(&walk));

	/* The oldest one, cut. */
	header.size = 4000;
	memcpy(data, &header, sizeof(header));
	EXPECT_EQ(3, walk_all(&walk, &ow));
	EXPECT_TRUE(perf_overwrite_lapped(&walk));
}

/*
 * The walk itself, on memory that no kernel wrote: it ends, it stays inside,
 * and it returns what has the form of a record only.
 */
TEST(garbage)
{
	const size_t page_size = sysconf(_SC_PAGESIZE);
	struct perf_overwrite_walk walk;
	struct perf_overwrite ow = { .fd = -1, .size = page_size };
	unsigned int records = 0, ends = 0;
	struct perf_event_header header;
	unsigned char *area;

	/* Reading next to the page faults. */
	area = mmap(NULL, 3 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, area);
	ASSERT_EQ(0, mprotect(area + page_size, page_size, PROT_READ | PROT_WRITE));
	ow.data = area + page_size;

	srand(1);
	for (unsigned int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < page_size; i += sizeof(header)) {
			/* Mostly plausible, or the walk ends at once. */
			header.type = rand() % 20;
			header.misc = 0;
			header.size = rand() % 64 ? (rand() % 32) * 8 : rand();
			memcpy(area + page_size + i, &header, sizeof(header));
		}
		perf_overwrite_begin_at(&walk, &ow, (__u64)rand() << 16 ^ rand(), -1ULL);
		while (perf_overwrite_next(&walk, space)) {
			memcpy(&header, space, sizeof(header));
			ASSERT_LE(sizeof(header), header.size);
			ASSERT_EQ(0, header.size % 8);
			ASSERT_LE(walk.covered, page_size);
			ASSERT_LT(walk.offset, page_size);
			records++;
		}
		ASSERT_EQ(page_size, walk.covered + walk.left);
		ends += walk.left < sizeof(header);
	}
	ASSERT_LT(1000, records);
	ASSERT_LT(ends, 1000);

	/* Sizes that end it. */
	memset(area + page_size, 0, page_size);
	for (unsigned int size = 0; size < 16; size++) {
		if (size == 8)
			continue;
		header = (struct perf_event_header){ .type = PERF_RECORD_COMM, .size = size };
		memcpy(area + page_size, &header, sizeof(header));
		perf_overwrite_begin_at(&walk, &ow, 0, -1ULL);
		ASSERT_EQ(NULL, perf_overwrite_next(&walk, space));
		ASSERT_EQ(0, walk.covered);
	}

	/* The largest: with the buffer it is whole, but not with less. */
	header.size = 4096 - 8;
	memcpy(area + page_size, &header, sizeof(header));
	perf_overwrite_begin_at(&walk, &ow, 0, header.size);
	ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
	perf_overwrite_begin_at(&walk, &ow, 0, header.size - 8);
	ASSERT_EQ(NULL, perf_overwrite_next(&walk, space));
}

/* What was written between two heads, on kernels of both widths. */
TEST(positions)
{
	static const struct {
		__u64	older, newer, written;
	} cases[] = {
		{ 0, 0, 0 },
		{ 0, -32ULL, 32 },
		{ -32ULL, -64ULL, 32 },
		{ 1ULL << 63, (1ULL << 63) - 32, 32 },
		{ 1ULL << 32, (1ULL << 32) - 32, 32 },
		{ 0xffffffff00000000, 0xfffffffeffffffe0, 32 },
		/* 32 bits, extended with zeroes */
		{ 0, 0xffffffe0, 32 },
		{ 0xffffffe0, 0xffffffc0, 32 },
		{ 32, 0xffffffe0, 64 },
		{ 0x80000000, 0x7fffffe0, 32 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(cases[i].written,
			  perf_overwrite_written(cases[i].older, cases[i].newer)) {
			TH_LOG("case %zu", i);
		}
	}
}

TEST_HARNESS_MAIN
