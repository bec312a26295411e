// SPDX-License-Identifier: GPL-2.0
/*
 * Sets of buffers that a trigger freezes after a depth, and that buffers leave: see
 * kernel/events/trigger.c. What one buffer's writers do without a depth is in trigger.pml.
 *
 * Spin walks through every interleaving of this and checks the assertions:
 *
 *   beyond     a buffer took more bytes than the depth, counted from the head that its
 *              next writer found
 *   early      a buffer was frozen that had neither taken its bytes nor run out of time
 *   moved      a record is written to a buffer of a set that is frozen
 *   unnoted    a set is frozen before its winner has noted what fired it
 *   late       a buffer is marked or frozen for a set that isn't fired
 *   miscount   the records that a buffer is said to have taken aren't those that it took
 *   stuck      a set was fired, and never freezes
 *   kept       a set was closed, and a buffer stays frozen
 *   used       somebody uses a set, or a trigger, that was freed
 *
 * What is modelled. Two buffers. Buffer 0 is written by a task of CPU 0, and by the trigger,
 * an interrupt that comes upon the task at any point; buffer 1 by a task of CPU 1. A record
 * takes one unit of DEPTH. FIRE is a call of user space, on CPU 1. The irq_work runs on two
 * CPUs at once if it is queued while it runs; BUSY and PENDING are as in kernel/irq_work.c.
 * The work waits for no writer: it comes again, and may be about to when the set is closed.
 * A buffer leaves at any time by its last unmap, also while it is counted, frozen, or while
 * the set is armed again.
 *
 * What bounds it: GENS generations, the first of which is over at the start with AGAIN; PRE
 * records of a task, in each generation, that no depth counts; SAMPLES of the trigger in all;
 * one FIRE, one close, one unmap of each buffer.
 *
 * What is not. Weakly ordered memory, but for that a load and a store of two variables are
 * two steps. Interrupts that the task on CPU 1 meets. Events that are redirected, hold-offs.
 *
 * Two flaws that trigger.c had until the model found them:
 *
 *   UNLOCKED	perf_trigger_arm() starts to count without perf_trigger_lock: a buffer that
 *		leaves has taken itself out of the last generation, and is subtracted
 *		from the next one
 *   UNNOTED	the irq_work that a leaving buffer queues finds the set fired before the winner
 *		has noted until when, or has written its record
 *
 * IRQ_WORK_NO_READER is an irq_work in a thread that is no RCU reader: real-time kernels
 * whose run_irq_workd() isn't.
 */

#ifndef GENS
#define GENS	2
#endif
#ifndef DEPTH
#define DEPTH	1
#endif
#ifndef PRE
#define PRE	1
#endif
#ifndef SAMPLES
#define SAMPLES	1
#endif
/* On how many CPUs the irq_work may run at once. */
#ifndef IRQ_WORKS
#define IRQ_WORKS 1
#endif
/* Buffers that may leave: a bit each. */
#ifndef LEAVERS
#define LEAVERS	0
#endif

#define IDLE	0
#define ARMED	1
#define FIRED	2
#define FROZEN	3

/* RCU readers: a bit each. */
#define R_TASK(b)	(1 << (b))
#define R_TRIGGER	4
#define R_FIRE		8
#define R_LEAVE		16
#ifdef IRQ_WORK_NO_READER
#define R_IRQ_WORK(i)	0
#else
#define R_IRQ_WORK(i)	(32 << (i))
#endif
byte in_rcu, gp_waits, event_gp_waits;

/* The set: its word, its note, what it counts. */
byte state = ARMED, gen = 1;
byte note, until;		/* the generation that they are of */
short running = 2;
bool marked, noted, freed, closing;

/* A member, and its buffer; rb->paused is two bits. */
typedef member {
	bool	gone;		/* m->rb is NULL, and rb->trigger */
	bool	counts;		/* m->running */
	bool	started;
	byte	start;
	byte	records;
	bool	look, frozen;
	bool	done;		/* m->frozen: the work has seen no writer */
	byte	head;
	byte	nest;
	/* What must come of it: where the depth began, and its head then. */
	bool	began;
	byte	first;
	byte	left;		/* of PRE */
	bool	thawed;		/* for good */
};
member m[2];

bool pending, busy;		/* irq_work */
bool timer_on, timer_in, timer_past;
bool work_pending, work_in;
bool comes_again;		/* it is to run a jiffy later */
bool canceling;			/* and must not be queued any more */
bool lock;			/* perf_trigger_lock */
bool over;			/* the depth's time */

/* perf_event::trigger is there; it has a set; what became of it. */
bool has_trigger = true, is_trigger = true, trigger_freed;

/* What CPU 0 is at: 0 is the task, 1 the trigger. */
bool upon;
#define TASK0	0
#define SAMPLE	1
#define TASK1	2
#define at(c)	(c == TASK1 || upon == c)

bool beyond, early, moved, unnoted, late, miscount, stuck, kept, used;

#define bad(flag, what) \
	if \
	:: what -> flag = true; assert(!flag) \
	:: else \
	fi

#define use()	bad(used, freed)

inline rcu_read_lock(bits)
{
	in_rcu = in_rcu | (bits)
}

inline rcu_read_unlock(bits)
{
	in_rcu = in_rcu & ~(bits);
	gp_waits = gp_waits & ~(bits);
	event_gp_waits = event_gp_waits & ~(bits)
}

inline synchronize_rcu()
{
	gp_waits = in_rcu;
	(gp_waits == 0)
}

inline irq_work_queue()
{
	d_step { use(); pending = true; busy = true }
}

/*
 * perf_trigger_reached(), of what runs at @c: the buffer @b has reached its depth, or never
 * will. @uncounted: whatever m->running says.
 */
inline reached(c, b, uncounted)
{
	atomic { at(c) -> use(); last = m[b].counts || uncounted; m[b].counts = false };
	if
	:: last ->
		atomic { at(c) -> use(); running--; last = (running == 0) };
		if
		:: last -> atomic { at(c) -> irq_work_queue(); last = false }
		:: else
		fi
	:: else
	fi
}

inline mark(b)
{
	d_step {
		use();
		if
		:: m[b].gone || m[b].look || m[b].frozen
		:: else ->
			bad(late, state != FIRED && !closing);
#ifdef AT_ONCE
			m[b].frozen = true
#else
#ifdef TRIGGERS_HEAD
			m[b].started = true;
			m[b].start = m[b].head;
#endif
			m[b].look = true
#endif
		fi
	}
}

/* perf_trigger_stop(): @did says whether it was this one. */
inline stop(b, did)
{
	d_step {
		did = false;
		if
#ifdef STOPS_THAWED
		:: !m[b].frozen ->
#else
		:: m[b].look && !m[b].frozen ->
#endif
			bad(late, state != FIRED && !m[b].gone && !closing);
			m[b].frozen = true;
			did = true
		:: else
		fi
	}
}

#define too_late	(over || until != gen)
#define too_much(b)	(h - m[b].start + 1 > DEPTH)

/*
 * A record to @b, by what runs at @c. @passes: its sample has fired the set. As from
 * perf_output_look() on.
 */
inline write(c, b, passes)
{
	atomic { at(c) -> m[b].nest++; ok = false };
again:	atomic { at(c) -> h = m[b].head };
	atomic { at(c) ->
		look = m[b].look;
		frozen = m[b].frozen;
		if
		:: look && !m[b].began && !m[b].gone ->
			m[b].began = true;
			m[b].first = m[b].head
		:: else
		fi
	};
	if
	:: frozen && !passes -> goto refuse
	:: look && !frozen ->
		/* perf_trigger_admits() */
		atomic { at(c) ->
			if
			:: m[b].gone -> goto try
			:: else
			fi
		};
#ifndef HEAD_NOT_CHECKED_AGAIN
		atomic { at(c) ->
			if
			:: m[b].head != h -> goto try
			:: else
			fi
		};
#endif
		atomic { at(c) -> use(); last = m[b].started };
		if
#ifdef STARTS_AGAIN
		:: true ->
#else
		:: !last ->
#endif
			atomic { at(c) -> last = false; m[b].start = h };
			atomic { at(c) -> use(); m[b].started = true }
		:: else
		fi;
		atomic { at(c) ->
			last = (too_late || too_much(b));
			if
			:: last -> goto full_up
			:: else ->
				if
				:: !admitted -> admitted = true; m[b].records++
				:: else
				fi
			fi
		}
	:: else
	fi;
try:	atomic { at(c) ->
		if
		:: m[b].head != h -> goto again
		:: else ->
			bad(moved, state == FROZEN && !m[b].gone);
			m[b].head++;
			ok = true;
			goto put
		fi
	};
full_up: atomic { at(c) ->
		use();
		stop(b, last);
		bad(early, last && !over && until == gen && m[b].head - m[b].first < DEPTH)
	};
	if
	:: last -> reached(c, b, false)
	:: else
	fi;
refuse:	atomic { at(c) ->
		if
		:: admitted -> m[b].records--
		:: else
		fi
	};
put:	atomic { at(c) ->
		m[b].nest--;
		admitted = false; look = false; frozen = false; last = false; h = 0
	}
}

/* The records before a depth begins are counted by m->left, those after by the depth. */
proctype task(byte c; byte b)
{
	byte h;
	bool look, frozen, last, admitted, ok;

end:	do
	:: atomic {
		at(c) && !m[b].frozen && !m[b].gone && (m[b].look || m[b].left > 0) ->
		if
		:: !m[b].look -> m[b].left--
		:: else
		fi;
		rcu_read_lock(R_TASK(b))
	   };
		write(c, b, false);
		atomic { at(c) -> ok = false; rcu_read_unlock(R_TASK(b)) }
	od
}

/* perf_trigger_fired() */
inline fired(c, b)
{
	atomic { at(c) -> use(); note = gen; until = gen };
	atomic { at(c) -> mark(b) };
	atomic { at(c) -> noted = true };
	atomic { at(c) -> irq_work_queue() }
}

/* Samples of the trigger, which is one until its event goes away. */
proctype trigger()
{
	byte h, s, g, n;
	bool look, frozen, last, admitted, ok, won;

end:	do
	:: n < SAMPLES ->
		atomic {
			!upon && (state != IDLE || closing) ->
			n++;
			upon = true;
			rcu_read_lock(R_TRIGGER)
		};
		won = has_trigger;
		if
		:: won -> atomic { bad(used, trigger_freed); won = is_trigger }
		:: else
		fi;
		if
		:: won ->
			atomic { use(); s = state; g = gen };
			atomic {
				use();
				won = (s == ARMED && state == ARMED && gen == g);
				if
				:: won -> state = FIRED
				:: else
				fi;
				s = 0; g = 0
			}
		:: else
		fi;
#ifdef AT_ONCE
		atomic {
			if
			:: won && !m[0].gone -> m[0].frozen = true
			:: else
			fi
		};
#endif
		write(SAMPLE, 0, won);
		if
		:: won -> fired(SAMPLE, 0)
		:: else
		fi;
		atomic { won = false; ok = false; upon = false; rcu_read_unlock(R_TRIGGER) }
	:: n == SAMPLES -> break
	od
}

/* The trigger's event goes away: perf_trigger_free_event() */
proctype event_goes()
{
	atomic { !lock -> lock = true };
	is_trigger = false;
	lock = false;
	has_trigger = false;
#ifdef EVENT_WITHOUT_RCU
	trigger_freed = true
#else
	/* kfree_rcu() */
	event_gp_waits = in_rcu;
	atomic { event_gp_waits == 0 -> trigger_freed = true }
#endif
}

/* PERF_TRIGGER_IOC_FIRE, on CPU 1. */
proctype fire()
{
end:	atomic { state == ARMED -> rcu_read_lock(R_FIRE) };
	if
	:: atomic { state == ARMED -> state = FIRED };
		fired(TASK1, 1)
	:: atomic { state != ARMED }
	fi;
	rcu_read_unlock(R_FIRE)
}

/* The last unmap of a buffer: perf_trigger_leave() */
proctype leave(byte b)
{
	bool last, linked;

	atomic { !lock -> lock = true; rcu_read_lock(R_LEAVE) };
	atomic { linked = !m[b].gone; m[b].gone = true };
	if
	:: linked ->
#ifdef LEAVES_UNCOUNTED
		skip
#else
#ifdef LEAVES_TWICE
		reached(TASK1, b, true)
#else
		reached(TASK1, b, false)
#endif
#endif
	:: else
	fi;
	atomic { lock = false; rcu_read_unlock(R_LEAVE) }
}

proctype irq_work(byte i)
{
	bool was;

end:	do
	:: atomic { pending -> pending = false; rcu_read_lock(R_IRQ_WORK(i)) };
		atomic {
			use();
			if
			:: state != FIRED -> goto out
#ifndef UNNOTED
			:: state == FIRED && !noted -> goto out
#endif
			:: else
			fi
		};
		atomic { use(); was = marked; marked = true };
		if
		:: !was ->
			atomic { was = false; mark(0) };
			mark(1);
#if !defined(AT_ONCE) && !defined(NO_TIMER)
			atomic { use(); timer_on = true; timer_past = (until != gen) }
#endif
		:: else -> was = false
		fi;
		atomic {
			use();
			if
#ifdef AT_ONCE
			:: true -> work_pending = true
#else
			:: running == 0 -> work_pending = true
#endif
			:: else
			fi
		};
		/* The cmpxchg in irq_work_single(): nobody has queued it meanwhile. */
out:		atomic {
			use();
			if
			:: !pending -> busy = false
			:: else
			fi;
			rcu_read_unlock(R_IRQ_WORK(i))
		}
	od
}

#ifndef AT_ONCE
/* The time of the generation that was fired goes by. */
proctype clock()
{
end:	do
	:: atomic { state == FIRED && until == gen && noted && !over -> over = true }
	od
}

proctype timer()
{
	bool did;

end:	do
	:: atomic { timer_on && (over || timer_past) -> timer_on = false; timer_in = true };
		stop(0, did);
		stop(1, did);
		atomic { use(); work_pending = true; timer_in = false; did = false }
	od
}
#endif

inline hrtimer_cancel()
{
	timer_on = false;
	(!timer_in)
}

/*
 * rb_trigger_freeze(): @all says whether all buffers were found without a writer, be it by
 * the CPU's answer or by the end of a grace period.
 */
inline freeze(b, all)
{
	atomic {
		use();
		if
		:: !m[b].gone && !m[b].done ->
			m[b].frozen = true;
#ifndef NO_WAIT
			if
			:: m[b].nest == 0 -> m[b].done = true
			:: else -> all = false
			fi
#else
			m[b].done = true
#endif
		:: else
		fi
	}
}

/* What a set that has come to be frozen says is true, of a buffer that is still there. */
inline check(b)
{
#ifndef AT_ONCE
	if
	:: !m[b].gone ->
		bad(beyond, m[b].began && m[b].head - m[b].first > DEPTH);
		bad(early, !over && (!m[b].began || m[b].head - m[b].first < DEPTH));
		bad(miscount, m[b].records != (m[b].began -> m[b].head - m[b].first : 0))
	:: else
	fi
#else
	skip
#endif
}

proctype work()
{
	bool all;
	byte g;

end:	do
	:: atomic {
		(work_pending || comes_again) ->
		work_pending = false;
		comes_again = false;
		work_in = true
	   };
		atomic { use(); g = (state == FIRED -> gen : 0) };
		if
		:: g > 0 ->
			hrtimer_cancel();
			all = true;
			freeze(0, all);
			freeze(1, all);
			atomic {
				use();
				if
				:: !all ->
#ifdef QUEUED_WHEN_CANCELED
					comes_again = true
#else
					comes_again = !canceling
#endif
				:: all && state == FIRED && gen == g ->
					bad(unnoted, note != gen);
					check(0);
					check(1);
					state = FROZEN
				:: else
				fi
			}
		:: else
		fi;
		atomic { g = 0; all = false; work_in = false }
	od
}

inline irq_work_sync()
{
	(!busy)
}

/* perf_trigger_quiesce() */
inline quiesce()
{
#ifndef NO_GRACE_PERIOD
	synchronize_rcu();
#endif
#ifndef NO_IRQ_WORK_SYNC
	irq_work_sync();
#endif
#ifndef NO_TIMER_CANCEL
	hrtimer_cancel();
#endif
#ifndef NO_WORK_CANCEL
	d_step {
		work_pending = false;
#ifndef NO_CANCEL_DELAYED
		comes_again = false;
#endif
		canceling = true
	};
	atomic { !work_in -> canceling = false };
#endif
	skip
}

/* One round of perf_trigger_arm()'s loop. */
inline arm(b)
{
	atomic { m[b].started = false; m[b].done = false; m[b].records = 0; m[b].start = 0 };
	if
	:: atomic { !m[b].gone };
		atomic { !lock -> lock = true };
		if
		:: !m[b].gone -> m[b].counts = true; running++
		:: else
		fi;
		lock = false;
		d_step {
			m[b].look = false;
			m[b].frozen = false;
			m[b].began = false;
			m[b].first = 0;
			m[b].left = PRE
		}
	:: atomic { m[b].gone }
	fi
}

/* Who arms the set once it is frozen. */
proctype user()
{
end:	do
	:: atomic { state == FROZEN && gen < GENS -> state = IDLE };
		quiesce();
		marked = false;
		noted = false;
#ifndef UNLOCKED
		atomic { !lock -> lock = true };
#endif
		m[0].counts = false;
		m[1].counts = false;
		running = 1;
#ifndef UNLOCKED
		lock = false;
#endif
		arm(0);
		arm(1);
		running--;
		d_step { gen++; over = false; state = ARMED }
	od
}

/* close(): perf_trigger_free() */
inline part(b)
{
	atomic { !lock -> lock = true };
	atomic { m[b].gone = true; lock = false }
}

inline thaw(b)
{
	d_step {
		if
		:: !m[b].gone -> m[b].look = false; m[b].frozen = false; m[b].thawed = true
		:: else
		fi
	}
}

proctype close()
{
	atomic { closing = true; state = IDLE };
	atomic { !lock -> lock = true };
	is_trigger = false;
	lock = false;
	quiesce();
	thaw(0);
	thaw(1);
	part(0);
	part(1);
#ifndef FREED_AT_ONCE
	synchronize_rcu();
	irq_work_sync();
#endif
	freed = true
}

/* When nothing else can happen any more. */
proctype watch()
{
end:	timeout;
	d_step {
		bad(stuck, state == FIRED);
		bad(kept, m[0].thawed && m[0].frozen || m[1].thawed && m[1].frozen)
	}
}

#ifdef AGAIN
/* It has been frozen, by its bytes or by its time. */
inline was_frozen(b)
{
	m[b].frozen = true;
	m[b].look = true;
	m[b].done = true;
	if
	:: m[b].counts = true
	:: running--
	fi
}
#endif

init {
	atomic {
#ifdef AGAIN
		state = FROZEN;
		note = 1;
		until = 1;
		over = true;
		marked = true;
		noted = true;
		was_frozen(0);
		was_frozen(1);
#else
		m[0].counts = true;
		m[1].counts = true;
#endif
		m[0].left = PRE;
		m[1].left = PRE;
		run task(TASK0, 0);
#ifndef QUIET
		run task(TASK1, 1);
#endif
		run trigger();
#ifdef FIRE
		run fire();
#endif
#ifdef EVENT_GOES
		run event_goes();
#endif
#if LEAVERS & 1
		run leave(0);
#endif
#if LEAVERS & 2
		run leave(1);
#endif
		run irq_work(0);
#if IRQ_WORKS > 1
		run irq_work(1);
#endif
#ifndef AT_ONCE
#ifndef NO_TIME
		run clock();
#endif
		run timer();
#endif
		run work();
#ifdef CLOSE
		run close();
#else
		run user();
#endif
		run watch()
	}
}
