// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers: a sample of one event freezes the buffers of many.
 *
 * A set has members, the buffers that it freezes, and triggers, events whose samples
 * fire it. Its state goes round:
 *
 *   IDLE ---ARM---> ARMED ---sample, FIRE---> FIRED ---work---> FROZEN
 *                     ^                                            |
 *                     '---------- ARM, generation + 1 -------------'
 *
 * Buffers join and events are added in IDLE only, and stay until they, or the set,
 * go away: from ARMED on all that runs in NMIs finds lists that nobody changes.
 *
 * What happens where
 *
 *   any context, NMIs included	perf_trigger_take(): one cmpxchg of the state from
 *				ARMED to FIRED. The winner writes the trigger's own
 *				record, then a note of it, marks its CPU's buffers,
 *				and queues the irq_work on its own CPU. All others
 *				are counted, and go on.
 *   irq_work, reached_work	marks the other buffers, starts the timer.
 *   writers of marked buffers	perf_trigger_admits(): count, and freeze the buffer
 *				when its depth is reached. The last one queues the
 *				reached_work.
 *   timer			freezes what is left.
 *   work			pauses all as PERF_EVENT_IOC_PAUSE_OUTPUT does, by
 *				the same rule on which CPU may be interrupted. Where
 *				that takes a grace period, it comes again, a jiffy
 *				later each time. FROZEN, wakes readers.
 *
 * A mark is a bit of rb->paused, the flag that writers test anyway: RB_LOOK while a
 * depth is counted, RB_PAUSED_TRIGGER when the buffer is frozen. Without a depth
 * there is no RB_LOOK, and the trigger's own buffer is frozen before the trigger's
 * record is reserved, which alone passes the bit. So that nothing comes behind it:
 *
 *   - what nests in the trigger's writer, between its reservation and its end, finds
 *     the bit;
 *   - what the trigger nests in, between the test and the cmpxchg of its reservation,
 *     finds the head moved, and tests again: see __perf_output_reserve().
 *
 * Generations
 *
 * PERF_TRIGGER_IOC_ARM makes the set IDLE, as it was before it was armed at all: samples
 * of triggers do and count nothing from then on. It waits, before the set is ARMED once
 * more, for everybody that the generation before may have running:
 *
 *   perf_trigger_take() to perf_trigger_fired(),	synchronize_rcu()
 *   perf_trigger_admits()
 *   what these queued					irq_work_sync()
 *   what that started					hrtimer_cancel()
 *   what all these queued, itself included		cancel_delayed_work_sync()
 *
 * A trigger that read the word before, and was delayed until after, is one of these,
 * but for that the cmpxchg fails as the generation is part of the word.
 *
 * Ordering
 *
 *   A  atomic_set_release() in perf_trigger_arm(), when all about the generation is
 *      prepared, pairs with atomic_read_acquire() in perf_trigger_take() and the
 *      cmpxchg of perf_trigger_fire().
 *   B  rb_change_paused() in perf_trigger_mark(), when the note is written, pairs
 *      with READ_ONCE() of rb->paused and the address dependency through
 *      rb->trigger in perf_trigger_admits(), by smp_rmb() there.
 *   C  atomic_cmpxchg_release() in perf_trigger_work(), when all is frozen, pairs with
 *      atomic_read_acquire() in perf_trigger_state().
 *   D  What writers count in a member is as the record that they count it for: the
 *      work sees it when it has seen the writer gone, see rb_has_writer(), or a grace
 *      period over.
 *   E  smp_store_release() of set->noted in perf_trigger_fired(), when the note is
 *      written, pairs with smp_load_acquire() in perf_trigger_go_on(), which a
 *      buffer that leaves may have queued before, or in an earlier generation.
 *   F  smp_mb() in perf_trigger_read(), between set->turned_away and the mutex, pairs with
 *      smp_mb() in perf_trigger_unlock(): it gets the mutex, or is woken.
 *
 * Lifetime
 *
 * perf_trigger_lock guards the links between sets on the one side, and events and
 * buffers on the other; each side may go first, and unlinks itself. Both are looked
 * up under RCU. A buffer leaves with its last mapping, as its memory isn't charged to
 * anybody from then on. Until then its member holds a reference to it.
 */
#include <linux/anon_inodes.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/init.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/security.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "internal.h"
#include "ring_buffer_head.h"
#include "trigger.h"

/* Links: trigger->set, rb->trigger, member->rb, set->triggers. */
static DEFINE_SPINLOCK(perf_trigger_lock);

static atomic64_t perf_trigger_ids = ATOMIC64_INIT(0);

/* However many works a user has queued: what is on other queues doesn't come after them. */
struct workqueue_struct *perf_trigger_wq __ro_after_init;
struct workqueue_struct *perf_trigger_free_wq __ro_after_init;

/* How long the work sleeps for a CPU that it has asked, at first and in the end. */
#define PERF_TRIGGER_SLEEP_US		20
#define PERF_TRIGGER_SLEEP_MAX_US	1000

/**
 * rb_change_paused - change why a buffer is paused
 * @rb: the buffer
 * @clear: bits of rb->paused to clear
 * @set: bits to set
 *
 * Context: any. Fully ordered, as a successful cmpxchg() is.
 *
 * Return: rb->paused as it was before.
 */
int rb_change_paused(struct perf_buffer *rb, int clear, int set)
{
	/* Writers look at any time, see READ_ONCE() in the output path. */
	int old = READ_ONCE(rb->paused);

	do {
	} while (!try_cmpxchg(&rb->paused, &old, (old & ~clear) | set));

	return old;
}

/**
 * rb_toggle_paused - begin or end the ioctl's pause, without waiting
 * @rb: the buffer
 * @pause: whether to begin it
 *
 * Context: any.
 *
 * Return: rb->paused as it was before.
 */
int rb_toggle_paused(struct perf_buffer *rb, bool pause)
{
	int always = rb->nr_pages ? 0 : RB_PAUSED_NO_PAGES;

	if (pause)
		return rb_change_paused(rb, 0, RB_PAUSED_IOCTL | always);

	return rb_change_paused(rb, RB_PAUSED_IOCTL, always);
}

/* End the pause for the reasons that are @reasons. Under rb->pause_mutex. */
static void __rb_resume(struct perf_buffer *rb, int reasons)
{
	int old;

	/* Q: what the reader has read was read before anything is written. */
	smp_mb();
	old = rb_change_paused(rb, reasons, 0);
	/* A trigger that fires from here on has yet to ask. */
	if (!(old & ~reasons & ~RB_LOOK))
		rb->pause_begun = false;
}

/**
 * rb_resume - let a buffer run on
 * @rb: the buffer, to which the caller holds a reference
 *
 * A trigger that has frozen it isn't undone by this.
 *
 * Context: process, may sleep. The buffer's writers may be in any context.
 *
 * Return: 0, or -EINTR if a fatal signal came in.
 */
int rb_resume(struct perf_buffer *rb)
{
	/* A pause isn't over before it has been one. */
	if (mutex_lock_killable(&rb->pause_mutex))
		return -EINTR;

	__rb_resume(rb, RB_PAUSED_IOCTL);
	mutex_unlock(&rb->pause_mutex);

	return 0;
}

/**
 * rb_trigger_freeze - freeze a buffer that a trigger stops, and don't wait
 * @rb: the buffer, to which the caller holds a reference
 * @over: whether a grace period is over that began after a call of this
 *
 * As rb_pause(), but nobody is waited for: not a grace period, nor a task that pauses
 * the buffer meanwhile, which may hold rb->pause_mutex for as long as one takes, again
 * and again. With @over there is nothing left to ask, as writers are RCU readers.
 *
 * Context: process. The buffer's writers may be in any context.
 *
 * Return: 0 if it is frozen, else an error to call again: -EBUSY if the CPU that was
 * asked, or its writer, is a matter of microseconds, -EAGAIN if it takes longer.
 */
static int rb_trigger_freeze(struct perf_buffer *rb, bool over)
{
	int ret = 0;

	if (!over) {
		/* Stop the writers even if another call holds the mutex. */
		rb_change_paused(rb, 0, RB_PAUSED_TRIGGER);
		if (!mutex_trylock(&rb->pause_mutex))
			return -EAGAIN;

		rb_pause_begin(rb, RB_PAUSED_TRIGGER);
		if (!poll_state_synchronize_rcu(rb->pause_gp))
			ret = -EAGAIN;
		else if (!rb_pause_over(rb))
			ret = -EBUSY;
		mutex_unlock(&rb->pause_mutex);
	}
	if (!ret)
		rb_pause_end(rb);

	return ret;
}

/* The end of a trigger's pause, and of the caller's lock of rb->pause_mutex. */
static void rb_trigger_thaw_unlock(struct perf_buffer *rb)
{
	__rb_resume(rb, RB_PAUSED_TRIGGER | RB_LOOK);
	mutex_unlock(&rb->pause_mutex);
}

/**
 * rb_trigger_thaw - let a buffer run on that a trigger has frozen, or is about to
 * @rb: the buffer, to which the caller holds a reference
 *
 * Context: process, may sleep, for as long as others pause the buffer.
 */
void rb_trigger_thaw(struct perf_buffer *rb)
{
	mutex_lock(&rb->pause_mutex);
	rb_trigger_thaw_unlock(rb);
}

/**
 * perf_output_look - find out why a buffer's paused flag is set, and go on accordingly
 * @handle: of the writer that has found it set, and has raised the count of writers
 * @data: sample data, for PERF_RECORD_LOST
 * @size: of the record
 *
 * If there is no pause, but RB_LOOK, a trigger has fired and the buffer hasn't reached
 * its depth: perf_output_reserve_rare() asks perf_output_admit() then.
 *
 * @size is a long, as callers have it at hand: one register less in the fast path.
 *
 * Context: any, with preemption disabled, in an RCU read-side section.
 *
 * Return: as perf_output_begin().
 */
int perf_output_look(struct perf_output_handle *handle,
		     struct perf_sample_data *data, unsigned long size)
{
	struct perf_buffer *rb = handle->rb;

	if (READ_ONCE(rb->paused) & ~RB_LOOK)
		return perf_output_follow(handle, data, size);

	perf_output_put_handle(handle);

	return perf_output_reserve_rare(handle, data, handle->event, rb, size);
}

/*
 * What makes @event a trigger, or NULL: a CPU that sees the event's overflow handler changed
 * may not see this yet.
 */
static struct perf_trigger *perf_trigger_of(struct perf_event *event)
{
	/* Matches smp_store_release() in perf_event_set_trigger(). */
	return smp_load_acquire(&event->trigger);
}

/**
 * perf_output_reserve_trigger - reserve room for the sample that has fired a trigger
 * @handle: to be filled in
 * @data: sample data, for PERF_RECORD_LOST
 * @event: that writes, the trigger
 * @rb: the buffer that the caller has found in @event
 * @size: of the record
 *
 * Without a depth, @rb is frozen first for all records but this one, which is to be its
 * newest: see above. @event's output may have been directed elsewhere meanwhile. If @rb
 * turns out to be paused by the ioctl, too, perf_output_follow() comes here again with the
 * buffer where the record goes then.
 *
 * Context: any, in an RCU read-side section since @rb was found.
 *
 * Return: as perf_output_begin().
 */
int perf_output_reserve_trigger(struct perf_output_handle *handle,
				struct perf_sample_data *data,
				struct perf_event *event,
				struct perf_buffer *rb, unsigned int size)
{
	struct perf_trigger *trigger = perf_trigger_of(event);
	struct perf_trigger_member *m = rcu_dereference(rb->trigger);

	/*
	 * The set that was fired stays so until the caller has told it, unless it goes
	 * away. The event may have been added to another one then, which isn't armed
	 * before this read-side section is over.
	 */
	if (trigger && m && m->set == rcu_access_pointer(trigger->set) &&
	    perf_trigger_state(m->set) == PERF_TRIGGER_FIRED &&
	    m->set->attr.flags & PERF_TRIGGER_AT_ONCE)
		rb_change_paused(rb, 0, RB_PAUSED_TRIGGER);

	handle->flags = PERF_OUTPUT_TRIGGER;

	return perf_output_reserve_rare(handle, data, event, rb, size);
}

/* Have writers look closer, or nobody write, from here on. In any context. */
static void perf_trigger_mark(struct perf_trigger_member *m)
{
	bool at_once = m->set->attr.flags & PERF_TRIGGER_AT_ONCE;
	struct perf_buffer *rb = rcu_dereference(m->rb);

	if (!rb || READ_ONCE(rb->paused) & (RB_PAUSED_TRIGGER | RB_LOOK))
		return;

	/* B, matches smp_rmb() in perf_trigger_admits() */
	rb_change_paused(rb, 0, at_once ? RB_PAUSED_TRIGGER : RB_LOOK);
}

/* The depth is reached: freeze @rb, if nobody did. In any context. */
static bool perf_trigger_stop(struct perf_buffer *rb)
{
	int old = READ_ONCE(rb->paused);

	do {
		/* Not if the set goes away, and has thawed it. */
		if (!(old & RB_LOOK) || old & RB_PAUSED_TRIGGER)
			return false;
	} while (!try_cmpxchg(&rb->paused, &old, old | RB_PAUSED_TRIGGER));

	return true;
}

/*
 * The buffer of @m has reached its depth, or never will. The last one has the set frozen.
 * In any context.
 */
static void perf_trigger_reached(struct perf_trigger_member *m)
{
	if (atomic_xchg(&m->running, 0) && atomic_dec_and_test(&m->set->running))
		irq_work_queue(&m->set->reached_work);
}

static unsigned long perf_trigger_bytes(struct perf_trigger_member *m,
					struct perf_buffer *rb)
{
	return rb_head_bytes(local_read(&rb->head), m->backward);
}

/* The member of @set that @event writes to, and its buffer. */
static struct perf_trigger_member *
perf_trigger_member_of(struct perf_trigger_set *set, struct perf_event *event,
		       struct perf_buffer **rb)
{
	struct perf_trigger_member *m;

	*rb = rcu_dereference(event->rb);
	if (!*rb)
		return NULL;

	m = rcu_dereference((*rb)->trigger);

	return m && m->set == set ? m : NULL;
}

static bool perf_trigger_holds_off(struct perf_trigger_set *set,
				   struct perf_event *event)
{
	struct perf_trigger_member *m;
	struct perf_buffer *rb;

	/* Not by the clock of the set, which may be one that is set back. */
	if (set->attr.holdoff_ns &&
	    (s64)(ktime_get_mono_fast_ns() - set->armed_at) < (s64)set->attr.holdoff_ns)
		return true;

	if (!set->attr.holdoff_bytes)
		return false;

	/* What isn't written to the set has no history there to wait for. */
	m = perf_trigger_member_of(set, event, &rb);
	if (!m || READ_ONCE(m->has_history))
		return false;
	if (perf_trigger_bytes(m, rb) - m->armed_at < set->attr.holdoff_bytes)
		return true;

	/* For good: a count of 32 bits comes round again. */
	WRITE_ONCE(m->has_history, true);

	return false;
}

/**
 * perf_trigger_take - fire the set that an event is a trigger of, if it is armed
 * @event: that has a sample to write, or the event that it is inherited from
 *
 * Context: any that samples are taken in, in an RCU read-side section up to
 * perf_trigger_fired().
 *
 * Return: the set, if the caller is the one that fired it: to be told by
 * perf_trigger_fired() when the sample is written. Otherwise NULL.
 */
struct perf_trigger_set *perf_trigger_take(struct perf_event *event)
{
	struct perf_trigger *trigger = perf_trigger_of(event);
	struct perf_trigger_set *set;
	unsigned int state;
	int word;

	/* A child may be ahead of its parent. */
	if (!trigger)
		return NULL;
	set = rcu_dereference(trigger->set);

	/* It was one, once. */
	if (!set)
		return NULL;

	word = atomic_read_acquire(&set->state); /* A */
	state = PERF_TRIGGER_STATE((unsigned int)word);

	if (state == PERF_TRIGGER_ARMED && perf_trigger_holds_off(set, event)) {
		atomic_long_inc(&set->held_off);
		return NULL;
	}

	/* One try: the word changes to what can't be fired only. */
	if (state != PERF_TRIGGER_ARMED ||
	    atomic_cmpxchg(&set->state, word,
			   word + PERF_TRIGGER_FIRED - PERF_TRIGGER_ARMED) != word) {
		if (state != PERF_TRIGGER_IDLE)
			atomic_long_inc(&set->suppressed);
		return NULL;
	}

	return set;
}

/**
 * perf_trigger_fired - go on with what perf_trigger_take() began
 * @set: that it returned
 * @event: that the sample is of, NULL if there is none
 * @written: the buffer that the sample was written to, NULL if it was dropped
 *
 * Context: any, in the same RCU read-side section.
 */
void perf_trigger_fired(struct perf_trigger_set *set, struct perf_event *event,
			struct perf_buffer *written)
{
	struct perf_trigger_member *m;
	int cpu = get_cpu();

	set->event_id = event ? perf_event_primary_id(event) : 0;
	set->cpu = cpu;
	set->flags = event ? 0 : PERF_TRIGGER_BY_USER;
	set->time = set->clock();
	set->until = set->time + set->attr.depth_ns;

	for (m = set->on_cpu[cpu]; m; m = m->next_on_cpu)
		perf_trigger_mark(m);

	/* That of a task is on no CPU's list. Others get their mark from the irq_work. */
	m = written ? rcu_dereference(written->trigger) : NULL;
	if (m && m->set == set)
		perf_trigger_mark(m);
	else if (event)
		set->flags = PERF_TRIGGER_NO_RECORD;

	/* From here on the set may be frozen, at any time. E, matches smp_load_acquire() */
	smp_store_release(&set->noted, true);
	irq_work_queue(&set->irq_work);
	put_cpu();
}

/**
 * perf_trigger_refused - undo the count of a record that isn't written
 * @handle: of the record, which perf_trigger_admits() may have counted
 */
void perf_trigger_refused(struct perf_output_handle *handle)
{
	struct perf_trigger_member *m;

	if (!(handle->flags & PERF_OUTPUT_ADMITTED))
		return;

	m = rcu_dereference(handle->rb->trigger);
	if (m)
		local_dec(&m->records);
	handle->flags &= ~PERF_OUTPUT_ADMITTED;
}

/*
 * perf_trigger_admits - whether a record may be written though rb->paused is set
 * @handle: its buffer and event
 * @head: where the buffer's head was before that was looked at
 * @size: of the record
 *
 * The first writer that comes here finds where the depth starts. The answer holds as
 * long as the head doesn't move.
 *
 * Context: a writer of the buffer, after it was counted in rb->nest.
 */
static bool perf_trigger_admits(struct perf_output_handle *handle,
				unsigned long head, unsigned int size)
{
	struct perf_buffer *rb = handle->rb;
	struct perf_trigger_member *m;
	struct perf_trigger_set *set;
	struct perf_trigger *trigger;
	int paused = READ_ONCE(rb->paused);
	unsigned long bytes;

	if (paused & ~(RB_LOOK | RB_PAUSED_TRIGGER))
		goto refuse;

	m = rcu_dereference(rb->trigger);

	/* It was thawed meanwhile. */
	if (!paused || (!m && !(paused & RB_PAUSED_TRIGGER)))
		return true;
	if (!m)
		goto refuse;

	set = m->set;
	if (paused & RB_PAUSED_TRIGGER) {
		if (!(handle->flags & PERF_OUTPUT_TRIGGER))
			goto refuse;
		trigger = perf_trigger_of(handle->event);
		if (!trigger || rcu_access_pointer(trigger->set) != set)
			goto refuse;
		return true;
	}

	/* What RB_LOOK is about. Matches rb_change_paused() in perf_trigger_mark(). */
	smp_rmb(); /* B */

	/*
	 * A trigger that nested between the load of @head and that of the flag has
	 * moved the head, and its depth doesn't start at the old one. The caller's
	 * cmpxchg fails, and it asks again.
	 */
	if (local_read(&rb->head) != head)
		return true;

	bytes = rb_head_bytes(head, m->backward);
	if (!READ_ONCE(m->started)) {
		/* Whoever nests from here on finds the same head, or us past it. */
		WRITE_ONCE(m->start, bytes);
		barrier();
		WRITE_ONCE(m->started, true);
	}

	if ((s64)(set->clock() - set->until) > 0 ||
	    (set->attr.depth_bytes &&
	     bytes - READ_ONCE(m->start) + size > set->attr.depth_bytes)) {
		if (perf_trigger_stop(rb))
			perf_trigger_reached(m);
		goto refuse;
	}

	if (!(handle->flags & PERF_OUTPUT_ADMITTED)) {
		handle->flags |= PERF_OUTPUT_ADMITTED;
		local_inc(&m->records);
	}

	return true;

refuse:
	/* It was admitted, and has lost its place to what nested in it. */
	perf_trigger_refused(handle);

	return false;
}

/**
 * perf_output_admit - whether a buffer that was found paused takes a record nevertheless
 * @handle: of the writer, in perf_output_reserve_rare()
 * @data: sample data, for PERF_RECORD_LOST
 * @head: that the writer is about to reserve from
 * @size: of the reservation
 * @lost_size: the part of it that is a PERF_RECORD_LOST
 *
 * Context: any, with preemption disabled, in an RCU read-side section.
 *
 * Return: 1 if it does. Otherwise the record goes to the buffer that its event was
 * directed to, if any, and this is as of perf_output_begin() there.
 */
int perf_output_admit(struct perf_output_handle *handle,
		      struct perf_sample_data *data, unsigned long head,
		      unsigned int size, unsigned int lost_size)
{
	if (perf_trigger_admits(handle, head, size))
		return 1;

	return perf_output_follow(handle, data, size - lost_size);
}

/*
 * Queued by the winner, and by the last buffer to reach its depth or to leave. One that
 * runs before the note is written does nothing: the winner queues another.
 */
static void perf_trigger_go_on(struct perf_trigger_set *set)
{
	struct perf_trigger_member *m;
	s64 left;

	/* A thread may run this. */
	rcu_read_lock();
	if (perf_trigger_state(set) != PERF_TRIGGER_FIRED)
		goto unlock;
	/* E, matches smp_store_release() in perf_trigger_fired() */
	if (!smp_load_acquire(&set->noted))
		goto unlock;

	/* Once: the last buffer to reach its depth needn't have them marked again. */
	if (!atomic_xchg(&set->marked, 1)) {
		list_for_each_entry_rcu(m, &set->live, live)
			perf_trigger_mark(m);
		if (!(set->attr.flags & PERF_TRIGGER_AT_ONCE)) {
			/* A clock that was set back doesn't prolong it. */
			left = set->until - set->clock();
			left = clamp_t(s64, left, 0, set->attr.depth_ns);
			hrtimer_start(&set->timer, ns_to_ktime(left),
				      HRTIMER_MODE_REL_PINNED);
		}
	}

	if (set->attr.flags & PERF_TRIGGER_AT_ONCE || !atomic_read(&set->running))
		queue_delayed_work(perf_trigger_wq, &set->work, 0);
unlock:
	rcu_read_unlock();
}

/*
 * A work of its own for each of the two, which may run at the same time: irq_work_sync()
 * waits for one run of a work.
 */
static void perf_trigger_irq_work(struct irq_work *irq_work)
{
	perf_trigger_go_on(container_of(irq_work, struct perf_trigger_set, irq_work));
}

static void perf_trigger_reached_work(struct irq_work *irq_work)
{
	perf_trigger_go_on(container_of(irq_work, struct perf_trigger_set, reached_work));
}

static enum hrtimer_restart perf_trigger_timer(struct hrtimer *timer)
{
	struct perf_trigger_set *set =
		container_of(timer, struct perf_trigger_set, timer);
	struct perf_trigger_member *m;
	struct perf_buffer *rb;

	rcu_read_lock();
	list_for_each_entry_rcu(m, &set->live, live) {
		rb = rcu_dereference(m->rb);
		if (rb)
			perf_trigger_stop(rb);
	}
	rcu_read_unlock();

	queue_delayed_work(perf_trigger_wq, &set->work, 0);

	return HRTIMER_NORESTART;
}

/* The buffer of @m, with a reference, or NULL. */
static struct perf_buffer *perf_trigger_get(struct perf_trigger_member *m)
{
	struct perf_buffer *rb;

	rcu_read_lock();
	rb = rcu_dereference(m->rb);
	if (rb && !refcount_inc_not_zero(&rb->refcount))
		rb = NULL;
	rcu_read_unlock();

	return rb;
}

/* Freeze those that aren't yet. Return 0, or what the slowest of them says. */
static int perf_trigger_freeze(struct perf_trigger_set *set)
{
	bool over = set->waits && poll_state_synchronize_rcu(set->gp);
	struct perf_trigger_member *m;
	struct perf_buffer *rb;
	int ret, slowest = 0;

	list_for_each_entry(m, &set->members, entry) {
		if (m->frozen)
			continue;
		rb = perf_trigger_get(m);
		if (!rb)
			continue;
		ret = rb_trigger_freeze(rb, over);
		if (!ret) {
			m->head = local_read(&rb->head);
			m->bytes = m->started ? perf_trigger_bytes(m, rb) - m->start : 0;
			m->frozen = true;
		} else if (slowest != -EAGAIN) {
			slowest = ret;
		}
		ring_buffer_put(rb);
		cond_resched();
	}

	return slowest;
}

/*
 * It doesn't wait for grace periods, but comes again: the queue runs so many works at a
 * time, and thousands of sets that wait would hold up those of other users. Nor does it
 * look at all buffers each time, of which there may be thousands.
 */
static void perf_trigger_work(struct work_struct *work)
{
	struct perf_trigger_set *set =
		container_of(to_delayed_work(work), struct perf_trigger_set, work);
	unsigned int word = atomic_read_acquire(&set->state);
	unsigned int sleep = PERF_TRIGGER_SLEEP_US;
	int ret;

	if (PERF_TRIGGER_STATE(word) != PERF_TRIGGER_FIRED)
		return;

	if (set->rests && !poll_state_synchronize_rcu(set->gp)) {
		queue_delayed_work(perf_trigger_wq, &set->work, 1);
		return;
	}

	hrtimer_cancel(&set->timer);

	/*
	 * All are asked before the first is waited for. It takes privilege to ask a CPU; a
	 * writer that is about to be refused may be there for anybody, for set->gp at most.
	 */
	while ((ret = perf_trigger_freeze(set)) == -EBUSY &&
	       sleep <= PERF_TRIGGER_SLEEP_MAX_US) {
		usleep_range(sleep, 2 * sleep);
		sleep *= 2;
	}

	if (ret) {
		/* What ends the wait for a buffer that somebody pauses all the time. */
		if (!set->waits) {
			set->gp = start_poll_synchronize_rcu();
			set->waits = true;
		}
		/* A CPU that was asked may have answered by then. */
		set->rests = ret == -EAGAIN;
		queue_delayed_work(perf_trigger_wq, &set->work, 1);
		return;
	}

	/* Unless perf_trigger_free() came first. C, matches perf_trigger_state(). */
	atomic_cmpxchg_release(&set->state, word,
			       word + PERF_TRIGGER_FROZEN - PERF_TRIGGER_FIRED);
	wake_up_all(&set->waitq);
}

/*
 * Behind a grace period, in which perf_trigger_go_on() has either come to its end or seen that
 * the set isn't FIRED any more: have the timer and the work come to theirs.
 */
static void perf_trigger_settle(struct perf_trigger_set *set)
{
	hrtimer_cancel(&set->timer);
	cancel_delayed_work_sync(&set->work);
}

/* Wait for all that perf_trigger_take() may have led to. */
static void perf_trigger_quiesce(struct perf_trigger_set *set)
{
	synchronize_rcu();
	irq_work_sync(&set->irq_work);
	irq_work_sync(&set->reached_work);
	perf_trigger_settle(set);
}

/*
 * Let others use the set. A read() that mustn't block may have been turned away though
 * poll() says that there is something to read, and an edge comes once.
 */
static void perf_trigger_unlock(struct perf_trigger_set *set)
{
	mutex_unlock(&set->mutex);
	smp_mb(); /* F, matches the one in perf_trigger_read() */
	if (READ_ONCE(set->turned_away)) {
		WRITE_ONCE(set->turned_away, false);
		wake_up_all(&set->waitq);
	}
}

static void perf_trigger_free_work(struct work_struct *work);

/**
 * perf_trigger_alloc - make a set
 * @attr: what it is to do, checked
 * @clock: of all events
 *
 * Return: the set, or NULL without memory.
 */
struct perf_trigger_set *
perf_trigger_alloc(const struct perf_trigger_attr *attr, u64 (*clock)(void))
{
	struct perf_trigger_set *set;

	if (!perf_trigger_wq)
		return NULL;

	set = kvzalloc(struct_size(set, on_cpu, nr_cpu_ids), GFP_KERNEL_ACCOUNT);
	if (!set)
		return NULL;

	set->id = atomic64_inc_return(&perf_trigger_ids);
	set->attr = *attr;
	set->clock = clock;
	set->creator = get_pid(task_tgid(current));
	init_irq_work(&set->irq_work, perf_trigger_irq_work);
	init_irq_work(&set->reached_work, perf_trigger_reached_work);
	perf_hrtimer_setup(&set->timer, perf_trigger_timer);
	INIT_DELAYED_WORK(&set->work, perf_trigger_work);
	INIT_RCU_WORK(&set->free_work, perf_trigger_free_work);
	init_waitqueue_head(&set->waitq);
	mutex_init(&set->mutex);
	INIT_LIST_HEAD(&set->members);
	INIT_LIST_HEAD(&set->live);
	INIT_LIST_HEAD(&set->triggers);

	return set;
}

/* Part @m and its buffer. Return that, for the caller to drop the member's reference. */
static struct perf_buffer *perf_trigger_unlink(struct perf_trigger_member *m)
{
	struct perf_buffer *rb;

	lockdep_assert_held(&perf_trigger_lock);

	rb = rcu_dereference_protected(m->rb, lockdep_is_held(&perf_trigger_lock));
	if (rb)
		RCU_INIT_POINTER(rb->trigger, NULL);
	RCU_INIT_POINTER(m->rb, NULL);

	return rb;
}

/*
 * Nothing leads to a set without members and triggers but what has looked up a trigger
 * that is gone, under RCU. It was never armed.
 */
static bool perf_trigger_is_empty(struct perf_trigger_set *set)
{
	return !set->nr_members && !READ_ONCE(set->nr_triggers);
}

/* Nobody fires the set from here on, and what is on its way comes to nothing. */
static void perf_trigger_disarm(struct perf_trigger_set *set)
{
	struct perf_trigger *trigger;

	atomic_set(&set->state, PERF_TRIGGER_IDLE);

	spin_lock(&perf_trigger_lock);
	while ((trigger = list_first_entry_or_null(&set->triggers, struct perf_trigger,
						   entry))) {
		list_del_init(&trigger->entry);
		RCU_INIT_POINTER(trigger->set, NULL);
		/* Whoever unmaps a buffer wants the lock. */
		cond_resched_lock(&perf_trigger_lock);
	}
	spin_unlock(&perf_trigger_lock);
}

/*
 * Have @rb run on. Nobody but we changes what this undoes, but for writers that reach a
 * depth. False if somebody pauses it, and the caller doesn't want to @wait for that.
 */
static bool perf_trigger_thaw(struct perf_buffer *rb, bool wait)
{
	if (wait)
		rb_trigger_thaw(rb);
	else if (mutex_trylock(&rb->pause_mutex))
		rb_trigger_thaw_unlock(rb);
	else
		return false;

	return true;
}

/* Have the buffers run on, and forget them. False if that isn't done yet, without @wait. */
static bool perf_trigger_let_go(struct perf_trigger_set *set, bool wait)
{
	struct perf_trigger_member *m;
	struct perf_buffer *rb, *linked;
	bool all = true;

	list_for_each_entry(m, &set->members, entry) {
		rb = perf_trigger_get(m);
		if (!rb)
			continue;
		/* What was never armed was never frozen. */
		if (set->was_armed && !perf_trigger_thaw(rb, wait)) {
			all = false;
		} else {
			spin_lock(&perf_trigger_lock);
			linked = perf_trigger_unlink(m);
			spin_unlock(&perf_trigger_lock);
			if (linked)
				ring_buffer_put(linked);
		}
		ring_buffer_put(rb);
		cond_resched();
	}

	return all;
}

/*
 * After a grace period, and after the interrupt works that a reader of rb->trigger may have
 * queued. The kernel still accesses such a work for a moment after it has run, under RCU.
 */
static void perf_trigger_destroy(struct perf_trigger_set *set)
{
	struct perf_trigger_member *m, *tmp;

	list_for_each_entry_safe(m, tmp, &set->members, entry)
		kfree(m);
	put_pid(set->creator);
	kvfree_rcu(set, rcu_head);
}

/**
 * perf_trigger_free - end a set: its buffers run on, its triggers are none any more
 * @set: that nobody has a descriptor of
 *
 * Context: process, may sleep. Triggers may be about to fire.
 */
void perf_trigger_free(struct perf_trigger_set *set)
{
	if (perf_trigger_is_empty(set)) {
		put_pid(set->creator);
		kvfree_rcu(set, rcu_head);
		return;
	}

	perf_trigger_disarm(set);
	/* What was never armed has nothing running. */
	if (set->was_armed)
		perf_trigger_quiesce(set);
	perf_trigger_let_go(set, true);
	perf_trigger_quiesce(set);
	perf_trigger_destroy(set);
}

/*
 * The same in steps, with a grace period between two of them, for which nothing sleeps: sets
 * of other users are to be freed meanwhile, however many wait here. irq_work_sync() would
 * sleep for a grace period where threads run interrupt works, and for these threads.
 */
static void perf_trigger_free_work(struct work_struct *work)
{
	struct perf_trigger_set *set =
		container_of(to_rcu_work(work), struct perf_trigger_set, free_work);

	if (!set->unfired) {
		perf_trigger_disarm(set);
		set->unfired = true;
	} else if (!set->unlinked) {
		perf_trigger_settle(set);
		/* What others pause is looked at again, a grace period later. */
		set->unlinked = perf_trigger_let_go(set, false);
	} else if (!irq_work_is_busy(&set->irq_work) &&
		   !irq_work_is_busy(&set->reached_work)) {
		perf_trigger_destroy(set);
		return;
	}
	queue_rcu_work(perf_trigger_free_wq, &set->free_work);
}

/* perf_trigger_join() of @rb, to which @event writes, and which the caller holds. */
static int perf_trigger_join_buffer(struct perf_trigger_set *set, struct perf_event *event,
				    struct perf_buffer *rb)
{
	struct perf_trigger_member *m, *other;
	unsigned int nr_on_cpu = 0;
	int ret = 0;

	lockdep_assert_held(&set->mutex);

	if (!rb->nr_pages)
		return -ENOBUFS;
	if (event->clock != set->clock)
		return -EXDEV;
	if (set->attr.depth_bytes > perf_data_size(rb) ||
	    set->attr.holdoff_bytes > perf_data_size(rb))
		return -ERANGE;

	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	m->set = set;
	m->id = perf_event_primary_id(event);
	m->backward = is_write_backward(event);
	m->cpu = READ_ONCE(rb->cpu);
	if (m->cpu < 0 || m->cpu >= nr_cpu_ids)
		m->cpu = -1;

	if (m->cpu >= 0)
		for (other = set->on_cpu[m->cpu]; other; other = other->next_on_cpu)
			nr_on_cpu++;

	spin_lock(&perf_trigger_lock);
	other = rcu_dereference_protected(rb->trigger,
					  lockdep_is_held(&perf_trigger_lock));
	if (other) {
		ret = other->set == set ? -EEXIST : -EBUSY;
	} else if (set->was_armed) {
		ret = -EALREADY;
	} else if (set->nr_members == PERF_TRIGGER_MAX ||
		   nr_on_cpu == PERF_TRIGGER_MAX_PER_CPU) {
		ret = -ENOSPC;
	} else if (rb->trigger_left) {
		ret = -ENXIO;
	} else {
		refcount_inc(&rb->refcount);
		rcu_assign_pointer(m->rb, rb);
		rcu_assign_pointer(rb->trigger, m);
		list_add_tail(&m->entry, &set->members);
		list_add_tail_rcu(&m->live, &set->live);
		set->nr_members++;
		if (m->cpu >= 0) {
			m->next_on_cpu = set->on_cpu[m->cpu];
			set->on_cpu[m->cpu] = m;
		}
		m = NULL;
	}
	spin_unlock(&perf_trigger_lock);
	kfree(m);

	return ret;
}

/**
 * perf_trigger_join - have a set freeze a buffer
 * @set: that was never armed
 * @event: that writes to the buffer
 *
 * Context: process; sleeps. Takes the set's mutex, then the event's mmap_mutex.
 *
 * Return: 0 or an error, see perf_trigger_ioctl().
 */
int perf_trigger_join(struct perf_trigger_set *set, struct perf_event *event)
{
	struct perf_buffer *rb;
	int ret = -ENXIO;

	/*
	 * Before there is a reference: who holds the mutex may wait for a page of its reader's,
	 * and what goes with the last mapping would stay for as long, charged to nobody.
	 */
	if (mutex_lock_killable(&set->mutex))
		return -EINTR;
	/* An mmap() under way may yet fail, and doesn't know that we have its buffer. */
	mutex_lock(&event->mmap_mutex);
	rb = ring_buffer_get(event);
	mutex_unlock(&event->mmap_mutex);
	if (rb) {
		ret = perf_trigger_join_buffer(set, event, rb);
		ring_buffer_put(rb);
	}
	perf_trigger_unlock(set);

	return ret;
}

/**
 * perf_trigger_leave - take a buffer out of its set
 * @rb: that has no mapping any more, and to which the caller holds a reference
 */
void perf_trigger_leave(struct perf_buffer *rb)
{
	struct perf_trigger_member *m;

	spin_lock(&perf_trigger_lock);
	m = rcu_dereference_protected(rb->trigger,
				      lockdep_is_held(&perf_trigger_lock));
	if (m) {
		perf_trigger_unlink(m);
		/* Interrupts walk those only whose pages are charged to somebody. */
		list_del_rcu(&m->live);
		/* The set may be waiting for this one alone. */
		perf_trigger_reached(m);
	}
	/* Nobody joins by an event that still has it. */
	rb->trigger_left = true;
	spin_unlock(&perf_trigger_lock);

	if (m)
		ring_buffer_put(rb);
}

/**
 * perf_trigger_set_id - the number of the set that a buffer is in, for fdinfo
 * @rb: the buffer, to which the caller holds a reference
 *
 * Return: the number, or 0 if it is in none.
 */
u64 perf_trigger_set_id(struct perf_buffer *rb)
{
	struct perf_trigger_member *m;
	u64 id;

	rcu_read_lock();
	m = rcu_dereference(rb->trigger);
	id = m ? m->set->id : 0;
	rcu_read_unlock();

	return id;
}

/* Have @trigger fire @set. NULL is one that could. */
static int perf_trigger_link(struct perf_trigger_set *set, struct perf_trigger *trigger)
{
	lockdep_assert_held(&perf_trigger_lock);

	if (trigger && rcu_access_pointer(trigger->set))
		return rcu_access_pointer(trigger->set) == set ? -EEXIST : -EBUSY;
	if (set->was_armed)
		return -EALREADY;
	if (set->nr_triggers == PERF_TRIGGER_MAX)
		return -ENOSPC;
	if (!trigger)
		return 0;

	rcu_assign_pointer(trigger->set, set);
	list_add_tail(&trigger->entry, &set->triggers);
	set->nr_triggers++;

	return 0;
}

/**
 * perf_trigger_add - have samples of an event fire a set
 * @set: that was never armed
 * @event: that user space has a descriptor of
 *
 * Return: 0 or an error, see perf_trigger_ioctl().
 */
int perf_trigger_add(struct perf_trigger_set *set, struct perf_event *event)
{
	struct perf_trigger *trigger, *new = NULL;
	int ret;

	if (!is_sampling_event(event))
		return -EINVAL;
	/* Its records are BPF programs', and no overflows. */
	if (event->attr.type == PERF_TYPE_SOFTWARE &&
	    event->attr.config == PERF_COUNT_SW_BPF_OUTPUT)
		return -EOPNOTSUPP;
	if (event->clock != set->clock)
		return -EXDEV;

	/* What an event is made for the first set stays with it. */
	trigger = perf_trigger_of(event);
	if (!trigger) {
		new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
		if (!new)
			return -ENOMEM;
		INIT_LIST_HEAD(&new->entry);
	}

	spin_lock(&perf_trigger_lock);
	ret = perf_trigger_link(set, trigger);
	spin_unlock(&perf_trigger_lock);
	if (ret || trigger)
		goto free;

	trigger = perf_event_set_trigger(event, new);
	if (IS_ERR(trigger)) {
		ret = PTR_ERR(trigger);
		goto free;
	}
	if (trigger == new)
		new = NULL;

	spin_lock(&perf_trigger_lock);
	ret = perf_trigger_link(set, trigger);
	spin_unlock(&perf_trigger_lock);
free:
	kfree(new);

	return ret;
}

/**
 * perf_trigger_free_event - take an event out of its set, if it is a trigger
 * @event: that is about to be freed
 */
void perf_trigger_free_event(struct perf_event *event)
{
	struct perf_trigger *trigger;
	struct perf_trigger_set *set;

	trigger = perf_trigger_of(event);
	if (!trigger)
		return;

	spin_lock(&perf_trigger_lock);
	set = rcu_dereference_protected(trigger->set,
					lockdep_is_held(&perf_trigger_lock));
	if (set) {
		list_del(&trigger->entry);
		set->nr_triggers--;
		RCU_INIT_POINTER(trigger->set, NULL);
	}
	spin_unlock(&perf_trigger_lock);

	WRITE_ONCE(event->trigger, NULL);
	kfree_rcu(trigger, rcu_head);
}

/**
 * perf_trigger_arm - have buffers run on, and the next sample of a trigger fire
 * @set: the set
 * @generation: that the caller knows of, changed to the new one
 *
 * Context: process, may sleep.
 *
 * Return: 0 or an error, see perf_trigger_ioctl().
 */
int perf_trigger_arm(struct perf_trigger_set *set, u64 *generation)
{
	struct perf_trigger_member *m;
	struct perf_buffer *rb;
	unsigned int word, gen;
	int ret = 0;

	if (mutex_lock_killable(&set->mutex))
		return -EINTR;

	word = atomic_read_acquire(&set->state);
	gen = PERF_TRIGGER_GEN(word);
	if (*generation != gen)
		ret = -ESTALE;
	else if (PERF_TRIGGER_STATE(word) == PERF_TRIGGER_ARMED)
		ret = -EALREADY;
	else if (PERF_TRIGGER_STATE(word) == PERF_TRIGGER_FIRED)
		ret = -EINPROGRESS;
	if (ret)
		goto unlock;

	/* Nobody adds to it any more. */
	spin_lock(&perf_trigger_lock);
	set->was_armed = true;
	spin_unlock(&perf_trigger_lock);

	/*
	 * From here on it can't be read, and samples don't count: they are of no
	 * generation. The set leaves FROZEN and IDLE here and when it is freed only.
	 */
	atomic_set(&set->state, PERF_TRIGGER_WORD(gen, PERF_TRIGGER_IDLE));
	perf_trigger_quiesce(set);

	set->flags = 0;
	atomic_long_set(&set->suppressed, 0);
	atomic_long_set(&set->held_off, 0);
	atomic_set(&set->marked, 0);
	set->waits = false;
	set->rests = false;
	WRITE_ONCE(set->noted, false);
	/*
	 * What leaves meanwhile isn't counted any more, nor the last one: one is for us.
	 * Under the lock, so that perf_trigger_leave() doesn't take from the new count
	 * what it found in the old one. Those that have left have nothing running, and
	 * there may be thousands, for which others would wait. One that leaves while the
	 * lock is let go still knows the next one.
	 */
	spin_lock(&perf_trigger_lock);
	list_for_each_entry(m, &set->live, live) {
		atomic_set(&m->running, 0);
		/* What leaves then takes from the old count. */
		cond_resched_lock(&perf_trigger_lock);
	}
	atomic_set(&set->running, 1);
	spin_unlock(&perf_trigger_lock);
	/* It may have been the last one. From here on nobody is, until the set has fired. */
	irq_work_sync(&set->reached_work);
	list_for_each_entry(m, &set->members, entry) {
		m->started = false;
		m->frozen = false;
		m->has_history = false;
		local_set(&m->records, 0);
		m->head = 0;
		m->bytes = 0;
		rb = perf_trigger_get(m);
		if (!rb)
			continue;

		/* Against perf_trigger_leave(). */
		spin_lock(&perf_trigger_lock);
		if (rcu_access_pointer(m->rb)) {
			atomic_set(&m->running, 1);
			atomic_inc(&set->running);
		}
		spin_unlock(&perf_trigger_lock);

		m->armed_at = perf_trigger_bytes(m, rb);
		/* Somebody pauses it. The set stays idle, to be armed by the next call. */
		if (mutex_lock_killable(&rb->pause_mutex))
			ret = -EINTR;
		else
			rb_trigger_thaw_unlock(rb);
		ring_buffer_put(rb);
		if (ret)
			goto unlock;
		cond_resched();
	}
	atomic_dec(&set->running);
	set->armed_at = ktime_get_mono_fast_ns();

	gen = PERF_TRIGGER_GEN(PERF_TRIGGER_WORD(gen + 1, 0));
	*generation = gen;
	/* A, matches atomic_read_acquire() in perf_trigger_take() */
	atomic_set_release(&set->state, PERF_TRIGGER_WORD(gen, PERF_TRIGGER_ARMED));
unlock:
	perf_trigger_unlock(set);

	return ret;
}

/**
 * perf_trigger_fire - fire a set without a sample, whatever hold-off it has
 * @set: the set
 *
 * Return: 0 or an error, see perf_trigger_ioctl().
 */
int perf_trigger_fire(struct perf_trigger_set *set)
{
	int word = atomic_read(&set->state);

	do {
		switch (PERF_TRIGGER_STATE((unsigned int)word)) {
		case PERF_TRIGGER_IDLE:
			return READ_ONCE(set->was_armed) ? -EALREADY : -EINVAL;
		case PERF_TRIGGER_FIRED:
		case PERF_TRIGGER_FROZEN:
			return -EALREADY;
		}
		rcu_read_lock();
		/* A, matches atomic_set_release() in perf_trigger_arm() */
		if (atomic_try_cmpxchg(&set->state, &word, word +
				       PERF_TRIGGER_FIRED - PERF_TRIGGER_ARMED)) {
			perf_trigger_fired(set, NULL, NULL);
			rcu_read_unlock();
			return 0;
		}
		rcu_read_unlock();
	} while (1);
}

/**
 * perf_trigger_tell - report by what a set was fired
 * @set: that is FROZEN, and stays so as the caller holds set->mutex
 * @report: to be filled in
 */
void perf_trigger_tell(struct perf_trigger_set *set,
		       struct perf_trigger_report *report)
{
	*report = (struct perf_trigger_report) {
		.size		= sizeof(*report),
		.buffer_size	= sizeof(struct perf_trigger_buffer),
		.nr		= set->nr_members,
		.flags		= set->flags,
		.generation	= PERF_TRIGGER_GEN((unsigned int)atomic_read(&set->state)),
		.id		= set->event_id,
		.time		= set->time,
		.until		= set->until,
		.suppressed	= (unsigned long)atomic_long_read(&set->suppressed),
		.held_off	= (unsigned long)atomic_long_read(&set->held_off),
		.cpu		= set->cpu,
	};
}

static ssize_t perf_trigger_read(struct file *file, char __user *buf, size_t count,
				 loff_t *ppos)
{
	struct perf_trigger_set *set = file->private_data;
	bool nonblock = file->f_flags & O_NONBLOCK;
	struct perf_trigger_report report;
	struct perf_trigger_member *m;
	size_t length;
	ssize_t ret;

	if (count < PERF_TRIGGER_REPORT_SIZE_VER0)
		return -ENOSPC;

again:
	if (perf_trigger_state(set) != PERF_TRIGGER_FROZEN) {
		if (nonblock)
			return -EAGAIN;
		ret = wait_event_interruptible(set->waitq, perf_trigger_state(set) ==
					       PERF_TRIGGER_FROZEN);
		if (ret)
			return ret;
	}

	/* The call that holds the mutex may wait for a grace period, or for a page. */
	if (nonblock && !mutex_trylock(&set->mutex)) {
		WRITE_ONCE(set->turned_away, true);
		smp_mb(); /* F, matches the one in perf_trigger_unlock() */
		if (!mutex_trylock(&set->mutex))
			return -EAGAIN;
	}
	if (!nonblock && mutex_lock_interruptible(&set->mutex))
		return -ERESTARTSYS;
	if (perf_trigger_state(set) != PERF_TRIGGER_FROZEN) {
		perf_trigger_unlock(set);
		goto again;
	}

	/* As much as there is room for, but no part of a buffer: the report says how many. */
	perf_trigger_tell(set, &report);
	length = min(count, sizeof(report));
	if (copy_to_user(buf, &report, length))
		goto fault;
	ret = length;

	list_for_each_entry(m, &set->members, entry) {
		struct perf_trigger_buffer buffer = {
			.id	 = m->id,
			.head	 = m->head,
			.records = local_read(&m->records),
			.bytes	 = m->bytes,
			.cpu	 = m->cpu,
			.flags	 = rcu_access_pointer(m->rb) ? 0 : PERF_TRIGGER_GONE,
		};

		if (count - ret < sizeof(buffer))
			break;
		if (copy_to_user(buf + ret, &buffer, sizeof(buffer)))
			goto fault;
		ret += sizeof(buffer);
	}
unlock:
	perf_trigger_unlock(set);

	return ret;

fault:
	ret = -EFAULT;
	goto unlock;
}

static __poll_t perf_trigger_poll(struct file *file, poll_table *wait)
{
	struct perf_trigger_set *set = file->private_data;

	poll_wait(file, &set->waitq, wait);

	return perf_trigger_state(set) == PERF_TRIGGER_FROZEN ? EPOLLIN | EPOLLRDNORM : 0;
}

/* For JOIN and ADD: @fd's event may be written to by the caller. */
static int perf_trigger_of_event(struct perf_trigger_set *set, unsigned int cmd,
				 unsigned long fd)
{
	struct perf_event *event;
	struct file *file;
	int ret;

	file = perf_event_get(fd);
	if (IS_ERR(file))
		return PTR_ERR(file);

	event = file->private_data;
	ret = security_perf_event_write(event);
	if (!ret)
		ret = cmd == PERF_TRIGGER_IOC_ADD ? perf_trigger_add(set, event) :
						    perf_trigger_join(set, event);
	fput(file);

	return ret;
}

/*
 * EBADF	JOIN, ADD: no descriptor of an event
 * EACCES	JOIN, ADD: a security module forbids the caller to change the event
 * ENXIO	JOIN: the event has no buffer, or its buffer no mapping; ARM: no buffer
 *		has joined
 * ENOBUFS	JOIN: the buffer has no data pages
 * EXDEV	JOIN, ADD: the event's clock isn't that of the set
 * ERANGE	JOIN: the depth or the hold-off is larger than the buffer
 * EINVAL	ADD: the event takes no samples; FIRE: the set was never armed
 * EOPNOTSUPP	ADD: the event's overflows are handled by somebody else, or it has none
 * EEXIST	JOIN, ADD: done already
 * EBUSY	JOIN, ADD: in another set
 * EALREADY	JOIN, ADD: the set was armed before; ARM: it is armed; FIRE: it has
 *		been fired, or ARM is under way or was ended by a fatal signal
 * EINPROGRESS	ARM: it was fired, and isn't frozen yet
 * ESTALE	ARM: that isn't the present generation
 * ENOSPC	JOIN, ADD: PERF_TRIGGER_MAX, PERF_TRIGGER_MAX_PER_CPU
 * EFAULT	ARM: the generation can't be read, or, when the set is armed, be written
 * ENOMEM	JOIN, ADD
 * EINTR	JOIN, ARM: a fatal signal came in while another call was under way, of the set,
 *		or that pauses a buffer
 */
static long perf_trigger_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct perf_trigger_set *set = file->private_data;
	u64 generation;
	int ret;

	switch (cmd) {
	case PERF_TRIGGER_IOC_JOIN:
	case PERF_TRIGGER_IOC_ADD:
		return perf_trigger_of_event(set, cmd, arg);
	case PERF_TRIGGER_IOC_ARM:
		if (copy_from_user(&generation, (void __user *)arg, sizeof(generation)))
			return -EFAULT;
		if (!READ_ONCE(set->nr_members))
			return -ENXIO;
		ret = perf_trigger_arm(set, &generation);
		if (!ret && copy_to_user((void __user *)arg, &generation,
					 sizeof(generation)))
			ret = -EFAULT;
		return ret;
	case PERF_TRIGGER_IOC_FIRE:
		return perf_trigger_fire(set);
	}

	return -ENOTTY;
}

/*
 * Who made the set waits until its buffers run on. Another process may have received it
 * unasked, and a kernel thread closes what is left in a socket that nobody can receive any
 * more: neither these nor the file that they close next wait for grace periods. Nor does a
 * task that exits or was killed: it may have any number of sets, which one call may close.
 */
static bool perf_trigger_waits(struct perf_trigger_set *set)
{
	return task_tgid(current) == set->creator &&
	       !(current->flags & PF_EXITING) && !fatal_signal_pending(current);
}

static int perf_trigger_release(struct inode *inode, struct file *file)
{
	struct perf_trigger_set *set = file->private_data;

	if (perf_trigger_waits(set) || perf_trigger_is_empty(set)) {
		perf_trigger_free(set);
	} else {
		/* It doesn't fire any more, though its buffers may be frozen yet. */
		atomic_set(&set->state, PERF_TRIGGER_IDLE);
		queue_work(perf_trigger_free_wq, &set->free_work.work);
	}

	return 0;
}

#ifdef CONFIG_PROC_FS
static void perf_trigger_show_fdinfo(struct seq_file *m, struct file *file)
{
	static const char * const names[] = {
		[PERF_TRIGGER_IDLE]	= "idle",
		[PERF_TRIGGER_ARMED]	= "armed",
		[PERF_TRIGGER_FIRED]	= "fired",
		[PERF_TRIGGER_FROZEN]	= "frozen",
	};
	struct perf_trigger_set *set = file->private_data;
	unsigned int word = atomic_read_acquire(&set->state);

	seq_printf(m, "trigger-set:\t%llu\n", set->id);
	seq_printf(m, "trigger-state:\t%s\n", names[PERF_TRIGGER_STATE(word)]);
	seq_printf(m, "trigger-generation:\t%u\n", PERF_TRIGGER_GEN(word));
	seq_printf(m, "trigger-buffers:\t%u\n", READ_ONCE(set->nr_members));
	seq_printf(m, "trigger-events:\t%u\n", READ_ONCE(set->nr_triggers));
	seq_printf(m, "trigger-suppressed:\t%lu\n", atomic_long_read(&set->suppressed));
	seq_printf(m, "trigger-held-off:\t%lu\n", atomic_long_read(&set->held_off));
}
#endif

const struct file_operations perf_trigger_fops = {
	.release	= perf_trigger_release,
	.read		= perf_trigger_read,
	.poll		= perf_trigger_poll,
	.unlocked_ioctl	= perf_trigger_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
#ifdef CONFIG_PROC_FS
	.show_fdinfo	= perf_trigger_show_fdinfo,
#endif
};

static int perf_trigger_copy_attr(struct perf_trigger_attr __user *uattr,
				  struct perf_trigger_attr *attr)
{
	u32 size;
	int ret;

	if (get_user(size, &uattr->size))
		return -EFAULT;
	if (size < PERF_TRIGGER_ATTR_SIZE_VER0 || size > PAGE_SIZE)
		goto err_size;

	ret = copy_struct_from_user(attr, sizeof(*attr), uattr, size);
	if (ret == -E2BIG)
		goto err_size;
	if (ret)
		return ret;

	if (attr->flags & ~PERF_TRIGGER_AT_ONCE)
		return -EINVAL;
	/* A depth, or none: one has to be said. Bytes may never come. */
	if (attr->flags & PERF_TRIGGER_AT_ONCE ? attr->depth_ns || attr->depth_bytes :
						 !attr->depth_ns)
		return -EINVAL;
	if (attr->depth_ns > PERF_TRIGGER_MAX_NS ||
	    attr->holdoff_ns > PERF_TRIGGER_MAX_NS ||
	    attr->depth_bytes > LONG_MAX || attr->holdoff_bytes > LONG_MAX)
		return -ERANGE;

	return 0;

err_size:
	/* As perf_event_open() does: what this kernel knows of. */
	if (put_user(sizeof(*attr), &uattr->size))
		return -EFAULT;

	return -E2BIG;
}

/**
 * perf_trigger_create - make a set, for PERF_EVENT_IOC_TRIGGER_SET
 * @event: whose clock the events of the set have to have
 * @arg: user space's struct perf_trigger_attr
 *
 * Context: process, may sleep.
 *
 * Return: the descriptor of the set, or an error, see perf_trigger_copy_attr().
 */
long perf_trigger_create(struct perf_event *event, void __user *arg)
{
	struct perf_trigger_attr attr;
	struct perf_trigger_set *set;
	long ret;

	BUILD_BUG_ON(sizeof(attr) != PERF_TRIGGER_ATTR_SIZE_VER0);
	BUILD_BUG_ON(sizeof(struct perf_trigger_report) != PERF_TRIGGER_REPORT_SIZE_VER0);

	ret = perf_trigger_copy_attr(arg, &attr);
	if (ret)
		return ret;

	set = perf_trigger_alloc(&attr, event->clock);
	if (!set)
		return -ENOMEM;

	ret = anon_inode_getfd("[perf_trigger]", &perf_trigger_fops, set,
			       O_RDWR | O_CLOEXEC);
	if (ret < 0)
		perf_trigger_free(set);

	return ret;
}

static int __init perf_trigger_init(void)
{
	perf_trigger_free_wq = alloc_workqueue("perf_trigger_free", WQ_UNBOUND, 0);
	if (!perf_trigger_free_wq)
		return -ENOMEM;

	/* The last one: without it there are no sets. */
	perf_trigger_wq = alloc_workqueue("perf_trigger", WQ_UNBOUND, 0);

	return perf_trigger_wq ? 0 : -ENOMEM;
}
core_initcall(perf_trigger_init);
