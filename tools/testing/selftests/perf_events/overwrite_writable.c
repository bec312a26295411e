// SPDX-License-Identifier: GPL-2.0
/*
 * Writable mappings, where the kernel honours data_tail, in both directions:
 * what has not been read isn't overwritten, what can't be written is counted,
 * and the reader is woken when there is enough to read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

/* For pages of 4 KiB. */
#define ENTRIES_MAX	20000

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* What one name made, if it was written: a record, after one of a loss or not. */
struct entry {
	unsigned int	seq;
	unsigned int	lost;
};

struct model {
	struct perf_overwrite	ow;
	int			fd;
	__u64			id;
	/* The model: bytes written and consumed, names refused since the last one. */
	__u64			written, consumed;
	unsigned int		refused, seq;
	struct entry		*entries;
	unsigned int		first, end;
};

FIXTURE(overwrite_writable)
{
	struct model	test;
};

FIXTURE_VARIANT(overwrite_writable)
{
	bool	backward;
};

/*
 *   free | tail | oldest ... newest | head | free
 */
FIXTURE_VARIANT_ADD(overwrite_writable, forward)
{
	.backward = false,
};

/*
 *   free | head | newest ... oldest | tail | free
 */
FIXTURE_VARIANT_ADD(overwrite_writable, backward)
{
	.backward = true,
};

FIXTURE_SETUP(overwrite_writable)
{
	struct model *test = &self->test;
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	test->fd = open_event(_metadata, &attr, 0, -1);
	if (test->fd < 0)
		return;
	test->id = event_id(test->fd);
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->fd, 1, true));
	test->entries = calloc(ENTRIES_MAX * page_scale(), sizeof(*test->entries));
	ASSERT_NE(NULL, test->entries);
}

FIXTURE_TEARDOWN(overwrite_writable)
{
	struct model *test = &self->test;

	free(test->entries);
	EXPECT_EQ(0, perf_overwrite_unmap(&test->ow));
	EXPECT_EQ(0, close(test->fd));
}

static size_t entry_size(const struct entry *entry)
{
	return name_record_size(entry->seq, 0) +
	       (entry->lost ? sizeof(struct lost_record) : 0);
}

/* Writes a name, and in the model what it has to become. */
static void write_modelled(struct model *test)
{
	struct entry entry = { .seq = test->seq++, .lost = test->refused };

	write_names(entry.seq, 1, 0);
	/* One byte stays free, or a full buffer would look like an empty one. */
	if (entry_size(&entry) > test->ow.size - 1 - (test->written - test->consumed)) {
		test->refused++;
		return;
	}
	test->written += entry_size(&entry);
	test->refused = 0;
	test->entries[test->end++] = entry;
}

/* Hands the oldest @count of the entries back to the kernel. */
static void consume(struct model *test, bool backward,
		    unsigned int count)
{
	while (count--)
		test->consumed += entry_size(&test->entries[test->first++]);
	perf_overwrite_set_tail(&test->ow, backward ? -test->consumed : test->consumed);
}

/* Reads everything between tail and head. */
static void check_contents(struct __test_metadata *_metadata,
			   struct model *test, bool backward)
{
	__u64 head = perf_overwrite_head(&test->ow), position = test->consumed;
	struct perf_overwrite_walk walk;

	ASSERT_EQ(test->written, backward ? perf_overwrite_written(0, head) : head);
	perf_overwrite_begin_at(&walk, &test->ow, head, test->written - test->consumed);

	for (unsigned int i = test->first; i < test->end; i++) {
		unsigned int at = backward ? test->first + test->end - 1 - i : i;
		const struct entry *entry = &test->entries[at];
		unsigned int names = 0, losses = 0;

		/* Which comes first, the loss or the name, isn't promised. */
		for (int part = 0; part < (entry->lost ? 2 : 1); part++) {
			struct lost_record *loss = (struct lost_record *)space;

			ASSERT_NE(NULL, backward ? perf_overwrite_next(&walk, space) :
					forward_next(&test->ow, &position, head, space));
			if (loss->header.type == PERF_RECORD_LOST) {
				ASSERT_EQ(sizeof(*loss), loss->header.size);
				ASSERT_EQ(test->id, loss->id);
				ASSERT_EQ(entry->lost, loss->lost);
				losses++;
				continue;
			}
			ASSERT_TRUE(is_name(&loss->header, entry->seq, 0));
			names++;
		}
		ASSERT_EQ(1, names);
		ASSERT_EQ(entry->lost != 0, losses);
	}
	ASSERT_EQ(NULL, backward ? perf_overwrite_next(&walk, space) :
			forward_next(&test->ow, &position, head, space));
}

/*
 * The reader is slow, then quick, and hands back all, a part, or nothing; the
 * head never passes the tail, and every byte that can be used is used.
 */
TEST_F(overwrite_writable, tail_is_honoured)
{
	struct model *test = &self->test;
	unsigned int lost = 0, losses = 0, all = 0;

	srand(1);
	for (unsigned int round = 0; round < 400; round++) {
		unsigned int before = test->refused;

		for (int count = rand() % (120 * page_scale()); count--; )
			write_modelled(test);
		ASSERT_LT(test->end, (ENTRIES_MAX - 200) * page_scale());
		check_contents(_metadata, test, variant->backward);
		losses += test->refused && !before;

		switch (rand() % 4) {
		case 0:
			break;
		case 1:
			consume(test, variant->backward, test->end - test->first);
			all++;
			break;
		default:
			if (test->end != test->first)
				consume(test, variant->backward,
					rand() % (test->end - test->first));
		}
	}
	ASSERT_LT(20 * test->ow.size, test->written);
	ASSERT_LT(10, losses);
	ASSERT_LT(10, all);

	for (unsigned int i = 0; i < test->end; i++)
		lost += test->entries[i].lost;
	ASSERT_EQ(lost + test->refused, lost_count(test->fd));
	ASSERT_EQ(test->seq, test->end + lost + test->refused);
}

/* To the byte: a record that leaves one byte free fits, and none that doesn't. */
TEST_F(overwrite_writable, last_byte)
{
	struct model *test = &self->test;
	unsigned int full = 0, tight = 0, checks = 0;

	while (full < 200 * page_scale()) {
		unsigned int before = test->refused;
		size_t room;

		write_modelled(test);
		/* All of a larger page takes longer. */
		if (checks++ % page_scale() == 0)
			check_contents(_metadata, test, variant->backward);
		room = test->ow.size - 1 - (test->written - test->consumed);
		tight += room < sizeof(__u64);
		if (test->refused == before || !test->refused)
			continue;
		full++;
		/* One more, and on with the next. */
		consume(test, variant->backward, 1 + full % 3);
	}
	/* Seven bytes left: the next multiple of 8 would have been one too many. */
	ASSERT_LT(0, tight);
	ASSERT_LT(2 * test->ow.size, test->written);
}

FIXTURE(overwrite_wakeup)
{
	struct perf_overwrite	ow;
	int			fd;
};

FIXTURE_VARIANT(overwrite_wakeup)
{
	bool	backward;
	bool	writable;
};

FIXTURE_VARIANT_ADD(overwrite_wakeup, forward_readonly)
{
	.backward = false,
	.writable = false,
};

FIXTURE_VARIANT_ADD(overwrite_wakeup, forward_writable)
{
	.backward = false,
	.writable = true,
};

FIXTURE_VARIANT_ADD(overwrite_wakeup, backward_readonly)
{
	.backward = true,
	.writable = false,
};

FIXTURE_VARIANT_ADD(overwrite_wakeup, backward_writable)
{
	.backward = true,
	.writable = true,
};

/* Returns the event's descriptor, or -1 if the test is skipped. */
static int open_with_watermark(struct __test_metadata *_metadata, struct perf_overwrite *ow,
			       bool backward, bool writable, unsigned int watermark)
{
	struct perf_event_attr attr = NAME_EVENT(backward);
	int fd;

	attr.watermark = 1;
	attr.wakeup_watermark = watermark;
	fd = open_event(_metadata, &attr, 0, -1);
	if (fd >= 0)
		ASSERT_EQ(0, perf_overwrite_map(ow, fd, 1, writable));
	return fd;
}

FIXTURE_SETUP(overwrite_wakeup)
{
	self->fd = -1;
}

FIXTURE_TEARDOWN(overwrite_wakeup)
{
	if (self->fd < 0)
		return;
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* Exactly the records that cross a watermark wake, in both directions. */
TEST_F(overwrite_wakeup, poll)
{
	static const unsigned int watermarks[] = { 1, 32, 100, 1000, 2048 };

	for (size_t i = 0; i < ARRAY_SIZE(watermarks); i++) {
		unsigned int wakeups = 0, records = 500;
		__u64 written = 0, woken = 0;
		struct pollfd poll_fd;

		self->fd = open_with_watermark(_metadata, &self->ow, variant->backward,
					       variant->writable, watermarks[i]);
		if (self->fd < 0)
			return;
		poll_fd = (struct pollfd){ .fd = self->fd, .events = POLLIN };
		ASSERT_EQ(0, poll(&poll_fd, 1, 0));

		for (unsigned int seq = 0; seq < records; seq++) {
			bool crossed;

			written += write_names(seq, 1, 0);
			crossed = written - woken > watermarks[i];
			if (crossed) {
				woken += watermarks[i];
				wakeups++;
			}
			ASSERT_EQ(crossed, poll(&poll_fd, 1, 0)) {
				TH_LOG("watermark %u, record %u", watermarks[i], seq);
			}
			ASSERT_TRUE(!crossed || poll_fd.revents == POLLIN);
			if (variant->writable)
				perf_overwrite_set_tail(&self->ow,
							perf_overwrite_head(&self->ow));
		}
		ASSERT_LT(4, wakeups);
		ASSERT_EQ(0, lost_count(self->fd));
		ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
		ASSERT_EQ(0, close(self->fd));
		self->fd = -1;
	}
}

struct sleeper {
	int	fd;
	pid_t	tid;
};

static void *wait_for_data(void *argument)
{
	struct sleeper *sleeper = argument;
	struct pollfd poll_fd = { .fd = sleeper->fd, .events = POLLIN };

	__atomic_store_n(&sleeper->tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	return (void *)(long)poll(&poll_fd, 1, -1);
}

/* Who sleeps is woken. */
TEST_F(overwrite_wakeup, sleeper)
{
	struct sleeper sleeper = { };
	pthread_t thread;
	void *result;

	self->fd = open_with_watermark(_metadata, &self->ow, variant->backward,
				       variant->writable, 1024);
	if (self->fd < 0)
		return;
	sleeper.fd = self->fd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_data, &sleeper));
	while (!__atomic_load_n(&sleeper.tid, __ATOMIC_ACQUIRE) ||
	       task_state(sleeper.tid) != 'S')
		usleep(1000);
	ASSERT_LT(1024, write_names(0, 60, 0));
	ASSERT_EQ(0, pthread_join(thread, &result));
	ASSERT_EQ(1, (long)result);
}

TEST_HARNESS_MAIN
