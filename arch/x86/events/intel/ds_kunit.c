// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the drain of the Branch Trace Store.
 *
 * The processor stores branches in memory, a batch of which the drain copies to
 * the perf buffer as samples. Here the test stands in for the processor: for the
 * time of a call it puts a debug store of its own in the place of this CPU's,
 * along with an event, and calls the drain for real. What the perf buffer holds
 * then is walked as a reader does, and each branch is known by its number.
 *
 * What can't be seen here: the store of a real processor, its interrupts, and
 * who calls the drain when.
 */
#include <kunit/test.h>
#include <linux/irqflags.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>

#include "../../../../kernel/events/internal.h"
#include "../perf_event.h"

#define BTS_TEST_ID		0x1122334455667788ULL
#define BTS_TEST_PERIOD		0x77
/* All that a debug store holds. */
#define BTS_TEST_MAX		(BTS_BUFFER_SIZE / sizeof(struct bts_test_branch))

/* User addresses, of branch number 0. Each is 16 bytes behind the one before. */
#define BTS_TEST_FROM		0x10000UL
#define BTS_TEST_TO		0x8000000UL
/* One of the kernel, with words of any width. */
#define BTS_TEST_KERNEL		((unsigned long)-SZ_1M)

/* As the processor stores it. */
struct bts_test_branch {
	u64	from;
	u64	to;
	u64	flags;
};

/* As the sample type below lays it out. 40 bytes, so that some cross pages. */
#define BTS_TEST_SAMPLE		(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR |	\
				 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)

union bts_test_record {
	struct perf_event_header	header;
	struct {
		struct perf_event_header	header;
		u64				ip;
		u64				addr;
		u32				cpu, reserved;
		u64				period;
	} sample;
	struct {
		struct perf_event_header	header;
		u64				id;
		u64				lost;
	} lost;
};

#define BTS_TEST_SIZE		sizeof_field(union bts_test_record, sample)
#define BTS_TEST_LOST_SIZE	sizeof_field(union bts_test_record, lost)

struct bts_test {
	struct perf_event	event;
	struct perf_event	child;
	struct perf_buffer	*rb;
	unsigned long		data_size;
	struct debug_store	*ds;
	struct bts_test_branch	*branches;

	/* The branches in the store, and the number of the next one. */
	unsigned int		stored;
	unsigned int		next;
};

static int bts_test_init(struct kunit *test)
{
	struct bts_test *t;

	t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t);
	/* Debug stores are aligned to pages, and so is what has the size of one. */
	BUILD_BUG_ON(sizeof(*t->ds) != PAGE_SIZE);
	t->ds = kunit_kzalloc(test, sizeof(*t->ds), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->ds);
	t->branches = kunit_kzalloc(test, BTS_BUFFER_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->branches);

	t->ds->bts_buffer_base = (unsigned long)t->branches;
	t->ds->bts_index = t->ds->bts_buffer_base;

	t->event.cpu = -1;
	t->event.id = BTS_TEST_ID;
	t->event.attr.sample_type = BTS_TEST_SAMPLE;
	t->event.attr.exclude_kernel = 1;
	t->event.header_size = BTS_TEST_SIZE - sizeof(struct perf_event_header);
	t->event.fixed_size = t->event.header_size;
	t->event.hw.last_period = BTS_TEST_PERIOD;

	test->priv = t;

	return 0;
}

static void bts_test_detach(struct bts_test *t)
{
	struct perf_buffer *rb = t->rb;

	rcu_assign_pointer(t->event.rb, NULL);
	synchronize_rcu();

	t->rb = NULL;
	if (rb)
		ring_buffer_put(rb);
}

static void bts_test_exit(struct kunit *test)
{
	if (test->priv)
		bts_test_detach(test->priv);
}

/* Begin anew: attach a new buffer to the event, one that nobody waits for. */
static struct bts_test *bts_test_attach(struct kunit *test, int nr_pages,
					bool backward, bool writable)
{
	struct bts_test *t = test->priv;

	bts_test_detach(t);
	t->rb = rb_alloc(nr_pages, 0, -1, writable ? RING_BUFFER_WRITABLE : 0);
	KUNIT_ASSERT_NOT_NULL(test, t->rb);
	t->rb->watermark = LONG_MAX;

	t->data_size = (unsigned long)nr_pages * PAGE_SIZE;
	t->next = 0;
	t->event.attr.write_backward = backward;
	t->event.hw.interrupts = 0;
	t->event.pending_kill = 0;
	atomic64_set(&t->event.lost_samples, 0);
	rcu_assign_pointer(t->event.rb, t->rb);

	return t;
}

/* The processor takes branches. */
static void bts_test_store(struct bts_test *t, unsigned int count)
{
	struct bts_test_branch *branch;

	while (count--) {
		branch = &t->branches[t->stored++];
		branch->from = BTS_TEST_FROM + 16 * t->next;
		branch->to = BTS_TEST_TO + 16 * t->next;
		branch->flags = 0;
		t->next++;
	}
	t->ds->bts_index = (unsigned long)&t->branches[t->stored];
}

/* One that leads into the kernel, or out of it. It has no number. */
static void bts_test_store_kernel(struct bts_test *t, bool from)
{
	bts_test_store(t, 1);
	t->next--;
	if (from)
		t->branches[t->stored - 1].from = BTS_TEST_KERNEL;
	else
		t->branches[t->stored - 1].to = BTS_TEST_KERNEL;
}

/*
 * With interrupts off, as for all callers of the drain. No other event of this
 * CPU can be there while the tests run, and be it for an NMI.
 */
static int bts_test_drain_event(struct bts_test *t, struct perf_event *event,
				bool active)
{
	struct perf_event *saved_event;
	struct debug_store *saved_ds;
	struct cpu_hw_events *cpuc;
	unsigned int saved_active;
	unsigned long flags;
	int ret;

	local_irq_save(flags);
	cpuc = this_cpu_ptr(&cpu_hw_events);
	saved_event = cpuc->events[INTEL_PMC_IDX_FIXED_BTS];
	saved_ds = cpuc->ds;
	saved_active = x86_pmu.bts_active;

	cpuc->ds = t->ds;
	x86_pmu.bts_active = active;
	cpuc->events[INTEL_PMC_IDX_FIXED_BTS] = event;

	ret = intel_pmu_drain_bts_buffer();

	cpuc->events[INTEL_PMC_IDX_FIXED_BTS] = saved_event;
	x86_pmu.bts_active = saved_active;
	cpuc->ds = saved_ds;
	local_irq_restore(flags);

	if (t->ds->bts_index == t->ds->bts_buffer_base)
		t->stored = 0;

	return ret;
}

static void bts_test_drain(struct kunit *test, struct bts_test *t)
{
	KUNIT_ASSERT_GT(test, t->stored, 0);
	KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, &t->event, true), 1);
	/* Whatever became of them, the branches are out of the store. */
	KUNIT_ASSERT_EQ(test, t->ds->bts_index, t->ds->bts_buffer_base);
}

static void bts_test_batch(struct kunit *test, struct bts_test *t,
			   unsigned int count)
{
	bts_test_store(t, count);
	bts_test_drain(test, t);
}

/* The record at a position of the buffer. */
static void bts_test_read(struct bts_test *t, unsigned long pos,
			  union bts_test_record *record)
{
	unsigned long page_size = PAGE_SIZE << page_order(t->rb);
	unsigned long at;
	unsigned int i;

	for (i = 0; i < sizeof(*record); i++) {
		at = (pos + i) % t->data_size;
		((u8 *)record)[i] = *((u8 *)t->rb->data_pages[at / page_size] +
				      at % page_size);
	}
}

/*
 * Expect the samples of the branches @from to @to there, in this order, be it up
 * or down. Returns the position behind them.
 */
static unsigned long bts_test_samples(struct kunit *test, struct bts_test *t,
				      unsigned long pos, unsigned int from,
				      unsigned int to)
{
	union bts_test_record r;
	unsigned int i = from;

	for (;;) {
		bts_test_read(t, pos, &r);
		KUNIT_ASSERT_EQ(test, r.header.type, PERF_RECORD_SAMPLE);
		KUNIT_ASSERT_EQ(test, r.header.size, BTS_TEST_SIZE);
		KUNIT_ASSERT_EQ(test, r.sample.ip, BTS_TEST_FROM + 16 * i);
		KUNIT_ASSERT_EQ(test, r.sample.addr, BTS_TEST_TO + 16 * i);
		KUNIT_ASSERT_EQ(test, r.sample.period, BTS_TEST_PERIOD);
		pos += BTS_TEST_SIZE;
		if (i == to)
			return pos;
		i += from < to ? 1 : -1;
	}
}

static unsigned long bts_test_lost(struct kunit *test, struct bts_test *t,
				   unsigned long pos, u64 lost)
{
	union bts_test_record r;

	bts_test_read(t, pos, &r);
	KUNIT_ASSERT_EQ(test, r.header.type, PERF_RECORD_LOST);
	KUNIT_ASSERT_EQ(test, r.header.size, BTS_TEST_LOST_SIZE);
	KUNIT_EXPECT_EQ(test, r.lost.id, BTS_TEST_ID);
	KUNIT_EXPECT_EQ(test, r.lost.lost, lost);

	return pos + BTS_TEST_LOST_SIZE;
}

static unsigned long bts_test_head(struct bts_test *t)
{
	return t->rb->user_page->data_head;
}

/* What was written, and what is counted as lost. */
static void bts_test_counts(struct kunit *test, struct bts_test *t,
			    unsigned long bytes, unsigned int lost)
{
	unsigned long head = bts_test_head(t);

	KUNIT_EXPECT_EQ(test, t->event.attr.write_backward ? 0UL - head : head,
			bytes);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb->head), (long)head);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), lost);
	KUNIT_EXPECT_EQ(test, t->rb->nest, 0);
}

/*
 * The walk from the head never comes to a branch that was taken after the one
 * before; a reader of a forward buffer finds them as they were taken.
 */
static void test_bts_order(struct kunit *test)
{
	static const unsigned int batches[] = { 1, 2, 7, 100, 1, 200 };
	unsigned int i, n, total;
	struct bts_test *t;

	for (i = 0; i < 4; i++) {
		bool backward = i & 1;

		t = bts_test_attach(test, 8, backward, i & 2);
		for (n = 0, total = 0; n < ARRAY_SIZE(batches); n++) {
			bts_test_batch(test, t, batches[n]);
			total += batches[n];
			bts_test_counts(test, t, total * BTS_TEST_SIZE, 0);
			KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, n + 1);
			KUNIT_EXPECT_EQ(test, t->event.pending_kill, POLL_IN);

			if (backward)
				bts_test_samples(test, t, bts_test_head(t),
						 total - 1, 0);
			else
				bts_test_samples(test, t, 0, 0, total - 1);
		}
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
	}
}

/* As many laps of the buffer as a full store makes: the newest branches remain. */
static void test_bts_laps(struct kunit *test)
{
	const unsigned int whole = PAGE_SIZE / BTS_TEST_SIZE;
	unsigned long head;
	struct bts_test *t;
	unsigned int n;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = bts_test_attach(test, 1, backward, false);
		for (n = 1; n < 4; n++) {
			bts_test_batch(test, t, BTS_TEST_MAX);
			bts_test_counts(test, t,
					n * BTS_TEST_MAX * BTS_TEST_SIZE, 0);
			head = bts_test_head(t);
			if (backward)
				bts_test_samples(test, t, head, t->next - 1,
						 t->next - whole);
			else
				bts_test_samples(test, t,
						 head - whole * BTS_TEST_SIZE,
						 t->next - whole, t->next - 1);
		}
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
	}
}

/* A paused buffer takes none of them, and loses them one by one. */
static void test_bts_paused(struct kunit *test)
{
	unsigned long bytes;
	struct bts_test *t;
	unsigned long pos;
	int i;

	for (i = 0; i < 4; i++) {
		bool backward = i & 1;

		t = bts_test_attach(test, 1, backward, i & 2);
		bts_test_batch(test, t, 3);

		rb_toggle_paused(t->rb, true);
		bts_test_batch(test, t, 1);
		bts_test_counts(test, t, 3 * BTS_TEST_SIZE, 1);
		bts_test_batch(test, t, 500);
		bts_test_counts(test, t, 3 * BTS_TEST_SIZE, 501);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 501);
		KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, 1);

		rb_toggle_paused(t->rb, false);
		bts_test_batch(test, t, 4);
		bytes = 7 * BTS_TEST_SIZE + BTS_TEST_LOST_SIZE;
		bts_test_counts(test, t, bytes, 0);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 501);
		KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, 2);

		/* The loss comes between what was before and what was after it. */
		if (backward) {
			pos = bts_test_samples(test, t, bts_test_head(t), 507, 504);
			pos = bts_test_lost(test, t, pos, 501);
			bts_test_samples(test, t, pos, 2, 0);
		} else {
			pos = bts_test_samples(test, t, 0, 0, 2);
			pos = bts_test_lost(test, t, pos, 501);
			bts_test_samples(test, t, pos, 504, 507);
		}
	}
}

/*
 * Expect each branch to be there or to be counted, where it is
 * missing. All that was written is there still.
 */
static void bts_test_account(struct kunit *test, struct bts_test *t)
{
	bool backward = t->event.attr.write_backward;
	unsigned long head = bts_test_head(t), done = 0;
	unsigned int lost = local_read(&t->rb->lost);
	unsigned int seq = backward ? t->next - lost : 0;
	unsigned long pos = backward ? head : 0;
	union bts_test_record r;

	while (done < (backward ? 0UL - head : head)) {
		bts_test_read(t, pos + done, &r);
		done += r.header.size;
		KUNIT_ASSERT_GE(test, r.header.size, sizeof(r.header));
		if (r.header.type == PERF_RECORD_LOST) {
			KUNIT_EXPECT_EQ(test, r.lost.id, BTS_TEST_ID);
			seq += backward ? -r.lost.lost : r.lost.lost;
			continue;
		}
		if (backward)
			seq--;
		KUNIT_ASSERT_EQ(test, r.header.type, PERF_RECORD_SAMPLE);
		KUNIT_ASSERT_EQ(test, r.sample.ip, BTS_TEST_FROM + 16 * seq);
		KUNIT_ASSERT_EQ(test, r.sample.addr, BTS_TEST_TO + 16 * seq);
		if (!backward)
			seq++;
	}
	KUNIT_EXPECT_EQ(test, seq, backward ? 0 : t->next - lost);
}

/*
 * A buffer whose reader is too slow: what has no place in it is counted, and told
 * exactly where it is missing.
 */
static void test_bts_full(struct kunit *test)
{
	unsigned long head, pos;
	struct bts_test *t;
	unsigned int lost;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = bts_test_attach(test, 1, backward, true);
		bts_test_batch(test, t, 10);
		bts_test_account(test, t);
		bts_test_batch(test, t, 2000);
		bts_test_account(test, t);
		KUNIT_EXPECT_GT(test, atomic64_read(&t->event.lost_samples), 1900);

		/* As much as that isn't too much for it. */
		head = bts_test_head(t);
		KUNIT_EXPECT_GE(test, backward ? 0UL - head : head, PAGE_SIZE / 2);

		/* Now there is no place at all. */
		t->rb->user_page->data_tail = head + (backward ? PAGE_SIZE - 8 :
							8 - PAGE_SIZE);
		lost = local_read(&t->rb->lost) + 3;
		bts_test_batch(test, t, 3);
		KUNIT_EXPECT_EQ(test, bts_test_head(t), head);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), lost);

		t->rb->user_page->data_tail = head;
		bts_test_batch(test, t, 2);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 0);
		if (backward) {
			pos = bts_test_samples(test, t, bts_test_head(t), 2014, 2013);
			bts_test_lost(test, t, pos, lost);
		} else {
			pos = bts_test_lost(test, t, head, lost);
			bts_test_samples(test, t, pos, 2013, 2014);
		}
	}
}

/* Branches into the kernel and out of it aren't for this event: not even lost. */
static void test_bts_kernel(struct kunit *test)
{
	struct bts_test *t;
	union bts_test_record r;
	unsigned int i, n;

	for (i = 0; i < 4; i++) {
		bool backward = i & 1;

		t = bts_test_attach(test, 2, backward, i & 2);
		for (n = 0; n < 30; n++) {
			bts_test_store_kernel(t, n & 1);
			bts_test_store(t, n % 3);
			bts_test_store_kernel(t, !(n & 1));
		}
		KUNIT_ASSERT_EQ(test, t->next, 30);
		bts_test_drain(test, t);
		bts_test_counts(test, t, 30 * BTS_TEST_SIZE, 0);
		if (backward)
			bts_test_samples(test, t, bts_test_head(t), 29, 0);
		else
			bts_test_samples(test, t, 0, 0, 29);

		/* Nothing for the event at all: no news, no loss. */
		for (n = 0; n < 2; n++) {
			rb_toggle_paused(t->rb, n);
			bts_test_store_kernel(t, true);
			bts_test_store_kernel(t, false);
			bts_test_drain(test, t);
			bts_test_counts(test, t, 30 * BTS_TEST_SIZE, 0);
			KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, 1);
		}

		bts_test_store_kernel(t, true);
		bts_test_batch(test, t, 4);
		bts_test_counts(test, t, 30 * BTS_TEST_SIZE, 4);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 4);
	}

	t = bts_test_attach(test, 1, true, false);
	t->event.attr.exclude_kernel = 0;
	bts_test_store_kernel(t, true);
	bts_test_batch(test, t, 2);
	bts_test_counts(test, t, 3 * BTS_TEST_SIZE, 0);
	bts_test_read(t, bts_test_samples(test, t, bts_test_head(t), 1, 0), &r);
	KUNIT_EXPECT_EQ(test, r.sample.ip, (u64)BTS_TEST_KERNEL);
}

/* The buffer of an inherited event is its parent's, and so are the losses. */
static void test_bts_inherited(struct kunit *test)
{
	struct bts_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = bts_test_attach(test, 1, backward, false);
		t->child = t->event;
		RCU_INIT_POINTER(t->child.rb, NULL);
		t->child.parent = &t->event;

		bts_test_store(t, 3);
		KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, &t->child, true), 1);
		bts_test_counts(test, t, 3 * BTS_TEST_SIZE, 0);

		rb_toggle_paused(t->rb, true);
		bts_test_store(t, 5);
		KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, &t->child, true), 1);
		bts_test_counts(test, t, 3 * BTS_TEST_SIZE, 5);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 5);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->child.lost_samples), 0);
	}
}

/* The samples of a batch are all of one size. If it is too large, all are lost. */
static void test_bts_large_samples(struct kunit *test)
{
	struct bts_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = bts_test_attach(test, 64, backward, false);

		/* As large as can be, hence one by one. */
		t->event.header_size = 65528 - sizeof(struct perf_event_header);
		t->event.fixed_size = t->event.header_size;
		bts_test_batch(test, t, 10);
		bts_test_counts(test, t, 10 * 65528, 0);

		/* And what 16 bits can't say. */
		t->event.id_header_size = 8;
		bts_test_store_kernel(t, true);
		bts_test_batch(test, t, 10);
		bts_test_counts(test, t, 10 * 65528, 10);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 10);
		KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, 1);

		bts_test_store_kernel(t, true);
		bts_test_drain(test, t);
		bts_test_counts(test, t, 10 * 65528, 10);
		t->event.id_header_size = 0;
	}
}

/* Nowhere to write to: nothing that a reader could miss. */
static void test_bts_no_buffer(struct kunit *test)
{
	struct bts_test *t;
	int backward;

	for (backward = 0; backward < 2; backward++) {
		t = bts_test_attach(test, 0, backward, false);
		bts_test_batch(test, t, 3);
		bts_test_counts(test, t, 0, 0);

		bts_test_detach(t);
		bts_test_batch(test, t, 3);
		KUNIT_EXPECT_EQ(test, atomic64_read(&t->event.lost_samples), 0);
		KUNIT_EXPECT_EQ(test, t->event.hw.interrupts, 0);
	}
}

/* Nothing to drain: said so, and left alone. */
static void test_bts_nothing(struct kunit *test)
{
	struct bts_test *t = bts_test_attach(test, 1, true, false);

	KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, &t->event, true), 0);

	bts_test_store(t, 3);
	KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, NULL, true), 0);
	KUNIT_EXPECT_EQ(test, bts_test_drain_event(t, &t->event, false), 0);
	KUNIT_EXPECT_EQ(test, t->stored, 3);
	bts_test_counts(test, t, 0, 0);
}

static struct kunit_case bts_test_cases[] = {
	KUNIT_CASE(test_bts_order),
	KUNIT_CASE(test_bts_laps),
	KUNIT_CASE(test_bts_paused),
	KUNIT_CASE(test_bts_full),
	KUNIT_CASE(test_bts_kernel),
	KUNIT_CASE(test_bts_inherited),
	KUNIT_CASE(test_bts_large_samples),
	KUNIT_CASE(test_bts_no_buffer),
	KUNIT_CASE(test_bts_nothing),
	{}
};

static struct kunit_suite bts_test_suite = {
	.name = "perf_intel_bts",
	.init = bts_test_init,
	.exit = bts_test_exit,
	.test_cases = bts_test_cases,
};

kunit_test_suite(bts_test_suite);
