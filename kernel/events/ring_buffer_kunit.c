// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the perf ring buffer's output path.
 *
 * It is driven for real: a buffer from rb_alloc(), an event without a PMU that
 * has it attached, and the functions that every writer calls. What they leave in
 * the data pages is compared with a mirror, an array of bytes that is written
 * one byte at a time.
 *
 * Nested writers are put exactly where they hurt: by hand between begin and
 * end, and by a hardware breakpoint on one of the buffer's own words, whose
 * handler runs between the instruction that touches the word and the next one,
 * like an NMI. Other writers are held between begin and end on another CPU.
 *
 * What can't be seen here: ordering between CPUs, as there is no reader on
 * another one; anything that takes a mapping or a file descriptor. The
 * selftests in tools/testing/selftests/perf_events are for that.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>

#include "breakpoint_kunit.h"
#include "internal.h"
#include "ring_buffer_head_model.h"
#include "ring_buffer_kunit.h"

static void rb_test_wakeup(struct irq_work *work)
{
	struct rb_test *t = container_of(work, struct rb_test, event.pending_irq);

	atomic_inc(&t->wakeups);
}

int rb_test_init(struct kunit *test)
{
	struct rb_test *t;

	t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t);
	t->record = kunit_kzalloc(test, RB_TEST_MAX_RECORD, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->record);
	t->nested = kunit_kzalloc(test, RB_TEST_MAX_RECORD, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->nested);

	t->event.cpu = -1;
	t->event.id = RB_TEST_ID;
	init_irq_work(&t->event.pending_irq, rb_test_wakeup);
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	t->fire = rb_test_fire_write;
#endif

	test->priv = t;

	return 0;
}

static void rb_test_detach(struct rb_test *t)
{
	struct perf_buffer *rb = t->rb;

	irq_work_sync(&t->event.pending_irq);
	rcu_assign_pointer(t->event.rb, NULL);
	synchronize_rcu();

	t->rb = NULL;
	if (rb)
		ring_buffer_put(rb);
}

void rb_test_exit(struct kunit *test)
{
	if (test->priv)
		rb_test_detach(test->priv);
}

/* Have the next record start, forward, or end, backward, at @start. */
void rb_test_start(struct rb_test *t, unsigned long start)
{
	struct perf_buffer *rb = t->rb;

	t->head = start;
	if (rb->nr_pages)
		t->at = start % t->data_size;

	local_set(&rb->head, start);
	local_set(&rb->wakeup, t->event.attr.write_backward ? 0UL - start : start);
	rb->user_page->data_head = start;
	rb->user_page->data_tail = start;
}

/*
 * Attach a new buffer to the event, its head at @start: a start shortly before
 * the end of the word has the head wrap in the middle of the test.
 */
struct rb_test *rb_test_attach(struct kunit *test, int nr_pages, u32 watermark,
			       bool backward, bool writable, unsigned long start)
{
	struct rb_test *t = test->priv;
	struct perf_buffer *rb;

	rb_test_detach(t);

	rb = rb_alloc(nr_pages, watermark, -1,
		      writable ? RING_BUFFER_WRITABLE : 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);

	t->rb = rb;
	t->data_size = (unsigned long)nr_pages * PAGE_SIZE;
	t->event.attr.write_backward = backward;
	atomic_set(&t->wakeups, 0);
	atomic64_set(&t->event.lost_samples, 0);

	if (nr_pages) {
		t->mirror = kunit_kzalloc(test, t->data_size, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, t->mirror);
	}
	rb_test_start(t, start);

	rcu_assign_pointer(t->event.rb, rb);

	return t;
}

void rb_test_fill(u8 *buf, u64 seq, unsigned int size)
{
	struct rb_test_record *record = (struct rb_test_record *)buf;
	unsigned int i;

	record->header.type = RB_TEST_RECORD;
	record->header.misc = 0;
	record->header.size = size;
	record->seq = seq;
	for (i = 0; i < size - sizeof(*record); i++)
		record->payload[i] = seq * 29 + i;
}

/* In pieces of all lengths: no boundary stays uncrossed by any for long. */
void rb_test_copy(struct perf_output_handle *handle, const u8 *buf, unsigned int size)
{
	unsigned int done = 0, len = 1;

	while (done < size) {
		len = min(len, size - done);
		perf_output_copy(handle, buf + done, len);
		done += len;
		len = len % 61 + 3;
	}
}

/* Write a record for real. Contains no expectation, as it may nest. */
int rb_test_write(struct rb_test *t, u8 *buf, u64 seq, unsigned int size)
{
	struct perf_output_handle handle;
	struct perf_event_header header;
	struct perf_sample_data data;
	int ret;

	rb_test_fill(buf, seq, size);
	perf_sample_data_init(&data, 0, 0);
	/* For sample_id_all, as all callers of perf_output_begin() do. */
	perf_event_header__init(&header, &data, RB_TEST_RECORD, 0, size, &t->event);
	ret = perf_output_begin(&handle, &data, &t->event, size);
	if (ret)
		return ret;

	rb_test_copy(&handle, buf, size);
	perf_output_end(&handle);

	return 0;
}

/* Write the same bytes into the mirror. */
void rb_test_mirror(struct rb_test *t, const void *buf, unsigned int size)
{
	bool backward = t->event.attr.write_backward;
	unsigned int at, i;

	if (backward) {
		for (i = 0; i < size; i++)
			t->at = rb_model_step(t->at, t->data_size, true);
		t->head -= size;
	} else {
		t->head += size;
	}

	at = t->at;
	for (i = 0; i < size; i++) {
		t->mirror[at] = ((const u8 *)buf)[i];
		at = rb_model_step(at, t->data_size, false);
	}
	if (!backward)
		t->at = at;
}

/* Data pages may be larger than PAGE_SIZE, what is mapped is contiguous. */
u8 *rb_test_byte(struct rb_test *t, unsigned long at)
{
	unsigned long page_size = PAGE_SIZE << page_order(t->rb);

	return (u8 *)t->rb->data_pages[at / page_size] + at % page_size;
}

/* Copy from the data pages, starting where the position @pos is. */
void rb_test_read(struct rb_test *t, unsigned long pos, void *buf, unsigned int size)
{
	unsigned int at = pos % t->data_size, i;

	for (i = 0; i < size; i++) {
		((u8 *)buf)[i] = *rb_test_byte(t, at);
		at = rb_model_step(at, t->data_size, false);
	}
}

/* The whole of the data pages, the published and the reserved head. */
void rb_test_compare(struct kunit *test, struct rb_test *t)
{
	unsigned long at;

	KUNIT_EXPECT_EQ(test, local_read(&t->rb->head), (long)t->head);
	KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head, (u64)t->head);
	KUNIT_EXPECT_EQ(test, t->rb->nest, 0);

	/* There are many of these, and sanitizers make them slow. */
	cond_resched();
	for (at = 0; at < t->data_size; at += PAGE_SIZE) {
		if (memcmp(rb_test_byte(t, at), t->mirror + at, PAGE_SIZE))
			break;
	}
	if (at == t->data_size)
		return;

	while (*rb_test_byte(t, at) == t->mirror[at])
		at++;
	KUNIT_FAIL(test, "byte %lu is %#x, not %#x, head %#lx", at,
		   *rb_test_byte(t, at), t->mirror[at], t->head);
}

/*
 * What a reader does: from the head towards the past, header by header, until
 * the buffer was covered. @sizes are those of the records 0 to @count - 1.
 */
void rb_test_walk(struct kunit *test, struct rb_test *t, const unsigned int *sizes,
		  unsigned int count)
{
	unsigned long pos = t->rb->user_page->data_head, covered = 0;
	unsigned int seq = count;

	while (seq && covered + sizes[seq - 1] <= t->data_size) {
		struct rb_test_record *record = (void *)t->nested;

		seq--;
		/* See rb_test_compare(). */
		cond_resched();
		rb_test_read(t, pos + covered, record, sizeof(*record));
		KUNIT_ASSERT_EQ(test, record->header.type, RB_TEST_RECORD);
		KUNIT_ASSERT_EQ(test, record->header.size, sizes[seq]);
		KUNIT_ASSERT_EQ(test, record->seq, seq);

		rb_test_fill(t->record, seq, sizes[seq]);
		rb_test_read(t, pos + covered, t->nested, sizes[seq]);
		KUNIT_ASSERT_EQ(test, memcmp(t->nested, t->record, sizes[seq]), 0);

		covered += sizes[seq];
	}

	/* It went as far as it could: only the cut record is missing. */
	KUNIT_EXPECT_GT(test, covered, 0);
	if (seq)
		KUNIT_EXPECT_GT(test, covered + sizes[seq - 1], t->data_size);
}

/*
 * No buffer of this size can be had here, but its size can be computed.
 */
static void test_data_size(struct kunit *test)
{
	struct rb_test *t = rb_test_attach(test, 1, 0, false, false, 0);
	struct perf_buffer *rb = t->rb;
	const int nr_pages = rb->nr_pages;
	u64 size[2];

	KUNIT_EXPECT_EQ(test, perf_data_size(rb), PAGE_SIZE);

	rb->nr_pages = SZ_2G / PAGE_SIZE;
	size[0] = perf_data_size(rb);
	rb->nr_pages = 2 * (SZ_2G / PAGE_SIZE);
	size[1] = perf_data_size(rb);
	rb->nr_pages = nr_pages;

	KUNIT_EXPECT_EQ(test, size[0], 0x80000000ULL);
	if (BITS_PER_LONG == 64)
		KUNIT_EXPECT_EQ(test, size[1], 0x100000000ULL);
}

/*
 * A buffer is born running, unless there is nowhere to write to.
 */
static void test_born_running(struct kunit *test)
{
	struct rb_test *t;
	int i;

	for (i = 0; i < 4; i++) {
		t = rb_test_attach(test, 1, 0, i & 1, i & 2, 0);
		KUNIT_EXPECT_FALSE(test, t->rb->paused);
		KUNIT_EXPECT_EQ(test, t->rb->overwrite, !(i & 2));
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), 0);
	}
}

static void test_born_paused(struct kunit *test)
{
	struct rb_test *t;
	int i;

	for (i = 0; i < 4; i++) {
		t = rb_test_attach(test, 0, 0, i & 1, i & 2, 0);
		KUNIT_EXPECT_TRUE(test, t->rb->paused);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), -ENOSPC);

		rb_toggle_paused(t->rb, false);
		KUNIT_EXPECT_TRUE(test, t->rb->paused);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 2, 64), -ENOSPC);

		/* Nothing was lost: nothing could ever have been had. */
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
		KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head, 0);
	}
}

static void test_no_buffer(struct kunit *test)
{
	struct rb_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), -ENOSPC);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
}

/*
 * Records of changing sizes for many laps, each compared with the mirror.
 */
struct rb_laps_param {
	const char	*name;
	int		nr_pages;
	bool		backward;
	bool		writable;
	bool		wrap;		/* of the head at the word, after two laps */
	unsigned int	min_size;
	unsigned int	max_size;
};

#define RB_TEST_LAPS	5

static const struct rb_laps_param rb_laps_params[] = {
	/* name, pages, backward, writable, wrap, sizes from and to */
	{ "forward, read-only", 1, false, false, false, 16, 512 },
	{ "forward, writable", 1, false, true, false, 16, 512 },
	{ "backward, read-only", 1, true, false, false, 16, 512 },
	{ "backward, writable", 1, true, true, false, 16, 512 },
	{ "forward, read-only, smallest", 1, false, false, false, 16, 16 },
	{ "backward, read-only, smallest", 1, true, false, false, 16, 16 },
	{ "forward, read-only, 8 pages", 8, false, false, false, 16, 5000 },
	{ "forward, writable, 8 pages", 8, false, true, false, 16, 5000 },
	{ "backward, read-only, 8 pages", 8, true, false, false, 16, 5000 },
	{ "backward, writable, 8 pages", 8, true, true, false, 16, 5000 },
	{ "forward, read-only, as large as fits", 2, false, false, false,
	  2 * PAGE_SIZE - 64, 2 * PAGE_SIZE },
	{ "backward, read-only, as large as fits", 2, true, false, false,
	  2 * PAGE_SIZE - 64, 2 * PAGE_SIZE },
	{ "forward, read-only, across the word", 2, false, false, true, 16, 2048 },
	{ "forward, writable, across the word", 2, false, true, true, 16, 2048 },
	{ "backward, read-only, across the word", 2, true, false, true, 16, 2048 },
	{ "backward, writable, across the word", 2, true, true, true, 16, 2048 },
};

RB_PARAM_DESC(rb_laps_param)
KUNIT_ARRAY_PARAM(rb_laps, rb_laps_params, rb_laps_param_desc);

static void test_laps(struct kunit *test)
{
	const struct rb_laps_param *p = test->param_value;
	const unsigned long data_size = p->nr_pages * PAGE_SIZE;
	const unsigned long start = p->backward ? 2 * data_size :
						  MINUS(2 * data_size);
	/* Larger pages take more records, and longer to compare: not after each record. */
	const unsigned int step = PAGE_SIZE / SZ_4K;
	struct rb_test *t = rb_test_attach(test, p->nr_pages, 0, p->backward,
					   p->writable, p->wrap ? start : 0);
	unsigned int smallest = min(p->min_size, RB_TEST_MAX_RECORD);
	unsigned int page_crossed = 0, end_crossed = 0;
	unsigned int *sizes, seq, first, size;
	unsigned long written = 0;
	u32 seed = 1;

	sizes = kunit_kcalloc(test, RB_TEST_LAPS * data_size / smallest + 1,
			      sizeof(*sizes), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sizes);

	for (seq = 0; written < RB_TEST_LAPS * data_size; seq++) {
		seed = seed * 1664525 + 1013904223;
		size = p->min_size;
		size += 8 * ((seed >> 8) % ((p->max_size - p->min_size) / 8 + 1));
		size = min(size, RB_TEST_MAX_RECORD);
		if (p->writable)
			size = min_t(unsigned int, size, data_size - 8);
		sizes[seq] = size;
		written += size;

		first = t->at;
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, seq, size), 0);
		rb_test_mirror(t, t->record, size);
		if (p->backward)
			first = t->at;
		if (first + size > data_size)
			end_crossed++;
		if (first % PAGE_SIZE + size > PAGE_SIZE)
			page_crossed++;

		if (p->writable)
			t->rb->user_page->data_tail = t->head;
		if (seq % step && size < SZ_4K)
			continue;
		rb_test_compare(test, t);
		if (p->backward && !p->writable)
			rb_test_walk(test, t, sizes, seq + 1);
	}
	rb_test_compare(test, t);

	/* It wasn't for nothing. */
	if (p->max_size > 16)
		KUNIT_EXPECT_GT(test, end_crossed, 0);
	if (p->nr_pages > 1)
		KUNIT_EXPECT_GT(test, page_crossed, end_crossed);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
}

/* The direction is the event's: nothing else tells perf_output_begin(). */
static void test_begin_asks_the_event(struct kunit *test)
{
	struct rb_test *t;

	t = rb_test_attach(test, 1, 0, false, false, 0);
	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), 0);
	KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head, 64);

	t = rb_test_attach(test, 1, 0, true, false, 0);
	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), 0);
	KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head, MINUS(64));
}

static void test_skip_leaves_bytes(struct kunit *test)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct rb_test *t;
	unsigned int first, i;
	int backward, ret;

	for (backward = 0; backward < 2; backward++) {
		/* 8 bytes, then 128 skipped, then 8: across the end. */
		first = backward ? PAGE_SIZE - 80 : PAGE_SIZE - 64;
		t = rb_test_attach(test, 1, 0, backward, false,
				   backward ? 64 : PAGE_SIZE - 64);
		for (i = 0; i < PAGE_SIZE; i++) {
			t->mirror[i] = i * 7;
			*rb_test_byte(t, i) = i * 7;
		}

		rb_test_fill(t->record, 1, 144);
		perf_sample_data_init(&data, 0, 0);
		ret = perf_output_begin(&handle, &data, &t->event, 144);
		if (!ret) {
			perf_output_copy(&handle, t->record, 8);
			perf_output_skip(&handle, 128);
			perf_output_copy(&handle, t->record + 136, 8);
			perf_output_end(&handle);
		}
		KUNIT_ASSERT_EQ(test, ret, 0);

		for (i = 8; i < 136; i++)
			t->record[i] = t->mirror[(first + i) % PAGE_SIZE];
		rb_test_mirror(t, t->record, 144);
		rb_test_compare(test, t);
	}
}

static void test_full_honours_tail(struct kunit *test)
{
	const unsigned long starts[] = { 0, 64, MINUS(64), PAGE_SIZE - 64 };
	struct rb_test *t;
	unsigned int i, s;
	int backward;

	for (s = 0; s < 2 * ARRAY_SIZE(starts); s++) {
		backward = s & 1;
		t = rb_test_attach(test, 1, 0, backward, true, starts[s / 2]);
		for (i = 0; i < PAGE_SIZE / 64 - 1; i++) {
			KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, i, 64), 0);
			rb_test_mirror(t, t->record, 64);
		}

		/* 64 bytes are free, one of them for good. */
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, i, 64), -ENOSPC);
		rb_test_compare(test, t);

		/* The reader has read one record: that and the LOST fit now. */
		t->rb->user_page->data_tail += backward ? -64 : 64;
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, i, 64), 0);
		KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head,
				(u64)(t->head + (backward ? -88 : 88)));

		/* And no more. */
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, i, 40), -ENOSPC);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, i, 16), -ENOSPC);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 2);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 3);
	}
}

/*
 * Only the outermost of nested writers publishes the head.
 */
static void test_nested_by_hand(struct kunit *test)
{
	struct perf_output_handle outer, inner, innermost;
	struct perf_sample_data data;
	struct rb_test *t;
	u64 heads[4];
	int i, ret;

	for (i = 0; i < 4; i++) {
		t = rb_test_attach(test, 1, 0, i & 1, false, 0);
		if (i & 2)
			rb_share(t->rb);
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 0, 128), 0);
		rb_test_mirror(t, t->record, 128);

		perf_sample_data_init(&data, 0, 0);
		memset(heads, 0, sizeof(heads));
		ret = perf_output_begin(&outer, &data, &t->event, 64);
		if (!ret) {
			rb_test_fill(t->record, 1, 64);
			perf_output_copy(&outer, t->record, 40);

			ret = perf_output_begin(&inner, &data, &t->event, 200);
			if (!ret) {
				rb_test_fill(t->record, 2, 200);
				perf_output_copy(&inner, t->record, 100);

				ret = perf_output_begin(&innermost, &data, &t->event, 24);
				if (!ret) {
					rb_test_fill(t->nested, 3, 24);
					perf_output_copy(&innermost, t->nested, 24);
					heads[0] = t->rb->user_page->data_head;
					perf_output_end(&innermost);
				}
				heads[1] = t->rb->user_page->data_head;

				perf_output_copy(&inner, t->record + 100, 100);
				perf_output_end(&inner);
			}
			heads[2] = t->rb->user_page->data_head;

			rb_test_fill(t->record, 1, 64);
			perf_output_copy(&outer, t->record + 40, 24);
			perf_output_end(&outer);
		}
		heads[3] = t->rb->user_page->data_head;
		KUNIT_ASSERT_EQ(test, ret, 0);

		KUNIT_EXPECT_EQ(test, heads[0], (u64)t->head);
		KUNIT_EXPECT_EQ(test, heads[1], (u64)t->head);
		KUNIT_EXPECT_EQ(test, heads[2], (u64)t->head);

		rb_test_fill(t->record, 1, 64);
		rb_test_mirror(t, t->record, 64);
		rb_test_fill(t->record, 2, 200);
		rb_test_mirror(t, t->record, 200);
		rb_test_fill(t->record, 3, 24);
		rb_test_mirror(t, t->record, 24);
		KUNIT_EXPECT_EQ(test, heads[3], (u64)t->head);
		rb_test_compare(test, t);
	}
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/* The nested writer of a breakpoint. */
void rb_test_fire_write(struct rb_test *t)
{
	t->nested_ret = rb_test_write(t, t->nested, 2, t->nested_size);
}

static void rb_test_break(struct perf_event *bp, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	struct rb_test *t = bp->overflow_handler_context;

	if (!kunit_breakpoint_counts(bp, &t->word) || t->hits++ != t->fire_at)
		return;

	t->fired = true;
	t->fire(t);
}

/* A breakpoint on a word that the writer uses, to be released before all else. */
struct perf_event *rb_test_watch(struct kunit *test, struct rb_test *t, void *addr,
				 unsigned int size, bool on_read)
{
	t->nested_size = 120;
	t->hits = 0;
	t->word = kunit_breakpoint_word(addr, size);
	t->fired = false;
	t->nested_ret = -1;

	return kunit_breakpoint(test, addr, size, on_read, rb_test_break, t);
}

/*
 * Write a record with a breakpoint on a word. The nested writer must have come,
 * and have written its record.
 */
int rb_test_write_watched(struct kunit *test, struct rb_test *t, void *addr,
			  unsigned int size, bool on_read)
{
	struct perf_event *bp = rb_test_watch(test, t, addr, size, on_read);
	int ret = rb_test_write(t, t->record, 1, 64);

	perf_event_release_kernel(bp);

	KUNIT_ASSERT_TRUE(test, t->fired);
	KUNIT_ASSERT_EQ(test, t->nested_ret, 0);

	return ret;
}

/*
 * A writer that comes in between two instructions of another one: the
 * breakpoint is on a word of the buffer, hit after the access to it.
 */
struct rb_break_param {
	const char	*name;
	size_t		offset;		/* of the word, in the buffer */
	unsigned int	size;		/* of the word */
	bool		user_page;	/* data_head instead */
	bool		on_read;
	unsigned int	fire_at;	/* which hit */
	bool		nested_first;	/* it gets its reservation first */
	bool		shared;		/* the buffer, so that it has an owner */
};

static const struct rb_break_param rb_break_params[] = {
	/* name, word and size, of the user page, on read, at hit, nested first, shared */
	{ "after nest was raised", offsetof(struct perf_buffer, nest), 4,
	  false, false, 0, true, false },
	{ "after the head was read", offsetof(struct perf_buffer, head),
	  sizeof(long), false, true, 0, true, false },
	{ "after the head was moved", offsetof(struct perf_buffer, head),
	  sizeof(long), false, false, 0, false, false },
	{ "after the head was published", 0, sizeof(long), true, false, 0, false, false },
	{ "after nest was lowered", offsetof(struct perf_buffer, nest), 4,
	  false, false, 1, false, false },
	{ "shared, after the buffer was taken", offsetof(struct perf_buffer, owner), 4,
	  false, false, 0, true, true },
	{ "shared, after the taker was noted", offsetof(struct perf_buffer, taker),
	  sizeof(void *), false, false, 0, true, true },
	{ "shared, after nest was marked", offsetof(struct perf_buffer, nest), 4,
	  false, false, 0, true, true },
	{ "shared, after nest was raised", offsetof(struct perf_buffer, nest), 4,
	  false, false, 1, true, true },
	{ "shared, after the head was moved", offsetof(struct perf_buffer, head),
	  sizeof(long), false, false, 0, false, true },
	{ "shared, after the taker was cleared", offsetof(struct perf_buffer, taker),
	  sizeof(void *), false, false, 1, false, true },
	{ "shared, after nest was unmarked", offsetof(struct perf_buffer, nest), 4,
	  false, false, 2, false, true },
	{ "shared, after the head was published", 0, sizeof(long), true, false, 0,
	  false, true },
	{ "shared, after nest was lowered", offsetof(struct perf_buffer, nest), 4,
	  false, false, 3, false, true },
	{ "shared, after the buffer was given back", offsetof(struct perf_buffer, owner), 4,
	  false, false, 1, false, true },
};

RB_PARAM_DESC(rb_break_param)
KUNIT_ARRAY_PARAM(rb_break, rb_break_params, rb_break_param_desc);

static void test_nested_by_breakpoint(struct kunit *test)
{
	const struct rb_break_param *p = test->param_value;
	struct rb_test *t;
	int i, ret;

	kunit_needs_breakpoint(test);

	for (i = 0; i < 4; i++) {
		bool backward = i & 1, writable = i & 2;

		t = rb_test_attach(test, 1, 0, backward, writable, 0);
		if (p->shared)
			rb_share(t->rb);
		t->fire_at = p->fire_at;
		ret = rb_test_write_watched(test, t, p->user_page ?
					    (void *)&t->rb->user_page->data_head :
					    (void *)t->rb + p->offset,
					    p->size, p->on_read);

		KUNIT_EXPECT_EQ(test, ret, 0);

		if (p->nested_first)
			rb_test_mirror(t, t->nested, 120);
		rb_test_mirror(t, t->record, 64);
		if (!p->nested_first)
			rb_test_mirror(t, t->nested, 120);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);

		/* Nobody is left behind in the count of nested writers. */
		KUNIT_EXPECT_EQ(test, t->rb->nest, 0);
		KUNIT_EXPECT_EQ(test, t->rb->owner, -1);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 3, 64), 0);
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);
	}
}

/*
 * A nested writer that comes as soon as it is one leaves its wakeup to the
 * outer one, whose own record crosses nothing.
 */
static void test_nested_wakeup(struct kunit *test)
{
	struct rb_test *t;
	int i, ret;

	kunit_needs_breakpoint(test);

	/* Each direction; a shared buffer has nest marked before it is raised. */
	for (i = 0; i < 6; i++) {
		t = rb_test_attach(test, 1, 100, i & 1, false, 0);
		if (i > 1)
			rb_share(t->rb);
		t->fire_at = i > 3;
		ret = rb_test_write_watched(test, t, &t->rb->nest, 4, false);
		irq_work_sync(&t->event.pending_irq);

		KUNIT_EXPECT_EQ(test, ret, 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->wakeups), 1);
	}
}
#endif /* CONFIG_HAVE_HW_BREAKPOINT */

/*
 * A wakeup for each time that the watermark was crossed, though no more than
 * one for each record.
 */
struct rb_watermark_param {
	const char	*name;
	bool		backward;
	bool		writable;
	unsigned long	start;
	long		watermark;
	unsigned int	size;
	unsigned int	count;
	int		wakeups;
};

static const struct rb_watermark_param rb_watermark_params[] = {
	/* name, backward, writable, start, watermark, size, records, wakeups */
	{ "forward, every 1000 bytes", false, false, 0, 1000, 104, 100, 10 },
	{ "forward, writable", false, true, 0, 1000, 104, 39, 4 },
	{ "forward, across the word", false, false, MINUS(5200), 1000, 104, 100, 10 },
	{ "forward, as many bytes as that", false, false, 0, 1040, 104, 10, 0 },
	{ "forward, one record more", false, false, 0, 1040, 104, 11, 1 },
	{ "forward, every record beyond it", false, false, 0, 64, 200, 10, 10 },
	{ "forward, every byte", false, false, 0, 1, 16, 50, 50 },
	{ "backward, every 1000 bytes", true, false, 0, 1000, 104, 100, 10 },
	{ "backward, writable", true, true, 0, 1000, 104, 39, 4 },
	{ "backward, across the word", true, false, 5200, 1000, 104, 100, 10 },
	{ "backward, as many bytes as that", true, false, 0, 1040, 104, 10, 0 },
	{ "backward, one record more", true, false, 0, 1040, 104, 11, 1 },
	{ "backward, every record beyond it", true, false, 0, 64, 200, 10, 10 },
	{ "backward, every byte", true, false, 0, 1, 16, 50, 50 },
};

RB_PARAM_DESC(rb_watermark_param)
KUNIT_ARRAY_PARAM(rb_watermark, rb_watermark_params, rb_watermark_param_desc);

static void test_watermark(struct kunit *test)
{
	const struct rb_watermark_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 1, p->watermark, p->backward,
					   p->writable, p->start);
	unsigned int i;

	KUNIT_ASSERT_EQ(test, t->rb->watermark, p->watermark);
	for (i = 0; i < p->count; i++) {
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, i, p->size), 0);
		/* Two wakeups that are pending at a time would count as one. */
		irq_work_sync(&t->event.pending_irq);
	}

	KUNIT_EXPECT_EQ(test, atomic_read(&t->wakeups), p->wakeups);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->rb->poll),
			p->wakeups ? (__force int)(EPOLLIN | EPOLLRDNORM) : 0);
	KUNIT_EXPECT_EQ(test, t->event.pending_wakeup, p->wakeups ? 1 : 0);
}

static void test_watermark_default(struct kunit *test)
{
	struct rb_test *t;

	t = rb_test_attach(test, 4, 0, true, false, 0);
	KUNIT_EXPECT_EQ(test, t->rb->watermark, 2 * PAGE_SIZE);
	t = rb_test_attach(test, 4, 64 * PAGE_SIZE, true, false, 0);
	KUNIT_EXPECT_EQ(test, t->rb->watermark, 4 * PAGE_SIZE);
}

/*
 * What is in a paused buffer stays, and can be read when it runs on.
 */
static void test_pause_resume(struct kunit *test)
{
	unsigned int sizes[8] = { 64, 64, 64, 64, 64, 64, 64, 64 };
	struct rb_test *t;
	unsigned int i;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		for (i = 0; i < 8; i++) {
			KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, i, 64), 0);
			rb_test_mirror(t, t->record, 64);
		}

		/* Pausing is no count of pauses. */
		rb_toggle_paused(t->rb, true);
		rb_toggle_paused(t->rb, true);
		for (i = 0; i < 100; i++)
			KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 99, 64),
					-ENOSPC);
		rb_test_compare(test, t);
		if (backward)
			rb_test_walk(test, t, sizes, 8);

		rb_toggle_paused(t->rb, false);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 8, 64), 0);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_EXPECT_EQ(test, (u64)(t->head + (backward ? -88 : 88)),
				t->rb->user_page->data_head);
	}
}

/*
 * The size of a record is 16 bits wide, and a multiple of 8. A sample with more
 * bytes leaves the buffer alone, and is counted.
 */
struct rb_sample_size_param {
	const char	*name;
	unsigned int	raw;		/* bytes of raw data, behind a u32 */
	unsigned int	size;		/* of the record, 0 if it's refused */
};

static const struct rb_sample_size_param rb_sample_size_params[] = {
	{ "small", 20, 32 },
	{ "one step below the largest", 65508, 65520 },
	{ "the largest", 65516, 65528 },
	{ "one byte more", 65517, 0 },
	{ "17 bits, 0 in the lower 16", 65524, 0 },
	{ "17 bits", 70000, 0 },
	{ "18 bits, 0 in the lower 16", 131060, 0 },
	{ "18 bits", 131072, 0 },
};

RB_PARAM_DESC(rb_sample_size_param)
KUNIT_ARRAY_PARAM(rb_sample_size, rb_sample_size_params, rb_sample_size_param_desc);

static void test_sample_size(struct kunit *test)
{
	const struct rb_sample_size_param *p = test->param_value;
	struct perf_raw_record raw = { };
	struct perf_sample_data data;
	struct pt_regs regs = { };
	struct rb_test *t;
	u8 *buf, *record;
	int backward;

	record = kunit_kzalloc(test, RB_TEST_MAX_RECORD, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, record);
	buf = kunit_kzalloc(test, p->raw, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	rb_test_fill(buf, 77, round_down(p->raw, 4));
	perf_fetch_caller_regs(&regs);

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 32, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_RAW;

		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 1, 4096), 0);
		rb_test_mirror(t, t->record, 4096);

		raw.frag.size = p->raw;
		raw.frag.data = buf;
		perf_sample_data_init(&data, 0, 0);
		perf_sample_save_raw_data(&data, &t->event, &raw);
		KUNIT_EXPECT_EQ(test, perf_event_output(&t->event, &data, &regs),
				p->size ? 0 : -EMSGSIZE);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), !p->size);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples),
				!p->size);

		if (p->size) {
			struct perf_event_header *header = (void *)record;

			header->type = PERF_RECORD_SAMPLE;
			header->misc = PERF_RECORD_MISC_KERNEL;
			header->size = p->size;
			*(u32 *)(record + 8) = p->size - 12;
			memcpy(record + 12, buf, p->raw);
			rb_test_mirror(t, record, p->size);
		}
		rb_test_compare(test, t);
	}
}

/*
 * A dump of the user's stack takes what the rest of the sample leaves, what follows
 * the dump included: if more of the stack is asked for than fits, the record is as
 * large as one can be.
 */
struct rb_sample_stack_param {
	const char	*name;
	u64		type;		/* beside PERF_SAMPLE_STACK_USER */
	unsigned int	rest;		/* bytes that it has in the sample */
};

static const struct rb_sample_stack_param rb_sample_stack_params[] = {
	{ "alone", 0, 0 },
	{ "and registers", PERF_SAMPLE_REGS_INTR, 16 },
	{ "and AUX", PERF_SAMPLE_AUX, 8 },
	{ "and registers and AUX", PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_AUX, 24 },
	{ "and a weight and AUX", PERF_SAMPLE_WEIGHT | PERF_SAMPLE_AUX, 16 },
};

RB_PARAM_DESC(rb_sample_stack_param)
KUNIT_ARRAY_PARAM(rb_sample_stack, rb_sample_stack_params, rb_sample_stack_param_desc);

static void test_sample_stack(struct kunit *test)
{
	const struct rb_sample_stack_param *p = test->param_value;
	/* The header, the size of the dump, and how much of it was there. */
	const unsigned int dump = RB_TEST_MAX_RECORD - 8 - 16 - p->rest;
	struct perf_sample_data data;
	struct pt_regs regs = { };
	struct mm_struct *mm;
	struct rb_test *t;
	u64 *rest;
	int backward;

#ifdef CONFIG_X86
	regs.cs = __USER_CS;
	regs.sp = PAGE_SIZE;
#elif defined(CONFIG_ARM64)
	regs.pstate = PSR_MODE_EL0t;
	regs.sp = PAGE_SIZE;
#else
	kunit_skip(test, "registers of user space are made for x86 and arm64 only");
#endif
	mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, mm);

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 32, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_STACK_USER | p->type;
		t->event.attr.sample_stack_user = RB_TEST_MAX_RECORD;
		t->event.attr.sample_regs_intr = 1;
		t->event.header_size = p->type & PERF_SAMPLE_WEIGHT ? 8 : 0;
		t->event.fixed_size = t->event.header_size;

		perf_sample_data_init(&data, 0, 0);
		/* Nothing is mapped there: none of the stack is to be had. */
		kthread_use_mm(mm);
		KUNIT_EXPECT_EQ(test, perf_event_output(&t->event, &data, &regs), 0);
		kthread_unuse_mm(mm);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_ASSERT_EQ(test, t->rb->user_page->data_head,
				(u64)(backward ? MINUS(RB_TEST_MAX_RECORD) :
						 RB_TEST_MAX_RECORD));

		rb_test_read(t, backward ? MINUS(RB_TEST_MAX_RECORD) : 0, t->record,
			     RB_TEST_MAX_RECORD);
		KUNIT_EXPECT_EQ(test, ((u64 *)t->record)[1], dump);
		rest = (u64 *)(t->record + RB_TEST_MAX_RECORD - p->rest);
		/* None of the dump was there. */
		KUNIT_EXPECT_EQ(test, rest[-1], 0);
		if (p->type & PERF_SAMPLE_WEIGHT)
			KUNIT_EXPECT_EQ(test, *rest++, 0);
		if (p->type & PERF_SAMPLE_REGS_INTR) {
			KUNIT_EXPECT_NE(test, *rest++, PERF_SAMPLE_REGS_ABI_NONE);
			KUNIT_EXPECT_EQ(test, *rest++, 0);
		}
		if (p->type & PERF_SAMPLE_AUX)
			KUNIT_EXPECT_EQ(test, *rest++, 0);
		KUNIT_EXPECT_PTR_EQ(test, (u8 *)rest, t->record + RB_TEST_MAX_RECORD);
	}
	mmput(mm);
}

/*
 * The values of a group: as many as are there, but no more than were when the sample's
 * size was found out. Then an event came to the group, or left it.
 */
struct rb_group_param {
	const char	*name;
	bool		backward;
	unsigned int	before;		/* siblings, when the size was found out */
	unsigned int	siblings;	/* and when the sample is written */
};

#define RB_TEST_SIBLINGS	2

static const struct rb_group_param rb_group_params[] = {
	/* name, backward, before, siblings */
	{ "forward", false, 2, 2 },
	{ "forward, the first came", false, 0, 1 },
	{ "forward, another came", false, 1, 2 },
	{ "forward, two came", false, 0, 2 },
	{ "forward, one left", false, 2, 1 },
	{ "backward", true, 2, 2 },
	{ "backward, the first came", true, 0, 1 },
	{ "backward, another came", true, 1, 2 },
	{ "backward, two came", true, 0, 2 },
	{ "backward, one left", true, 2, 1 },
};

RB_PARAM_DESC(rb_group_param)
KUNIT_ARRAY_PARAM(rb_group, rb_group_params, rb_group_param_desc);

static void test_group_values(struct kunit *test)
{
	const struct rb_group_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 1, 0, p->backward, false, 0);
	const unsigned int values = 1 + min(p->before, p->siblings);
	struct perf_event *sibling;
	struct perf_event_header *header = (void *)t->record;
	u64 *to = (u64 *)(t->record + sizeof(*header));
	struct perf_sample_data data;
	struct pt_regs regs = { };
	unsigned int i, size;

	t->event.group_leader = &t->event;
	INIT_LIST_HEAD(&t->event.sibling_list);
	for (i = 0; i < p->siblings; i++) {
		sibling = kunit_kzalloc(test, sizeof(*sibling), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, sibling);
		sibling->group_leader = &t->event;
		sibling->id = 100 + i;
		local64_set(&sibling->count, 200 + i);
		list_add_tail(&sibling->sibling_list, &t->event.sibling_list);
	}
	t->event.nr_siblings = p->siblings;
	local64_set(&t->event.count, 199);
	t->event.attr.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_WEIGHT;
	t->event.attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	t->event.fixed_size = sizeof(u64);
	t->event.read_size = sizeof(u64) + (1 + p->before) * 2 * sizeof(u64);
	t->event.header_size = t->event.fixed_size + t->event.read_size;

	/* A neighbour, and what is there where the sample doesn't write. */
	KUNIT_ASSERT_EQ(test, rb_test_write(t, t->nested, 1, 4096), 0);
	rb_test_mirror(t, t->nested, 4096);
	size = sizeof(*header) + t->event.header_size;
	rb_test_read(t, p->backward ? t->head - size : t->head, t->record, size);

	header->type = PERF_RECORD_SAMPLE;
	header->misc = PERF_RECORD_MISC_KERNEL;
	header->size = size;
	*to++ = values;
	*to++ = 199;
	*to++ = RB_TEST_ID;
	for (i = 0; i < values - 1; i++) {
		*to++ = 200 + i;
		*to++ = 100 + i;
	}
	/* The weight, behind the last of the values. */
	*to++ = 0;

	perf_sample_data_init(&data, 0, 0);
	perf_fetch_caller_regs(&regs);
	KUNIT_EXPECT_EQ(test, perf_event_output(&t->event, &data, &regs), 0);
	rb_test_mirror(t, t->record, size);
	rb_test_compare(test, t);
}

/*
 * A writer between begin and end on another CPU, until it is released. No longer
 * than this, see RB_TEST_TRIES.
 */
#define RB_TEST_HOLD_NS		(3ULL * NSEC_PER_SEC)

static int rb_test_writer(void *arg)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	u64 limit = ktime_get_mono_fast_ns() + RB_TEST_HOLD_NS;
	struct rb_test *t = arg;

	rb_test_fill(t->record, 7, 64);
	perf_sample_data_init(&data, 0, 0);

	t->writer_ret = perf_output_begin(&handle, &data, &t->event, 64);
	if (!t->writer_ret) {
		perf_output_copy(&handle, t->record, 40);
		WRITE_ONCE(t->opened, true);
		while (!READ_ONCE(t->release)) {
			if (ktime_get_mono_fast_ns() > limit) {
				t->gave_up = true;
				break;
			}
			cpu_relax();
		}
		perf_output_copy(&handle, t->record + 40, 24);
		WRITE_ONCE(t->ended, true);
		perf_output_end(&handle);
	}

	complete(&t->writer_done);

	return 0;
}

/* No assertion from here to rb_test_release(): the writer holds a CPU. */
bool rb_test_hold(struct kunit *test, struct rb_test *t, unsigned int cpu)
{
	struct task_struct *writer;
	int i;

	t->opened = false;
	t->release = false;
	t->ended = false;
	t->gave_up = false;
	t->returned = false;
	init_completion(&t->writer_done);
	init_completion(&t->waiter_done);

	writer = kthread_create_on_cpu(rb_test_writer, t, cpu, "rb_writer/%u");
	KUNIT_ASSERT_FALSE(test, IS_ERR(writer));
	wake_up_process(writer);
	for (i = 0; i < 5000 && !READ_ONCE(t->opened); i++)
		usleep_range(500, 1000);

	return t->opened;
}

/* Returns whether the writer was there all the time. */
bool rb_test_release(struct rb_test *t)
{
	WRITE_ONCE(t->release, true);
	wait_for_completion(&t->writer_done);

	return !t->gave_up;
}

/* A CPU other than the one that the test stays on. */
unsigned int rb_test_other_cpu(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);

	return cpumask_next(0, cpu_online_mask);
}

/* A kernel event, counted on @cpu or wherever @task goes. */
struct perf_event *rb_test_event(u32 type, u64 config, bool inherit, int cpu,
				 struct task_struct *task)
{
	struct perf_event_attr attr = {
		.type		= type,
		.size		= sizeof(attr),
		.config		= config,
		.inherit	= inherit,
	};
	struct perf_event *event;

	event = perf_event_create_kernel_counter(&attr, cpu, task, NULL, NULL);

	return IS_ERR(event) ? NULL : event;
}

/* Have @event own @rb, as if it was mapped. */
void rb_test_own(struct perf_event *event, struct perf_buffer *rb)
{
	mutex_lock(&event->mmap_mutex);
	spin_lock_irq(&rb->event_lock);
	list_add_rcu(&event->rb_entry, &rb->event_list);
	spin_unlock_irq(&rb->event_lock);
	/* An atomic_t, or on newer kernels a refcount_t. */
	*(int *)&rb->mmap_count = 1;
	refcount_inc(&rb->refcount);
	rcu_assign_pointer(event->rb, rb);
	mutex_unlock(&event->mmap_mutex);
}

void rb_test_release_event(struct kunit *test, struct perf_event *event)
{
	if (!event)
		return;

	/* Its buffer is left by then. */
	KUNIT_EXPECT_EQ(test, perf_event_set_output(event, NULL), 0);
	perf_event_release_kernel(event);
}

/*
 * Only one CPU may write to an AUX area. The children of an inherited event of a
 * task run on any: a buffer has either, and events that have no use for AUX areas
 * don't matter.
 */
struct rb_aux_param {
	const char	*name;
	int		cpu;		/* of the events of a task, or -1 */
	bool		inherit;
	bool		aux;		/* the event's PMU knows of AUX areas */
	bool		excluded;	/* an AUX area and the event exclude each other */
};

static const struct rb_aux_param rb_aux_params[] = {
	/* name, cpu, inherit, aux, excluded */
	{ "of a task", -1, false, true, false },
	{ "of a task, inherited", -1, true, true, true },
	{ "of a task, inherited, without AUX", -1, true, false, false },
	{ "of a task on a CPU, inherited", 0, true, true, false },
};

RB_PARAM_DESC(rb_aux_param)
KUNIT_ARRAY_PARAM(rb_aux, rb_aux_params, rb_aux_param_desc);

static int rb_test_pmu_init(struct perf_event *event)
{
	return event->attr.type == event->pmu->type ? 0 : -ENOENT;
}

static int rb_test_pmu_add(struct perf_event *event, int flags)
{
	return 0;
}

static void rb_test_pmu_del(struct perf_event *event, int flags)
{
}

static void rb_test_pmu_read(struct perf_event *event)
{
}

static void *rb_test_setup_aux(struct perf_event *event, void **pages, int nr_pages,
			       bool overwrite)
{
	return pages;
}

static void rb_test_free_aux(void *aux)
{
}

static const struct pmu rb_test_pmu = {
	.event_init	= rb_test_pmu_init,
	.add		= rb_test_pmu_add,
	.del		= rb_test_pmu_del,
	.start		= rb_test_pmu_del,
	.stop		= rb_test_pmu_del,
	.read		= rb_test_pmu_read,
	.setup_aux	= rb_test_setup_aux,
	.free_aux	= rb_test_free_aux,
};

/*
 * A PMU of our own. With perf_invalid_context as @task_ctx_nr its events are of a CPU
 * and share their context with no other PMU's, on old kernels, too.
 */
struct pmu *rb_test_register_pmu(struct kunit *test, int task_ctx_nr)
{
	struct pmu *pmu;

	/* What is registered once more must not know of the time before. */
	pmu = kunit_kzalloc(test, sizeof(*pmu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pmu);
	*pmu = rb_test_pmu;
	pmu->task_ctx_nr = task_ctx_nr;
	KUNIT_ASSERT_EQ(test, perf_pmu_register(pmu, "rb_test", -1), 0);

	return pmu;
}

static int rb_test_alloc_aux(struct perf_buffer *rb, struct perf_event *event)
{
	int ret;

	mutex_lock(&rb->aux_mutex);
	ret = rb_alloc_aux(rb, event, 2, 1, 0, 0);
	mutex_unlock(&rb->aux_mutex);

	return ret;
}

static void test_shared_aux(struct kunit *test)
{
	const struct rb_aux_param *p = test->param_value;
	const int excluded = p->excluded ? -EINVAL : 0;
	struct perf_event *owner, *event;
	struct perf_buffer *rb;
	struct pmu *pmu;

	rb = rb_alloc(1, 0, p->cpu, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	pmu = rb_test_register_pmu(test, perf_sw_context);

	owner = rb_test_event(pmu->type, 0, false, p->cpu, current);
	event = p->aux ?
		rb_test_event(pmu->type, 0, p->inherit, p->cpu, current) :
		rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, p->inherit,
			      p->cpu, current);
	if (owner && event) {
		rb_test_own(owner, rb);

		/* The AUX area comes first. */
		KUNIT_EXPECT_EQ(test, rb_test_alloc_aux(rb, owner), 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(event, owner), excluded);
		KUNIT_EXPECT_EQ(test, rb_has_aux(rb), true);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(event, NULL), 0);
		rb_free_aux(rb);
		KUNIT_EXPECT_EQ(test, rb_has_aux(rb), false);

		/* The event does. */
		KUNIT_EXPECT_EQ(test, perf_event_set_output(event, owner), 0);
		KUNIT_EXPECT_EQ(test, rb_test_alloc_aux(rb, owner), excluded);
		KUNIT_EXPECT_EQ(test, rb_has_aux(rb), !excluded);
		if (rb_has_aux(rb))
			rb_free_aux(rb);

		/* It has gone. */
		KUNIT_EXPECT_EQ(test, perf_event_set_output(event, NULL), 0);
		KUNIT_EXPECT_EQ(test, rb_test_alloc_aux(rb, owner), 0);
		if (rb_has_aux(rb))
			rb_free_aux(rb);
	}
	KUNIT_EXPECT_NOT_NULL(test, owner);
	KUNIT_EXPECT_NOT_NULL(test, event);
	rb_test_release_event(test, event);
	rb_test_release_event(test, owner);
	perf_pmu_unregister(pmu);

	ring_buffer_put(rb);
}

static int rb_test_sharer(void *arg)
{
	struct rb_test *t = arg;

	rb_share(t->rb);
	t->returned_after_end = READ_ONCE(t->ended);
	WRITE_ONCE(t->returned, true);
	complete(&t->waiter_done);

	return 0;
}

static void rb_test_write_here(void *info)
{
	struct rb_test *t = info;

	t->nested_ret = rb_test_write(t, t->nested, 8, 120);
}

/*
 * A writer that came before the buffer was shared doesn't own it: rb_share() waits
 * for it, and what nests in it goes through.
 */
static void test_share_waits_for_writer(struct kunit *test)
{
	unsigned int cpu = rb_test_other_cpu(test);
	struct task_struct *sharer;
	bool held, early, shared;
	int i, tries = 0;
	struct rb_test *t;

	for (i = 0; i < 2 && tries < RB_TEST_TRIES; i += held, tries++) {
		t = rb_test_attach(test, 1, 0, i, false, 0);
		t->nested_ret = -1;
		sharer = kthread_create_on_cpu(rb_test_sharer, t, 0, "rb_sharer/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(sharer));
		held = rb_test_hold(test, t, cpu);

		wake_up_process(sharer);
		msleep(50);
		early = READ_ONCE(t->returned);
		shared = READ_ONCE(t->rb->shared);
		smp_call_function_single(cpu, rb_test_write_here, t, 1);

		held = rb_test_release(t) && held;
		wait_for_completion(&t->waiter_done);
		if (!held)
			continue;

		KUNIT_EXPECT_TRUE(test, shared);
		KUNIT_EXPECT_FALSE(test, early);
		KUNIT_EXPECT_TRUE(test, t->returned_after_end);
		KUNIT_EXPECT_EQ(test, t->writer_ret, 0);
		KUNIT_EXPECT_EQ(test, t->nested_ret, 0);
		KUNIT_EXPECT_EQ(test, t->rb->owner, -1);
		KUNIT_EXPECT_EQ(test, t->rb->nest, 0);

		rb_test_mirror(t, t->record, 64);
		rb_test_mirror(t, t->nested, 120);
		rb_test_compare(test, t);

		/* It is there for good. */
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 9, 64), 0);
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);
	}
	KUNIT_EXPECT_EQ(test, i, 2);
}

static struct kunit_case rb_test_cases[] = {
	KUNIT_CASE(test_data_size),
	KUNIT_CASE(test_born_running),
	KUNIT_CASE(test_born_paused),
	KUNIT_CASE(test_no_buffer),
	KUNIT_CASE_PARAM(test_laps, rb_laps_gen_params),
	KUNIT_CASE(test_begin_asks_the_event),
	KUNIT_CASE(test_skip_leaves_bytes),
	KUNIT_CASE(test_full_honours_tail),
	KUNIT_CASE(test_nested_by_hand),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE_PARAM(test_nested_by_breakpoint, rb_break_gen_params),
	KUNIT_CASE(test_nested_wakeup),
#endif
	KUNIT_CASE_PARAM(test_watermark, rb_watermark_gen_params),
	KUNIT_CASE(test_watermark_default),
	KUNIT_CASE(test_pause_resume),
	KUNIT_CASE_PARAM(test_sample_size, rb_sample_size_gen_params),
	KUNIT_CASE_PARAM(test_sample_stack, rb_sample_stack_gen_params),
	KUNIT_CASE_PARAM(test_group_values, rb_group_gen_params),
	KUNIT_CASE_PARAM(test_shared_aux, rb_aux_gen_params),
	KUNIT_CASE(test_share_waits_for_writer),
	{}
};

static struct kunit_suite rb_test_suite = {
	.name = "perf_ring_buffer",
	.init = rb_test_init,
	.exit = rb_test_exit,
	.test_cases = rb_test_cases,
};

kunit_test_suite(rb_test_suite);
