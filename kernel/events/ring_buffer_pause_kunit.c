// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the pause of the perf ring buffer.
 *
 * Records that are being written when a pause begins, or that meet a paused
 * buffer: writers that are held between begin and end on another CPU, nested ones,
 * and what the buffer looks like when the pause has returned.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/sizes.h>

#include "breakpoint_kunit.h"
#include "internal.h"
#include "ring_buffer_kunit.h"

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

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/* A nested writer, and a pause behind it. */
static void rb_test_fire_pause(struct rb_test *t)
{
	rb_test_fire_write(t);
	rb_toggle_paused(t->rb, true);
}

/*
 * A buffer is paused inside a writer that didn't look at the flag yet, after a nested
 * one has written. The outer record is dropped, the nested one is still published.
 */
static void test_paused_after_nested(struct kunit *test)
{
	struct rb_test *t;
	int backward, ret;

	kunit_needs_breakpoint(test);

	for (backward = 0; backward < 2; backward++) {
		t = rb_test_attach(test, 1, 0, backward, false, 0);
		t->fire_at = 0;
		t->fire = rb_test_fire_pause;
		ret = rb_test_write_watched(test, t, &t->rb->nest, 4, false);

		KUNIT_EXPECT_EQ(test, ret, -ENOSPC);
		KUNIT_EXPECT_EQ(test, local_read(&t->rb->lost), 1);
		rb_test_mirror(t, t->nested, 120);
		rb_test_compare(test, t);
	}
}
#endif

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

static int rb_test_pauser(void *arg)
{
	struct rb_test *t = arg;

	allow_signal(SIGKILL);
	allow_signal(SIGUSR1);
	t->waiter_ret = rb_pause(t->rb);
	t->returned_after_end = READ_ONCE(t->ended);
	WRITE_ONCE(t->returned, true);
	complete(&t->waiter_done);

	return 0;
}

/*
 * Sleep by the clock that ends a held writer. Jiffies may be slower than that, by
 * far in a guest on a busy machine.
 */
static void rb_test_sleep(unsigned int ms)
{
	u64 until = ktime_get_mono_fast_ns() + (u64)ms * NSEC_PER_MSEC;

	do {
		usleep_range(500, 1000);
	} while (ktime_get_mono_fast_ns() < until);
}

/* Have a writer held as @p says. As rb_test_hold() besides. */
static bool rb_test_hold_as(struct kunit *test, struct rb_test *t,
			    const struct rb_pause_param *p, unsigned int cpu)
{
	t->irqs_off = p->irqs_off;
	t->offline = p->offline;
	t->rb->pause_cpu = p->task ? -1 : p->offline ? nr_cpu_ids : cpu;

	return rb_test_hold(test, t, cpu);
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
		held = rb_test_hold_as(test, t, p, cpu);

		wake_up_process(pauser);
		/* On a busy machine it doesn't run at once. */
		while (!READ_ONCE(t->rb->paused) && !READ_ONCE(t->returned) &&
		       !READ_ONCE(t->ended))
			rb_test_sleep(1);
		rb_test_sleep(50);
		/* It is on its way, and not there. */
		early = READ_ONCE(t->returned);
		flag = READ_ONCE(t->rb->paused);

		held = rb_test_release(t) && held;
		wait_for_completion(&t->waiter_done);
		if (!held)
			continue;

		KUNIT_EXPECT_TRUE(test, flag);
		KUNIT_EXPECT_FALSE(test, early);
		KUNIT_EXPECT_EQ(test, t->writer_ret, 0);
		KUNIT_EXPECT_EQ(test, t->waiter_ret, 0);
		KUNIT_EXPECT_TRUE(test, t->returned_after_end);

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
	int tries = 0, ret, resume;
	struct task_struct *pauser;
	struct rb_test *t;

	do {
		t = rb_test_attach(test, 1, 0, true, false, 0);
		pauser = kthread_create_on_cpu(rb_test_pauser, t, 0, "rb_pauser/%u");
		KUNIT_ASSERT_FALSE(test, IS_ERR(pauser));
		get_task_struct(pauser);
		held = rb_test_hold_as(test, t, p, cpu);

		wake_up_process(pauser);
		rb_test_sleep(1500);
		early = READ_ONCE(t->returned);
		send_sig(SIGKILL, pauser, 1);
		wait_for_completion(&t->waiter_done);
		put_task_struct(pauser);
		killed = !READ_ONCE(t->ended);
		ret = t->waiter_ret;
		paused = t->rb->paused;

		/* An answer that is overdue doesn't spoil what comes after it. */
		resume = rb_resume(t->rb);
		resumed = !t->rb->paused;

		held = rb_test_release(t) && held;
	} while (!held && ++tries < RB_TEST_TRIES);

	KUNIT_EXPECT_TRUE(test, held);
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_TRUE(test, killed);
	KUNIT_EXPECT_EQ(test, ret, -EINTR);
	KUNIT_EXPECT_TRUE(test, paused);
	KUNIT_EXPECT_EQ(test, resume, 0);
	KUNIT_EXPECT_TRUE(test, resumed);

	KUNIT_EXPECT_EQ(test, rb_pause(t->rb), 0);
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
	struct task_struct *pausers[3];
	bool held, early, in_time;
	int i, anew, tries = 0;
	struct rb_test *t;

	/* Interrupted, and again whatever was disturbed. */
	do {
		t = rb_test_attach(test, 1, 0, true, false, 0);
		/* kthreadd, which makes tasks, might be woken where the writer is. */
		for (i = 0; i < ARRAY_SIZE(pausers); i++) {
			pausers[i] = kthread_create_on_cpu(rb_test_pauser, t, 0,
							   "rb_pauser/%u");
			KUNIT_ASSERT_FALSE(test, IS_ERR(pausers[i]));
			get_task_struct(pausers[i]);
		}
		held = rb_test_hold_as(test, t, p, cpu);
		early = false;
		in_time = true;
		anew = 0;
		for (i = 0; i < ARRAY_SIZE(pausers); i++) {
			t->returned = false;
			t->waiter_ret = 1;
			reinit_completion(&t->waiter_done);
			wake_up_process(pausers[i]);
			rb_test_sleep(50);
			early |= READ_ONCE(t->returned);
			send_sig(SIGUSR1, pausers[i], 1);
			wait_for_completion(&t->waiter_done);
			put_task_struct(pausers[i]);
			in_time &= !READ_ONCE(t->ended);
			anew += t->waiter_ret == -ERESTARTNOINTR;
		}
		held = rb_test_release(t) && held;
	} while (!held && ++tries < RB_TEST_TRIES);

	KUNIT_EXPECT_TRUE(test, held);
	KUNIT_EXPECT_EQ(test, anew, (int)ARRAY_SIZE(pausers));
	KUNIT_EXPECT_FALSE(test, early);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_TRUE(test, t->rb->paused);

	KUNIT_EXPECT_EQ(test, rb_pause(t->rb), 0);
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

		t->returned = false;
		init_completion(&t->waiter_done);
		pauser = kthread_create(rb_test_pauser, t, "rb_pauser");
		KUNIT_ASSERT_FALSE(test, IS_ERR(pauser));
		get_task_struct(pauser);
		wake_up_process(pauser);
		/* Only a pause that never ends is cut short. */
		if (!wait_for_completion_timeout(&t->waiter_done, 10 * HZ)) {
			send_sig(SIGKILL, pauser, 1);
			wait_for_completion(&t->waiter_done);
		}
		put_task_struct(pauser);

		KUNIT_EXPECT_EQ(test, t->waiter_ret, 0);
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
	KUNIT_EXPECT_EQ(test, rb->shared, p->all_cpu == RB_CPU_MOVED);
	list_del(&event->rb_entry);

	/* Whatever has been there is there for good. */
	event->cpu = p->rb_cpu;
	event->attach_state = 0;
	rb_add_event(rb, event);
	KUNIT_EXPECT_EQ(test, rb->pause_cpu, p->pause_cpu);
	list_del(&event->rb_entry);

	ring_buffer_put(rb);
}

/*
 * A PMU that moves its events takes the CPU from the buffers that they write to,
 * unless all of them have gone there. Two CPUs share such a buffer.
 */
static void test_pause_cpu_moved(struct kunit *test)
{
	unsigned int cpu = rb_test_other_cpu(test);
	struct perf_event *first, *second, *other, *there, *here;
	struct perf_event *left, *right;
	struct perf_buffer *rb, *together;
	bool at_once = true;
	struct pmu *pmu;

	rb = rb_alloc(1, 0, cpu, 0);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	KUNIT_EXPECT_EQ(test, rb->pause_cpu, (int)cpu);
	together = rb_alloc(1, 0, cpu, 0);
	if (!together)
		ring_buffer_put(rb);
	KUNIT_ASSERT_NOT_NULL(test, together);
	pmu = rb_test_register_pmu(test, perf_invalid_context);

	first = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	second = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	/* It isn't moved with those two. */
	other = rb_test_event(pmu->type, 0, false, cpu, NULL);
	there = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false, 0, NULL);
	/* Nothing of their buffer stays. */
	left = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	right = rb_test_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, false, cpu, NULL);
	here = NULL;
	if (first && second && other && there && left && right) {
		rb_test_own(first, rb);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(second, first), 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(other, first), 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(there, first), -EINVAL);
		KUNIT_EXPECT_EQ(test, rb->cpu, (int)cpu);
		KUNIT_EXPECT_EQ(test, rb->pause_cpu, (int)cpu);
		KUNIT_EXPECT_EQ(test, rb->shared, 0);
		rb_test_own(left, together);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(right, left), 0);

		perf_pmu_migrate_context(first->pmu, cpu, 0);
		/* A kernel that changes the list while it walks it leaves every other one. */
		if (first->cpu || second->cpu || left->cpu || right->cpu) {
			at_once = false;
			perf_pmu_migrate_context(first->pmu, cpu, 0);
		}
		KUNIT_EXPECT_EQ(test, first->cpu, 0);
		KUNIT_EXPECT_EQ(test, second->cpu, 0);
		KUNIT_EXPECT_EQ(test, rb->pause_cpu, -1);
		KUNIT_EXPECT_EQ(test, other->cpu, (int)cpu);
		KUNIT_EXPECT_EQ(test, rb->cpu, RB_CPU_MOVED);
		KUNIT_EXPECT_EQ(test, rb->shared, 1);
		KUNIT_EXPECT_EQ(test, together->cpu, 0);
		if (at_once)
			KUNIT_EXPECT_EQ(test, together->shared, 0);
		KUNIT_EXPECT_EQ(test, perf_event_set_output(there, first), -EINVAL);

		perf_pmu_migrate_context(pmu, cpu, 0);
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
	KUNIT_EXPECT_NOT_NULL(test, left);
	KUNIT_EXPECT_NOT_NULL(test, right);
	rb_test_release_event(test, right);
	rb_test_release_event(test, left);
	rb_test_release_event(test, here);
	rb_test_release_event(test, there);
	rb_test_release_event(test, other);
	rb_test_release_event(test, second);
	rb_test_release_event(test, first);

	perf_pmu_unregister(pmu);
	ring_buffer_put(together);
	ring_buffer_put(rb);
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
		KUNIT_EXPECT_EQ(test, rb_pause(t->rb), 0);
		KUNIT_EXPECT_EQ(test, rb_pause(t->rb), 0);
		KUNIT_EXPECT_TRUE(test, t->rb->paused);
		rb_test_compare(test, t);
		KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
		KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
		KUNIT_EXPECT_FALSE(test, t->rb->paused);
	}

	t->rb->pause_cpu = -1;
	KUNIT_EXPECT_EQ(test, rb_pause(t->rb), 0);
	KUNIT_EXPECT_TRUE(test, t->rb->paused);
	KUNIT_EXPECT_EQ(test, rb_resume(t->rb), 0);
}

static struct kunit_case rb_pause_test_cases[] = {
	KUNIT_CASE(test_record_too_large),
	KUNIT_CASE(test_nested_too_large),
#ifdef CONFIG_HAVE_HW_BREAKPOINT
	KUNIT_CASE(test_paused_after_nested),
#endif
	KUNIT_CASE(test_paused_sample),
	KUNIT_CASE_PARAM(test_pause_waits_for_writer, rb_pause_gen_params),
	KUNIT_CASE_PARAM(test_pause_ends_by_signal, rb_pause_gen_params),
	KUNIT_CASE_PARAM(test_pause_begins_anew, rb_pause_gen_params),
	KUNIT_CASE(test_pause_of_scribbled_page),
	KUNIT_CASE_PARAM(test_pause_cpu, rb_pause_cpu_gen_params),
	KUNIT_CASE(test_pause_cpu_moved),
	KUNIT_CASE(test_pause_without_writer),
	{}
};

static struct kunit_suite rb_pause_test_suite = {
	.name = "perf_ring_buffer_pause",
	.init = rb_test_init,
	.exit = rb_test_exit,
	.test_cases = rb_pause_test_cases,
};

kunit_test_suite(rb_pause_test_suite);
