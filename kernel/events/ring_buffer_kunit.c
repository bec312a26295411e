// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the perf ring buffer.
 *
 * Two layers. The arithmetic of the head is compared with constants and with
 * the model in ring_buffer_head_model.h, at the boundaries and exhaustively for
 * a tiny ring. The output path is driven for real: a buffer from rb_alloc(), an
 * event without a PMU that has it attached, and the functions that every writer
 * calls. What they leave in the data pages is compared with a mirror, an array
 * of bytes that is written one byte at a time.
 *
 * Nested writers are put exactly where they hurt: by hand between begin and
 * end, and by a hardware breakpoint on one of the buffer's own words, whose
 * handler runs between the instruction that touches the word and the next one,
 * like an NMI. Pauses meet writers that are held between begin and end on another
 * CPU.
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
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sizes.h>

#include "breakpoint_kunit.h"
#include "internal.h"
#include "ring_buffer_head.h"
#include "ring_buffer_head_model.h"

/* A record type of no kernel, so that nothing takes these for its own. */
#define RB_TEST_RECORD		4242
#define RB_TEST_ID		0x1122334455667788ULL
#define RB_TEST_MAX_RECORD	0xfff8U

/* Data pages that rb_test_guard() can take. */
#define RB_TEST_GUARDED		2

/* Positions are modulo the word, so are the names for those below 0. */
#define MINUS(x)		(0UL - (x))

struct rb_test {
	struct perf_event	event;
	struct perf_buffer	*rb;
	unsigned long		data_size;

	/* What the buffer should look like, kept one byte at a time. */
	u8			*mirror;
	unsigned int		at;
	unsigned long		head;

	/* The data pages that it was born with, while others replace them. */
	void			*pages[RB_TEST_GUARDED];
	u8			*guarded;

	u8			*record;
	u8			*nested;
	atomic_t		wakeups;

	/* The nested writer of a breakpoint. */
	unsigned int		nested_size;
	unsigned int		fire_at;
	unsigned int		hits;
	bool			fired;
	bool			fire_pause;
	bool			fire_redirect;
	struct perf_buffer	*redirect_to;
	int			nested_ret;

	/* A writer that is held on another CPU, and a pause that meets it. */
	bool			irqs_off;
	bool			offline;
	bool			opened;
	bool			release;
	bool			ended;
	bool			gave_up;
	bool			share;
	int			writer_ret;
	struct completion	writer_done;
	bool			paused;
	bool			paused_after_end;
	int			pause_ret;
	struct completion	pause_done;
};

struct rb_test_record {
	struct perf_event_header	header;
	u64				seq;
	u8				payload[];
};

struct rb_test_lost {
	struct perf_event_header	header;
	u64				id;
	u64				lost;
	u64				sample_id;
};

static void rb_test_wakeup(struct irq_work *work)
{
	struct rb_test *t = container_of(work, struct rb_test, event.pending_irq);

	atomic_inc(&t->wakeups);
}

static int rb_test_init(struct kunit *test)
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

	test->priv = t;

	return 0;
}

static void rb_test_detach(struct rb_test *t)
{
	struct perf_buffer *rb = t->rb;

	irq_work_sync(&t->event.pending_irq);
	rcu_assign_pointer(t->event.rb, NULL);
	synchronize_rcu();

	if (t->guarded)
		memcpy(rb->data_pages, t->pages, rb->nr_pages * sizeof(void *));
	t->guarded = NULL;

	t->rb = NULL;
	if (rb)
		ring_buffer_put(rb);
}

static void rb_test_exit(struct kunit *test)
{
	if (test->priv)
		rb_test_detach(test->priv);
}

/* Have the next record start, forward, or end, backward, at @start. */
static void rb_test_start(struct rb_test *t, unsigned long start)
{
	struct perf_buffer *rb = t->rb;

	t->head = start;
	if (rb->nr_pages)
		t->at = start % t->data_size;

	local_set(&rb->head, start);
	rb->published = start;
	local_set(&rb->wakeup, t->event.attr.write_backward ? 0UL - start : start);
	rb->user_page->data_head = start;
	rb->user_page->data_tail = start;
}

/*
 * Attach a new buffer to the event, its head at @start: a start shortly before
 * the end of the word has the head wrap in the middle of the test.
 */
static struct rb_test *rb_test_attach(struct kunit *test, int nr_pages,
				      u32 watermark, bool backward,
				      bool writable, unsigned long start)
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

static void rb_test_fill(u8 *buf, u64 seq, unsigned int size)
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
static void rb_test_copy(struct perf_output_handle *handle, const u8 *buf,
			 unsigned int size)
{
	unsigned int done = 0, len = 1;

	while (done < size) {
		len = min(len, size - done);
		perf_output_copy(handle, buf + done, len);
		done += len;
		len = len % 61 + 3;
	}
}

/*
 * Write a record for real: into the event's buffer or, with @rb, as a writer that
 * found that one, wherever the event's output goes by now. Contains no expectation,
 * as it may nest.
 */
static int rb_test_write_to(struct rb_test *t, struct perf_buffer *rb, u8 *buf,
			    u64 seq, unsigned int size)
{
	struct perf_output_handle handle;
	struct perf_event_header header;
	struct perf_sample_data data;
	int ret;

	rb_test_fill(buf, seq, size);
	perf_sample_data_init(&data, 0, 0);
	/* For sample_id_all, as everybody does who calls begin. */
	perf_event_header__init(&header, &data, RB_TEST_RECORD, 0, size, &t->event);
	if (!rb) {
		ret = perf_output_begin(&handle, &data, &t->event, size);
		if (ret)
			return ret;

		rb_test_copy(&handle, buf, size);
		perf_output_end(&handle);

		return 0;
	}

	rcu_read_lock();
	if (t->event.attr.write_backward)
		ret = perf_output_reserve_backward(&handle, &data, &t->event, rb, size);
	else
		ret = perf_output_reserve_forward(&handle, &data, &t->event, rb, size);
	if (!ret) {
		rb_test_copy(&handle, buf, size);
		perf_output_put_handle(&handle);
	}
	rcu_read_unlock();

	return ret;
}

static int rb_test_write(struct rb_test *t, u8 *buf, u64 seq, unsigned int size)
{
	return rb_test_write_to(t, NULL, buf, seq, size);
}

/* As if @nr records had been lost. */
static void rb_test_lose(struct perf_buffer *rb, long nr)
{
	local_set(&rb->lost, nr);
	atomic_or(RB_RARE_LOST, &rb->rare);
}

/* Write the same bytes into the mirror. */
static void rb_test_mirror(struct rb_test *t, const void *buf, unsigned int size)
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
static u8 *rb_test_byte(struct rb_test *t, unsigned long at)
{
	unsigned long page_size = PAGE_SIZE << page_order(t->rb);

	return (u8 *)t->rb->data_pages[at / page_size] + at % page_size;
}

/* Copy from the data pages, starting where the position @pos is. */
static void rb_test_read(struct rb_test *t, unsigned long pos, void *buf,
			 unsigned int size)
{
	unsigned int at = pos % t->data_size, i;

	for (i = 0; i < size; i++) {
		((u8 *)buf)[i] = *rb_test_byte(t, at);
		at = rb_model_step(at, t->data_size, false);
	}
}

/* The whole of the data pages, the published and the reserved head. */
static void rb_test_compare(struct kunit *test, struct rb_test *t)
{
	unsigned long at;

	KUNIT_EXPECT_EQ(test, local_read(&t->rb->head), (long)t->head);
	KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head, (u64)t->head);
	KUNIT_EXPECT_EQ(test, t->rb->published, t->head);
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
 * Give the buffer data pages with a page's worth of nothing behind each: a copy
 * that doesn't stop at the end of its page does no harm there, and is seen.
 */
static void rb_test_guard(struct kunit *test, struct rb_test *t)
{
	size_t page_size = PAGE_SIZE << page_order(t->rb);
	int i;

	KUNIT_ASSERT_LE(test, t->rb->nr_pages, RB_TEST_GUARDED);
	t->guarded = kunit_kzalloc(test, 2 * t->rb->nr_pages * page_size,
				   GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->guarded);

	for (i = 0; i < t->rb->nr_pages; i++) {
		t->pages[i] = t->rb->data_pages[i];
		t->rb->data_pages[i] = t->guarded + 2 * i * page_size;
	}
}

static void rb_test_compare_guarded(struct kunit *test, struct rb_test *t)
{
	size_t page_size = PAGE_SIZE << page_order(t->rb);
	int i;

	rb_test_compare(test, t);
	for (i = 0; i < t->rb->nr_pages; i++) {
		u8 *guard = t->guarded + (2 * i + 1) * page_size;
		u8 *byte = memchr_inv(guard, 0, page_size);

		if (!byte)
			continue;
		KUNIT_FAIL(test, "byte %td behind page %d is %#x, head %#lx",
			   byte - guard, i, *byte, t->head);
	}

	/* One such place says enough. */
	KUNIT_ASSERT_EQ(test, READ_ONCE(test->status), KUNIT_SUCCESS);
}

#define RB_PARAM_DESC(type)						\
static void type##_desc(const struct type *param, char *desc)		\
{									\
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);		\
}

/*
 * The arithmetic: a reservation in a ring of four pages of 4096 bytes.
 */
struct rb_reserve_param {
	const char	*name;
	unsigned long	head;
	unsigned long	size;
	bool		backward;
	unsigned long	new_head;
	unsigned long	page;
	unsigned long	offset;
	unsigned long	bytes;
};

static const struct rb_reserve_param rb_reserve_params[] = {
	/* name, head, size, backward, new head, page, offset, bytes */
	{ "forward at 0", 0, 8, false, 8, 0, 0, 8 },
	{ "forward at 1", 1, 8, false, 9, 0, 1, 9 },
	{ "forward at 8", 8, 64, false, 72, 0, 8, 72 },
	{ "forward to the end of a page", 4088, 8, false, 4096, 0, 4088, 4096 },
	{ "forward across a page", 4088, 16, false, 4104, 0, 4088, 4104 },
	{ "forward at a page", 4096, 8, false, 4104, 1, 0, 4104 },
	{ "forward to the end", 16376, 8, false, 16384, 3, 4088, 16384 },
	{ "forward across the end", 16376, 24, false, 16400, 3, 4088, 16400 },
	{ "forward at the second lap", 16384, 8, false, 16392, 0, 0, 16392 },
	{ "forward behind the second lap", 16392, 8, false, 16400, 0, 8, 16400 },
	{ "forward the whole size", 0, 16384, false, 16384, 0, 0, 16384 },
	{ "forward to the end of the word", MINUS(8), 8, false, 0, 3, 4088, 0 },
	{ "forward across the word", MINUS(8), 24, false, 16, 3, 4088, 16 },
	{ "forward at all ones", ULONG_MAX, 8, false, 7, 3, 4095, 7 },
	{ "backward at 0", 0, 8, true, MINUS(8), 3, 4088, 8 },
	{ "backward at 0, 64 bytes", 0, 64, true, MINUS(64), 3, 4032, 64 },
	{ "backward at 1", 1, 8, true, MINUS(7), 3, 4089, 7 },
	{ "backward to 0", 8, 8, true, 0, 0, 0, 0 },
	{ "backward across 0", 8, 24, true, MINUS(16), 3, 4080, 16 },
	{ "backward from a page", MINUS(4096), 8, true, MINUS(4104), 2, 4088,
	  4104 },
	{ "backward to a page", MINUS(4088), 8, true, MINUS(4096), 3, 0, 4096 },
	{ "backward across a page", MINUS(4088), 16, true, MINUS(4104), 2, 4088,
	  4104 },
	{ "backward to the start", MINUS(16376), 8, true, MINUS(16384), 0, 0,
	  16384 },
	{ "backward across the start", MINUS(16376), 24, true, MINUS(16400), 3,
	  4080, 16400 },
	{ "backward at the second lap", MINUS(16384), 8, true, MINUS(16392), 3,
	  4088, 16392 },
	{ "backward the whole size", 0, 16384, true, MINUS(16384), 0, 0, 16384 },
	{ "backward at all ones", ULONG_MAX, 8, true, MINUS(9), 3, 4087, 9 },
	{ "backward at the size", 16384, 8, true, 16376, 3, 4088,
	  MINUS(16376) },
	{ "backward behind the size", 16392, 8, true, 16384, 0, 0,
	  MINUS(16384) },
};

RB_PARAM_DESC(rb_reserve_param)
KUNIT_ARRAY_PARAM(rb_reserve, rb_reserve_params, rb_reserve_param_desc);

static void test_head_reserve(struct kunit *test)
{
	const struct rb_reserve_param *p = test->param_value;
	unsigned long new = rb_head_reserve(p->head, p->size, p->backward);
	unsigned long start = rb_head_start(p->head, new, p->backward);

	KUNIT_EXPECT_EQ(test, new, p->new_head);
	KUNIT_EXPECT_EQ(test, rb_head_page(start, 12, 4), p->page);
	KUNIT_EXPECT_EQ(test, rb_head_page_offset(start, 12), p->offset);
	KUNIT_EXPECT_EQ(test, rb_head_bytes(new, p->backward), p->bytes);
}

/*
 * The arithmetic: what a reader of a writable mapping of 4096 bytes allows.
 */
struct rb_space_param {
	const char	*name;
	unsigned long	head;
	unsigned long	tail;
	bool		backward;
	unsigned long	space;
};

static const struct rb_space_param rb_space_params[] = {
	/* name, head, tail, backward, space */
	{ "forward, empty at 0", 0, 0, false, 4095 },
	{ "forward, empty at the size", 4096, 4096, false, 4095 },
	{ "forward, empty at all ones", ULONG_MAX, ULONG_MAX, false, 4095 },
	{ "forward, 8 bytes used", 8, 0, false, 4087 },
	{ "forward, 8 bytes used across the end", 4100, 4092, false, 4087 },
	{ "forward, 8 bytes used across the word", 4, MINUS(4), false, 4087 },
	{ "forward, 8 bytes free", 4087, 0, false, 8 },
	{ "forward, 7 bytes free", 4088, 0, false, 7 },
	{ "forward, full", 4095, 0, false, 0 },
	{ "forward, full across the word", 4091, MINUS(4), false, 0 },
	{ "forward, tail ahead of the head", 0, 8, false, 7 },
	{ "backward, empty at 0", 0, 0, true, 4095 },
	{ "backward, empty at the size", 4096, 4096, true, 4095 },
	{ "backward, empty at all ones", ULONG_MAX, ULONG_MAX, true, 4095 },
	{ "backward, 8 bytes used", MINUS(8), 0, true, 4087 },
	{ "backward, 8 bytes used across the end", 4092, 4100, true, 4087 },
	{ "backward, 8 bytes used across the word", MINUS(4), 4, true, 4087 },
	{ "backward, 8 bytes free", MINUS(4087), 0, true, 8 },
	{ "backward, 7 bytes free", MINUS(4088), 0, true, 7 },
	{ "backward, full", MINUS(4095), 0, true, 0 },
	{ "backward, full across the word", MINUS(4091), 4, true, 0 },
	{ "backward, tail ahead of the head", 8, 0, true, 7 },
};

RB_PARAM_DESC(rb_space_param)
KUNIT_ARRAY_PARAM(rb_space, rb_space_params, rb_space_param_desc);

static void test_head_space(struct kunit *test)
{
	const struct rb_space_param *p = test->param_value;
	unsigned long size;

	for (size = 0; size <= 4096 + 8; size++) {
		KUNIT_ASSERT_EQ_MSG(test,
				    rb_head_has_space(p->head, p->tail, 4096,
						      size, p->backward),
				    size <= p->space, "size %lu", size);
	}
}

/*
 * The arithmetic: what unpublished records leave of an overwritable buffer of
 * 4096 bytes.
 */
struct rb_room_param {
	const char	*name;
	unsigned long	head;
	unsigned long	published;
	bool		backward;
	unsigned long	room;
};

static const struct rb_room_param rb_room_params[] = {
	/* name, head, published, backward, room */
	{ "forward, all published at 0", 0, 0, false, 4096 },
	{ "forward, all published at all ones", ULONG_MAX, ULONG_MAX, false, 4096 },
	{ "forward, all published, many laps", 81920, 81920, false, 4096 },
	{ "forward, 8 bytes to publish", 8, 0, false, 4088 },
	{ "forward, 8 bytes across the word", 4, MINUS(4), false, 4088 },
	{ "forward, all but 8 bytes", 4088, 0, false, 8 },
	{ "forward, the whole size", 4096, 0, false, 0 },
	{ "forward, the whole size across the word", 4088, MINUS(8), false, 0 },
	{ "backward, all published at 0", 0, 0, true, 4096 },
	{ "backward, all published at all ones", ULONG_MAX, ULONG_MAX, true, 4096 },
	{ "backward, all published, many laps", MINUS(81920), MINUS(81920), true,
	  4096 },
	{ "backward, 8 bytes to publish", MINUS(8), 0, true, 4088 },
	{ "backward, 8 bytes across the word", MINUS(4), 4, true, 4088 },
	{ "backward, all but 8 bytes", MINUS(4088), 0, true, 8 },
	{ "backward, the whole size", MINUS(4096), 0, true, 0 },
	{ "backward, the whole size across the word", MINUS(4088), 8, true, 0 },
};

RB_PARAM_DESC(rb_room_param)
KUNIT_ARRAY_PARAM(rb_room, rb_room_params, rb_room_param_desc);

static void test_head_room(struct kunit *test)
{
	const struct rb_room_param *p = test->param_value;
	unsigned long size;

	for (size = 0; size <= 4096 + 8; size++) {
		KUNIT_ASSERT_EQ_MSG(test,
				    rb_head_has_room(p->head, p->published, 4096,
						     size, p->backward),
				    size <= p->room, "size %lu", size);
	}
}

static void rb_test_model(struct kunit *test, const char *why,
			  const struct rb_model_input *in)
{
	KUNIT_ASSERT_NULL_MSG(test, why,
			      "%s: head %#lx tail %#lx size %lu of %lu, page shift %u, %s",
			      why, in->head, in->tail, in->size, in->data_size,
			      in->page_shift,
			      in->backward ? "backward" : "forward");
}

/* The boundaries in every combination, for a buffer of two small pages. */
static void test_head_boundaries(struct kunit *test)
{
	const unsigned long D = 512;
	const unsigned long edges[] = {
		0, 1, MINUS(1), 8, MINUS(8), D - 8, D - 1, D, D + 1, D + 8,
		MINUS(D - 8), MINUS(D), MINUS(D + 8), 2 * D, MINUS(2 * D),
		LONG_MAX, LONG_MIN, ULONG_MAX - 8,
	};
	const unsigned long sizes[] = {
		0, 1, 8, 16, D / 2, D - 8, D - 1, D, D + 1, D + 8, 2 * D,
	};
	struct rb_model_input in = { .data_size = D, .page_shift = 8 };
	unsigned int h, t, s;

	for (h = 0; h < 2 * ARRAY_SIZE(edges); h++) {
		in.backward = h & 1;
		in.head = edges[h / 2];
		for (s = 0; s < ARRAY_SIZE(sizes); s++) {
			in.size = sizes[s];
			rb_test_model(test, rb_model_reserve(&in), &in);
			for (t = 0; t < ARRAY_SIZE(edges); t++) {
				bool fits;

				in.tail = edges[t];
				fits = rb_head_has_space(in.head, in.tail, D,
							 in.size, in.backward);
				rb_test_model(test,
					      fits == (in.size <= rb_model_space(&in)) ?
					      NULL : "rb_head_has_space() is wrong",
					      &in);
			}
		}
	}
}

/* Several laps of a tiny ring: all heads, all tails, all sizes. */
static void test_head_exhaustive(struct kunit *test)
{
	struct rb_model_input in = {
		.head = MINUS(32),
		.tail = MINUS(32),
		.data_size = 16,
	};
	u64 runs = 0;

	rb_test_model(test, rb_model_exhaust(&in, 64, 40, &runs), &in);

	/* Tails: 64 * 64 * 41, reservations: 64 * 41 and two page sizes. */
	KUNIT_EXPECT_EQ(test, runs, 2 * (64 * 64 * 41 + 64 * 41 * 2));
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

/*
 * What a reader does: from the head towards the past, header by header, until
 * the buffer was covered. @sizes are those of the records 0 to @count - 1.
 */
static void rb_test_walk(struct kunit *test, struct rb_test *t,
			 const unsigned int *sizes, unsigned int count)
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

static void test_laps(struct kunit *test)
{
	const struct rb_laps_param *p = test->param_value;
	const unsigned long data_size = p->nr_pages * PAGE_SIZE;
	const unsigned long start = p->backward ? 2 * data_size :
						  MINUS(2 * data_size);
	struct rb_test *t = rb_test_attach(test, p->nr_pages, 0, p->backward,
					   p->writable, p->wrap ? start : 0);
	unsigned int page_crossed = 0, end_crossed = 0;
	unsigned int *sizes, seq, first, size;
	unsigned long written = 0;
	u32 seed = 1;

	sizes = kunit_kcalloc(test, RB_TEST_LAPS * data_size / p->min_size + 1,
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

		rb_test_compare(test, t);
		if (p->writable)
			t->rb->user_page->data_tail = t->head;
		else if (p->backward)
			rb_test_walk(test, t, sizes, seq + 1);
	}

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

/*
 * What is small is stored in line where it doesn't reach the end of its page,
 * whole groups of fields where they can't reach it. Put each of these in front
 * of the end of a page, on it, and across it.
 */
#define RB_TEST_PUT(handle, from, len)					\
do {									\
	struct { u8 bytes[len]; } field;				\
									\
	memcpy(&field, from, sizeof(field));				\
	perf_output_put(handle, field);					\
} while (0)

static void rb_test_put(struct perf_output_handle *handle, const u8 *from,
			unsigned int size)
{
	switch (size) {
	case 1:
		RB_TEST_PUT(handle, from, 1);
		break;
	case 2:
		RB_TEST_PUT(handle, from, 2);
		break;
	case 4:
		RB_TEST_PUT(handle, from, 4);
		break;
	case 8:
		RB_TEST_PUT(handle, from, 8);
		break;
	case 12:
		RB_TEST_PUT(handle, from, 12);
		break;
	case 16:
		RB_TEST_PUT(handle, from, 16);
		break;
	case 24:
		RB_TEST_PUT(handle, from, 24);
		break;
	case 40:
		RB_TEST_PUT(handle, from, 40);
		break;
	default:
		/* Not of a constant size: like a name, or a callchain. */
		__output_copy(handle, from, size);
	}
}

/* Where a record of @size has to start for its byte @room to be on a new page. */
static void rb_test_start_at(struct rb_test *t, unsigned int size,
			     unsigned int page, unsigned int room)
{
	unsigned long first = (page + 1) * PAGE_SIZE - room;

	rb_test_start(t, t->event.attr.write_backward ? first + size : first);
}

struct rb_direction_param {
	const char	*name;
	bool		backward;
};

static const struct rb_direction_param rb_direction_params[] = {
	{ "forward", false },
	{ "backward", true },
};

RB_PARAM_DESC(rb_direction_param)
KUNIT_ARRAY_PARAM(rb_direction, rb_direction_params, rb_direction_param_desc);

static void test_copy_at_page_end(struct kunit *test)
{
	static const unsigned int sizes[] = {
		1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 40, 63, 64,
	};
	const struct rb_direction_param *p = test->param_value;
	const unsigned int record = 160, front = 80;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	struct perf_output_handle handle;
	struct perf_sample_data data;
	unsigned int i, page, room, done;
	u64 seq = 0;
	int ret;

	rb_test_guard(test, t);
	perf_sample_data_init(&data, 0, 0);

	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		unsigned int size = sizes[i / 2];

		page = i % 2;
		for (room = 1; room <= size + 2; room++) {
			rb_test_start_at(t, record, page, front);
			rb_test_fill(t->record, seq++, record);
			ret = perf_output_begin(&handle, &data, &t->event, record);
			KUNIT_ASSERT_EQ(test, ret, 0);

			done = front - room;
			perf_output_copy(&handle, t->record, done);
			rb_test_put(&handle, t->record + done, size);
			done += size;
			rb_test_put(&handle, t->record + done, record - done);
			perf_output_end(&handle);

			rb_test_mirror(t, t->record, record);
			rb_test_compare_guarded(test, t);
		}
	}
}

/* 0x01 in all bytes. Older kernels have it from a register, which may have 32 bits. */
#define RB_TEST_IP	(~0UL / 0xff)

/* Each value that a sample may have; none has a byte in common with another. */
static void rb_test_sample_values(struct perf_sample_data *data)
{
	data->ip = RB_TEST_IP;
	data->tid_entry.pid = 0x03030303;
	data->tid_entry.tid = 0x04040404;
	data->time = 0x0505050506060606ULL;
	data->addr = 0x0707070708080808ULL;
	data->id = 0x090909090a0a0a0aULL;
	data->stream_id = 0x0b0b0b0b0c0c0c0cULL;
	data->cpu_entry.cpu = 0x0d0d0d0d;
	data->cpu_entry.reserved = 0x0e0e0e0e;
	data->period = 0x0f0f0f0f10101010ULL;
	data->weight.full = 0x1111111112121212ULL;
	data->data_src.val = 0x1313131314141414ULL;
	data->txn = 0x1515151516161616ULL;
	data->phys_addr = 0x1717171718181818ULL;
	data->cgroup = 0x191919191a1a1a1aULL;
	data->data_page_size = 0x1b1b1b1b1c1c1c1cULL;
	data->code_page_size = 0x1d1d1d1d1e1e1e1eULL;
}

/* Two u32 after another, the first one at the lower address. */
static u64 rb_test_pair(u32 first, u32 second)
{
	u32 pair[2] = { first, second };
	u64 value;

	memcpy(&value, pair, sizeof(value));

	return value;
}

/* The order is that of the ABI, see PERF_RECORD_SAMPLE in the uapi header. */
static unsigned int rb_test_sample_head(u64 *to, u64 type)
{
	u64 *start = to;

	if (type & PERF_SAMPLE_IDENTIFIER)
		*to++ = 0x090909090a0a0a0aULL;
	if (type & PERF_SAMPLE_IP)
		*to++ = RB_TEST_IP;
	if (type & PERF_SAMPLE_TID)
		*to++ = rb_test_pair(0x03030303, 0x04040404);
	if (type & PERF_SAMPLE_TIME)
		*to++ = 0x0505050506060606ULL;
	if (type & PERF_SAMPLE_ADDR)
		*to++ = 0x0707070708080808ULL;
	if (type & PERF_SAMPLE_ID)
		*to++ = 0x090909090a0a0a0aULL;
	if (type & PERF_SAMPLE_STREAM_ID)
		*to++ = 0x0b0b0b0b0c0c0c0cULL;
	if (type & PERF_SAMPLE_CPU)
		*to++ = rb_test_pair(0x0d0d0d0d, 0x0e0e0e0e);
	if (type & PERF_SAMPLE_PERIOD)
		*to++ = 0x0f0f0f0f10101010ULL;

	return (to - start) * sizeof(u64);
}

static unsigned int rb_test_sample_tail(u64 *to, u64 type,
					const struct perf_sample_data *data)
{
	u64 *start = to;

	if (type & PERF_SAMPLE_WEIGHT_TYPE)
		*to++ = 0x1111111112121212ULL;
	if (type & PERF_SAMPLE_DATA_SRC)
		*to++ = 0x1313131314141414ULL;
	if (type & PERF_SAMPLE_TRANSACTION)
		*to++ = 0x1515151516161616ULL;
	if (type & PERF_SAMPLE_PHYS_ADDR)
		*to++ = 0x1717171718181818ULL;
	/* Older kernels find these out by themselves, whatever there was before. */
	if (type & PERF_SAMPLE_CGROUP)
		*to++ = data->cgroup;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		*to++ = data->data_page_size;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		*to++ = data->code_page_size;

	return (to - start) * sizeof(u64);
}

/* All of rb_test_sample_head(), in pieces that a loop can combine. */
static const u64 rb_test_head_bits[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_PERIOD,
};

/* The same for rb_test_sample_tail(). */
static const u64 rb_test_tail_bits[] = {
	PERF_SAMPLE_WEIGHT, PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION,
	PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE,
	PERF_SAMPLE_CODE_PAGE_SIZE,
};

/* Those of the @n bits that the lowest bits of @set say. */
static u64 rb_test_subset(const u64 *bits, unsigned int n, unsigned int set)
{
	unsigned int i;
	u64 type = 0;

	for (i = 0; i < n; i++) {
		if (set & BIT(i))
			type |= bits[i];
	}

	return type;
}

struct rb_sample_param {
	const char	*name;
	bool		backward;
	bool		tail;		/* fields behind the raw data */
	u64		raw;		/* PERF_SAMPLE_RAW or 0 */
	unsigned int	frags[2];	/* sizes of its parts */
};

static const struct rb_sample_param rb_sample_params[] = {
	/* name, backward, tail, raw, its sizes */
	{ "forward", false, false, 0 },
	{ "forward, raw", false, false, PERF_SAMPLE_RAW, { 68 } },
	{ "forward, raw, padded", false, false, PERF_SAMPLE_RAW, { 13, 9 } },
	{ "forward, raw, empty", false, false, PERF_SAMPLE_RAW },
	{ "forward, tail", false, true, 0 },
	{ "forward, raw and tail", false, true, PERF_SAMPLE_RAW, { 20 } },
	{ "backward", true, false, 0 },
	{ "backward, raw", true, false, PERF_SAMPLE_RAW, { 68 } },
	{ "backward, raw, padded", true, false, PERF_SAMPLE_RAW, { 13, 9 } },
	{ "backward, raw, empty", true, false, PERF_SAMPLE_RAW },
	{ "backward, tail", true, true, 0 },
	{ "backward, raw and tail", true, true, PERF_SAMPLE_RAW, { 20 } },
};

RB_PARAM_DESC(rb_sample_param)
KUNIT_ARRAY_PARAM(rb_sample, rb_sample_params, rb_sample_param_desc);

/* Write a sample with its byte @room on a new page, and compare. */
static void rb_test_sample(struct kunit *test, struct rb_test *t,
			   unsigned int size, unsigned int page,
			   unsigned int room)
{
	const struct rb_sample_param *p = test->param_value;
	u64 type = t->event.attr.sample_type;
	struct perf_event_header *header = (void *)t->record;
	struct perf_raw_frag second = { };
	struct perf_raw_record raw = { };
	struct perf_sample_data data;
	struct pt_regs regs = { };
	unsigned int i, done;

	rb_test_start_at(t, size, page, room);

	/* Nothing is left to prepare. */
	perf_sample_data_init(&data, 0, 0);
	rb_test_sample_values(&data);
	data.sample_flags = ~(u64)PERF_SAMPLE_RAW;
	/* Zeroed registers are those of user space on some architectures. */
	perf_fetch_caller_regs(&regs);
	/* Older kernels look there all the same. */
	instruction_pointer_set(&regs, data.ip);
	if (p->frags[0]) {
		raw.frag.size = p->frags[0];
		raw.frag.data = t->nested;
		if (p->frags[1]) {
			second.size = p->frags[1];
			second.data = t->nested + p->frags[0];
			raw.frag.next = &second;
		}
		perf_sample_save_raw_data(&data, &t->event, &raw);
	}

	if (p->backward)
		perf_event_output_backward(&t->event, &data, &regs);
	else
		perf_event_output_forward(&t->event, &data, &regs);

	/* Padding is what was there before. */
	for (i = 0; i < size; i++)
		t->record[i] = t->mirror[((page + 1) * PAGE_SIZE - room + i) %
					 t->data_size];
	header->type = PERF_RECORD_SAMPLE;
	header->misc = PERF_RECORD_MISC_KERNEL;
	header->size = size;
	done = sizeof(*header);
	done += rb_test_sample_head((u64 *)(t->record + done), type);
	if (type & PERF_SAMPLE_RAW) {
		u32 bytes = round_up(p->frags[0] + p->frags[1] + 4, 8) - 4;

		memcpy(t->record + done, &bytes, 4);
		memcpy(t->record + done + 4, t->nested,
		       p->frags[0] + p->frags[1]);
		if (!p->frags[0])
			memset(t->record + done + 4, 0, 4);
		done += 4 + bytes;
	}
	done += rb_test_sample_tail((u64 *)(t->record + done), type, &data);
	KUNIT_ASSERT_EQ(test, done, size);

	rb_test_mirror(t, t->record, size);
	rb_test_compare_guarded(test, t);
}

static void test_sample_at_page_end(struct kunit *test)
{
	const struct rb_sample_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	unsigned int set, size, raw = 0, room;
	u64 type;

	rb_test_guard(test, t);
	rb_test_fill(t->nested, 1, 128);
	if (p->raw)
		raw = round_up(p->frags[0] + p->frags[1] + 4, 8);

	for (set = 0; set < BIT(ARRAY_SIZE(rb_test_head_bits)); set++) {
		type = rb_test_subset(rb_test_head_bits,
				      ARRAY_SIZE(rb_test_head_bits), set);
		if (p->tail)
			type |= rb_test_subset(rb_test_tail_bits,
					       ARRAY_SIZE(rb_test_tail_bits), set);

		/* Each of 8 bytes: what the event's header_size says. */
		size = hweight64(type) * sizeof(u64);
		t->event.attr.sample_type = type | p->raw;
		t->event.header_size = size;
		t->event.fixed_size = t->event.header_size;
		size += sizeof(struct perf_event_header) + raw;

		/* From what ends 8 bytes in front of the end to what starts there. */
		for (room = 0; room <= size + 8; room += 8)
			rb_test_sample(test, t, size, room / 8 % 2, room);
	}
}

/* Write a sample of the registers in @mask with its byte @room on a new page. */
static void rb_test_regs(struct kunit *test, struct rb_test *t,
			 struct pt_regs *regs, u64 mask, unsigned int page,
			 unsigned int room)
{
	const struct rb_direction_param *p = test->param_value;
	struct perf_event_header *header = (void *)t->record;
	u64 *to = (u64 *)(t->record + sizeof(*header));
	struct perf_sample_data data;
	unsigned int bit;

	header->type = PERF_RECORD_SAMPLE;
	header->misc = user_mode(regs) ? PERF_RECORD_MISC_USER :
					 PERF_RECORD_MISC_KERNEL;
	*to++ = perf_reg_abi(current);
	for (bit = 0; bit < BITS_PER_TYPE(mask); bit++) {
		if (mask & BIT_ULL(bit))
			*to++ = perf_reg_value(regs, bit);
	}
	header->size = (u8 *)to - t->record;

	rb_test_start_at(t, header->size, page, room);
	t->event.attr.sample_regs_intr = mask;
	perf_sample_data_init(&data, 0, 0);
	if (p->backward)
		perf_event_output_backward(&t->event, &data, regs);
	else
		perf_event_output_forward(&t->event, &data, regs);

	rb_test_mirror(t, t->record, header->size);
	rb_test_compare_guarded(test, t);
}

static void test_regs_at_page_end(struct kunit *test)
{
	const struct rb_direction_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	unsigned long words[sizeof(struct pt_regs) / sizeof(unsigned long)];
	unsigned int bit, i, room;
	u64 all = 0, masks[3];

	for (bit = 0; bit < BITS_PER_TYPE(all); bit++) {
		if (!perf_reg_validate(BIT_ULL(bit)))
			all |= BIT_ULL(bit);
	}
	all &= ~(u64)PERF_REG_EXTENDED_MASK;
	if (!all)
		kunit_skip(test, "no registers in samples here");
	masks[0] = all;
	masks[1] = all & 0x5555555555555555ULL;
	masks[2] = all & -all;

	/* No two alike, and no flag that means something in the lowest bits. */
	for (i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = (i + 1) * 0x01000100UL;

	rb_test_guard(test, t);
	t->event.attr.sample_type = PERF_SAMPLE_REGS_INTR;
	t->event.header_size = 0;
	t->event.fixed_size = t->event.header_size;
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		unsigned int size = (2 + hweight64(masks[i])) * sizeof(u64);

		for (room = 0; room <= size + 8; room += 8)
			rb_test_regs(test, t, (struct pt_regs *)words, masks[i],
				     room / 8 % 2, room);
	}
}

/* What is written of a sample that nobody gave any values, bit by bit. */
static void test_sample_without_values(struct kunit *test)
{
	static const struct {
		u64	bit;
		bool	fixed;
		u64	value;
	} fields[] = {
		{ PERF_SAMPLE_ADDR, true },
		{ PERF_SAMPLE_RAW, false },
		{ PERF_SAMPLE_BRANCH_STACK, false },
		{ PERF_SAMPLE_REGS_USER, false, PERF_SAMPLE_REGS_ABI_NONE },
		{ PERF_SAMPLE_STACK_USER, false },
		{ PERF_SAMPLE_WEIGHT, true },
		{ PERF_SAMPLE_DATA_SRC, true, PERF_MEM_NA },
		{ PERF_SAMPLE_TRANSACTION, true },
		{ PERF_SAMPLE_PHYS_ADDR, true },
		{ PERF_SAMPLE_DATA_PAGE_SIZE, true },
		{ PERF_SAMPLE_CODE_PAGE_SIZE, true },
	};
	struct rb_test *t = rb_test_attach(test, 1, 0, false, false, 0);
	struct perf_event_header *header = (void *)t->record;
	struct perf_sample_data data;
	struct pt_regs regs = { };
	unsigned int set, i;

	perf_fetch_caller_regs(&regs);
	/* There is no page at 0, so PERF_SAMPLE_CODE_PAGE_SIZE is 0. */
	instruction_pointer_set(&regs, 0);
	for (set = 0; set < BIT(ARRAY_SIZE(fields)); set++) {
		u64 *to = (u64 *)(t->record + sizeof(*header));

		t->event.attr.sample_type = 0;
		t->event.header_size = 0;
		for (i = 0; i < ARRAY_SIZE(fields); i++) {
			if (!(set & BIT(i)))
				continue;
			t->event.attr.sample_type |= fields[i].bit;
			if (fields[i].fixed)
				t->event.header_size += sizeof(u64);
			*to++ = fields[i].bit == PERF_SAMPLE_RAW ?
				rb_test_pair(sizeof(u32), 0) : fields[i].value;
		}
		t->event.fixed_size = t->event.header_size;
		header->type = PERF_RECORD_SAMPLE;
		header->misc = PERF_RECORD_MISC_KERNEL;
		header->size = (u8 *)to - t->record;

		/*
		 * It is on the stack of who samples, and anything was there before.
		 * An address that leads somewhere shows if anything looks there.
		 */
		memset(&data, 0xa5, sizeof(data));
		data.addr = (unsigned long)t->record;
		data.ip = (unsigned long)t->record;
		perf_sample_data_init(&data, 0, 0);
		perf_event_output_forward(&t->event, &data, &regs);

		rb_test_mirror(t, t->record, header->size);
		rb_test_compare(test, t);
	}
}

/* The fields that follow all other records, in their order in the ABI. */
static unsigned int rb_test_id_sample(u64 *to, u64 type)
{
	u64 *start = to;

	if (type & PERF_SAMPLE_TID)
		*to++ = rb_test_pair(0x03030303, 0x04040404);
	if (type & PERF_SAMPLE_TIME)
		*to++ = 0x0505050506060606ULL;
	if (type & PERF_SAMPLE_ID)
		*to++ = 0x090909090a0a0a0aULL;
	if (type & PERF_SAMPLE_STREAM_ID)
		*to++ = 0x0b0b0b0b0c0c0c0cULL;
	if (type & PERF_SAMPLE_CPU)
		*to++ = rb_test_pair(0x0d0d0d0d, 0x0e0e0e0e);
	if (type & PERF_SAMPLE_IDENTIFIER)
		*to++ = 0x090909090a0a0a0aULL;

	return (to - start) * sizeof(u64);
}

static void test_id_sample_at_page_end(struct kunit *test)
{
	static const u64 bits[] = {
		PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
		PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER,
	};
	const struct rb_direction_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	struct perf_output_handle handle;
	struct perf_sample_data data;
	unsigned int set, size, room;
	int ret;

	rb_test_guard(test, t);
	perf_sample_data_init(&data, 0, 0);
	rb_test_sample_values(&data);
	t->event.attr.sample_id_all = 1;

	for (set = 0; set < BIT(ARRAY_SIZE(bits)); set++) {
		data.type = rb_test_subset(bits, ARRAY_SIZE(bits), set);
		size = 16;
		size += rb_test_id_sample((u64 *)(t->record + size), data.type);

		for (room = 0; room <= size + 8; room += 8) {
			rb_test_fill(t->record, set, 16);
			rb_test_start_at(t, size, room / 8 % 2, room);
			ret = perf_output_begin(&handle, &data, &t->event, size);
			KUNIT_ASSERT_EQ(test, ret, 0);
			perf_output_copy(&handle, t->record, 16);
			perf_event__output_id_sample(&t->event, &handle, &data);
			perf_output_end(&handle);

			rb_test_mirror(t, t->record, size);
			rb_test_compare_guarded(test, t);
		}
	}
}

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
 * A record that fits into the buffer, but not together with PERF_RECORD_LOST, is
 * written all the same. What was lost is told by the next one with room for it.
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

/* The size of a record has 16 bits: larger pages can't be filled by one. */
static void rb_test_needs_small_pages(struct kunit *test)
{
	if (PAGE_SIZE > SZ_16K)
		kunit_skip(test, "needs pages of up to 16 KiB");
}

/*
 * No record wraps over itself. The largest has the size of the buffer.
 */
static void test_record_too_large(struct kunit *test)
{
	struct rb_test *t;
	unsigned int sizes[2] = { 64, PAGE_SIZE };
	int mode, backward, writable;

	rb_test_needs_small_pages(test);

	for (mode = 0; mode < 4; mode++) {
		backward = mode & 1;
		writable = mode & 2;
		t = rb_test_attach(test, 1, 0, backward, writable, 0);
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 0, 64), 0);
		rb_test_mirror(t, t->record, 64);
		t->rb->user_page->data_tail = t->head;

		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, PAGE_SIZE + 8),
				-ENOSPC);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 3 * PAGE_SIZE),
				-ENOSPC);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, PAGE_SIZE),
				writable ? -ENOSPC : 0);
		if (!writable)
			rb_test_mirror(t, t->record, PAGE_SIZE);
		rb_test_compare(test, t);
		if (backward)
			rb_test_walk(test, t, sizes, writable ? 1 : 2);

		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), writable ? 3 : 2);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples),
				writable ? 3 : 2);
	}
}

/*
 * Nested writers don't overwrite what the outer one is about to write. Once that
 * is published, they may.
 */
static void test_nested_too_large(struct kunit *test)
{
	const unsigned int outer_size = 3000, rest = PAGE_SIZE - 3000;
	struct perf_output_handle outer;
	struct perf_sample_data data;
	struct rb_test *t;
	int backward, ret, too_large, fits, another;

	rb_test_needs_small_pages(test);

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, backward ? 8 : MINUS(8));
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 0, 128), 0);
		rb_test_mirror(t, t->record, 128);

		perf_sample_data_init(&data, 0, 0);
		too_large = 1;
		fits = 1;
		another = 1;
		ret = perf_output_begin(&outer, &data, &t->event, outer_size);
		if (!ret) {
			fits = rb_test_write(t, t->nested, 2, rest);
			too_large = rb_test_write(t, t->nested, 3, PAGE_SIZE);
			another = rb_test_write(t, t->nested, 4, 16);

			rb_test_fill(t->record, 1, outer_size);
			rb_test_copy(&outer, t->record, outer_size);
			perf_output_end(&outer);
		}
		KUNIT_ASSERT_EQ(test, ret, 0);
		KUNIT_EXPECT_EQ(test, fits, 0);
		KUNIT_EXPECT_EQ(test, too_large, -ENOSPC);
		KUNIT_EXPECT_EQ(test, another, -ENOSPC);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 2);

		rb_test_mirror(t, t->record, outer_size);
		rb_test_fill(t->nested, 2, rest);
		rb_test_mirror(t, t->nested, rest);
		rb_test_compare(test, t);

		/* 24 bytes tell that two were lost. */
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->nested, 5, 64), 0);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head,
				(u64)(t->head + (backward ? -88 : 88)));
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

static void rb_test_break(struct perf_event *bp, struct perf_sample_data *data,
			  struct pt_regs *regs)
{
	struct rb_test *t = bp->overflow_handler_context;

	if (t->hits++ != t->fire_at)
		return;

	t->fired = true;
	if (t->fire_redirect) {
		rcu_assign_pointer(t->event.rb, t->redirect_to);
		return;
	}
	t->nested_ret = rb_test_write(t, t->nested, 2, t->nested_size);
	if (t->fire_pause)
		rb_toggle_paused(t->rb, true);
}

/* A breakpoint on a word that the writer uses, to be released before all else. */
static struct perf_event *rb_test_watch(struct kunit *test, struct rb_test *t,
					void *addr, unsigned int size, bool on_read)
{
	t->nested_size = 120;
	t->hits = 0;
	t->fired = false;
	t->nested_ret = -1;

	return kunit_breakpoint(test, addr, size, on_read, rb_test_break, t);
}

/*
 * Write a record with a breakpoint on a word. The nested writer must have come,
 * and have written its record.
 */
static int rb_test_write_watched(struct kunit *test, struct rb_test *t,
				 void *addr, unsigned int size, bool on_read)
{
	struct perf_event *bp = rb_test_watch(test, t, addr, size, on_read);
	int ret = rb_test_write(t, t->record, 1, 64);

	perf_event_release_kernel(bp);

	KUNIT_ASSERT_TRUE(test, t->fired);
	KUNIT_ASSERT_EQ(test, t->nested_ret, 0);

	return ret;
}

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
 * A buffer is paused inside a writer that didn't look at the flag yet, after a
 * nested writer that did: who is turned away still publishes the other's record.
 */
static void test_paused_after_nested(struct kunit *test)
{
	struct rb_test *t;
	int backward, ret;

	kunit_needs_breakpoint(test);

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->fire_at = 0;
		t->fire_pause = true;
		ret = rb_test_write_watched(test, t, &t->rb->nest, 4, false);

		KUNIT_EXPECT_EQ(test, ret, -ENOSPC);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		rb_test_mirror(t, t->nested, 120);
		rb_test_compare(test, t);
	}
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
		t->fire_redirect = true;
		t->redirect_to = nowhere ? NULL : other;
		bp = rb_test_watch(test, t, &t->rb->paused, sizeof(t->rb->paused), true);
		ret = perf_event_output(&t->event, &data, &regs);
		perf_event_release_kernel(bp);
		t->fire_redirect = false;

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

/*
 * Who reads a flight recorder when it's needed can do without all wakeups.
 */
static void test_watermark_never(struct kunit *test)
{
	struct rb_test *t;
	unsigned long i;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, U32_MAX, backward, false,
				   backward ? 2 * PAGE_SIZE : MINUS(2 * PAGE_SIZE));
		for (i = 0; i < 5 * PAGE_SIZE; i += 512)
			KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, i, 512), 0);
		irq_work_sync(&t->event.pending_irq);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->wakeups), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->rb->poll), 0);
		KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head,
				(u64)(t->head + (backward ? -i : i)));

		/* A reader with a tail waits for records: no more than the size. */
		t = rb_test_attach(test, 2, U32_MAX, backward, true, 0);
		KUNIT_EXPECT_EQ(test, t->rb->watermark, 2 * PAGE_SIZE);
	}
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

#define RB_TEST_NO_CPU	0xdeadU

/*
 * What a paused buffer won't take isn't prepared either.
 */
static void test_paused_sample(struct kunit *test)
{
	struct perf_sample_data data;
	struct pt_regs regs = { };
	struct rb_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->event.attr.sample_type = PERF_SAMPLE_CPU;
		t->event.id_header_size = 8;

		rb_toggle_paused(t->rb, true);
		perf_sample_data_init(&data, 0, 0);
		data.cpu_entry.cpu = RB_TEST_NO_CPU;
		if (backward)
			perf_event_output_backward(&t->event, &data, &regs);
		else
			perf_event_output_forward(&t->event, &data, &regs);
		KUNIT_EXPECT_EQ(test, data.cpu_entry.cpu, RB_TEST_NO_CPU);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 1);
		rb_test_compare(test, t);

		KUNIT_EXPECT_EQ(test, perf_event_output(&t->event, &data, &regs),
				-ENOSPC);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 2);

		/* 16 bytes of sample and 24 that tell what was lost. */
		rb_toggle_paused(t->rb, false);
		KUNIT_EXPECT_EQ(test, perf_event_output(&t->event, &data, &regs), 0);
		KUNIT_EXPECT_NE(test, data.cpu_entry.cpu, RB_TEST_NO_CPU);
		KUNIT_EXPECT_EQ(test, t->rb->user_page->data_head,
				(u64)(t->head + (backward ? -40 : 40)));
	}
}

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
 * What was lost in the buffer that a record follows its event to is told there, in
 * front of it. What was lost in the paused one isn't.
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

		/* A plain one, one that follows its event, two that fail. */
		for (i = 0; i < 4; i++) {
			struct perf_buffer *rb = i & 1 ? old : t->rb;
			int ret, expected = i < 2 ? 0 : -ENOSPC;
			bool held;

			rb_toggle_paused(t->rb, i >= 2);
			rcu_read_lock();
			count = preempt_count();
			if (backward)
				ret = perf_output_reserve_backward(&handle, &data,
								   &t->event, rb, 64);
			else
				ret = perf_output_reserve_forward(&handle, &data,
								  &t->event, rb, 64);
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
 * Pauses that meet a writer between begin and end on another CPU.
 */
struct rb_pause_param {
	const char	*name;
	bool		irqs_off;	/* where the writer is */
	bool		task;		/* whose buffer it is, or that CPU's */
	bool		offline;	/* or of one that has just gone */
};

static const struct rb_pause_param rb_pause_params[] = {
	/* name, irqs off, task, offline */
	{ "of a CPU", false, false, false },
	{ "of a CPU, interrupts off", true, false, false },
	{ "of a task", false, true, false },
	{ "of a task, interrupts off", true, true, false },
	{ "of a CPU, offline", false, false, true },
	{ "of a CPU, offline, interrupts off", true, false, true },
};

RB_PARAM_DESC(rb_pause_param)
KUNIT_ARRAY_PARAM(rb_pause, rb_pause_params, rb_pause_param_desc);

/*
 * While the writer holds its CPU, somebody may want to stop all of them, and the
 * one that is to release it waits for that. Then the test begins anew.
 */
#define RB_TEST_HOLD_NS		(3ULL * NSEC_PER_SEC)
#define RB_TEST_TRIES		5

static int rb_test_writer(void *arg)
{
	struct perf_output_handle handle;
	struct perf_sample_data data;
	u64 limit = ktime_get_mono_fast_ns() + RB_TEST_HOLD_NS;
	struct rb_test *t = arg;
	unsigned long flags = 0, head = 0;
	unsigned int nest = 0;

	rb_test_fill(t->record, 7, 64);
	perf_sample_data_init(&data, 0, 0);

	if (t->irqs_off)
		local_irq_save(flags);
	t->writer_ret = perf_output_begin(&handle, &data, &t->event, 64);
	if (!t->writer_ret) {
		perf_output_copy(&handle, t->record, 40);
		/* No CPU that could be asked: as if the others can't see it yet. */
		if (t->offline) {
			nest = t->rb->nest;
			head = local_read(&t->rb->head);
			WRITE_ONCE(t->rb->nest, 0);
			local_set(&t->rb->head, t->rb->user_page->data_head);
		}
		WRITE_ONCE(t->opened, true);
		while (!READ_ONCE(t->release)) {
			if (ktime_get_mono_fast_ns() > limit) {
				t->gave_up = true;
				break;
			}
			cpu_relax();
		}
		if (t->offline) {
			local_set(&t->rb->head, head);
			WRITE_ONCE(t->rb->nest, nest);
		}
		perf_output_copy(&handle, t->record + 40, 24);
		WRITE_ONCE(t->ended, true);
		perf_output_end(&handle);
	}
	if (t->irqs_off)
		local_irq_restore(flags);

	complete(&t->writer_done);

	return 0;
}

static int rb_test_pauser(void *arg)
{
	struct rb_test *t = arg;

	allow_signal(SIGKILL);
	allow_signal(SIGUSR1);
	if (t->share)
		rb_share(t->rb);
	else
		t->pause_ret = rb_pause(t->rb, true);
	t->paused_after_end = READ_ONCE(t->ended);
	WRITE_ONCE(t->paused, true);
	complete(&t->pause_done);

	return 0;
}

/* No assertion from here to rb_test_release(): the writer holds a CPU. */
static bool rb_test_hold(struct kunit *test, struct rb_test *t,
			 const struct rb_pause_param *p, unsigned int cpu)
{
	struct task_struct *writer;
	int i;

	t->irqs_off = p->irqs_off;
	t->offline = p->offline;
	t->rb->pause_cpu = p->task ? -1 : p->offline ? nr_cpu_ids : cpu;
	t->opened = false;
	t->release = false;
	t->ended = false;
	t->gave_up = false;
	t->paused = false;
	init_completion(&t->writer_done);
	init_completion(&t->pause_done);

	writer = kthread_create_on_cpu(rb_test_writer, t, cpu, "rb_writer/%u");
	KUNIT_ASSERT_FALSE(test, IS_ERR(writer));
	wake_up_process(writer);
	for (i = 0; i < 5000 && !READ_ONCE(t->opened); i++)
		usleep_range(500, 1000);

	return t->opened;
}

/* Returns whether the writer was there all the time. */
static bool rb_test_release(struct rb_test *t)
{
	WRITE_ONCE(t->release, true);
	wait_for_completion(&t->writer_done);

	return !t->gave_up;
}

/* A CPU other than the one that the pauses come from. */
static unsigned int rb_test_other_cpu(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);

	return cpumask_next(0, cpu_online_mask);
}

static void test_pause_waits_for_writer(struct kunit *test)
{
	const struct rb_pause_param *p = test->param_value;
	unsigned int cpu = rb_test_other_cpu(test);
	struct task_struct *pauser;
	bool held, early, flag;
	struct rb_test *t;
	int i, tries = 0;

	/* Each direction, and again whatever was disturbed. */
	for (i = 0; i < 2 && tries < RB_TEST_TRIES; i += held, tries++) {
		t = rb_test_attach(test, 1, 0, i, false, 0);
		pauser = kthread_create_on_cpu(rb_test_pauser, t, 0, "rb_pauser/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(pauser));
		held = rb_test_hold(test, t, p, cpu);

		wake_up_process(pauser);
		msleep(50);
		/* It is on its way, and not there. */
		early = READ_ONCE(t->paused);
		flag = READ_ONCE(t->rb->paused);

		held = rb_test_release(t) && held;
		wait_for_completion(&t->pause_done);
		if (!held)
			continue;

		KUNIT_EXPECT_TRUE(test, flag);
		KUNIT_EXPECT_FALSE(test, early);
		KUNIT_EXPECT_EQ(test, t->writer_ret, 0);
		KUNIT_EXPECT_EQ(test, t->pause_ret, 0);
		KUNIT_EXPECT_TRUE(test, t->paused_after_end);

		/* The record is whole, and the last one. */
		rb_test_mirror(t, t->record, 64);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 8, 64), -ENOSPC);
		rb_test_compare(test, t);

		KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
		KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 8, 64), 0);
	}
	KUNIT_EXPECT_EQ(test, i, 2);
}

/* A fatal signal ends the wait, and nothing but the writer's end does else. */
static void test_pause_ends_by_signal(struct kunit *test)
{
	const struct rb_pause_param *p = test->param_value;
	unsigned int cpu = rb_test_other_cpu(test);
	bool held, early, killed, paused, resumed;
	int tries = 0, ret, resume, again;
	struct task_struct *pauser;
	struct rb_test *t;

	do {
		t = rb_test_attach(test, 1, 0, true, false, 0);
		pauser = kthread_create_on_cpu(rb_test_pauser, t, 0, "rb_pauser/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(pauser));
		get_task_struct(pauser);
		held = rb_test_hold(test, t, p, cpu);

		wake_up_process(pauser);
		msleep(1500);
		early = READ_ONCE(t->paused);
		send_sig(SIGKILL, pauser, 1);
		wait_for_completion(&t->pause_done);
		put_task_struct(pauser);
		killed = !READ_ONCE(t->ended);
		ret = t->pause_ret;
		paused = t->rb->paused;

		/* An answer that is overdue doesn't spoil what comes after it. */
		resume = rb_resume(t->rb);
		resumed = !t->rb->paused;
		again = rb_pause(t->rb, false);

		held = rb_test_release(t) && held;
	} while (!held && ++tries < RB_TEST_TRIES);

	KUNIT_EXPECT_TRUE(test, held);
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_TRUE(test, killed);
	KUNIT_EXPECT_EQ(test, ret, -EINTR);
	KUNIT_EXPECT_TRUE(test, paused);
	KUNIT_EXPECT_EQ(test, resume, 0);
	KUNIT_EXPECT_TRUE(test, resumed);
	KUNIT_EXPECT_EQ(test, again, 0);
	KUNIT_EXPECT_TRUE(test, t->rb->paused);

	KUNIT_EXPECT_EQ(test, rb_pause(t->rb, true), 0);
	rb_test_mirror(t, t->record, 64);
	rb_test_compare(test, t);
}

/*
 * Any other signal interrupts the wait, too, as the freezer does. The call begins
 * anew, and waits on.
 */
static void test_pause_begins_anew(struct kunit *test)
{
	const struct rb_pause_param *p = test->param_value;
	unsigned int cpu = rb_test_other_cpu(test);
	struct task_struct *pauser;
	bool held, early, in_time;
	int i, tries = 0;
	struct rb_test *t;

	/* Interrupted, and again whatever was disturbed. */
	do {
		t = rb_test_attach(test, 1, 0, true, false, 0);
		held = rb_test_hold(test, t, p, cpu);
		early = false;
		in_time = true;
		for (i = 0; i < 3; i++) {
			t->paused = false;
			t->pause_ret = 1;
			reinit_completion(&t->pause_done);
			pauser = kthread_create(rb_test_pauser, t, "rb_pauser");
			if (IS_ERR(pauser))
				break;
			get_task_struct(pauser);
			wake_up_process(pauser);
			msleep(50);
			early |= READ_ONCE(t->paused);
			send_sig(SIGUSR1, pauser, 1);
			wait_for_completion(&t->pause_done);
			put_task_struct(pauser);
			in_time &= !READ_ONCE(t->ended);
			if (t->pause_ret != -ERESTARTNOINTR)
				break;
		}
		held = rb_test_release(t) && held;
	} while (!held && ++tries < RB_TEST_TRIES);

	KUNIT_EXPECT_TRUE(test, held);
	KUNIT_EXPECT_EQ(test, i, 3);
	KUNIT_EXPECT_EQ(test, t->pause_ret, -ERESTARTNOINTR);
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_TRUE(test, t->rb->paused);

	KUNIT_EXPECT_EQ(test, rb_pause(t->rb, true), 0);
	rb_test_mirror(t, t->record, 64);
	rb_test_compare(test, t);
}

/* What user space stores in a writable mapping neither delays a pause nor stays. */
static void test_pause_of_scribbled_page(struct kunit *test)
{
	struct task_struct *pauser;
	struct rb_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, true, 0);
		KUNIT_ASSERT_EQ(test, rb_test_write(t, t->record, 1, 64), 0);
		rb_test_mirror(t, t->record, 64);
		WRITE_ONCE(t->rb->user_page->data_head, 0x123456789abcdef0ULL);

		t->paused = false;
		init_completion(&t->pause_done);
		pauser = kthread_create(rb_test_pauser, t, "rb_pauser");
		KUNIT_ASSERT_FALSE(test, IS_ERR(pauser));
		get_task_struct(pauser);
		wake_up_process(pauser);
		/* Only a pause that never ends is cut short. */
		if (!wait_for_completion_timeout(&t->pause_done, 10 * HZ)) {
			send_sig(SIGKILL, pauser, 1);
			wait_for_completion(&t->pause_done);
		}
		put_task_struct(pauser);

		KUNIT_EXPECT_EQ(test, t->pause_ret, 0);
		rb_test_compare(test, t);
	}
}

/*
 * Which CPU a pause may interrupt: that of the buffer, as long as no event but such
 * of all tasks on this CPU has written there.
 */
struct rb_pause_cpu_param {
	const char	*name;
	int		rb_cpu;
	int		cpu;
	bool		task;
	int		pause_cpu;
	int		all_cpu;
};

static const struct rb_pause_cpu_param rb_pause_cpu_params[] = {
	/* name, CPU of the buffer, of the event, of a task, CPU to interrupt, of all */
	{ "of all tasks on a CPU", 0, 0, false, 0, 0 },
	{ "of a task on a CPU", 0, 0, true, -1, 0 },
	{ "of a task wherever it is", -1, -1, true, -1, -1 },
	{ "of another CPU", 0, 1, false, -1, RB_CPU_MOVED },
};

RB_PARAM_DESC(rb_pause_cpu_param)
KUNIT_ARRAY_PARAM(rb_pause_cpu, rb_pause_cpu_params, rb_pause_cpu_param_desc);

static void test_pause_cpu(struct kunit *test)
{
	const struct rb_pause_cpu_param *p = test->param_value;
	struct perf_event *event;
	struct perf_buffer *rb;

	event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, event);
	rb = rb_alloc(1, 0, p->rb_cpu, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);

	event->cpu = p->cpu;
	event->attach_state = p->task ? PERF_ATTACH_TASK : 0;
	rb_add_event(rb, event);
	KUNIT_EXPECT_EQ(test, rb->pause_cpu, p->pause_cpu);
	KUNIT_EXPECT_EQ(test, rb->cpu, p->all_cpu);

	/* Whatever has been there is there for good. */
	event->cpu = p->rb_cpu;
	event->attach_state = 0;
	rb_add_event(rb, event);
	KUNIT_EXPECT_EQ(test, rb->pause_cpu, p->pause_cpu);

	ring_buffer_put(rb);
}

/* A kernel event, counted on @cpu or wherever @task goes. */
static struct perf_event *rb_test_event(u32 type, u64 config, bool inherit, int cpu,
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
static void rb_test_own(struct perf_event *event, struct perf_buffer *rb)
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

static void rb_test_release_event(struct kunit *test, struct perf_event *event)
{
	if (!event)
		return;

	/* Its buffer is left by then. */
	KUNIT_EXPECT_EQ(test, perf_event_set_output(event, NULL), 0);
	perf_event_release_kernel(event);
}

/*
 * A PMU that moves its events takes the CPU from the buffers that they write to,
 * unless all of them have gone there.
 */
static void test_pause_cpu_moved(struct kunit *test)
{
	unsigned int cpu = rb_test_other_cpu(test);
	struct perf_event *first, *second, *other, *there, *here;
	struct perf_buffer *rb;

	rb = rb_alloc(1, 0, cpu, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	KUNIT_EXPECT_EQ(test, rb->pause_cpu, (int)cpu);

	first = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	second = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	/* Of a PMU of its own. */
	other = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, cpu, NULL);
	there = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, 0, NULL);
	here = NULL;
	if (first && second && other && there) {
		rb_test_own(first, rb);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(second, first), 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(other, first), 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(there, first), -EINVAL);
		KUNIT_EXPECT_EQ(test, rb->cpu, (int)cpu);
		KUNIT_EXPECT_EQ(test, rb->pause_cpu, (int)cpu);

		perf_pmu_migrate_context(first->pmu, cpu, 0);
		KUNIT_EXPECT_EQ(test, first->cpu, 0);
		KUNIT_EXPECT_EQ(test, second->cpu, 0);
		KUNIT_EXPECT_EQ(test, other->cpu, (int)cpu);
		KUNIT_EXPECT_EQ(test, rb->cpu, RB_CPU_MOVED);
		KUNIT_EXPECT_EQ(test, rb->pause_cpu, -1);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(there, first), -EINVAL);

		perf_pmu_migrate_context(other->pmu, cpu, 0);
		KUNIT_EXPECT_EQ(test, other->cpu, 0);
		KUNIT_EXPECT_EQ(test, rb->cpu, 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(there, first), 0);

		here = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
		if (here)
			KUNIT_EXPECT_EQ(test, perf_event_set_output(here, first), -EINVAL);
		/* That CPU is told of nothing, and the former may still answer. */
		KUNIT_EXPECT_EQ(test, rb->pause_cpu, -1);
	}
	KUNIT_EXPECT_NOT_NULL(test, first);
	KUNIT_EXPECT_NOT_NULL(test, second);
	KUNIT_EXPECT_NOT_NULL(test, other);
	KUNIT_EXPECT_NOT_NULL(test, there);
	KUNIT_EXPECT_NOT_NULL(test, here);
	rb_test_release_event(test, here);
	rb_test_release_event(test, there);
	rb_test_release_event(test, other);
	rb_test_release_event(test, second);
	rb_test_release_event(test, first);

	ring_buffer_put(rb);
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
	.task_ctx_nr	= perf_sw_context,
	.event_init	= rb_test_pmu_init,
	.add		= rb_test_pmu_add,
	.del		= rb_test_pmu_del,
	.start		= rb_test_pmu_del,
	.stop		= rb_test_pmu_del,
	.read		= rb_test_pmu_read,
	.setup_aux	= rb_test_setup_aux,
	.free_aux	= rb_test_free_aux,
};

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

	/* What is registered once more must not know of the time before. */
	pmu = kunit_kzalloc(test, sizeof(*pmu), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pmu);
	*pmu = rb_test_pmu;
	rb = rb_alloc(1, 0, p->cpu, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	KUNIT_ASSERT_EQ(test, perf_pmu_register(pmu, "rb_test", -1), 0);

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

/*
 * A shared buffer has one writing CPU at a time: while a writer is held on another
 * one records from here are dropped, counted without rb->lost, which is the
 * other's, and told of by the next one that is written.
 */
static void test_shared_one_cpu(struct kunit *test)
{
	const struct rb_pause_param p = { .task = true };
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
		held = rb_test_hold(test, t, &p, cpu);

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
	const struct rb_pause_param p = { .task = true };
	unsigned int cpu = rb_test_other_cpu(test);
	struct task_struct *sharer;
	bool held, early, shared;
	int i, tries = 0;
	struct rb_test *t;

	for (i = 0; i < 2 && tries < RB_TEST_TRIES; i += held, tries++) {
		t = rb_test_attach(test, 1, 0, i, false, 0);
		t->share = true;
		t->nested_ret = -1;
		sharer = kthread_create_on_cpu(rb_test_pauser, t, 0, "rb_sharer/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(sharer));
		held = rb_test_hold(test, t, &p, cpu);

		wake_up_process(sharer);
		msleep(50);
		early = READ_ONCE(t->paused);
		shared = READ_ONCE(t->rb->shared);
		smp_call_function_single(cpu, rb_test_write_here, t, 1);

		held = rb_test_release(t) && held;
		wait_for_completion(&t->pause_done);
		t->share = false;
		if (!held)
			continue;

		KUNIT_EXPECT_TRUE(test, shared);
		KUNIT_EXPECT_FALSE(test, early);
		KUNIT_EXPECT_TRUE(test, t->paused_after_end);
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

static void test_pause_without_writer(struct kunit *test)
{
	unsigned int cpu;
	struct rb_test *t;

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);

	t = rb_test_attach(test, 1, 0, true, false, 0);
	KUNIT_EXPECT_EQ(test, rb_test_write(t, t->record, 1, 64), 0);
	rb_test_mirror(t, t->record, 64);

	/* This CPU's, each of the others', a CPU's that there isn't, a task's. */
	for (cpu = 0; cpu <= nr_cpu_ids; cpu++) {
		t->rb->pause_cpu = cpu;
		KUNIT_EXPECT_EQ(test, rb_pause(t->rb, true), 0);
		KUNIT_EXPECT_EQ(test, rb_pause(t->rb, true), 0);
		KUNIT_EXPECT_TRUE(test, t->rb->paused);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
		KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
		KUNIT_EXPECT_FALSE(test, t->rb->paused);
	}

	t->rb->pause_cpu = -1;
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb, true), 0);
	KUNIT_EXPECT_TRUE(test, t->rb->paused);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
}

static struct kunit_case rb_test_cases[] = {
	KUNIT_CASE_PARAM(test_head_reserve, rb_reserve_gen_params),
	KUNIT_CASE_PARAM(test_head_space, rb_space_gen_params),
	KUNIT_CASE_PARAM(test_head_room, rb_room_gen_params),
	KUNIT_CASE(test_head_boundaries),
	KUNIT_CASE(test_head_exhaustive),
	KUNIT_CASE(test_data_size),
	KUNIT_CASE(test_born_running),
	KUNIT_CASE(test_born_paused),
	KUNIT_CASE(test_no_buffer),
	KUNIT_CASE_PARAM(test_laps, rb_laps_gen_params),
	KUNIT_CASE(test_begin_asks_the_event),
	KUNIT_CASE(test_skip_leaves_bytes),
	KUNIT_CASE_PARAM(test_copy_at_page_end, rb_direction_gen_params),
	KUNIT_CASE_PARAM(test_sample_at_page_end, rb_sample_gen_params),
	KUNIT_CASE_PARAM(test_regs_at_page_end, rb_direction_gen_params),
	KUNIT_CASE(test_sample_without_values),
	KUNIT_CASE_PARAM(test_id_sample_at_page_end, rb_direction_gen_params),
	KUNIT_CASE_PARAM(test_lost, rb_lost_gen_params),
	KUNIT_CASE(test_lost_keeps_sample_data),
	KUNIT_CASE(test_full_honours_tail),
	KUNIT_CASE(test_lost_starves_nothing),
	KUNIT_CASE(test_record_too_large),
	KUNIT_CASE(test_nested_too_large),
	KUNIT_CASE(test_nested_by_hand),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE_PARAM(test_nested_by_breakpoint, rb_break_gen_params),
	KUNIT_CASE(test_paused_after_nested),
	KUNIT_CASE(test_redirected_sample),
	KUNIT_CASE(test_nested_wakeup),
#endif
	KUNIT_CASE_PARAM(test_watermark, rb_watermark_gen_params),
	KUNIT_CASE(test_watermark_never),
	KUNIT_CASE(test_watermark_default),
	KUNIT_CASE(test_pause_resume),
	KUNIT_CASE(test_paused_sample),
	KUNIT_CASE(test_redirected),
	KUNIT_CASE(test_redirected_lost),
	KUNIT_CASE(test_redirected_nowhere),
	KUNIT_CASE(test_reserve_keeps_section),
	KUNIT_CASE_PARAM(test_sample_size, rb_sample_size_gen_params),
	KUNIT_CASE_PARAM(test_sample_stack, rb_sample_stack_gen_params),
	KUNIT_CASE_PARAM(test_group_values, rb_group_gen_params),
	KUNIT_CASE_PARAM(test_pause_waits_for_writer, rb_pause_gen_params),
	KUNIT_CASE_PARAM(test_pause_ends_by_signal, rb_pause_gen_params),
	KUNIT_CASE_PARAM(test_pause_begins_anew, rb_pause_gen_params),
	KUNIT_CASE(test_pause_of_scribbled_page),
	KUNIT_CASE_PARAM(test_pause_cpu, rb_pause_cpu_gen_params),
	KUNIT_CASE(test_pause_cpu_moved),
	KUNIT_CASE(test_pause_without_writer),
	KUNIT_CASE(test_shared_one_cpu),
	KUNIT_CASE(test_share_waits_for_writer),
	KUNIT_CASE_PARAM(test_shared_aux, rb_aux_gen_params),
	{}
};

static struct kunit_suite rb_test_suite = {
	.name = "perf_ring_buffer",
	.init = rb_test_init,
	.exit = rb_test_exit,
	.test_cases = rb_test_cases,
};

kunit_test_suite(rb_test_suite);
