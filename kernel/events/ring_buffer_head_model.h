/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model to test ring_buffer_head.h against, in the kernel and in user space.
 *
 * The model is a ring of bytes with a writer and a reader that take one step
 * at a time. It shares nothing with the tested header: it has no masks, no
 * negation and no differences. A writer or reader that arrives at the end of
 * the ring goes on at the other end. That makes it slow, but easy to check.
 *
 * Like the tested file it can be compiled with a narrower type in place of
 * unsigned long. Each function returns NULL, or says what is wrong.
 */
#ifndef _KERNEL_EVENTS_RING_BUFFER_HEAD_MODEL_H
#define _KERNEL_EVENTS_RING_BUFFER_HEAD_MODEL_H

#include "ring_buffer_head.h"

/* All inputs of one run, which is what a failure has to report. */
struct rb_model_input {
	unsigned long head;
	unsigned long tail;
	unsigned long data_size;
	unsigned long size;
	unsigned int page_shift;
	bool backward;
};

static inline unsigned int
rb_model_step(unsigned int at, unsigned int data_size, bool backward)
{
	if (backward)
		return at ? at - 1 : data_size - 1;

	return at + 1 == data_size ? 0 : at + 1;
}

/* Take @in->size steps from @in->head, and see where one comes out. */
static inline const char *rb_model_reserve(const struct rb_model_input *in)
{
	unsigned long old = in->head, new = in->head, start, bytes;
	unsigned int at = in->head % in->data_size;
	unsigned int first = at;
	unsigned int page_size = 1, n;

	for (n = 0; n < in->page_shift; n++)
		page_size += page_size;

	for (n = 0; n < in->size; n++) {
		at = rb_model_step(at, in->data_size, in->backward);
		if (in->backward)
			new--;
		else
			new++;
	}
	if (in->backward)
		first = at;

	if (rb_head_reserve(old, in->size, in->backward) != new)
		return "rb_head_reserve() isn't as many steps away";

	start = rb_head_start(old, new, in->backward);
	if (rb_head_page(start, in->page_shift, in->data_size / page_size) !=
	    first / page_size)
		return "rb_head_page() isn't the page of the first byte";
	if (rb_head_page_offset(start, in->page_shift) != first % page_size)
		return "rb_head_page_offset() isn't the place of the first byte";

	bytes = rb_head_bytes(old, in->backward);
	for (n = 0; n < in->size; n++)
		bytes++;
	if (rb_head_bytes(new, in->backward) != bytes)
		return "rb_head_bytes() didn't grow by the size";
	if (rb_head_bytes(0, in->backward))
		return "rb_head_bytes() doesn't start at 0";

	return NULL;
}

/* Let the writer step until it would stand where the reader stands. */
static inline unsigned int rb_model_space(const struct rb_model_input *in)
{
	unsigned int writer = in->head % in->data_size;
	unsigned int reader = in->tail % in->data_size;
	unsigned int n = 0;

	for (;;) {
		writer = rb_model_step(writer, in->data_size, in->backward);
		if (writer == reader)
			return n;
		n++;
	}
}

/* Step from the published head to the writer's, no further than @max. */
static inline unsigned int
rb_model_unpublished(const struct rb_model_input *in, unsigned int max)
{
	unsigned long at = in->tail;
	unsigned int n = 0;

	while (at != in->head && n <= max) {
		if (in->backward)
			at--;
		else
			at++;
		n++;
	}

	return n;
}

/* Count up from the reader's stamp to the writer's bytes, no further than @max. */
static inline unsigned int
rb_model_since(const struct rb_model_input *in, unsigned int max)
{
	unsigned long at = in->tail;
	unsigned int n = 0;

	while (at != in->head && n <= max) {
		at++;
		n++;
	}

	return n;
}

/* One head, all sizes, all page sizes from 8 bytes up. */
static inline const char *
rb_model_sizes(struct rb_model_input *in, unsigned int max_size, __u64 *runs)
{
	const char *why;
	unsigned int n;

	for (n = 0; n <= max_size; n++) {
		in->size = n;
		in->page_shift = 3;
		while ((in->data_size >> in->page_shift) >= 1) {
			why = rb_model_reserve(in);
			if (why)
				return why;
			in->page_shift++;
			++*runs;
		}
	}

	return NULL;
}

/*
 * One head and one tail, which serve as bytes and stamp and as published head,
 * too, all sizes.
 */
static inline const char *
rb_model_tail(struct rb_model_input *in, unsigned int max_size, __u64 *runs)
{
	unsigned int space = rb_model_space(in);
	unsigned int since = rb_model_since(in, max_size);
	unsigned int ahead = rb_model_unpublished(in, in->data_size);
	unsigned int n;
	bool fits, crossed, want;

	for (n = 0; n <= max_size; n++) {
		in->size = n;
		fits = rb_head_has_space(in->head, in->tail, in->data_size, n,
					 in->backward);
		want = n <= space;
		if (fits != want)
			return "rb_head_has_space() disagrees with stepping";
		crossed = rb_head_crossed(in->head, in->tail, n);
		want = since > n;
		if (crossed != want)
			return "rb_head_crossed() disagrees with counting";
		/* More than the buffer holds is never reserved. */
		if (ahead <= in->data_size) {
			fits = rb_head_has_room(in->head, in->tail,
						in->data_size, n, in->backward);
			want = ahead + n <= in->data_size;
			if (fits != want)
				return "rb_head_has_room() disagrees with stepping";
		}
		++*runs;
	}

	return NULL;
}

/*
 * Enumerate a ring of @in->data_size bytes: @nr heads from @in->head on, for
 * each as many tails from @in->tail on, and all sizes up to @max_size, in both
 * directions. On failure @in is what went wrong, otherwise *@runs grows by the
 * number of comparisons.
 */
static inline const char *
rb_model_exhaust(struct rb_model_input *in, unsigned int nr,
		 unsigned int max_size, __u64 *runs)
{
	const unsigned long head = in->head, tail = in->tail;
	const char *why = NULL;
	unsigned int dir, h, t;

	for (dir = 0; !why && dir < 2; dir++) {
		in->backward = dir;
		for (h = 0; !why && h < nr; h++) {
			in->head = head + h;
			why = rb_model_sizes(in, max_size, runs);
			for (t = 0; !why && t < nr; t++) {
				in->tail = tail + t;
				why = rb_model_tail(in, max_size, runs);
			}
		}
	}

	return why;
}

#endif /* _KERNEL_EVENTS_RING_BUFFER_HEAD_MODEL_H */
