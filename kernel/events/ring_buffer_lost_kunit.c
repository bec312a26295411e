// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of PERF_RECORD_LOST in the perf ring buffer: how many records it
 * tells of, where it is written, and what it leaves alone.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>

#include "internal.h"
#include "ring_buffer_kunit.h"

/*
 * Records that met a paused or a full buffer are reported by the next one that
 * is written: exactly, once, and in the reservation of that one.
 */
struct rb_lost_param {
	const char	*name;
	bool		backward;
	bool		full;
	bool		sample_id_all;
	unsigned int	lost;
};

static const struct rb_lost_param rb_lost_params[] = {
	/* name, backward, full, sample_id_all, lost */
	{ "forward, paused, 1", false, false, false, 1 },
	{ "forward, paused, 1000", false, false, false, 1000 },
	{ "forward, paused, with sample id", false, false, true, 3 },
	{ "forward, full, 1", false, true, false, 1 },
	{ "forward, full, with sample id", false, true, true, 17 },
	{ "backward, paused, 1", true, false, false, 1 },
	{ "backward, paused, 1000", true, false, false, 1000 },
	{ "backward, paused, with sample id", true, false, true, 3 },
	{ "backward, full, 1", true, true, false, 1 },
	{ "backward, full, with sample id", true, true, true, 17 },
};

RB_PARAM_DESC(rb_lost_param)
KUNIT_ARRAY_PARAM(rb_lost, rb_lost_params, rb_lost_param_desc);

static void test_lost(struct kunit *test)
{
	const struct rb_lost_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 1, 0, p->backward, p->full, 0);
	unsigned int size = 24 + (p->sample_id_all ? 8 : 0);
	struct rb_test_lost *lost = (void *)t->nested + (p->backward ? 64 : 0);
	unsigned int i;

	t->event.attr.sample_type = PERF_SAMPLE_ID;
	t->event.attr.sample_id_all = p->sample_id_all;
	t->event.id_header_size = 8;

	if (p->full) {
		/* One byte stays free: PAGE_SIZE / 64 records don't fit. */
		for (i = 0; i < PAGE_SIZE / 64 - 1; i++) {
			KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, i, 64), 0);
			rb_test_mirror(t, t->record, 64);
		}
	} else {
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 0, 64), 0);
		rb_test_mirror(t, t->record, 64);
		rb_toggle_paused(t->rb, true);
	}
	rb_test_compare(test, t);

	for (i = 0; i < p->lost; i++)
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 100, 64), -ENOSPC);

	/* Nothing of them is seen, they are only counted. */
	rb_test_compare(test, t);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), p->lost);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), p->lost);

	if (p->full)
		t->rb->user_page->data_tail = t->head;
	else
		rb_toggle_paused(t->rb, false);

	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 200, 64), 0);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), p->lost);

	/*
	 * One reservation holds PERF_RECORD_LOST and the record, the older one
	 * of them where older records are: behind it if written backward.
	 */
	memset(lost, 0, sizeof(*lost));
	lost->header.type = PERF_RECORD_LOST;
	lost->header.size = size;
	lost->id = RB_TEST_ID;
	lost->lost = p->lost;
	lost->sample_id = RB_TEST_ID;
	memcpy(t->nested + (p->backward ? 0 : size), t->record, 64);
	rb_test_mirror(t, t->nested, size + 64);
	rb_test_compare(test, t);

	/* It was said once. */
	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 201, 64), 0);
	rb_test_mirror(t, t->record, 64);
	rb_test_compare(test, t);
}

/*
 * The sample data belongs to the record, which may be of a child of the event
 * that has the buffer. PERF_RECORD_LOST uses what is there, but for the stream:
 * that is the event's.
 */
static void test_lost_keeps_sample_data(struct kunit *test)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct rb_test_lost lost;
	struct rb_test *t;
	int backward, ret;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_STREAM_ID;
		t->event.attr.sample_id_all = 1;
		t->event.id_header_size = 8;

		rb_toggle_paused(t->rb, true);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 0, 64), -ENOSPC);
		rb_toggle_paused(t->rb, false);

		rb_test_fill(t->record, 1, 64);
		perf_sample_data_init(&data, 0, 0);
		data.type = PERF_SAMPLE_STREAM_ID;
		data.stream_id = 99;
		ret = perf_output_begin(&handle, &data, &t->event, 64);
		if (!ret) {
			perf_output_copy(&handle, t->record, 64);
			perf_output_end(&handle);
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
		KUNIT_EXPECT_EQ(test, data.stream_id, 99);
		KUNIT_EXPECT_EQ(test, data.type, PERF_SAMPLE_STREAM_ID);

		rb_test_read(t, backward ? MINUS(32) : 0, &lost, 32);
		KUNIT_EXPECT_EQ(test, lost.header.type, PERF_RECORD_LOST);
		KUNIT_EXPECT_EQ(test, lost.header.size, 32);
		KUNIT_EXPECT_EQ(test, lost.lost, 1);
		KUNIT_EXPECT_EQ(test, lost.id, RB_TEST_ID);
		KUNIT_EXPECT_EQ(test, lost.sample_id, RB_TEST_ID);
	}
}

/*
 * A record that fits into the buffer, but not together with PERF_RECORD_LOST, is
 * written alone. PERF_RECORD_LOST comes with the next record that leaves room for it.
 */
static void test_lost_starves_nothing(struct kunit *test)
{
	const unsigned int large = PAGE_SIZE - 16;
	struct rb_test_lost lost;
	struct rb_test *t;
	unsigned int i;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, true, 0);

		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 0, 64), 0);
		rb_test_mirror(t, t->record, 64);
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 1, large), -ENOSPC);
		KUNIT_ASSERT_EQ(test, local_read(&t->rb->lost), 1);

		for (i = 0; i < 3; i++) {
			t->rb->user_page->data_tail = t->head;
			KUNIT_ASSERT_EQ(test,
					rb_test_write(t, t->record, i, large), 0);
			rb_test_mirror(t, t->record, large);
			rb_test_compare(test, t);
			KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		}

		t->rb->user_page->data_tail = t->head;
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 4, 64), 0);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		rb_test_read(t, t->head - (backward ? 24 : 0), &lost, 24);
		KUNIT_EXPECT_EQ(test, lost.header.type, PERF_RECORD_LOST);
		KUNIT_EXPECT_EQ(test, lost.lost, 1);
	}
}

/*
 * A shared buffer has one writing CPU at a time: while a writer is held on another
 * one records from here are dropped, counted without rb->lost, which is the
 * other's, and told of by the next one that is written.
 */
static void test_shared_one_cpu(struct kunit *test)
{
	unsigned int cpu = rb_test_other_cpu(test);
	struct rb_test_lost lost = {
		.header = { .type = PERF_RECORD_LOST, .size = 24 },
		.id = RB_TEST_ID,
		.lost = 2,
	};
	int i, owner, ret[2], tries = 0;
	struct rb_test *t;
	bool held;
	long count;
	u64 head;

	/* Each direction, and again whatever was disturbed. */
	for (i = 0; i < 2 && tries < RB_TEST_TRIES; i += held, tries++) {
		t = rb_test_attach(test, 1, 0, i, false, 0);
		rb_share(t->rb);
		held = rb_test_hold(test, t, cpu);

		owner = READ_ONCE(t->rb->owner);
		ret[0] = rb_test_write(t, t->nested, 8, 64);
		ret[1] = rb_test_write(t, t->nested, 9, 4096 - 64);
		count = local_read(&t->rb->lost);
		head = READ_ONCE(t->rb->user_page->data_head);

		held = rb_test_release(t) && held;
		if (!held)
			continue;

		KUNIT_EXPECT_EQ(test, owner, cpu);
		KUNIT_EXPECT_EQ(test, t->writer_ret, 0);
		KUNIT_EXPECT_EQ(test, ret[0], -ENOSPC);
		KUNIT_EXPECT_EQ(test, ret[1], -ENOSPC);
		KUNIT_EXPECT_EQ(test, head, 0);
		KUNIT_EXPECT_EQ(test, count, 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 2);
		KUNIT_EXPECT_EQ(test, t->rb->owner, -1);
		KUNIT_EXPECT_EQ(test, t->rb->nest, 0);

		/* The other's record is whole, and alone. */
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);

		/* This CPU takes over. */
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 10, 64), 0);
		memcpy(t->nested + (i ? 64 : 0), &lost, 24);
		memcpy(t->nested + (i ? 0 : 24), t->record, 64);
		rb_test_mirror(t, t->nested, 88);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, t->rb->owner, -1);
	}
	KUNIT_EXPECT_EQ(test, i, 2);
}

/* What a shared buffer counts is as wide as what others count. */
static void test_shared_lost_many(struct kunit *test)
{
	const unsigned long lost = BITS_PER_LONG > 32 ? 3UL * INT_MAX : INT_MAX;
	struct rb_test *t = rb_test_attach(test, 1, 0, false, false, 0);
	struct rb_test_lost record;
	unsigned long i;

	rb_share(t->rb);
	rcu_read_lock();
	for (i = 0; i < lost; i += INT_MAX)
		rb_count_lost_nr(t->rb, &t->event, INT_MAX);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), lost);

	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 0, 64), 0);
	rb_test_read(t, 0, &record, 24);
	KUNIT_EXPECT_EQ(test, record.header.type, PERF_RECORD_LOST);
	KUNIT_EXPECT_EQ(test, record.lost, lost);
}

static struct kunit_case rb_lost_test_cases[] = {
	KUNIT_CASE_PARAM(test_lost, rb_lost_gen_params),
	KUNIT_CASE(test_lost_keeps_sample_data),
	KUNIT_CASE(test_lost_starves_nothing),
	KUNIT_CASE(test_shared_one_cpu),
	KUNIT_CASE(test_shared_lost_many),
	{}
};

static struct kunit_suite rb_lost_test_suite = {
	.name = "perf_ring_buffer_lost",
	.init = rb_test_init,
	.exit = rb_test_exit,
	.test_cases = rb_lost_test_cases,
};

kunit_test_suite(rb_lost_test_suite);
