// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of triggers: samples that freeze buffers.
 *
 * Real sets, buffers from rb_alloc(), and events without a PMU whose overflow handler
 * is called as an overflow does. What they leave is found as a reader finds it, from
 * the head on. Triggers nest where it matters: by hand between begin and end, and by
 * a hardware breakpoint on each word that a writer uses, between two instructions of
 * it, like an NMI.
 *
 * What can't be seen here: descriptors, mappings, tasks. The selftest
 * tools/testing/selftests/perf_events/trigger.c is for that.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/iopoll.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "breakpoint_kunit.h"
#include "internal.h"
#include "ring_buffer_head.h"
#include "ring_buffer_kunit.h"
#include "trigger.h"

/* A sample: the header and an address, by which it is known. */
#define TRIGGER_TEST_SIZE	16
#define TRIGGER_TEST_EVENTS	3

struct trigger_test_sample {
	struct perf_event_header	header;
	u64				addr;
};

/* The first event is the trigger, as a rule. */
struct trigger_test {
	struct perf_event	event[TRIGGER_TEST_EVENTS];
	struct perf_buffer	*rb[TRIGGER_TEST_EVENTS];
	struct perf_trigger_set	*set;
	u64			generation;

	/* The trigger of a breakpoint. */
	unsigned int		hits;
	u64			word;		/* as the last hit left it */
	unsigned int		fire_at;
	bool			fired;
	int			nested;		/* the event that samples then */
	struct perf_buffer	*redirect_to;	/* or where the first one goes then */
	bool			pause_then;	/* after that, its buffer */
	unsigned int		behind;		/* samples that came behind a record */
	struct perf_trigger_set	*other;		/* that the first event is added to */

	/* Two CPUs that fire at the same time. */
	atomic_t		ready;
	struct completion	done[2];
};

static void trigger_test_wakeup(struct irq_work *work)
{
}

/* An event of its own id with a buffer of a page, which an event of all tasks would have. */
static void trigger_test_open(struct kunit *test, struct trigger_test *t, int i,
			      bool backward)
{
	struct perf_event *event = &t->event[i];

	event->cpu = -1;
	event->id = 100 + i;
	event->clock = local_clock;
	event->attr.sample_period = 1;
	event->attr.write_backward = backward;
	event->attr.sample_type = PERF_SAMPLE_ADDR;
	event->header_size = TRIGGER_TEST_SIZE - sizeof(struct perf_event_header);
	event->fixed_size = event->header_size;
	event->overflow_handler = backward ? perf_event_output_backward :
					     perf_event_output_forward;
	mutex_init(&event->mmap_mutex);
	mutex_init(&event->child_mutex);
	INIT_LIST_HEAD(&event->child_list);
	init_irq_work(&event->pending_irq, trigger_test_wakeup);

	t->rb[i] = rb_alloc(1, 0, -1, 0);
	KUNIT_ASSERT_NOT_NULL(test, t->rb[i]);
	rcu_assign_pointer(event->rb, t->rb[i]);
}

static int trigger_test_init(struct kunit *test)
{
	struct trigger_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;

	return 0;
}

static void trigger_test_close(struct trigger_test *t)
{
	int i;

	if (t->set)
		perf_trigger_free(t->set);
	t->set = NULL;
	t->generation = 0;

	for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
		if (!t->rb[i])
			continue;
		irq_work_sync(&t->event[i].pending_irq);
		perf_trigger_free_event(&t->event[i]);
		perf_trigger_leave(t->rb[i]);
		rcu_assign_pointer(t->event[i].rb, NULL);
		synchronize_rcu();
		ring_buffer_put(t->rb[i]);
		t->rb[i] = NULL;
	}
	memset(t->event, 0, sizeof(t->event));
}

static void trigger_test_exit(struct kunit *test)
{
	if (test->priv)
		trigger_test_close(test->priv);
}

/* Three buffers in a set, whose trigger is the first event; not yet armed. */
static struct trigger_test *trigger_test_set(struct kunit *test,
					     struct perf_trigger_attr attr, bool backward)
{
	struct trigger_test *t = test->priv;
	int i;

	trigger_test_close(t);

	attr.size = sizeof(attr);
	t->set = perf_trigger_alloc(&attr, local_clock);
	KUNIT_ASSERT_NOT_NULL(test, t->set);
	for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
		trigger_test_open(test, t, i, backward);
		KUNIT_ASSERT_EQ(test, perf_trigger_join(t->set, &t->event[i]), 0);
	}
	KUNIT_ASSERT_EQ(test, perf_trigger_add(t->set, &t->event[0]), 0);

	return t;
}

static void trigger_test_arm(struct kunit *test, struct trigger_test *t)
{
	KUNIT_ASSERT_EQ(test, perf_trigger_arm(t->set, &t->generation), 0);
}

static void trigger_test_sample(struct trigger_test *t, int i, u64 addr)
{
	struct perf_event *event = &t->event[i];
	struct perf_sample_data data;
	struct pt_regs regs = { };

	perf_sample_data_init(&data, addr, 0);
	READ_ONCE(event->overflow_handler)(event, &data, &regs);
}

/* The sample that is @nr records older than the newest one. */
static u64 trigger_test_newest(struct trigger_test *t, int i, unsigned int nr)
{
	bool backward = t->event[i].attr.write_backward;
	unsigned long head = t->rb[i]->user_page->data_head;
	unsigned long at = backward ? head + nr * TRIGGER_TEST_SIZE :
				      head - (nr + 1) * TRIGGER_TEST_SIZE;
	struct trigger_test_sample *sample;

	sample = t->rb[i]->data_pages[0] + (at & (PAGE_SIZE - 1));
	if (sample->header.type != PERF_RECORD_SAMPLE ||
	    sample->header.size != TRIGGER_TEST_SIZE)
		return 0;

	return sample->addr;
}

static unsigned long trigger_test_bytes(struct trigger_test *t, int i)
{
	return rb_head_bytes(local_read(&t->rb[i]->head),
			     t->event[i].attr.write_backward);
}

/* Sleep until @cond holds, for a minute at most, however long a sleep takes. True if it does. */
#define TRIGGER_TEST_WAIT(cond)							\
({										\
	bool __holds;								\
										\
	read_poll_timeout((bool), __holds, __holds, USEC_PER_MSEC,		\
			  60 * USEC_PER_SEC, false, cond);			\
	__holds;								\
})

static bool trigger_test_frozen(struct trigger_test *t)
{
	return wait_event_timeout(t->set->waitq, perf_trigger_state(t->set) ==
				  PERF_TRIGGER_FROZEN, 60 * HZ);
}

static struct perf_trigger_report trigger_test_report(struct trigger_test *t)
{
	struct perf_trigger_report report;

	perf_trigger_tell(t->set, &report);

	return report;
}

static const struct perf_trigger_attr trigger_at_once = {
	.flags = PERF_TRIGGER_AT_ONCE,
};

/* Without a depth, the trigger's record is the last one; again when it is re-armed. */
static void test_at_once(struct kunit *test)
{
	struct perf_trigger_report report;
	struct trigger_test *t;
	int round, i, backward;

	for (backward = 0; backward < 2; backward++) {
		t = trigger_test_set(test, trigger_at_once, backward);
		for (round = 1; round <= 3; round++) {
			u64 addr = round * 1000;

			trigger_test_arm(test, t);
			KUNIT_EXPECT_EQ(test, t->generation, round);
			for (i = 0; i < TRIGGER_TEST_EVENTS; i++)
				if (i)
					trigger_test_sample(t, i, addr + i);
			trigger_test_sample(t, 0, addr + 100);
			/* At once: nothing waits for the irq_work. */
			trigger_test_sample(t, 0, addr + 200);
			KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));

			for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
				unsigned long bytes = trigger_test_bytes(t, i);
				u64 newest = i ? addr + i : addr + 100;

				trigger_test_sample(t, i, addr + 300);
				KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, i), bytes);
				KUNIT_EXPECT_EQ(test, trigger_test_newest(t, i, 0), newest);
				KUNIT_EXPECT_TRUE(test, t->rb[i]->paused & RB_PAUSED_TRIGGER);
			}

			report = trigger_test_report(t);
			KUNIT_EXPECT_EQ(test, report.generation, round);
			KUNIT_EXPECT_EQ(test, report.id, 100);
			KUNIT_EXPECT_EQ(test, report.flags, 0);
			KUNIT_EXPECT_EQ(test, report.suppressed, 2);
			KUNIT_EXPECT_EQ(test, report.held_off, 0);
			KUNIT_EXPECT_EQ(test, report.until, report.time);
		}
	}
}

/*
 * Spin for @ns, or until @release if that is given: false if it didn't come. Not by
 * mdelay(), whose measure a processor takes when it boots, on a busy machine a wrong
 * one.
 */
static bool trigger_test_spin(u64 ns, const bool *release)
{
	u64 limit = ktime_get_mono_fast_ns() + ns;

	while (!release || !READ_ONCE(*release)) {
		if (ktime_get_mono_fast_ns() > limit)
			return false;
		cpu_relax();
	}

	return true;
}

/* A trigger in the midst of another record of its buffer waits for that one. */
static void test_between_begin_and_end(struct kunit *test)
{
	struct trigger_test_sample sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = TRIGGER_TEST_SIZE },
		.addr = 7,
	};
	struct perf_output_handle handle;
	struct perf_sample_data data;
	struct trigger_test *t;
	unsigned int state;
	int i, ret;

	for (i = 0; i < 4; i++) {
		struct perf_trigger_attr attr = trigger_at_once;

		/* With a depth that is used up by the trigger's next record. */
		if (i & 2)
			attr = (struct perf_trigger_attr) {
				.depth_ns = 60ULL * NSEC_PER_SEC,
				.depth_bytes = 8,
			};
		t = trigger_test_set(test, attr, i & 1);
		trigger_test_arm(test, t);

		perf_sample_data_init(&data, 0, 0);
		ret = perf_output_begin(&handle, &data, &t->event[0], sizeof(sample));
		KUNIT_ASSERT_EQ(test, ret, 0);
		trigger_test_sample(t, 0, 8);
		trigger_test_sample(t, 0, 9);
		trigger_test_spin(20 * NSEC_PER_MSEC, NULL);
		state = perf_trigger_state(t->set);
		perf_output_copy(&handle, &sample, sizeof(sample));
		perf_output_end(&handle);

		KUNIT_EXPECT_EQ(test, state, PERF_TRIGGER_FIRED);
		if (i & 2) {
			trigger_test_sample(t, 1, 10);
			trigger_test_sample(t, 2, 10);
		}
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 8);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 1), 7);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb[0]->lost), 1);
		KUNIT_EXPECT_EQ(test, t->rb[0]->nest, 0);
	}
}

/* The last buffer leaves after the cmpxchg and before the note: the set waits for the note. */
static void test_leaves_before_note(struct kunit *test)
{
	const struct perf_trigger_attr depth = { .depth_ns = 60ULL * NSEC_PER_SEC };
	struct perf_trigger_report report;
	struct perf_trigger_set *set;
	struct trigger_test *t;
	unsigned int state;
	int i, at_once;

	for (at_once = 0; at_once < 2; at_once++) {
		t = trigger_test_set(test, at_once ? trigger_at_once : depth, false);
		trigger_test_arm(test, t);

		rcu_read_lock();
		set = perf_trigger_take(&t->event[0]);
		rcu_read_unlock();
		KUNIT_ASSERT_PTR_EQ(test, set, t->set);

		for (i = 0; i < TRIGGER_TEST_EVENTS; i++)
			perf_trigger_leave(t->rb[i]);
		irq_work_sync(&set->reached_work);
		flush_delayed_work(&set->work);
		state = perf_trigger_state(set);

		rcu_read_lock();
		perf_trigger_fired(set, &t->event[0], NULL);
		rcu_read_unlock();

		KUNIT_EXPECT_EQ(test, state, PERF_TRIGGER_FIRED);
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		report = trigger_test_report(t);
		KUNIT_EXPECT_EQ(test, report.id, 100);
		KUNIT_EXPECT_EQ(test, report.flags, PERF_TRIGGER_NO_RECORD);
	}
}

#ifdef CONFIG_HAVE_HW_BREAKPOINT
struct trigger_break_param {
	const char	*name;
	size_t		offset;		/* of the word, in the buffer */
	unsigned int	size;		/* of the word */
	bool		on_read;
	unsigned int	fire_at;	/* which hit */
};

/* The words that a writer uses, in the order that it does. */
static const struct trigger_break_param trigger_break_params[] = {
	{ "nest was raised", offsetof(struct perf_buffer, nest), 4, false, 0 },
	{ "the head was read", offsetof(struct perf_buffer, head), sizeof(long), true, 0 },
	{ "the flag was tested early", offsetof(struct perf_buffer, paused), 4, true, 0 },
	{ "the flag was tested", offsetof(struct perf_buffer, paused), 4, true, 1 },
	{ "the head was moved", offsetof(struct perf_buffer, head), sizeof(long), false, 0 },
	{ "nest was lowered", offsetof(struct perf_buffer, nest), 4, false, 1 },
};

static void trigger_break_desc(const struct trigger_break_param *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(trigger_break, trigger_break_params, trigger_break_desc);

/* A breakpoint on a word, to be released before all else. */
static struct perf_event *trigger_test_watch_word(struct kunit *test, struct trigger_test *t,
						  void *word, unsigned int size, bool on_read,
						  perf_overflow_handler_t handler)
{
	t->hits = 0;
	t->word = kunit_breakpoint_word(word, size);
	t->fired = false;

	return kunit_breakpoint(test, word, size, on_read, handler, t);
}

/* On a word of the first buffer. */
static struct perf_event *trigger_test_watch(struct kunit *test, struct trigger_test *t,
					     const struct trigger_break_param *p,
					     perf_overflow_handler_t handler)
{
	t->fire_at = p->fire_at;

	return trigger_test_watch_word(test, t, (void *)t->rb[0] + p->offset, p->size,
				       p->on_read, handler);
}

static void trigger_test_break(struct perf_event *bp, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;

	if (!kunit_breakpoint_counts(bp, &t->word) || t->hits++ != t->fire_at)
		return;

	t->fired = true;
	trigger_test_sample(t, t->nested, t->nested ? 2 : 1000);
}

/*
 * Wherever a trigger comes in, between two instructions of a writer of its buffer, no
 * record is behind the trigger's own. Nor is one that comes in between two of the
 * trigger's.
 */
static void test_newest_by_breakpoint(struct kunit *test)
{
	const struct trigger_break_param *p = test->param_value;
	struct perf_event *bp;
	struct trigger_test *t;
	unsigned long bytes;
	int i;

	kunit_needs_breakpoint(test);

	for (i = 0; i < 4; i++) {
		int outer = i & 2 ? 0 : 1;

		t = trigger_test_set(test, trigger_at_once, i & 1);
		/* Another event that writes to the trigger's buffer. */
		rcu_assign_pointer(t->event[1].rb, t->rb[0]);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 1, 1);

		t->nested = !outer;
		bp = trigger_test_watch(test, t, p, trigger_test_break);
		trigger_test_sample(t, outer, outer ? 2 : 1000);
		perf_event_release_kernel(bp);

		KUNIT_ASSERT_TRUE(test, t->fired);
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 1000);
		KUNIT_EXPECT_EQ(test, trigger_test_report(t).flags, 0);

		/* The other is before it, or was dropped and counted. */
		bytes = trigger_test_bytes(t, 0);
		KUNIT_EXPECT_EQ(test, bytes / TRIGGER_TEST_SIZE +
				local_read(&t->rb[0]->lost), 3);
		KUNIT_EXPECT_EQ(test, t->rb[0]->nest, 0);

		rcu_assign_pointer(t->event[1].rb, t->rb[1]);
	}
}

static void trigger_test_break_depth(struct perf_event *bp, struct perf_sample_data *data,
				     struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;

	if (!kunit_breakpoint_counts(bp, &t->word) || t->hits++ != t->fire_at)
		return;

	t->fired = true;
	/* The old head is further back than the writer's record is long. */
	trigger_test_sample(t, 1, 4);
	trigger_test_sample(t, 0, 1000);
	trigger_test_sample(t, 1, 3);
}

/*
 * The depth starts behind the trigger's record, also for a writer that a trigger comes in
 * between, and that takes the long way, as it has lost records to tell of.
 */
static void test_depth_by_breakpoint(struct kunit *test)
{
	const struct trigger_break_param *p = test->param_value;
	const struct perf_trigger_attr depth = {
		.depth_ns = PERF_TRIGGER_MAX_NS,
		.depth_bytes = 20 * TRIGGER_TEST_SIZE,
	};
	struct perf_trigger_member *m;
	struct perf_event *bp;
	struct trigger_test *t;
	unsigned long bytes;
	int i, n;

	kunit_needs_breakpoint(test);

	for (i = 0; i < 4; i++) {
		t = trigger_test_set(test, depth, i & 1);
		rcu_assign_pointer(t->event[1].rb, t->rb[0]);
		trigger_test_arm(test, t);
		if (i & 2) {
			KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
			trigger_test_sample(t, 1, 1);
			KUNIT_EXPECT_EQ(test, rb_resume(t->rb[0]), 0);
		}

		bp = trigger_test_watch(test, t, p, trigger_test_break_depth);
		trigger_test_sample(t, 1, 2);
		perf_event_release_kernel(bp);
		KUNIT_ASSERT_TRUE(test, t->fired);

		KUNIT_EXPECT_FALSE(test, t->rb[0]->paused & RB_PAUSED_TRIGGER);
		for (n = 0; n < 30; n++)
			trigger_test_sample(t, 1, 10);
		KUNIT_EXPECT_TRUE(test, t->rb[0]->paused & RB_PAUSED_TRIGGER);

		m = list_first_entry(&t->set->members, struct perf_trigger_member, entry);
		bytes = trigger_test_bytes(t, 0) - m->start;
		/* No more than that, and no room for another. */
		KUNIT_EXPECT_LE(test, bytes, depth.depth_bytes);
		KUNIT_EXPECT_GT(test, bytes + TRIGGER_TEST_SIZE, depth.depth_bytes);

		rcu_assign_pointer(t->event[1].rb, t->rb[1]);
	}
}

/* The depth is used up. */
static void trigger_test_break_full(struct perf_event *bp, struct perf_sample_data *data,
				    struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;

	if (!kunit_breakpoint_counts(bp, &t->word) || t->hits++)
		return;

	t->fired = true;
	trigger_test_sample(t, 1, 3);
	trigger_test_sample(t, 1, 4);
}

/* A writer that was admitted loses its place to what nests in it, and isn't counted. */
static void test_refused_by_breakpoint(struct kunit *test)
{
	const struct perf_trigger_attr depth = {
		.depth_ns = PERF_TRIGGER_MAX_NS,
		.depth_bytes = 2 * TRIGGER_TEST_SIZE,
	};
	struct perf_trigger_member *m;
	struct perf_event *bp;
	struct trigger_test *t;
	unsigned long bytes;
	int backward;

	kunit_needs_breakpoint(test);

	for (backward = 0; backward < 2; backward++) {
		t = trigger_test_set(test, depth, backward);
		rcu_assign_pointer(t->event[1].rb, t->rb[0]);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1000);
		bytes = trigger_test_bytes(t, 0);

		m = list_first_entry(&t->set->members, struct perf_trigger_member, entry);
		bp = trigger_test_watch_word(test, t, &m->records, sizeof(m->records), false,
					     trigger_test_break_full);
		trigger_test_sample(t, 1, 2);
		perf_event_release_kernel(bp);

		KUNIT_ASSERT_TRUE(test, t->fired);
		KUNIT_EXPECT_TRUE(test, t->rb[0]->paused & RB_PAUSED_TRIGGER);
		KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 0) - bytes, depth.depth_bytes);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 4);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 1), 3);
		KUNIT_EXPECT_EQ(test, local_read(&m->records), 2);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb[0]->lost), 1);
		KUNIT_EXPECT_EQ(test, t->rb[0]->nest, 0);

		rcu_assign_pointer(t->event[1].rb, t->rb[1]);
	}
}

/* The first event's output is directed elsewhere, and maybe its buffer paused. */
static void trigger_test_break_redirect(struct perf_event *bp,
					struct perf_sample_data *data,
					struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;

	if (t->fired || t->hits++ != t->fire_at)
		return;

	t->fired = true;
	rcu_assign_pointer(t->event[0].rb, t->redirect_to);
	if (t->pause_then)
		rb_change_paused(t->rb[0], 0, RB_PAUSED_IOCTL);
}

/*
 * A record was published: another event writes to the same buffer at once. Not without
 * end, as its record is published, too.
 */
static void trigger_test_break_behind(struct perf_event *bp,
				      struct perf_sample_data *data,
				      struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;
	u64 page = bp->attr.bp_addr - offsetof(struct perf_event_mmap_page, data_head);
	int i;

	for (i = 0; i < 2; i++) {
		if (page != (unsigned long)t->rb[i]->user_page || t->behind++ >= 4)
			continue;
		rcu_assign_pointer(t->event[1].rb, t->rb[i]);
		trigger_test_sample(t, 1, 3);
		rcu_assign_pointer(t->event[1].rb, t->rb[1]);
	}
}

/* How often a sample of the address @addr is in the buffer @i. */
static unsigned int trigger_test_count(struct trigger_test *t, int i, u64 addr)
{
	unsigned long nr = trigger_test_bytes(t, i) / TRIGGER_TEST_SIZE;
	unsigned int count = 0;

	while (nr--)
		count += trigger_test_newest(t, i, nr) == addr;

	return count;
}

struct trigger_redirect_param {
	const char	*name;
	bool		at_flag;	/* not at event->rb */
	bool		pause_then;
	int		to;		/* buffer 1 of the set, 2 of none, or nowhere */
	bool		backward;
};

static const struct trigger_redirect_param trigger_redirect_params[] = {
	{ "at the pointer, to the set", false, false, 1, false },
	{ "at the pointer, to the set, backward", false, false, 1, true },
	{ "at the pointer, to the set, paused", false, true, 1, false },
	{ "at the pointer, to the set, paused, backward", false, true, 1, true },
	{ "at the pointer, out of the set", false, false, 2, true },
	{ "at the pointer, out of the set, paused", false, true, 2, true },
	{ "at the pointer, to none", false, false, -1, true },
	{ "at the pointer, to none, paused", false, true, -1, true },
	{ "at the flag, to the set", true, false, 1, true },
	{ "at the flag, to the set, paused", true, true, 1, false },
	{ "at the flag, to the set, paused, backward", true, true, 1, true },
	{ "at the flag, out of the set, paused", true, true, 2, true },
	{ "at the flag, to none, paused", true, true, -1, true },
};

static void trigger_redirect_desc(const struct trigger_redirect_param *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(trigger_redirect, trigger_redirect_params, trigger_redirect_desc);

/*
 * A trigger's output is directed elsewhere while the trigger fires, at each access of
 * event->rb or of the buffer's flag in turn. If the record is in a buffer of the set, it is
 * the newest one there, and the report knows of it. If it isn't, the report says so.
 */
static void test_redirected_by_breakpoint(struct kunit *test)
{
	const struct trigger_redirect_param *p = test->param_value;
	struct perf_event *bp, *behind[2];
	unsigned int count[TRIGGER_TEST_EVENTS];
	unsigned int i, at, all;
	struct trigger_test *t;
	u32 flags;

	kunit_needs_breakpoint(test);

	for (at = 0; ; at++) {
		t = trigger_test_set(test, trigger_at_once, p->backward);
		perf_trigger_leave(t->rb[2]);
		trigger_test_arm(test, t);
		t->redirect_to = p->to < 0 ? NULL : t->rb[p->to];
		t->pause_then = p->pause_then;
		t->fire_at = at;
		t->hits = 0;
		t->fired = false;
		t->behind = 0;

		for (i = 0; i < 2; i++)
			behind[i] = kunit_breakpoint(test, &t->rb[i]->user_page->data_head,
						     sizeof(long), false,
						     trigger_test_break_behind, t);
		if (p->at_flag)
			bp = kunit_breakpoint(test, &t->rb[0]->paused,
					      sizeof(t->rb[0]->paused), true,
					      trigger_test_break_redirect, t);
		else
			bp = kunit_breakpoint(test, &t->event[0].rb,
					      sizeof(t->event[0].rb), true,
					      trigger_test_break_redirect, t);
		trigger_test_sample(t, 0, 1000);
		perf_event_release_kernel(bp);
		for (i = 0; i < 2; i++)
			perf_event_release_kernel(behind[i]);
		/* There are no more of them. */
		if (!t->fired)
			break;

		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		flags = trigger_test_report(t).flags;
		/* It is in one place, or counted. */
		all = atomic64_read(&t->event[0].lost_samples);
		for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
			count[i] = trigger_test_count(t, i, 1000);
			all += count[i];
			KUNIT_EXPECT_EQ_MSG(test, t->rb[i]->nest, 0, "%u of %u", i, at);
		}
		KUNIT_EXPECT_EQ_MSG(test, all, 1, "%u", at);
		if (count[0] + count[1])
			KUNIT_EXPECT_GT_MSG(test, t->behind, 0, "%u", at);
		for (i = 0; i < 2; i++)
			if (count[i])
				KUNIT_EXPECT_EQ_MSG(test, trigger_test_newest(t, i, 0),
						    1000, "%u of %u", i, at);
		KUNIT_EXPECT_EQ_MSG(test, flags, count[0] + count[1] ? 0 :
				    PERF_TRIGGER_NO_RECORD, "%u", at);
	}
	/* It is read once at least, and the flag before and after it is set. */
	KUNIT_EXPECT_GE(test, at, p->at_flag ? 4 : 1);
}

/* The first event's set goes away, and the event is added to another one. */
static void trigger_test_break_add(struct perf_event *bp, struct perf_sample_data *data,
				   struct pt_regs *regs)
{
	struct trigger_test *t = bp->overflow_handler_context;

	if (t->fired)
		return;

	t->fired = true;
	rcu_assign_pointer(t->event[0].trigger->set, t->other);
}

/*
 * A trigger that has fired freezes nothing of a set that it is added to before its record
 * is reserved.
 */
static void test_added_to_another(struct kunit *test)
{
	struct perf_trigger_report report;
	struct perf_event *bp;
	struct trigger_test *t;
	int ret;

	kunit_needs_breakpoint(test);

	t = trigger_test_set(test, trigger_at_once, true);
	perf_trigger_leave(t->rb[0]);
	t->rb[0]->trigger_left = false;
	t->other = perf_trigger_alloc(&trigger_at_once, local_clock);
	KUNIT_ASSERT_NOT_NULL(test, t->other);
	ret = perf_trigger_join(t->other, &t->event[0]);
	trigger_test_arm(test, t);
	t->fired = false;
	bp = kunit_breakpoint(test, &t->event[0].rb, sizeof(t->event[0].rb), true,
			      trigger_test_break_add, t);
	trigger_test_sample(t, 0, 1000);
	perf_event_release_kernel(bp);
	rcu_assign_pointer(t->event[0].trigger->set, t->set);
	perf_trigger_free(t->other);

	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_ASSERT_TRUE(test, t->fired);
	KUNIT_EXPECT_EQ(test, t->rb[0]->paused, 0);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 1000);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	report = trigger_test_report(t);
	KUNIT_EXPECT_EQ(test, report.id, 100);
	KUNIT_EXPECT_EQ(test, report.flags, PERF_TRIGGER_NO_RECORD);
}
#endif /* CONFIG_HAVE_HW_BREAKPOINT */

struct trigger_depth_param {
	const char	*name;
	unsigned int	bytes;
	unsigned int	records;	/* that each buffer takes */
};

static const struct trigger_depth_param trigger_depth_params[] = {
	{ "8 bytes", 8, 0 },
	{ "a record", TRIGGER_TEST_SIZE, 1 },
	{ "a byte less than two", 2 * TRIGGER_TEST_SIZE - 1, 1 },
	{ "ten records", 10 * TRIGGER_TEST_SIZE, 10 },
	{ "the buffer", PAGE_SIZE, PAGE_SIZE / TRIGGER_TEST_SIZE },
};

static void trigger_depth_desc(const struct trigger_depth_param *p, char *desc)
{
	strscpy(desc, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(trigger_depth, trigger_depth_params, trigger_depth_desc);

/* Each buffer takes as many bytes as were asked for, and ends the wait when all have. */
static void test_depth_in_bytes(struct kunit *test)
{
	const struct trigger_depth_param *p = test->param_value;
	const struct perf_trigger_attr attr = {
		.depth_ns = PERF_TRIGGER_MAX_NS,
		.depth_bytes = p->bytes,
	};
	struct perf_trigger_member *m;
	struct trigger_test *t;
	unsigned long before;
	unsigned int n;
	int i, backward;

	for (backward = 0; backward < 2; backward++) {
		t = trigger_test_set(test, attr, backward);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1);
		/* Here or there: the others are marked by the irq_work. */
		irq_work_sync(&t->set->irq_work);

		for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
			KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set),
					PERF_TRIGGER_FIRED);
			before = trigger_test_bytes(t, i);
			for (n = 0; n < p->records; n++)
				trigger_test_sample(t, i, 10 + n);
			KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, i) - before,
					p->records * TRIGGER_TEST_SIZE);
			KUNIT_EXPECT_EQ(test, local_read(&t->rb[i]->lost), 0);
			trigger_test_sample(t, i, 2);
			trigger_test_sample(t, i, 3);
			KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, i) - before,
					p->records * TRIGGER_TEST_SIZE);
			KUNIT_EXPECT_EQ(test, local_read(&t->rb[i]->lost), 2);
		}
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		list_for_each_entry(m, &t->set->members, entry) {
			KUNIT_EXPECT_EQ(test, local_read(&m->records), p->records);
			KUNIT_EXPECT_EQ(test, m->bytes, p->records * TRIGGER_TEST_SIZE);
		}
	}
}

/* The depth is left to a record that the buffer then has no room for: it isn't counted. */
static void test_too_large_isnt_counted(struct kunit *test)
{
	const struct perf_trigger_attr attr = { .depth_ns = PERF_TRIGGER_MAX_NS };
	struct perf_output_handle handle;
	struct perf_trigger_member *m;
	struct perf_sample_data data;
	struct trigger_test *t;
	int backward, ret;

	for (backward = 0; backward < 2; backward++) {
		t = trigger_test_set(test, attr, backward);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1);
		irq_work_sync(&t->set->irq_work);
		trigger_test_sample(t, 0, 2);

		perf_sample_data_init(&data, 0, 0);
		ret = perf_output_begin(&handle, &data, &t->event[0], 2 * PAGE_SIZE);
		if (!ret)
			perf_output_end(&handle);
		KUNIT_EXPECT_EQ(test, ret, -ENOSPC);

		m = list_first_entry(&t->set->members, struct perf_trigger_member, entry);
		KUNIT_EXPECT_EQ(test, local_read(&m->records), 1);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb[0]->lost), 1);
	}
}

/* Time ends what bytes don't, in quiet buffers, too. */
static void test_depth_in_time(struct kunit *test)
{
	const struct perf_trigger_attr attr = {
		.depth_ns = 30 * NSEC_PER_MSEC,
		.depth_bytes = PAGE_SIZE,
	};
	struct trigger_test *t = trigger_test_set(test, attr, true);
	struct perf_trigger_report report;
	struct perf_trigger_member *m;
	unsigned int written = 0;

	trigger_test_arm(test, t);
	trigger_test_sample(t, 0, 1);
	irq_work_sync(&t->set->irq_work);
	/* On a slow machine there may be time for none. */
	trigger_test_sample(t, 1, 2);
	trigger_test_sample(t, 1, 3);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	written = trigger_test_bytes(t, 1) / TRIGGER_TEST_SIZE;
	trigger_test_sample(t, 1, 4);
	KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 1), written * TRIGGER_TEST_SIZE);
	KUNIT_EXPECT_EQ(test, local_read(&t->rb[1]->lost), 3 - written);

	report = trigger_test_report(t);
	KUNIT_EXPECT_EQ(test, report.until - report.time, 30 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, local_clock(), report.until);
	list_for_each_entry(m, &t->set->members, entry)
		KUNIT_EXPECT_EQ(test, local_read(&m->records),
				m->id == 101 ? written : 0);
}

static int trigger_test_racer(void *arg)
{
	struct trigger_test *t = arg;
	int i = smp_processor_id() ? 1 : 0;

	atomic_inc(&t->ready);
	while (atomic_read(&t->ready) < 2)
		cond_resched();
	trigger_test_sample(t, i, 5 + i);
	complete(&t->done[i]);

	return 0;
}

/* Of two that fire, one wins, and the other is counted. */
static void test_fired_on_two_cpus(struct kunit *test)
{
	struct perf_trigger_report report;
	struct task_struct *task;
	struct trigger_test *t;
	unsigned int round, i, won;

	if (num_online_cpus() < 2 || !cpu_online(1))
		kunit_skip(test, "needs two CPUs");

	t = trigger_test_set(test, trigger_at_once, true);
	KUNIT_ASSERT_EQ(test, perf_trigger_add(t->set, &t->event[1]), 0);
	for (round = 0; round < 100; round++) {
		trigger_test_arm(test, t);
		atomic_set(&t->ready, 0);
		for (i = 0; i < 2; i++) {
			init_completion(&t->done[i]);
			task = kthread_create_on_cpu(trigger_test_racer, t, i, "trigger/%u");
			KUNIT_ASSERT_FALSE(test, IS_ERR(task));
			wake_up_process(task);
		}
		for (i = 0; i < 2; i++)
			wait_for_completion(&t->done[i]);
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		report = trigger_test_report(t);
		won = report.id - 100;
		KUNIT_ASSERT_LT(test, won, 2);
		KUNIT_EXPECT_EQ(test, report.suppressed, 1);
		KUNIT_EXPECT_EQ(test, report.cpu, won);
		KUNIT_EXPECT_EQ(test, report.flags, 0);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, won, 0), 5 + won);
	}
}

/* The ioctl's pause and the trigger's don't undo each other. */
static void test_pause_is_another(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);

	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[1], true), 0);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_EQ(test, trigger_test_report(t).flags, PERF_TRIGGER_BY_USER);

	/* The trigger's remains. */
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb[0]), 0);
	trigger_test_sample(t, 0, 1);
	KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 0), 0);

	/* So does the ioctl's. */
	trigger_test_arm(test, t);
	trigger_test_sample(t, 1, 1);
	trigger_test_sample(t, 2, 1);
	KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 1), 0);
	KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 2), TRIGGER_TEST_SIZE);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb[1]), 0);
	trigger_test_sample(t, 1, 1);
	KUNIT_EXPECT_NE(test, trigger_test_bytes(t, 1), 0);

	/* A trigger whose buffer is paused has no record, and says so. */
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
	trigger_test_sample(t, 0, 2);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_EQ(test, trigger_test_report(t).flags, PERF_TRIGGER_NO_RECORD);
	KUNIT_EXPECT_EQ(test, trigger_test_bytes(t, 0), 0);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb[0]), 0);

	/* The buffers run on without their set. */
	perf_trigger_free(t->set);
	t->set = NULL;
	trigger_test_sample(t, 0, 3);
	trigger_test_sample(t, 2, 3);
	KUNIT_EXPECT_NE(test, trigger_test_bytes(t, 0), 0);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 3);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 2, 0), 3);
}

/*
 * A buffer that is asked for a pause is asked once, but for the ioctl's sake once more: a
 * trigger's pause lets its own sample pass.
 */
static void test_asked_once(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	unsigned long gp, none = get_completed_synchronize_rcu();

	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_TRUE(test, t->rb[0]->pause_begun);
	t->rb[0]->pause_gp = none;
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
	gp = t->rb[0]->pause_gp;
	KUNIT_EXPECT_NE(test, gp, none);
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
	KUNIT_EXPECT_EQ(test, t->rb[0]->pause_gp, gp);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb[0]), 0);
	KUNIT_EXPECT_TRUE(test, t->rb[0]->pause_begun);
	t->rb[0]->pause_gp = none;
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb[0], true), 0);
	KUNIT_EXPECT_NE(test, t->rb[0]->pause_gp, none);

	/* Anew, when it has taken records again. */
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb[0]), 0);
	trigger_test_arm(test, t);
	KUNIT_EXPECT_FALSE(test, t->rb[0]->pause_begun);
}

/* Buffers and triggers go in any order, and a set that has none of them completes. */
static void test_members_go(struct kunit *test)
{
	struct perf_trigger_member *m;
	struct trigger_test *t;
	int i, when;

	for (when = 0; when < 3; when++) {
		const struct perf_trigger_attr attr = {
			.depth_ns = 50 * NSEC_PER_MSEC,
			.depth_bytes = 8,
		};

		t = trigger_test_set(test, attr, true);
		for (i = 0; i <= 3; i++) {
			if (i == when) {
				perf_trigger_leave(t->rb[1]);
				perf_trigger_leave(t->rb[2]);
			}
			switch (i) {
			case 0:
				trigger_test_arm(test, t);
				break;
			case 1:
				trigger_test_sample(t, 0, 1);
				break;
			case 2:
				trigger_test_sample(t, 0, 2);
				break;
			case 3:
				KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
				break;
			}
		}
		list_for_each_entry(m, &t->set->members, entry)
			KUNIT_EXPECT_EQ(test, !rcu_access_pointer(m->rb), m->id != 100);
		/* What interrupts walk, and ARM under a lock that others want. */
		KUNIT_EXPECT_TRUE(test, list_is_singular(&t->set->live));
		list_for_each_entry(m, &t->set->members, entry)
			if (!rcu_access_pointer(m->rb))
				atomic_set(&m->running, 7);
		/* What has left takes records, frozen or not: nobody else would care. */
		rb_trigger_thaw(t->rb[1]);
		trigger_test_sample(t, 1, 9);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 1, 0), 9);

		/* The trigger is gone: nobody fires but user space. */
		trigger_test_arm(test, t);
		list_for_each_entry(m, &t->set->members, entry)
			if (!rcu_access_pointer(m->rb))
				KUNIT_EXPECT_EQ(test, atomic_read(&m->running), 7);
		perf_trigger_free_event(&t->event[0]);
		trigger_test_sample(t, 0, 3);
		KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_ARMED);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 3);
		perf_trigger_leave(t->rb[0]);
		KUNIT_EXPECT_TRUE(test, list_empty(&t->set->live));
		KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	}
}

/* Buffers that leave before they reach their depth aren't waited for. */
static void test_leave_before_depth(struct kunit *test)
{
	const struct perf_trigger_attr attr = {
		.depth_ns = PERF_TRIGGER_MAX_NS,
		.depth_bytes = TRIGGER_TEST_SIZE,
	};
	struct trigger_test *t;
	int when, n;

	for (when = 0; when < 5; when++) {
		t = trigger_test_set(test, attr, true);
		if (when == 0)
			perf_trigger_leave(t->rb[1]);
		trigger_test_arm(test, t);
		if (when == 1)
			perf_trigger_leave(t->rb[1]);
		trigger_test_sample(t, 0, 1);
		if (when == 2)
			perf_trigger_leave(t->rb[1]);
		irq_work_sync(&t->set->irq_work);
		for (n = 0; n < 2; n++) {
			/* The last one to reach its depth, or to leave. */
			if (when != 4)
				trigger_test_sample(t, 0, 2);
			if (when == 4)
				trigger_test_sample(t, 1, 2);
			trigger_test_sample(t, 2, 2);
		}
		if (when == 3)
			perf_trigger_leave(t->rb[1]);
		if (when == 4) {
			/* It has reached its own. */
			perf_trigger_leave(t->rb[1]);
			KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set),
					PERF_TRIGGER_FIRED);
			perf_trigger_leave(t->rb[0]);
		}
		KUNIT_EXPECT_TRUE(test, trigger_test_frozen(t));
		if (perf_trigger_state(t->set) != PERF_TRIGGER_FROZEN)
			return;

		/* Neither the next time. */
		perf_trigger_leave(t->rb[2]);
		trigger_test_arm(test, t);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->set->running), when != 4);
	}
}

/* A thread that arms the set, or joins another. */
struct trigger_test_call {
	struct trigger_test	*t;
	struct completion	done;
	int			ret;
};

static int trigger_test_armer(void *arg)
{
	struct trigger_test_call *a = arg;

	allow_signal(SIGKILL);
	a->ret = perf_trigger_arm(a->t->set, &a->t->generation);
	complete(&a->done);

	return 0;
}

/* A set that is being armed again isn't frozen any more, and no sample counts. */
static void test_while_arming(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	struct trigger_test_call a = { .t = t };
	struct task_struct *task;
	unsigned int state;

	trigger_test_arm(test, t);
	trigger_test_sample(t, 0, 1);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));

	/* Hold it up where the last buffer is to run on. */
	init_completion(&a.done);
	mutex_lock(&t->rb[2]->pause_mutex);
	task = kthread_run(trigger_test_armer, &a, "trigger_arm");
	if (IS_ERR(task)) {
		mutex_unlock(&t->rb[2]->pause_mutex);
		KUNIT_FAIL(test, "error %ld", PTR_ERR(task));
		return;
	}
	TRIGGER_TEST_WAIT(!READ_ONCE(t->rb[1]->paused));
	state = perf_trigger_state(t->set);
	trigger_test_sample(t, 0, 2);
	trigger_test_sample(t, 0, 3);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), -EALREADY);
	mutex_unlock(&t->rb[2]->pause_mutex);
	wait_for_completion(&a.done);

	KUNIT_EXPECT_EQ(test, a.ret, 0);
	KUNIT_EXPECT_EQ(test, state, PERF_TRIGGER_IDLE);
	KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_ARMED);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 3);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_EQ(test, trigger_test_report(t).suppressed, 0);
}

/* A set that goes away while it fires leaves buffers that run. */
static void test_set_goes(struct kunit *test)
{
	struct trigger_test *t;
	int i, when;

	for (when = 0; when < 4; when++) {
		const struct perf_trigger_attr attr = {
			.depth_ns = PERF_TRIGGER_MAX_NS,
			.depth_bytes = when & 1 ? 8 : 0,
		};

		t = trigger_test_set(test, attr, true);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1);
		if (when & 2)
			irq_work_sync(&t->set->irq_work);
		for (i = 0; i < TRIGGER_TEST_EVENTS; i++)
			trigger_test_sample(t, i, 2);
		perf_trigger_free(t->set);
		t->set = NULL;

		for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
			KUNIT_EXPECT_EQ(test, t->rb[i]->paused, 0);
			KUNIT_EXPECT_NULL(test, rcu_access_pointer(t->rb[i]->trigger));
			trigger_test_sample(t, i, 3);
			KUNIT_EXPECT_EQ(test, trigger_test_newest(t, i, 0), 3);
		}
	}
}

struct trigger_test_holding {
	struct trigger_test	*t;
	struct completion	begun;
	struct completion	done;
	bool			release;
	bool			gave_up;
	int			ret;
};

static int trigger_test_holder(void *arg)
{
	struct trigger_test_sample sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = TRIGGER_TEST_SIZE },
		.addr = 7,
	};
	struct trigger_test_holding *h = arg;
	struct perf_output_handle handle;
	struct perf_sample_data data;

	perf_sample_data_init(&data, 0, 0);
	complete(&h->begun);
	h->ret = perf_output_begin(&handle, &data, &h->t->event[0], sizeof(sample));
	if (!h->ret) {
		/* No longer than this, see RB_TEST_TRIES. */
		h->gave_up = !trigger_test_spin(3ULL * NSEC_PER_SEC, &h->release);
		perf_output_copy(&handle, &sample, sizeof(sample));
		perf_output_end(&handle);
	}
	complete(&h->done);

	return 0;
}

/* A set that waits for a writer in flight isn't waited for by others. */
static void test_waits_alone(struct kunit *test)
{
	unsigned int cpu = rb_test_other_cpu(test);
	struct perf_trigger_set *other;
	struct trigger_test_holding h;
	struct task_struct *task;
	struct trigger_test *t;
	unsigned int state;
	u64 generation;
	int tries = 0;
	bool frozen;

	/* As if all others that the queue runs at a time were taken. */
	workqueue_set_max_active(perf_trigger_wq, 1);

	do {
		t = trigger_test_set(test, trigger_at_once, true);
		trigger_test_arm(test, t);
		generation = 0;
		other = perf_trigger_alloc(&trigger_at_once, local_clock);
		KUNIT_ASSERT_NOT_NULL(test, other);
		KUNIT_EXPECT_EQ(test, perf_trigger_arm(other, &generation), 0);

		h = (struct trigger_test_holding) { .t = t };
		init_completion(&h.begun);
		init_completion(&h.done);
		task = kthread_create_on_cpu(trigger_test_holder, &h, cpu, "trigger_hold/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		wake_up_process(task);
		wait_for_completion(&h.begun);
		TRIGGER_TEST_WAIT(READ_ONCE(t->rb[0]->nest));

		KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
		/* Not by irq_work_sync(), which may wait for a grace period. */
		KUNIT_EXPECT_TRUE(test, TRIGGER_TEST_WAIT(!irq_work_is_busy(&t->set->irq_work)));
		KUNIT_EXPECT_EQ(test, perf_trigger_fire(other), 0);
		frozen = wait_event_timeout(other->waitq, perf_trigger_state(other) ==
					    PERF_TRIGGER_FROZEN, 60 * HZ);
		state = perf_trigger_state(t->set);
		WRITE_ONCE(h.release, true);
		wait_for_completion(&h.done);

		KUNIT_EXPECT_EQ(test, h.ret, 0);
		KUNIT_EXPECT_TRUE(test, frozen);
		KUNIT_EXPECT_TRUE(test, trigger_test_frozen(t));
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 7);
		perf_trigger_free(other);
	} while (h.gave_up && ++tries < RB_TEST_TRIES);

	KUNIT_EXPECT_FALSE(test, h.gave_up);
	KUNIT_EXPECT_EQ(test, state, PERF_TRIGGER_FIRED);
	workqueue_set_max_active(perf_trigger_wq, WQ_DFL_ACTIVE);
}

/* A set doesn't wait for those that pause its buffers, however long they take. */
static void test_freezes_while_paused(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	bool frozen;

	trigger_test_arm(test, t);
	trigger_test_sample(t, 1, 1);
	/* As rb_pause() waits. */
	mutex_lock(&t->rb[1]->pause_mutex);
	trigger_test_sample(t, 0, 1);
	frozen = trigger_test_frozen(t);
	mutex_unlock(&t->rb[1]->pause_mutex);

	KUNIT_EXPECT_TRUE(test, frozen);
	KUNIT_EXPECT_TRUE(test, t->rb[1]->paused & RB_PAUSED_TRIGGER);
	trigger_test_sample(t, 1, 2);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 1, 0), 1);

	/* Nor for good. */
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	trigger_test_arm(test, t);
	trigger_test_sample(t, 1, 3);
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 1, 0), 3);
}

/*
 * A set that waits for a grace period leaves its buffers alone meanwhile, of which there
 * may be thousands. The grace period doesn't end before this lets it.
 */
static void test_rests(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	bool rests, looked;

	if (num_online_cpus() < 2)
		kunit_skip(test, "the set's work needs another CPU");
	/* If others are isolated, the work has the first one to itself. */
	KUNIT_ASSERT_EQ(test, 0,
			set_cpus_allowed_ptr(current, cpumask_of(cpumask_last(cpu_online_mask))));
	trigger_test_arm(test, t);

	/* The buffer that can't be asked now shows whether it is later. */
	mutex_lock(&t->rb[1]->pause_mutex);
	rcu_read_lock();
	trigger_test_sample(t, 0, 1);
	rests = trigger_test_spin(10ULL * NSEC_PER_SEC, &t->set->rests);
	mutex_unlock(&t->rb[1]->pause_mutex);
	looked = trigger_test_spin(200 * NSEC_PER_MSEC, &t->rb[1]->pause_begun);
	rcu_read_unlock();

	KUNIT_EXPECT_TRUE(test, rests);
	KUNIT_EXPECT_FALSE(test, looked);
	KUNIT_EXPECT_TRUE(test, trigger_test_frozen(t));
}

/* A fatal signal ends ARM while it waits for a task that is pausing a buffer of the set. */
static void test_arm_ends_by_signal(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	struct trigger_test_call *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct task_struct *task;
	bool in_time = false;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	trigger_test_arm(test, t);
	trigger_test_sample(t, 0, 1);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));

	a->t = t;
	init_completion(&a->done);
	task = kthread_create(trigger_test_armer, a, "trigger_arm");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	mutex_lock(&t->rb[1]->pause_mutex);
	wake_up_process(task);
	/* A thread takes no signal before it allows it. */
	for (i = 0; i < 60 * HZ && !in_time; i++) {
		send_sig(SIGKILL, task, 1);
		in_time = wait_for_completion_timeout(&a->done, 1);
	}
	mutex_unlock(&t->rb[1]->pause_mutex);
	if (!in_time)
		wait_for_completion(&a->done);
	put_task_struct(task);

	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, a->ret, -EINTR);
	KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_IDLE);

	/* The next call goes on from there. */
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, t->generation, 2);
	for (i = 1; i < TRIGGER_TEST_EVENTS; i++) {
		trigger_test_sample(t, i, 2);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, i, 0), 2);
	}
}

struct trigger_test_reading {
	struct file		file;
	struct completion	done;
	ssize_t			ret;
};

static int trigger_test_reader(void *arg)
{
	struct trigger_test_reading *r = arg;

	r->ret = perf_trigger_fops.read(&r->file, NULL, PERF_TRIGGER_REPORT_SIZE_VER0, NULL);
	complete(&r->done);

	return 0;
}

static int trigger_test_closer(void *arg)
{
	struct trigger_test_reading *r = arg;

	r->ret = perf_trigger_fops.release(NULL, &r->file);
	complete(&r->done);

	return 0;
}

/*
 * Who closes another one's set doesn't wait until the buffers run on, nor do the buffers
 * of other sets that are closed so.
 */
static void test_closed_by_thread(struct kunit *test)
{
	struct trigger_test_reading *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct trigger_test_reading *r2 = kunit_kzalloc(test, sizeof(*r2), GFP_KERNEL);
	struct perf_trigger_set *other;
	struct task_struct *task, *task2;
	bool in_time, runs_on = false;
	struct trigger_test *t;
	struct perf_buffer *rb;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_NOT_NULL(test, r2);
	t = trigger_test_set(test, trigger_at_once, true);
	trigger_test_arm(test, t);
	trigger_test_sample(t, 0, 1);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));

	other = perf_trigger_alloc(&trigger_at_once, local_clock);
	KUNIT_ASSERT_NOT_NULL(test, other);
	rb = rb_alloc(1, 0, -1, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	rcu_assign_pointer(t->event[0].rb, rb);
	KUNIT_EXPECT_EQ(test, perf_trigger_join(other, &t->event[0]), 0);
	rcu_assign_pointer(t->event[0].rb, t->rb[0]);

	/* That takes this mutex, as it does if somebody pauses the buffer all the time. */
	workqueue_set_max_active(perf_trigger_free_wq, 1);
	mutex_lock(&t->rb[0]->pause_mutex);
	init_completion(&r->done);
	r->file.private_data = t->set;
	task = kthread_run(trigger_test_closer, r, "trigger_close");
	in_time = !IS_ERR(task) && wait_for_completion_timeout(&r->done, 60 * HZ);
	KUNIT_EXPECT_TRUE(test, t->rb[0]->paused & RB_PAUSED_TRIGGER);

	/* Nor is an interrupt work waited for that is queued where nothing runs it. */
	atomic_or(IRQ_WORK_BUSY, &t->set->irq_work.node.a_flags);
	/*
	 * Have its next step queued before the first one of the other set. Once isn't
	 * enough: the step before that may be running.
	 */
	rcu_barrier();
	rcu_barrier();
	init_completion(&r2->done);
	r2->file.private_data = other;
	task2 = in_time ? kthread_run(trigger_test_closer, r2, "trigger_close") : ERR_PTR(-EAGAIN);
	if (!IS_ERR(task2))
		runs_on = TRIGGER_TEST_WAIT(!rcu_access_pointer(rb->trigger));
	mutex_unlock(&t->rb[0]->pause_mutex);
	atomic_andnot(IRQ_WORK_BUSY, &t->set->irq_work.node.a_flags);
	workqueue_set_max_active(perf_trigger_free_wq, WQ_DFL_ACTIVE);
	if (IS_ERR(task)) {
		KUNIT_FAIL(test, "error %ld", PTR_ERR(task));
		return;
	}
	if (IS_ERR(task2))
		perf_trigger_free(other);
	else
		wait_for_completion(&r2->done);
	ring_buffer_put(rb);
	KUNIT_EXPECT_TRUE(test, runs_on);
	t->set = NULL;
	if (!in_time)
		wait_for_completion(&r->done);

	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, r->ret, 0);

	/* The one that was paused is the last. */
	TRIGGER_TEST_WAIT(!rcu_access_pointer(t->rb[0]->trigger));
	for (i = 0; i < TRIGGER_TEST_EVENTS; i++) {
		KUNIT_EXPECT_NULL(test, rcu_access_pointer(t->rb[i]->trigger));
		KUNIT_EXPECT_EQ(test, t->rb[i]->paused, 0);
		trigger_test_sample(t, i, 2);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, i, 0), 2);
	}
}

/* How many sets without buffers and triggers a thread closes. */
#define TRIGGER_TEST_EMPTY	64

struct trigger_test_closing {
	struct perf_trigger_set	*set[TRIGGER_TEST_EMPTY];
	struct completion	done;
};

static int trigger_test_closer_of_many(void *arg)
{
	struct trigger_test_closing *c = arg;
	struct file *file = kzalloc(sizeof(*file), GFP_KERNEL);
	int i;

	for (i = 0; file && i < TRIGGER_TEST_EMPTY; i++) {
		file->private_data = c->set[i];
		perf_trigger_fops.release(NULL, file);
	}
	kfree(file);
	complete(&c->done);

	return 0;
}

/*
 * Nothing bounds how many sets without buffers and triggers are closed by another process.
 * None of them waits to be freed: each had a reference to the process that made it.
 */
static void test_empty_closed_by_thread(struct kunit *test)
{
	struct trigger_test_closing *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct pid *pid = task_tgid(current);
	struct task_struct *task;
	unsigned int before;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	before = refcount_read(&pid->count);
	for (i = 0; i < TRIGGER_TEST_EMPTY; i++) {
		c->set[i] = perf_trigger_alloc(&trigger_at_once, local_clock);
		KUNIT_ASSERT_NOT_NULL(test, c->set[i]);
	}
	KUNIT_EXPECT_EQ(test, refcount_read(&pid->count), before + TRIGGER_TEST_EMPTY);

	init_completion(&c->done);
	task = kthread_run(trigger_test_closer_of_many, c, "trigger_close");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	wait_for_completion(&c->done);
	KUNIT_EXPECT_EQ(test, refcount_read(&pid->count), before);
}

struct trigger_test_wakes {
	struct wait_queue_entry	entry;
	atomic_t		count;
};

static int trigger_test_woken(struct wait_queue_entry *entry, unsigned int mode, int flags,
			      void *key)
{
	atomic_inc(&container_of(entry, struct trigger_test_wakes, entry)->count);

	return 0;
}

/*
 * A read() that mustn't block doesn't wait for other calls on the set, and what polls is
 * woken when such a call is over: once, and not if nothing was turned away.
 */
static void test_read_doesnt_block(struct kunit *test)
{
	struct trigger_test_wakes wakes = { .count = ATOMIC_INIT(0) };
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	struct trigger_test_reading *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct task_struct *task;
	u64 stale = U64_MAX;
	bool in_time;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->file.private_data = t->set;
	r->file.f_flags = O_NONBLOCK;
	init_completion(&r->done);
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	/* The work has woken all that waits. */
	flush_delayed_work(&t->set->work);

	mutex_lock(&t->set->mutex);
	task = kthread_run(trigger_test_reader, r, "trigger_read");
	in_time = !IS_ERR(task) && wait_for_completion_timeout(&r->done, 60 * HZ);
	mutex_unlock(&t->set->mutex);
	if (IS_ERR(task)) {
		KUNIT_FAIL(test, "error %ld", PTR_ERR(task));
		return;
	}
	if (!in_time)
		wait_for_completion(&r->done);

	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, r->ret, -EAGAIN);

	/* As the calls that have the mutex end: twice. */
	init_waitqueue_func_entry(&wakes.entry, trigger_test_woken);
	add_wait_queue(&t->set->waitq, &wakes.entry);
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &stale), -ESTALE);
	KUNIT_EXPECT_EQ(test, atomic_read(&wakes.count), 1);
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &stale), -ESTALE);
	KUNIT_EXPECT_EQ(test, atomic_read(&wakes.count), 1);
	remove_wait_queue(&t->set->waitq, &wakes.entry);
}

static void test_generation(struct kunit *test)
{
	struct trigger_test *t;
	u64 generation = 0;

	t = trigger_test_set(test, (struct perf_trigger_attr) {
			.depth_ns = PERF_TRIGGER_MAX_NS, .depth_bytes = 8 }, true);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), -EINVAL);
	generation = 1;
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &generation), -ESTALE);
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &t->generation), -EALREADY);
	generation = 0;
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &generation), -ESTALE);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), -EALREADY);
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &t->generation), -EINPROGRESS);
	irq_work_sync(&t->set->irq_work);
	trigger_test_sample(t, 0, 1);
	trigger_test_sample(t, 1, 1);
	trigger_test_sample(t, 2, 1);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), -EALREADY);
	generation = 2;
	KUNIT_EXPECT_EQ(test, perf_trigger_arm(t->set, &generation), -ESTALE);
	KUNIT_EXPECT_EQ(test, generation, 2);
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, t->generation, 2);

	/* It shares its word with the state, and wraps. */
	atomic_set(&t->set->state, PERF_TRIGGER_WORD(~0U >> PERF_TRIGGER_STATE_BITS,
						     PERF_TRIGGER_FROZEN));
	t->generation = ~0U >> PERF_TRIGGER_STATE_BITS;
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, t->generation, 0);
	KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_ARMED);
}

static void test_hold_off(struct kunit *test)
{
	struct perf_trigger_attr attr = trigger_at_once;
	struct perf_trigger_member *m;
	struct trigger_test *t;
	int i;

	attr.holdoff_bytes = 4 * TRIGGER_TEST_SIZE;
	t = trigger_test_set(test, attr, true);
	for (i = 0; i < 2; i++) {
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1);
		trigger_test_sample(t, 0, 2);
		trigger_test_sample(t, 0, 3);
		trigger_test_sample(t, 0, 4);
		KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_ARMED);
		trigger_test_sample(t, 0, 5);
		KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
		KUNIT_EXPECT_EQ(test, trigger_test_report(t).held_off, 4);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 5);
		KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 1), 4);
	}

	attr = trigger_at_once;
	attr.holdoff_ns = PERF_TRIGGER_MAX_NS;
	t = trigger_test_set(test, attr, true);
	trigger_test_arm(test, t);
	trigger_test_sample(t, 0, 1);
	KUNIT_EXPECT_EQ(test, perf_trigger_state(t->set), PERF_TRIGGER_ARMED);
	t->set->armed_at -= PERF_TRIGGER_MAX_NS;
	trigger_test_sample(t, 0, 2);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
	KUNIT_EXPECT_EQ(test, trigger_test_newest(t, 0, 0), 2);

	/* What isn't written to the set waits for no bytes of it. */
	attr = trigger_at_once;
	attr.holdoff_bytes = PAGE_SIZE;
	for (i = 0; i < 2; i++) {
		t = trigger_test_set(test, attr, true);
		if (i)
			perf_trigger_leave(t->rb[0]);
		else
			rcu_assign_pointer(t->event[0].rb, NULL);
		trigger_test_arm(test, t);
		trigger_test_sample(t, 0, 1);
		KUNIT_EXPECT_TRUE(test, trigger_test_frozen(t));
		KUNIT_EXPECT_EQ(test, trigger_test_report(t).flags,
				PERF_TRIGGER_NO_RECORD);
	}

	/* History that was there once doesn't go when the count comes round. */
	t = trigger_test_set(test, attr, true);
	trigger_test_arm(test, t);
	m = list_first_entry(&t->set->members, struct perf_trigger_member, entry);
	KUNIT_EXPECT_FALSE(test, m->has_history);
	m->has_history = true;
	trigger_test_sample(t, 0, 1);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));

	/* User space knows what it does. */
	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, perf_trigger_fire(t->set), 0);
	KUNIT_ASSERT_TRUE(test, trigger_test_frozen(t));
}

static void trigger_test_handler(struct perf_event *event,
				 struct perf_sample_data *data, struct pt_regs *regs)
{
}

static u64 trigger_test_time;

static u64 trigger_test_clock(void)
{
	return READ_ONCE(trigger_test_time);
}

/* A clock that is set back prolongs neither the hold-off nor the depth. */
static void test_clock_is_set(struct kunit *test)
{
	const struct perf_trigger_attr attr = {
		.depth_ns = 20 * NSEC_PER_MSEC,
		.holdoff_ns = 20 * NSEC_PER_MSEC,
	};
	struct trigger_test *t = trigger_test_set(test, attr, true);

	WRITE_ONCE(trigger_test_time, 1ULL << 60);
	t->set->clock = trigger_test_clock;
	trigger_test_arm(test, t);
	WRITE_ONCE(trigger_test_time, 1ULL << 59);
	trigger_test_spin(30 * NSEC_PER_MSEC, NULL);
	/* The hold-off is over, and the clock goes back again before the timer is set. */
	local_irq_disable();
	trigger_test_sample(t, 0, 1);
	WRITE_ONCE(trigger_test_time, 1ULL << 58);
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, trigger_test_frozen(t));
	trigger_test_time = 0;
}

static void test_errors(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, (struct perf_trigger_attr) {
			.depth_ns = 1, .depth_bytes = PAGE_SIZE }, true);
	struct perf_trigger_set *other;
	struct perf_buffer *rb;

	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[0]), -EEXIST);
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[0]), -EEXIST);
	KUNIT_EXPECT_TRUE(test, is_default_overflow_handler(&t->event[0]));

	t->event[1].attr.sample_period = 0;
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[1]), -EINVAL);
	t->event[1].attr.sample_period = 1;
	t->event[1].overflow_handler = trigger_test_handler;
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[1]), -EOPNOTSUPP);
	KUNIT_EXPECT_NULL(test, t->event[1].trigger);
	t->event[1].overflow_handler = perf_event_output_backward;

	t->event[1].clock = trigger_test_clock;
	perf_trigger_leave(t->rb[1]);
	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -EXDEV);
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[1]), -EXDEV);
	t->event[1].clock = local_clock;

	rb = rb_alloc(0, 0, -1, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	rcu_assign_pointer(t->event[1].rb, rb);
	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -ENOBUFS);
	rcu_assign_pointer(t->event[1].rb, t->rb[1]);
	ring_buffer_put(rb);

	t->set->attr.depth_bytes++;
	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -ERANGE);
	t->set->attr.depth_bytes--;

	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -ENXIO);

	other = perf_trigger_alloc(&t->set->attr, local_clock);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, perf_trigger_join(other, &t->event[0]), -EBUSY);
	KUNIT_EXPECT_EQ(test, perf_trigger_add(other, &t->event[0]), -EBUSY);
	perf_trigger_free(other);

	t->set->nr_members = PERF_TRIGGER_MAX;
	t->set->nr_triggers = PERF_TRIGGER_MAX;
	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -ENOSPC);
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[1]), -ENOSPC);

	trigger_test_arm(test, t);
	KUNIT_EXPECT_EQ(test, perf_trigger_join(t->set, &t->event[1]), -EALREADY);
	KUNIT_EXPECT_EQ(test, perf_trigger_add(t->set, &t->event[1]), -EALREADY);
}

static int trigger_test_joiner(void *arg)
{
	struct trigger_test_call *j = arg;

	j->ret = perf_trigger_join(j->t->other, &j->t->event[1]);
	complete(&j->done);

	return 0;
}

/*
 * Have a thread call JOIN for the second buffer and another set, with @mutex held by us. Return
 * the thread when it has either ended, or is asleep where it waits for the mutex; or NULL.
 */
static struct task_struct *trigger_test_join(struct kunit *test, struct trigger_test_call *j,
					     struct mutex *mutex)
{
	struct task_struct *task;
	bool held_up;

	init_completion(&j->done);
	mutex_lock(mutex);
	task = kthread_run(trigger_test_joiner, j, "trigger_join");
	if (IS_ERR(task)) {
		mutex_unlock(mutex);
		KUNIT_FAIL(test, "error %ld", PTR_ERR(task));
		return NULL;
	}
	get_task_struct(task);
	held_up = TRIGGER_TEST_WAIT(completion_done(&j->done) ||
				    READ_ONCE(task->__state) & TASK_UNINTERRUPTIBLE);
	KUNIT_EXPECT_TRUE(test, held_up);

	return task;
}

static struct trigger_test_call *trigger_test_joining(struct kunit *test)
{
	struct trigger_test *t = trigger_test_set(test, trigger_at_once, true);
	struct trigger_test_call *j = kunit_kzalloc(test, sizeof(*j), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, j);
	perf_trigger_leave(t->rb[1]);
	t->rb[1]->trigger_left = false;
	t->other = perf_trigger_alloc(&trigger_at_once, local_clock);
	KUNIT_ASSERT_NOT_NULL(test, t->other);
	j->t = t;

	return j;
}

/* A buffer whose mmap() is under way, and fails, doesn't join: it would stay, unaccounted. */
static void test_join_waits_for_mmap(struct kunit *test)
{
	struct trigger_test_call *j = trigger_test_joining(test);
	struct trigger_test *t = j->t;
	struct task_struct *task;

	task = trigger_test_join(test, j, &t->event[1].mmap_mutex);
	if (task) {
		rcu_assign_pointer(t->event[1].rb, NULL);
		mutex_unlock(&t->event[1].mmap_mutex);
		wait_for_completion(&j->done);
		put_task_struct(task);
		KUNIT_EXPECT_EQ(test, j->ret, -ENXIO);
	}
	perf_trigger_leave(t->rb[1]);
	perf_trigger_free(t->other);
	KUNIT_EXPECT_EQ(test, refcount_read(&t->rb[1]->refcount), 1);
}

/* Nor does it stay because JOIN waits for the set's mutex, which a read() may have for long. */
static void test_join_waits_without_buffer(struct kunit *test)
{
	struct trigger_test_call *j = trigger_test_joining(test);
	struct trigger_test *t = j->t;
	struct task_struct *task;

	task = trigger_test_join(test, j, &t->other->mutex);
	if (task) {
		KUNIT_EXPECT_FALSE(test, completion_done(&j->done));
		KUNIT_EXPECT_EQ(test, refcount_read(&t->rb[1]->refcount), 1);
		mutex_unlock(&t->other->mutex);
		wait_for_completion(&j->done);
		put_task_struct(task);
		KUNIT_EXPECT_EQ(test, j->ret, 0);
		KUNIT_EXPECT_EQ(test, refcount_read(&t->rb[1]->refcount), 2);
	}
	perf_trigger_leave(t->rb[1]);
	perf_trigger_free(t->other);
}

static struct kunit_case trigger_test_cases[] = {
	KUNIT_CASE(test_at_once),
	KUNIT_CASE(test_between_begin_and_end),
	KUNIT_CASE(test_leaves_before_note),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE_PARAM(test_newest_by_breakpoint, trigger_break_gen_params),
	KUNIT_CASE_PARAM(test_depth_by_breakpoint, trigger_break_gen_params),
	KUNIT_CASE(test_refused_by_breakpoint),
	KUNIT_CASE_PARAM(test_redirected_by_breakpoint, trigger_redirect_gen_params),
	KUNIT_CASE(test_added_to_another),
#endif
	KUNIT_CASE_PARAM(test_depth_in_bytes, trigger_depth_gen_params),
	KUNIT_CASE(test_too_large_isnt_counted),
	KUNIT_CASE(test_depth_in_time),
	KUNIT_CASE(test_fired_on_two_cpus),
	KUNIT_CASE(test_pause_is_another),
	KUNIT_CASE(test_asked_once),
	KUNIT_CASE(test_members_go),
	KUNIT_CASE(test_closed_by_thread),
	KUNIT_CASE(test_empty_closed_by_thread),
	KUNIT_CASE(test_leave_before_depth),
	KUNIT_CASE(test_while_arming),
	KUNIT_CASE(test_set_goes),
	KUNIT_CASE(test_waits_alone),
	KUNIT_CASE(test_freezes_while_paused),
	KUNIT_CASE(test_rests),
	KUNIT_CASE(test_arm_ends_by_signal),
	KUNIT_CASE(test_read_doesnt_block),
	KUNIT_CASE(test_generation),
	KUNIT_CASE(test_hold_off),
	KUNIT_CASE(test_clock_is_set),
	KUNIT_CASE(test_join_waits_for_mmap),
	KUNIT_CASE(test_join_waits_without_buffer),
	KUNIT_CASE(test_errors),
	{}
};

static struct kunit_suite trigger_test_suite = {
	.name = "perf_trigger",
	.init = trigger_test_init,
	.exit = trigger_test_exit,
	.test_cases = trigger_test_cases,
};

kunit_test_suite(trigger_test_suite);
