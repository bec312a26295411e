// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers that freeze a buffer: see kernel/events/trigger.c.
 *
 * Spin walks through every interleaving of this and checks the assertions:
 *
 *   behind     a frozen buffer has a record that is newer than that of its trigger
 *   moved      the buffer changes while somebody reads what was frozen
 *   twice      two samples fire the same generation
 *   stale      who has fired one generation acts on another
 *   unread     a set is armed again by somebody who has read another generation
 *
 * What is modelled. A CPU writes to the buffer in task context, in an interrupt that
 * comes upon it at any point, and in an NMI that comes upon either; that at level
 * TRIGGER is the trigger's. Another CPU has a trigger, too, whose record goes elsewhere.
 * The irq_work and the work are one process, as nothing depends on where one ends.
 * Users wait for the buffer to be frozen, read it, and arm the set again.
 *
 * What is not. Memory that is weakly ordered: what orders the pause's accesses is in
 * pause.pml, and all that is new here are atomic operations on one word each. Depths:
 * DEPTH has the buffer stop by the irq_work alone, as that of another CPU does, so that
 * records may come behind.
 */

#ifndef TRIGGER
#define TRIGGER	2
#endif
#ifndef USERS
#define USERS	1
#endif
/* How often the trigger samples; all others come once. */
#ifndef SAMPLES
#define SAMPLES	2
#endif

#define IDLE	0
#define ARMED	1
#define FIRED	2
#define FROZEN	3

/* The word: only ever changed as one. */
byte state = ARMED, gen = 1;

/* The buffer: its flag, its head, whose record is the newest, and the writers. */
bool flag;
byte head, newest, nest;

/* The note: by whom, and whether the trigger's own record was written. */
byte by;
bool dropped;

bool irq_work;
bool in_rcu[5];
byte read_gen;

/* What the CPU is at: 0 is nothing. Who comes upon it runs to its end. */
byte running;

bool behind, moved, twice, stale, unread;
byte winners;

#define OTHER	4

#define at(level)	(level == OTHER || running == level)

inline step_stale(g)
{
	if
	:: gen != g || state != FIRED -> stale = true; assert(!stale)
	:: else
	fi
}

/* A record of this level. @passes: what fired the set, and has frozen the buffer. */
inline write(level, passes)
{
	atomic { at(level) -> nest++ }
	again = true;
	do
	:: atomic { at(level) && again ->
#ifdef TEST_BEFORE_HEAD
		if
		:: !tested -> saw = flag; tested = true
		:: else
		fi
	   }
	   atomic { at(level) -> h = head }
#else
		h = head
	   }
	   atomic { at(level) -> saw = flag }
#endif
	   atomic { at(level) ->
		if
		:: saw && !passes -> ok = false; again = false
		:: else ->
			if
			:: head == h -> head++; newest = level; ok = true; again = false
			:: else
			fi
		fi
	   }
	:: atomic { at(level) && !again -> break }
	od;
	atomic { at(level) -> nest--; tested = false; h = 0; saw = false }
}

/* A sample of a trigger. */
inline sample(level)
{
	atomic { at(level) -> in_rcu[level] = true }
	atomic { at(level) -> s = state; g = gen }
	atomic { at(level) ->
		won = false;
		if
#ifdef NO_CMPXCHG
		:: s == ARMED ->
#else
#ifdef NO_GENERATION
		:: s == ARMED && state == ARMED ->
#else
		:: s == ARMED && state == ARMED && gen == g ->
#endif
#endif
			state = FIRED;
			won = true;
#ifdef NO_GENERATION
			if
			:: gen != g -> stale = true; assert(!stale)
			:: else
			fi;
#endif
			winners++;
			if
			:: winners > 1 -> twice = true; assert(!twice)
			:: else
			fi
		:: else
		fi
	}
	if
	:: won ->
#if !defined(FREEZE_AFTER) && !defined(DEPTH)
		if
		:: level != OTHER -> atomic { at(level) -> step_stale(g); flag = true }
		:: else
		fi;
#endif
		if
		:: level != OTHER ->
			write(level, true)
		:: else -> ok = true
		fi;
		atomic { at(level) -> step_stale(g); by = level; dropped = !ok }
#ifdef FREEZE_AFTER
		if
		:: level != OTHER -> atomic { at(level) -> step_stale(g); flag = true }
		:: else
		fi;
#endif
		atomic { at(level) -> step_stale(g); irq_work = true }
	:: else ->
		if
		:: level != OTHER ->
			write(level, false)
		:: else
		fi
	fi;
	atomic { at(level) -> in_rcu[level] = false; s = 0; g = 0; won = false; ok = false }
}

proctype context(byte level)
{
	byte h, s, g, below, n;
	bool saw, ok, again, won, tested;

	do
	:: n < (level == TRIGGER -> SAMPLES : 1) ->
		n++;
		if
		:: level != OTHER ->
			/* Upon what is lower. */
			atomic { running < level -> below = running; running = level }
		:: else
		fi;
		if
		:: level == TRIGGER || level == OTHER ->
			sample(level)
		:: else ->
			write(level, false)
		fi;
		if
		:: level != OTHER -> atomic { running == level -> running = below }
		:: else
		fi
	:: else -> break
	od
}

/* irq_work and work. */
proctype worker()
{
end:	do
	:: atomic { irq_work -> irq_work = false };
		flag = true;
#ifndef NO_WAIT
		(nest == 0);
#endif
		atomic { state == FIRED -> state = FROZEN }
	od
}

proctype user()
{
	byte h, mine, n;

end:	do
	:: atomic { state == FROZEN -> mine = gen; h = head };
		atomic {
			if
#ifndef DEPTH
			:: state == FROZEN && gen == mine && by == TRIGGER && !dropped &&
			   newest != TRIGGER -> behind = true; assert(!behind)
#endif
			:: else
			fi
		}
		atomic {
			if
			:: state == FROZEN && gen == mine && head != h ->
				moved = true; assert(!moved)
			:: else
			fi
		}
		/* ARM, one user at a time. */
		atomic {
			if
#ifdef NO_STALE
			:: state == FROZEN ->
				if
				:: gen != mine -> unread = true; assert(!unread)
				:: else
				fi;
#else
			:: state == FROZEN && gen == mine ->
#endif
				/* The mutex: nobody else arms from here on. */
				state = IDLE
			:: else -> goto next
			fi
		}
#ifdef NO_GRACE_PERIOD
		skip;
#else
		(!in_rcu[1]); (!in_rcu[2]); (!in_rcu[3]); (!in_rcu[OTHER]);
#endif
		(!irq_work);
		flag = false;
		atomic { gen++; winners = 0; state = ARMED }
next:		skip
	od
}

init {
	atomic {
		run context(1);
		run context(2);
		run context(3);
		run context(OTHER);
		run worker();
		byte i = 0;
		do
		:: i < USERS -> run user(); i++
		:: else -> break
		od
	}
}
