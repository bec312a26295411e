// SPDX-License-Identifier: GPL-2.0
/*
 * A pause that freezes: the writers of one perf buffer, and those who pause it.
 *
 * Spin walks through every interleaving of this and checks the assertions:
 *
 *   torn       a record that the reader meets isn't whole
 *   moved      the buffer changes between the end of a pause and the resume
 *   stuck      the pause waits for what will never come
 *   uncounted  a record was neither written nor counted lost, or isn't published
 *
 * What is modelled. A CPU W writes: in task context, in a softirq that comes upon it
 * at any point, and in an NMI that comes upon either at any point. P pauses, looks at
 * the buffer, resumes. Memory is as weakly ordered as the kernel's memory model has it:
 *
 *  - P sees each variable that W stores to at a time of its own, in whatever order,
 *    unless smp_wmb() stands between the stores. @w is what W has stored, @seen what P
 *    sees. smp_wmb() makes P see all at once. That W never runs ahead of its own
 *    stores there loses nothing: from the interrupt to the resume W doesn't depend on
 *    what P does, it may as well be that much slower.
 *  - W sees the flag as late as can be: @w_paused is what it sees.
 *  - An interrupt that P sends and W has answered orders all of it, both ways.
 *  - P stores @data_head itself, once all is published: of W's it need not see any.
 *  - So does a grace period, for those readers that RCU promises it for, no others.
 *
 * What is not. Records are numbered, not laid out: no sizes, no wrap, no full buffer.
 * One NMI level stands for hard interrupts, too: both hold off the interrupt that P
 * sends. W can't go offline. P isn't W: a task that runs there meets no writer. A wait
 * that gives up promises nothing, so it is left out.
 *
 * The names are the kernel's, see kernel/events/ring_buffer.c. What a pause is made of:
 *
 *   DIRECTED      interrupt the CPU that may write, and no other; START: not each pause
 *                 waits for that, so that it may be on its way when the next one begins
 *   WAIT          then, until no writer is nested and the last record is published
 *   GRACE_PERIOD  in place of both, where the writers move with their task (PER_TASK)
 *   BARRIER       a full barrier, as if that could stand in for the interrupt
 *
 * TSO is a memory that keeps stores in order. RELEASE stores @nest = 0 with release, in
 * place of what NO_NESTED_WMB takes away. Each other #ifdef is a flaw: scripts/model says
 * which assertion has to find it.
 */

#ifndef TASK_RECORDS
#define TASK_RECORDS	2
#endif
#ifndef SOFTIRQ_RECORDS
#define SOFTIRQ_RECORDS	1
#endif
#ifndef NMI_RECORDS
#define NMI_RECORDS	1
#endif
#ifndef PAUSERS
#define PAUSERS		1
#endif
#ifndef PAUSES
#define PAUSES		2
#endif

#define RECORDS		(TASK_RECORDS + SOFTIRQ_RECORDS + NMI_RECORDS)

/* What W may be at; IPI is the interrupt that P sends. Each comes upon the ones before it. */
#define TASK		0
#define SOFTIRQ		1
#define IPI		2
#define NMI		3

/*
 * What W stores and P loads. Of each record the first and the last word, a bit each; what
 * P sees of those is as late as can be.
 */
typedef buffer {
	byte nest;
	byte head;
	byte data_head;		/* nobody loads it but user space */
	byte published;
	short first;
	short last
};

buffer w, seen;
bool paused, w_paused;

/* What P asks W by an interrupt, and what W answers; whether that is on its way, and where to. */
byte asked, w_asked, answered;
bool csd_locked, csd_cpu;

/* W: what it is at, what that came upon, and the records that are still to be begun. */
byte running = TASK;
byte upon[4];
byte left[4];
byte written, lost;

/* Which of two CPUs is W: the writers of a per-task buffer move with their task. */
bool cpu;

/* RCU on W: how deep it is in readers, and what the grace period is about. */
byte rcu_nesting;
bool gp_began, gp_waits;

/* P: one system call on the buffer at a time. It loads @seen from now on, or not yet. */
bool mutex, loads;
byte resumes;

/* The verdicts. */
bool torn, moved, stuck, uncounted;

#define nothing_left	(left[TASK] + left[SOFTIRQ] + left[NMI] == 0)
#define all_seen	(seen.nest == w.nest && seen.head == w.head && \
			 seen.published == w.published)

inline see_all()
{
	d_step {
		seen.nest = w.nest;
		seen.head = w.head;
		seen.published = w.published;
		seen.first = w.first;
		seen.last = w.last
	}
}

/* @seen doesn't matter, and has one value then: P loads no sooner than all was seen. */
inline see_nothing()
{
	d_step {
		loads = false;
		seen.nest = 0;
		seen.head = 0;
		seen.published = 0;
		seen.first = 0;
		seen.last = 0
	}
}

inline smp_wmb()
{
	if
	:: atomic { loads -> see_all() }
	:: !loads
	fi
}

inline rcu_read_lock()
{
#ifdef GRACE_PERIOD
	/* Only who begins after the grace period did must see what P stored before it. */
	if
	:: rcu_nesting == 0 && gp_began -> w_paused = paused
	:: else
	fi;
#endif
	rcu_nesting++
}

inline rcu_read_unlock()
{
	rcu_nesting--;
	if
	:: rcu_nesting == 0 -> gp_waits = false
	:: else
	fi
}

/* A record each time that W gets to @context; in task context one after the other. */
inline write_records(context)
{
end:	do
	:: left[context] > 0 ->
		/* The cheap look, for samples only: what it misses, the other finds. */
		if
		:: atomic { w_paused -> lost++; goto iret }
#ifdef NO_SECOND_LOOK
		:: !w_paused
#else
		:: true
#endif
		fi;

		/* perf_output_begin() */
		atomic { rcu_read_lock() };
		w.nest++;

#ifndef NO_SECOND_LOOK
		/* The look that counts: whoever gets past it has @nest up already. */
		if
		:: atomic {
			w_paused ->
#ifndef UNCOUNTED
			lost++;
#endif
#ifdef PAUSED_ONLY_UNNESTS
			w.nest--;
			goto out
#else
			goto put
#endif
		   }
		:: !w_paused
		fi;
#endif

		/* A cmpxchg loop: an interrupt in its midst makes for one more round. */
		atomic {
			slot = w.head;
			w.head++;
			written++
		}

		/* perf_output_copy() */
		w.first = w.first | (1 << slot);
		atomic {
			w.last = w.last | (1 << slot);
			slot = 0
		}

		/* perf_output_put_handle() */
put:		if
		:: w.nest > 1 ->
#ifndef NO_NESTED_WMB
			smp_wmb();
#endif
			atomic { w.nest--; goto out }
		:: w.nest == 1
		fi;

again:		head = w.head;
#ifndef NO_WMB
		smp_wmb();
#endif
		w.data_head = head;
		w.published = head;
#ifdef RELEASE
		atomic { smp_wmb(); w.nest = 0 }
#else
		w.nest = 0;
#endif
		if
		:: atomic { head != w.head -> w.nest = 1; goto again }
		:: head == w.head
		fi;

out:		atomic {
			head = 0;
			rcu_read_unlock()
		};
iret:		atomic {
			left[context]--;
			/*
			 * Back to what it came upon; for a task that is itself. One step: the
			 * rest of two would have to wait until this context runs again.
			 */
			d_step {
				running = upon[context];
				upon[context] = TASK
			}
		}
	od
}

proctype task() provided (running == TASK)
{
	byte head, slot;

	write_records(TASK)
}

proctype softirq() provided (running == SOFTIRQ)
{
	byte head, slot;

	write_records(SOFTIRQ)
}

proctype nmi() provided (running == NMI)
{
	byte head, slot;

	write_records(NMI)
}

/* smp_store_release(): P sees what W stored before, and from now on it may load. */
inline answer(what)
{
	answered = what;
	if
	:: what == asked && paused -> see_all(); loads = true
	:: else
	fi
}

/* What happens at any time: stores get seen, interrupts come, tasks move. */
proctype world()
{
end:	do
#ifdef TSO
	:: atomic { loads && !all_seen -> see_all() }
#else
	:: atomic { loads && seen.nest != w.nest -> seen.nest = w.nest }
	:: atomic { loads && seen.head != w.head -> seen.head = w.head }
	:: atomic { loads && seen.published != w.published -> seen.published = w.published }
#endif
	:: atomic { w_paused != paused -> w_paused = paused }
#ifdef DIRECTED
	:: atomic {
		w_asked != asked ->
		w_asked = asked;
#ifndef ASK_RELAXED
		/* smp_store_release(), smp_load_acquire(): with the question comes the flag. */
		w_paused = paused
#endif
	   }
	:: atomic {
		csd_locked && csd_cpu == cpu && running < IPI ->
		upon[IPI] = running;
		running = IPI
	   }
#ifdef PER_TASK
	/* Another CPU answers for itself, not for W. */
	:: atomic { csd_locked && csd_cpu != cpu -> csd_locked = false; answered = asked }
#endif
#endif
	:: atomic {
		running < SOFTIRQ && left[SOFTIRQ] > 0 ->
		upon[SOFTIRQ] = running;
		running = SOFTIRQ
	   }
	:: atomic {
		running < NMI && left[NMI] > 0 ->
		upon[NMI] = running;
		running = NMI
	   }
#ifdef PER_TASK
	:: atomic { running == TASK && task@end && left[TASK] > 0 -> cpu = !cpu }
#endif
	/* Not at any time but when it is so: a deadlock must show as one. */
	:: d_step {
		nothing_left && (written + lost != RECORDS || w.data_head != w.head ||
				    w.published != w.head) ->
		uncounted = true;
		assert(!uncounted)
	   }
	od
}

#ifdef DIRECTED
/*
 * The interrupt comes between any two instructions of W, but for those of an NMI; an NMI may
 * come upon it. It may be sent again as soon as it has begun.
 */
proctype rb_pause_answer() provided (running == IPI)
{
	byte found;

end:	do
#ifdef NO_ANSWER_MB
	:: found = w_asked;
	   csd_locked = false;
#else
	:: csd_locked = false;
	   found = w_asked;
#endif
	   d_step {
		answer(found);
		found = 0;
		running = upon[IPI];
		upon[IPI] = TASK
	   }
	od
}

/* smp_call_function_single_async(): what is on its way already answers this one, too. */
inline rb_pause_ask()
{
	/* smp_mb(): W sees this before P sees whether the last one is still on its way. */
	d_step { w_paused = paused; w_asked = asked };
	d_step {
		if
		:: !csd_locked -> csd_locked = true; csd_cpu = which
		:: else
		fi;
		which = false
	}
}
#endif

inline synchronize_rcu()
{
	d_step {
		gp_began = true;
		gp_waits = (rcu_nesting > 0)
	};
	atomic {
		!gp_waits ->
		see_all();
		loads = true
	}
}

/* Until the last writer is through, and what it wrote is published. */
inline wait_for_writers()
{
	do
	:: atomic {
		quiet = (nothing_left && all_seen);
#ifndef NO_ACQUIRE
		/* smp_load_acquire(): with the 0 come the records, and the heads behind them. */
		nest = seen.nest;
#endif
		head = 0;
		data_head = 0
	   };
		if
		:: nest == 0 ->
			if
			:: head = seen.head; data_head = seen.published
			:: data_head = seen.published; head = seen.head
			fi;
#ifdef NO_ACQUIRE
			nest = seen.nest;
#endif
		:: nest > 0
		fi;
		atomic {
			if
#ifdef NEST_ONLY
			:: nest == 0 -> head = 0; quiet = false; break
#else
			:: nest == 0 && data_head == head -> head = 0; quiet = false; break
#endif
			:: else -> nest = 0
			fi;
			stuck = quiet;
			assert(!stuck)
		}
	od
}

/* What a reader of the frozen buffer meets, from its newest record on. */
inline look()
{
	d_step {
		first = seen.first;
		last = seen.last;
		torn = ((first & last & ((1 << data_head) - 1)) != (1 << data_head) - 1);
		assert(!torn);
		see_nothing()
	}
}

/* Nothing has changed since, nor will it when that is seen which isn't yet. */
inline look_again()
{
	d_step {
		moved = (resumes == before && (w.head != data_head || w.data_head != data_head ||
					       w.published != data_head ||
					       w.first != first || w.last != last));
		assert(!moved);
		first = 0;
		last = 0;
		data_head = 0
	}
}

proctype pauser()
{
	byte pauses = PAUSES, before, nest, head, data_head;
	short first, last;
	bool quiet, which, ask;

	do
	:: atomic {
		pauses > 0 && !mutex ->
		pauses--;

		/* PERF_EVENT_IOC_PAUSE_OUTPUT, 1 */
		mutex = true;
		before = resumes;
		ask = !paused;
#if defined(BARRIER) || (defined(PER_TASK) && defined(DIRECTED))
		/* Of what W stores from now on nothing need be seen before it says so. */
		see_all();
		loads = true
	   };
	   atomic {
#endif
		paused = true;
#ifdef DIRECTED
		which = cpu;
		asked = asked + ask
#endif
	   };
#ifdef DIRECTED
		if
		:: ask -> rb_pause_ask()
		:: !ask
		fi;
#ifdef START
		if
		:: true
		/* PERF_PAUSE_OUTPUT_START: no promise, as when the wait takes too long. */
		:: atomic { mutex = false; goto resume }
		fi;
#endif
		atomic {
			answered == asked ->
			ask = false;
#if defined(START) || PAUSERS > 1
			/* Who paused it before is through, and saw all there is to see. */
			if
			:: !loads -> see_all(); seen.nest = 0; loads = true
			:: else
			fi
#endif
		};
#endif
#ifdef GRACE_PERIOD
		synchronize_rcu();
#endif
#ifdef BARRIER
		/* smp_mb(), and P is done; of W it makes nothing sure. */
		w_paused = paused;
#endif
#ifdef WAIT
		wait_for_writers();
#else
		data_head = seen.published;
#endif
		atomic {
			mutex = false;

			/* It has returned 0: the mapping is read. */
			look()
		};
#ifndef RESUME_RELAXED
		look_again();
#endif
		/* PERF_EVENT_IOC_PAUSE_OUTPUT, 0 */
resume:		if
		:: atomic {
			!mutex ->
			paused = false;
			gp_began = false;
			see_nothing();
#ifdef RESUME_RELAXED
			/* Its own resume, and yet the loads before it aren't over. */
			before++;
#endif
			resumes++
		   }
#ifdef START
		/* Or it is paused once more. */
		:: pauses > 0
#endif
		fi;
#ifdef RESUME_RELAXED
		look_again();
#endif
		before = 0
	:: pauses == 0 -> break
	od
}

init
{
	atomic {
		left[TASK] = TASK_RECORDS;
		left[SOFTIRQ] = SOFTIRQ_RECORDS;
		left[NMI] = NMI_RECORDS;
		run task();
		run softirq();
#if NMI_RECORDS > 0
		run nmi();
#endif
		run world();
#ifdef DIRECTED
		run rb_pause_answer();
#endif
		run pauser();
#if PAUSERS > 1
		run pauser()
#endif
	}
}
