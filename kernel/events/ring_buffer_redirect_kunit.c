// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of records that follow their event to another buffer of the perf
 * ring buffer: the event was directed there, and the former one paused, after the
 * writer had loaded event->rb.
 */
#include <kunit/test.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>

#include "breakpoint_kunit.h"
#include "internal.h"
#include "ring_buffer_kunit.h"

/* Reserve a record as a writer that has loaded @rb, wherever the event's output goes by now. */
static int rb_test_reserve(struct rb_test *t, struct perf_output_handle *handle,
			   struct perf_sample_data *data, struct perf_buffer *rb,
			   unsigned int size)
{
	if (t->event.attr.write_backward)
		return perf_output_reserve_backward(handle, data, &t->event, rb, size);

	return perf_output_reserve_forward(handle, data, &t->event, rb, size);
}

/* The same, and write it. */
static int rb_test_write_to(struct rb_test *t, struct perf_buffer *rb, u8 *buf,
			    u64 seq, unsigned int size)
{
	struct perf_output_handle handle;
	struct perf_event_header header;
	struct perf_sample_data data;
	int ret;

	rb_test_fill(buf, seq, size);
	perf_sample_data_init(&data, 0, 0);
	/* As in rb_test_write(). */
	perf_event_header__init(&header, &data, RB_TEST_RECORD, 0, size, &t->event);

	rcu_read_lock();
	ret = rb_test_reserve(t, &handle, &data, rb, size);
	if (!ret) {
		rb_test_copy(&handle, buf, size);
		perf_output_put_handle(&handle);
	}
	rcu_read_unlock();

	return ret;
}

/* As if @nr records had been lost. */
static void rb_test_lose(struct perf_buffer *rb, long nr)
{
	local_set(&rb->lost, nr);
	atomic_or(RB_RARE_LOST, &rb->rare);
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/* The event is directed elsewhere. */
static void rb_test_fire_redirect(struct rb_test *t)
{
	rcu_assign_pointer(t->event.rb, t->redirect_to);
}

/*
 * An event is directed elsewhere and its buffer paused after a writer has looked
 * for the buffer, and before it looks at the flag: the sample goes elsewhere. If
 * that is nowhere, it is lost.
 */
static void test_redirected_sample(struct kunit *test)
{
	struct perf_sample_data data;
	struct pt_regs regs = { };
	struct perf_buffer *other;
	struct perf_event *bp;
	struct rb_test *t;
	int i, ret;

	kunit_needs_breakpoint(test);

	for (i = 0; i < 4; i++) {
		bool backward = i & 1, nowhere = i & 2;

		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_CPU;
		t->event.header_size = 8;
		t->event.fixed_size = t->event.header_size;
		other = rb_alloc(1, 0, -1, 0);
		KUNIT_ASSERT_NOT_NULL(test, other);

		rb_toggle_paused(t->rb, true);
		perf_sample_data_init(&data, 0, 0);
		t->fire_at = 0;
		t->fire = rb_test_fire_redirect;
		t->redirect_to = nowhere ? NULL : other;
		bp = rb_test_watch(test, t, &t->rb->paused, sizeof(t->rb->paused), true);
		ret = perf_event_output(&t->event, &data, &regs);
		perf_event_release_kernel(bp);

		KUNIT_EXPECT_TRUE(test, t->fired);
		KUNIT_EXPECT_EQ(test, ret, nowhere ? -ENOSPC : 0);
		KUNIT_EXPECT_EQ(test, other->user_page->data_head,
				nowhere ? 0 : (u64)(backward ? -16UL : 16UL));
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), nowhere);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), nowhere);
		rb_test_compare(test, t);

		rcu_assign_pointer(t->event.rb, t->rb);
		ring_buffer_put(other);
	}
}
#endif

/*
 * A record that finds its buffer paused is written to where the event was directed
 * to before the pause, or lost there. The paused buffer is as if there had been no
 * such record.
 */
static void test_redirected(struct kunit *test)
{
	struct perf_buffer *old;
	struct rb_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		old = rb_alloc(1, 0, -1, 0);
		KUNIT_ASSERT_NOT_NULL(test, old);
		rb_toggle_paused(old, true);
		/* The record's size must not be left with that of a report. */
		rb_test_lose(old, 7);

		KUNIT_EXPECT_EQ(test, rb_test_write_to(t, old, t->record, 1, 64), 0);
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);

		rb_toggle_paused(t->rb, true);
		KUNIT_EXPECT_EQ(test, rb_test_write_to(t, old, t->record, 2, 64),
				-ENOSPC);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 1);

		KUNIT_EXPECT_EQ(test, local_read(&old->lost), 7);
		KUNIT_EXPECT_EQ(test, local_read(&old->head), 0);
		KUNIT_EXPECT_EQ(test, old->user_page->data_head, 0);
		KUNIT_EXPECT_EQ(test, old->nest, 0);

		ring_buffer_put(old);
	}
}

/*
 * If the buffer that a record follows its event to has lost records, PERF_RECORD_LOST
 * comes before the record there. It doesn't count those that the paused buffer lost.
 */
static void test_redirected_lost(struct kunit *test)
{
	struct rb_test_lost lost = {
		.header = { .type = PERF_RECORD_LOST, .size = sizeof(lost) },
		.id = RB_TEST_ID,
		.lost = 3,
		.sample_id = RB_TEST_ID,
	};
	struct perf_buffer *old;
	struct rb_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_ID;
		t->event.attr.sample_id_all = 1;
		t->event.id_header_size = 8;
		rb_test_lose(t->rb, 3);
		old = rb_alloc(1, 0, -1, 0);
		KUNIT_ASSERT_NOT_NULL(test, old);
		rb_toggle_paused(old, true);
		rb_test_lose(old, 7);

		KUNIT_EXPECT_EQ(test, rb_test_write_to(t, old, t->record, 1, 64), 0);
		rb_test_mirror(t, &lost, sizeof(lost));
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_EXPECT_EQ(test, local_read(&old->lost), 7);
		KUNIT_EXPECT_EQ(test, old->user_page->data_head, 0);

		ring_buffer_put(old);
	}
}

/*
 * A record whose event has no buffer any more is lost in the one where it was
 * found, if that is paused by now, and counted there.
 */
static void test_redirected_nowhere(struct kunit *test)
{
	struct rb_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		rb_toggle_paused(t->rb, true);
		rcu_assign_pointer(t->event.rb, NULL);

		KUNIT_EXPECT_EQ(test, rb_test_write_to(t, t->rb, t->record, 1, 64),
				-ENOSPC);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 1);
	}
}

/*
 * A reservation disables preemption if it succeeds, and leaves the caller's
 * read-side section alone whether it does or not.
 */
static void test_reserve_keeps_section(struct kunit *test)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct perf_buffer *old;
	int backward, i, count;
	struct rb_test *t;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		old = rb_alloc(1, 0, -1, 0);
		KUNIT_ASSERT_NOT_NULL(test, old);
		rb_toggle_paused(old, true);
		perf_sample_data_init(&data, 0, 0);

		/* A plain one and one that follows its event; with a pause, and without room. */
		for (i = 0; i < 6; i++) {
			struct perf_buffer *rb = i & 1 ? old : t->rb;
			unsigned int size = i < 4 ? 64 : PAGE_SIZE + 8;
			int ret, expected = i < 2 ? 0 : -ENOSPC;
			bool held;

			rb_toggle_paused(t->rb, i / 2 == 1);
			rcu_read_lock();
			count = preempt_count();
			ret = rb_test_reserve(t, &handle, &data, rb, size);
			if (!ret)
				perf_output_put_handle(&handle);
			count -= preempt_count();
			held = rcu_read_lock_held();
			/* Don't let one failure spoil the rest. */
			if (held && !count)
				rcu_read_unlock();

			KUNIT_EXPECT_EQ_MSG(test, ret, expected, "%d", i);
			KUNIT_EXPECT_EQ_MSG(test, count, 0, "%d", i);
			KUNIT_EXPECT_TRUE_MSG(test, held, "%d", i);
		}
		ring_buffer_put(old);
	}
}

static struct kunit_case rb_redirect_test_cases[] = {
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE(test_redirected_sample),
#endif
	KUNIT_CASE(test_redirected),
	KUNIT_CASE(test_redirected_lost),
	KUNIT_CASE(test_redirected_nowhere),
	KUNIT_CASE(test_reserve_keeps_section),
	{}
};

static struct kunit_suite rb_redirect_test_suite = {
	.name = "perf_ring_buffer_redirect",
	.init = rb_test_init,
	.exit = rb_test_exit,
	.test_cases = rb_redirect_test_cases,
};

kunit_test_suite(rb_redirect_test_suite);
