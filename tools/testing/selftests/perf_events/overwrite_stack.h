/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Large records: samples of page faults with a piece of the user's stack, which
 * is full of words that tell the number of the fault and their own place.
 */
#ifndef _SELFTESTS_OVERWRITE_STACK_H
#define _SELFTESTS_OVERWRITE_STACK_H

#include "overwrite_test.h"

/* More than can be dumped, and by how much the stack pointer is below it. */
#define STACK_MAX		65536
#define STACK_WORDS_BELOW	64

static inline __u64 stack_word(unsigned int seq, size_t index)
{
	return (__u64)seq << 32 | 0xbee0000 | index;
}

/* Have the stack there for all calls below, which may be deeper than this one. */
static inline void touch_stack(void)
{
	unsigned char bytes[2 * STACK_MAX];

	memset(bytes, 1, sizeof(bytes));
	asm volatile("" : : "r" (bytes) : "memory");
}

/* Makes fault number @seq with words of that number on the stack. */
static inline void fault_with_stack(const struct fault_area *area, unsigned int seq,
				    size_t bytes)
{
	__u64 words[STACK_MAX / sizeof(__u64)];

	for (size_t i = 0; i < bytes / sizeof(__u64); i++)
		words[i] = stack_word(seq, i);
	/* They are in memory before the fault, and stay there until after it. */
	asm volatile("" : : "r" (words) : "memory");
	make_fault(area, seq);
	asm volatile("" : : "r" (words) : "memory");
}

/* Whether the sample has the stack of fault number @seq. */
static inline bool stack_is(const __u64 *stack, size_t bytes, unsigned int seq)
{
	size_t words = bytes / sizeof(*stack), used, skip;

	/* What was there to be dumped is told behind the dump. */
	used = stack[words] / sizeof(*stack);
	if (used != words)
		return false;
	for (skip = 0; skip < words; skip++)
		if (stack[skip] == stack_word(seq, 0))
			break;
	if (skip > STACK_WORDS_BELOW)
		return false;
	for (size_t i = skip; i < words; i++)
		if (stack[i] != stack_word(seq, i - skip))
			return false;
	/* A short dump may end before the words begin. */
	return skip < words || words <= STACK_WORDS_BELOW;
}

#endif /* _SELFTESTS_OVERWRITE_STACK_H */
