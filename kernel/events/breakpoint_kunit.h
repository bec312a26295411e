/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How unit tests of the output path interrupt a writer between two of its instructions:
 * by a hardware breakpoint on a word that it uses.
 */
#ifndef _KERNEL_EVENTS_BREAKPOINT_KUNIT_H
#define _KERNEL_EVENTS_BREAKPOINT_KUNIT_H

#include <kunit/test.h>
#include <linux/cpumask.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <linux/sched.h>

#ifdef CONFIG_HAVE_HW_BREAKPOINT
/* Skip the test where there are none, else stay on the CPU that has them. */
static inline void kunit_needs_breakpoint(struct kunit *test)
{
	/*
	 * Elsewhere they may come before the access, again and again as long
	 * as they are there.
	 */
	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "needs breakpoints that come after the access");
	if (!hw_breakpoint_slots(TYPE_DATA))
		kunit_skip(test, "needs a hardware breakpoint");

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
}

/* A breakpoint of CPU 0 on a word of 4 or 8 bytes, to be released before all else. */
static inline struct perf_event *
kunit_breakpoint(struct kunit *test, void *addr, unsigned int size, bool on_read,
		 perf_overflow_handler_t handler, void *context)
{
	struct perf_event_attr attr;
	struct perf_event *bp;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)addr;
	attr.bp_len = size == 8 ? HW_BREAKPOINT_LEN_8 : HW_BREAKPOINT_LEN_4;
	attr.bp_type = on_read ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W;
	bp = perf_event_create_kernel_counter(&attr, 0, NULL, handler, context);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(bp), "error %ld", PTR_ERR(bp));

	return bp;
}

/* The word of 4 or 8 bytes that a breakpoint is on. */
static inline u64 kunit_breakpoint_word(void *addr, unsigned int size)
{
	return size == 8 ? *(u64 *)addr : *(u32 *)addr;
}

/*
 * Whether to count this hit, for tests that wait for the n-th. A write counts only if
 * the word isn't @word, as the last hit left it: an emulator that is interrupted within
 * a write may report it twice, or before it is made.
 */
static inline bool kunit_breakpoint_counts(struct perf_event *bp, u64 *word)
{
	u64 was = *word;

	*word = kunit_breakpoint_word((void *)(unsigned long)bp->attr.bp_addr,
				      bp->attr.bp_len);

	return bp->attr.bp_type != HW_BREAKPOINT_W || *word != was;
}
#endif /* CONFIG_HAVE_HW_BREAKPOINT */

#endif /* _KERNEL_EVENTS_BREAKPOINT_KUNIT_H */
