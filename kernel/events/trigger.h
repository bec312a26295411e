/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KERNEL_EVENTS_TRIGGER_H
#define _KERNEL_EVENTS_TRIGGER_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <uapi/linux/perf_trigger.h>

#include <asm/local.h>

/* Buffers, or triggers, of a set. */
#define PERF_TRIGGER_MAX		4096
/* Buffers of one CPU: an NMI walks them. */
#define PERF_TRIGGER_MAX_PER_CPU	64
/* Depth and hold-off: with these no sum overflows. */
#define PERF_TRIGGER_MAX_NS		(3600ULL * NSEC_PER_SEC)

/*
 * The state is in the low bits of perf_trigger_set::state, the generation above:
 * a word of 32 bits everywhere, changed as one.
 */
enum {
	PERF_TRIGGER_IDLE,	/* being built, or torn down */
	PERF_TRIGGER_ARMED,
	PERF_TRIGGER_FIRED,
	PERF_TRIGGER_FROZEN,
};

#define PERF_TRIGGER_STATE_BITS	2
#define PERF_TRIGGER_STATE(w)	((w) & ((1U << PERF_TRIGGER_STATE_BITS) - 1))
#define PERF_TRIGGER_GEN(w)	((w) >> PERF_TRIGGER_STATE_BITS)
#define PERF_TRIGGER_WORD(g, s)	((g) << PERF_TRIGGER_STATE_BITS | (s))

/* A buffer in a set. */
struct perf_trigger_member {
	struct perf_trigger_set		*set;
	struct perf_buffer __rcu	*rb;		/* a reference; NULL once it is unmapped */
	struct list_head		entry;		/* perf_trigger_set::members */
	struct list_head		live;		/* perf_trigger_set::live, until unmapped */
	struct perf_trigger_member	*next_on_cpu;
	u64				id;
	int				cpu;
	bool				backward;
	unsigned long			armed_at;	/* bytes, for the hold-off */
	bool				has_history;	/* the hold-off is over */
	atomic_t			running;	/* one of perf_trigger_set::running */

	/* The buffer's writers', one CPU at a time. */
	bool				started;
	unsigned long			start;		/* bytes before the depth */
	local_t				records;	/* since then */

	bool				frozen;
	/* From then on. */
	unsigned long			head;
	unsigned long			bytes;
};

/* A trigger: what perf_event::trigger points to, as long as the event lives. */
struct perf_trigger {
	struct perf_trigger_set __rcu	*set;		/* NULL once that is gone */
	struct list_head		entry;		/* perf_trigger_set::triggers */
	struct rcu_head			rcu_head;
};

struct perf_trigger_set {
	atomic_t			state;
	u64				id;
	struct perf_trigger_attr	attr;
	u64				(*clock)(void);
	u64				armed_at;	/* CLOCK_MONOTONIC */

	/* The winner's, read when the set is frozen. */
	u64				event_id;
	u64				time;
	u64				until;
	u32				cpu;
	u32				flags;
	bool				noted;		/* that is written */

	/* Apart from what writers read that look closer. */
	atomic_long_t			suppressed ____cacheline_aligned_in_smp;
	atomic_long_t			held_off;
	atomic_t			running;	/* mapped, and yet to reach the depth */
	atomic_t			marked;		/* all were, and the timer was started */

	struct irq_work			irq_work;	/* the winner's */
	struct irq_work			reached_work;	/* the last buffer's */
	struct hrtimer			timer;
	struct delayed_work		work;
	unsigned long			gp;		/* that the work waits for */
	bool				waits;
	bool				rests;		/* for nothing else */
	bool				turned_away;	/* a read() that mustn't block */
	wait_queue_head_t		waitq;

	struct mutex			mutex;		/* join, arm, read */
	struct list_head		members;	/* appended to only */
	struct list_head		live;		/* those that have a buffer, RCU */
	unsigned int			nr_members;
	struct list_head		triggers;	/* under perf_trigger_lock */
	unsigned int			nr_triggers;
	bool				was_armed;	/* written under both locks */
	struct rcu_work			free_work;
	bool				unfired;	/* no trigger leads to it any more */
	bool				unlinked;	/* nor a buffer */
	struct rcu_head			rcu_head;
	struct pid			*creator;	/* the process */

	struct perf_trigger_member	*on_cpu[];	/* by rb->cpu */
};

struct perf_trigger_set *
perf_trigger_alloc(const struct perf_trigger_attr *attr, u64 (*clock)(void));
void perf_trigger_free(struct perf_trigger_set *set);
int perf_trigger_join(struct perf_trigger_set *set, struct perf_event *event);
int perf_trigger_add(struct perf_trigger_set *set, struct perf_event *event);
int perf_trigger_arm(struct perf_trigger_set *set, u64 *generation);
int perf_trigger_fire(struct perf_trigger_set *set);
void perf_trigger_tell(struct perf_trigger_set *set,
		       struct perf_trigger_report *report);

/* For unit tests. */
extern const struct file_operations perf_trigger_fops;
extern struct workqueue_struct *perf_trigger_wq;
extern struct workqueue_struct *perf_trigger_free_wq;

static inline unsigned int perf_trigger_state(struct perf_trigger_set *set)
{
	return PERF_TRIGGER_STATE((unsigned int)atomic_read_acquire(&set->state));
}

#endif /* _KERNEL_EVENTS_TRIGGER_H */
