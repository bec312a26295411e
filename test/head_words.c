// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the ring buffer's head arithmetic against its model with a word of
 * WORD_BITS bits (8, 16, 32 or 64): in 8 bits every head and every tail is
 * tried, so that the wrap of the word is enumerated and not sampled. Wider
 * words get windows around 0, the sign bit and all ones.
 *
 * Prints KTAP. Build: cc -DWORD_BITS=8 -I kernel/events test/head_words.c
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* The tested file knows one type only: what follows here is 'unsigned long'. */
#if WORD_BITS == 8
#define long char
#elif WORD_BITS == 16
#define long short
#elif WORD_BITS == 32
#define long int
#elif WORD_BITS != 64
#error "WORD_BITS is 8, 16, 32 or 64"
#endif

typedef unsigned long word;

#include "ring_buffer_head_model.h"

#undef long

_Static_assert(sizeof(word) * CHAR_BIT == WORD_BITS, "not the word asked for");

static int nr_tests;
static int nr_failed;

static void run(const char *name, word head, word tail, word data_size,
		unsigned int nr, unsigned int max_size)
{
	struct rb_model_input in = {
		.head = head,
		.tail = tail,
		.data_size = data_size,
	};
	__u64 runs = 0;
	const char *why = rb_model_exhaust(&in, nr, max_size, &runs);

	nr_tests++;
	if (why) {
		nr_failed++;
		printf("# %s: head %#llx tail %#llx size %llu of %llu, page shift %u, %s\n",
		       why, (unsigned long long)in.head,
		       (unsigned long long)in.tail, (unsigned long long)in.size,
		       (unsigned long long)in.data_size, in.page_shift,
		       in.backward ? "backward" : "forward");
	} else {
		printf("# %llu comparisons\n", (unsigned long long)runs);
	}
	printf("%s %d %d-bit word: %s, %llu bytes\n", why ? "not ok" : "ok",
	       nr_tests, WORD_BITS, name, (unsigned long long)data_size);
}

int main(void)
{
	const word ones = (word)~0ULL;
	const word sign = (word)(1ULL << (WORD_BITS - 1));
	const word half = WORD_BITS == 8 ? 0 : 64;

	printf("KTAP version 1\n");
	if (WORD_BITS == 8) {
		printf("1..5\n");
		run("all heads and tails", 0, 0, 8, 256, 24);
		run("all heads and tails", 0, 0, 16, 256, 48);
		run("all heads and tails", 0, 0, 32, 256, 96);
		run("all heads and tails", 0, 0, 64, 256, 192);
		run("all heads and tails", 0, 0, 128, 256, 255);
	} else {
		printf("1..6\n");
		run("around 0", 0 - half, 0 - half, 32, 2 * half, 72);
		run("around the sign bit", sign - half, sign - half, 32,
		    2 * half, 72);
		run("tail before the sign bit, head behind it", sign,
		    sign - half, 32, half, 72);
		run("tail at all ones, head at 0", 0, ones, 64, half, 136);
		run("head at all ones, tail at 0", ones, 0, 64, half, 136);
		run("tail that was never near", 0 - half, sign, 64, 2 * half,
		    136);
	}

	return nr_failed ? 1 : 0;
}
