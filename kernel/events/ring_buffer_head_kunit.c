// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the arithmetic of the perf ring buffer's head.
 *
 * ring_buffer_head.h is compared with constants and with the model in
 * ring_buffer_head_model.h, at the boundaries and exhaustively for a tiny ring.
 */
#include <kunit/test.h>

#include "ring_buffer_head.h"
#include "ring_buffer_head_model.h"
#include "ring_buffer_kunit.h"

/*
 * A reservation in a ring of four pages of 4096 bytes.
 */
struct rb_reserve_param {
	const char	*name;
	unsigned long	head;
	unsigned long	size;
	bool		backward;
	unsigned long	new_head;
	unsigned long	page;
	unsigned long	offset;
	unsigned long	bytes;
};

static const struct rb_reserve_param rb_reserve_params[] = {
	/* name, head, size, backward, new head, page, offset, bytes */
	{ "forward at 0", 0, 8, false, 8, 0, 0, 8 },
	{ "forward at 1", 1, 8, false, 9, 0, 1, 9 },
	{ "forward at 8", 8, 64, false, 72, 0, 8, 72 },
	{ "forward to the end of a page", 4088, 8, false, 4096, 0, 4088, 4096 },
	{ "forward across a page", 4088, 16, false, 4104, 0, 4088, 4104 },
	{ "forward at a page", 4096, 8, false, 4104, 1, 0, 4104 },
	{ "forward to the end", 16376, 8, false, 16384, 3, 4088, 16384 },
	{ "forward across the end", 16376, 24, false, 16400, 3, 4088, 16400 },
	{ "forward at the second lap", 16384, 8, false, 16392, 0, 0, 16392 },
	{ "forward behind the second lap", 16392, 8, false, 16400, 0, 8, 16400 },
	{ "forward the whole size", 0, 16384, false, 16384, 0, 0, 16384 },
	{ "forward to the end of the word", MINUS(8), 8, false, 0, 3, 4088, 0 },
	{ "forward across the word", MINUS(8), 24, false, 16, 3, 4088, 16 },
	{ "forward at all ones", ULONG_MAX, 8, false, 7, 3, 4095, 7 },
	{ "backward at 0", 0, 8, true, MINUS(8), 3, 4088, 8 },
	{ "backward at 0, 64 bytes", 0, 64, true, MINUS(64), 3, 4032, 64 },
	{ "backward at 1", 1, 8, true, MINUS(7), 3, 4089, 7 },
	{ "backward to 0", 8, 8, true, 0, 0, 0, 0 },
	{ "backward across 0", 8, 24, true, MINUS(16), 3, 4080, 16 },
	{ "backward from a page", MINUS(4096), 8, true, MINUS(4104), 2, 4088,
	  4104 },
	{ "backward to a page", MINUS(4088), 8, true, MINUS(4096), 3, 0, 4096 },
	{ "backward across a page", MINUS(4088), 16, true, MINUS(4104), 2, 4088,
	  4104 },
	{ "backward to the start", MINUS(16376), 8, true, MINUS(16384), 0, 0,
	  16384 },
	{ "backward across the start", MINUS(16376), 24, true, MINUS(16400), 3,
	  4080, 16400 },
	{ "backward at the second lap", MINUS(16384), 8, true, MINUS(16392), 3,
	  4088, 16392 },
	{ "backward the whole size", 0, 16384, true, MINUS(16384), 0, 0, 16384 },
	{ "backward at all ones", ULONG_MAX, 8, true, MINUS(9), 3, 4087, 9 },
	{ "backward at the size", 16384, 8, true, 16376, 3, 4088,
	  MINUS(16376) },
	{ "backward behind the size", 16392, 8, true, 16384, 0, 0,
	  MINUS(16384) },
};

RB_PARAM_DESC(rb_reserve_param)
KUNIT_ARRAY_PARAM(rb_reserve, rb_reserve_params, rb_reserve_param_desc);

static void test_head_reserve(struct kunit *test)
{
	const struct rb_reserve_param *p = test->param_value;
	unsigned long new = rb_head_reserve(p->head, p->size, p->backward);
	unsigned long start = rb_head_start(p->head, new, p->backward);

	KUNIT_EXPECT_EQ(test, new, p->new_head);
	KUNIT_EXPECT_EQ(test, rb_head_page(start, 12, 4), p->page);
	KUNIT_EXPECT_EQ(test, rb_head_page_offset(start, 12), p->offset);
	KUNIT_EXPECT_EQ(test, rb_head_bytes(new, p->backward), p->bytes);
}

/*
 * What a reader of a writable mapping of 4096 bytes allows.
 */
struct rb_space_param {
	const char	*name;
	unsigned long	head;
	unsigned long	tail;
	bool		backward;
	unsigned long	space;
};

static const struct rb_space_param rb_space_params[] = {
	/* name, head, tail, backward, space */
	{ "forward, empty at 0", 0, 0, false, 4095 },
	{ "forward, empty at the size", 4096, 4096, false, 4095 },
	{ "forward, empty at all ones", ULONG_MAX, ULONG_MAX, false, 4095 },
	{ "forward, 8 bytes used", 8, 0, false, 4087 },
	{ "forward, 8 bytes used across the end", 4100, 4092, false, 4087 },
	{ "forward, 8 bytes used across the word", 4, MINUS(4), false, 4087 },
	{ "forward, 8 bytes free", 4087, 0, false, 8 },
	{ "forward, 7 bytes free", 4088, 0, false, 7 },
	{ "forward, full", 4095, 0, false, 0 },
	{ "forward, full across the word", 4091, MINUS(4), false, 0 },
	{ "forward, tail ahead of the head", 0, 8, false, 7 },
	{ "backward, empty at 0", 0, 0, true, 4095 },
	{ "backward, empty at the size", 4096, 4096, true, 4095 },
	{ "backward, empty at all ones", ULONG_MAX, ULONG_MAX, true, 4095 },
	{ "backward, 8 bytes used", MINUS(8), 0, true, 4087 },
	{ "backward, 8 bytes used across the end", 4092, 4100, true, 4087 },
	{ "backward, 8 bytes used across the word", MINUS(4), 4, true, 4087 },
	{ "backward, 8 bytes free", MINUS(4087), 0, true, 8 },
	{ "backward, 7 bytes free", MINUS(4088), 0, true, 7 },
	{ "backward, full", MINUS(4095), 0, true, 0 },
	{ "backward, full across the word", MINUS(4091), 4, true, 0 },
	{ "backward, tail ahead of the head", 8, 0, true, 7 },
};

RB_PARAM_DESC(rb_space_param)
KUNIT_ARRAY_PARAM(rb_space, rb_space_params, rb_space_param_desc);

static void test_head_space(struct kunit *test)
{
	const struct rb_space_param *p = test->param_value;
	unsigned long size;

	for (size = 0; size <= 4096 + 8; size++) {
		KUNIT_ASSERT_EQ_MSG(test,
				    rb_head_has_space(p->head, p->tail, 4096,
						      size, p->backward),
				    size <= p->space, "size %lu", size);
	}
}

/*
 * What unpublished records leave of an overwritable buffer of
 * 4096 bytes.
 */
struct rb_room_param {
	const char	*name;
	unsigned long	head;
	unsigned long	published;
	bool		backward;
	unsigned long	room;
};

static const struct rb_room_param rb_room_params[] = {
	/* name, head, published, backward, room */
	{ "forward, all published at 0", 0, 0, false, 4096 },
	{ "forward, all published at all ones", ULONG_MAX, ULONG_MAX, false, 4096 },
	{ "forward, all published, many laps", 81920, 81920, false, 4096 },
	{ "forward, 8 bytes to publish", 8, 0, false, 4088 },
	{ "forward, 8 bytes across the word", 4, MINUS(4), false, 4088 },
	{ "forward, all but 8 bytes", 4088, 0, false, 8 },
	{ "forward, the whole size", 4096, 0, false, 0 },
	{ "forward, the whole size across the word", 4088, MINUS(8), false, 0 },
	{ "backward, all published at 0", 0, 0, true, 4096 },
	{ "backward, all published at all ones", ULONG_MAX, ULONG_MAX, true, 4096 },
	{ "backward, all published, many laps", MINUS(81920), MINUS(81920), true,
	  4096 },
	{ "backward, 8 bytes to publish", MINUS(8), 0, true, 4088 },
	{ "backward, 8 bytes across the word", MINUS(4), 4, true, 4088 },
	{ "backward, all but 8 bytes", MINUS(4088), 0, true, 8 },
	{ "backward, the whole size", MINUS(4096), 0, true, 0 },
	{ "backward, the whole size across the word", MINUS(4088), 8, true, 0 },
};

RB_PARAM_DESC(rb_room_param)
KUNIT_ARRAY_PARAM(rb_room, rb_room_params, rb_room_param_desc);

static void test_head_room(struct kunit *test)
{
	const struct rb_room_param *p = test->param_value;
	unsigned long size;

	for (size = 0; size <= 4096 + 8; size++) {
		KUNIT_ASSERT_EQ_MSG(test,
				    rb_head_has_room(p->head, p->published, 4096,
						     size, p->backward),
				    size <= p->room, "size %lu", size);
	}
}

static void rb_test_model(struct kunit *test, const char *why,
			  const struct rb_model_input *in)
{
	KUNIT_ASSERT_NULL_MSG(test, why,
			      "%s: head %#lx tail %#lx size %lu of %lu, page shift %u, %s",
			      why, in->head, in->tail, in->size, in->data_size,
			      in->page_shift,
			      in->backward ? "backward" : "forward");
}

/* The boundaries in every combination, for a buffer of two small pages. */
static void test_head_boundaries(struct kunit *test)
{
	const unsigned long D = 512;
	const unsigned long edges[] = {
		0, 1, MINUS(1), 8, MINUS(8), D - 8, D - 1, D, D + 1, D + 8,
		MINUS(D - 8), MINUS(D), MINUS(D + 8), 2 * D, MINUS(2 * D),
		LONG_MAX, LONG_MIN, ULONG_MAX - 8,
	};
	const unsigned long sizes[] = {
		0, 1, 8, 16, D / 2, D - 8, D - 1, D, D + 1, D + 8, 2 * D,
	};
	struct rb_model_input in = { .data_size = D, .page_shift = 8 };
	unsigned int h, t, s;

	for (h = 0; h < 2 * ARRAY_SIZE(edges); h++) {
		in.backward = h & 1;
		in.head = edges[h / 2];
		for (s = 0; s < ARRAY_SIZE(sizes); s++) {
			in.size = sizes[s];
			rb_test_model(test, rb_model_reserve(&in), &in);
			for (t = 0; t < ARRAY_SIZE(edges); t++) {
				bool fits;

				in.tail = edges[t];
				fits = rb_head_has_space(in.head, in.tail, D,
							 in.size, in.backward);
				rb_test_model(test,
					      fits == (in.size <= rb_model_space(&in)) ?
					      NULL : "rb_head_has_space() is wrong",
					      &in);
			}
		}
	}
}

/* Several laps of a tiny ring: all heads, all tails, all sizes. */
static void test_head_exhaustive(struct kunit *test)
{
	struct rb_model_input in = {
		.head = MINUS(32),
		.tail = MINUS(32),
		.data_size = 16,
	};
	u64 runs = 0;

	rb_test_model(test, rb_model_exhaust(&in, 64, 40, &runs), &in);

	/* Tails: 64 * 64 * 41, reservations: 64 * 41 and two page sizes. */
	KUNIT_EXPECT_EQ(test, runs, 2 * (64 * 64 * 41 + 64 * 41 * 2));
}

static struct kunit_case rb_head_test_cases[] = {
	KUNIT_CASE_PARAM(test_head_reserve, rb_reserve_gen_params),
	KUNIT_CASE_PARAM(test_head_space, rb_space_gen_params),
	KUNIT_CASE_PARAM(test_head_room, rb_room_gen_params),
	KUNIT_CASE(test_head_boundaries),
	KUNIT_CASE(test_head_exhaustive),
	{}
};

static struct kunit_suite rb_head_test_suite = {
	.name = "perf_ring_buffer_head",
	.test_cases = rb_head_test_cases,
};

kunit_test_suite(rb_head_test_suite);
