// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what is written of a sample, and of the fields behind other
 * records: each set of fields in front of the end of a page, on it, and across it.
 */
#include <kunit/test.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>

#include "internal.h"
#include "ring_buffer_kunit.h"

/*
 * Give the buffer data pages with a page's worth of nothing behind each: a copy
 * that doesn't stop at the end of its page does no harm there, and is seen.
 */
static void rb_test_guard(struct kunit *test, struct rb_test *t)
{
	size_t page_size = PAGE_SIZE << page_order(t->rb);
	int i;

	KUNIT_ASSERT_LE(test, t->rb->nr_pages, RB_TEST_GUARDED);
	t->guarded = kunit_kzalloc(test, 2 * t->rb->nr_pages * page_size,
				   GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->guarded);

	for (i = 0; i < t->rb->nr_pages; i++) {
		t->pages[i] = t->rb->data_pages[i];
		t->rb->data_pages[i] = t->guarded + 2 * i * page_size;
	}
}

static void rb_test_unguard(struct rb_test *t)
{
	if (t && t->guarded)
		memcpy(t->rb->data_pages, t->pages, t->rb->nr_pages * sizeof(void *));
}

static void rb_test_compare_guarded(struct kunit *test, struct rb_test *t)
{
	size_t page_size = PAGE_SIZE << page_order(t->rb);
	int i;

	rb_test_compare(test, t);
	for (i = 0; i < t->rb->nr_pages; i++) {
		u8 *guard = t->guarded + (2 * i + 1) * page_size;
		u8 *byte = memchr_inv(guard, 0, page_size);

		if (!byte)
			continue;
		KUNIT_FAIL(test, "byte %td behind page %d is %#x, head %#lx",
			   byte - guard, i, *byte, t->head);
	}

	/* One such place says enough. */
	KUNIT_ASSERT_EQ(test, READ_ONCE(test->status), KUNIT_SUCCESS);
}

/*
 * What is small is stored in line where it doesn't reach the end of its page,
 * whole groups of fields where they can't reach it. Put each of these in front
 * of the end of a page, on it, and across it.
 */
#define RB_TEST_PUT(handle, from, len)					\
do {									\
	struct { u8 bytes[len]; } field;				\
									\
	memcpy(&field, from, sizeof(field));				\
	perf_output_put(handle, field);					\
} while (0)

static void rb_test_put(struct perf_output_handle *handle, const u8 *from,
			unsigned int size)
{
	switch (size) {
	case 1:
		RB_TEST_PUT(handle, from, 1);
		break;
	case 2:
		RB_TEST_PUT(handle, from, 2);
		break;
	case 4:
		RB_TEST_PUT(handle, from, 4);
		break;
	case 8:
		RB_TEST_PUT(handle, from, 8);
		break;
	case 12:
		RB_TEST_PUT(handle, from, 12);
		break;
	case 16:
		RB_TEST_PUT(handle, from, 16);
		break;
	case 24:
		RB_TEST_PUT(handle, from, 24);
		break;
	case 40:
		RB_TEST_PUT(handle, from, 40);
		break;
	default:
		/* Not of a constant size: like a name, or a callchain. */
		__output_copy(handle, from, size);
	}
}

/* Where a record of @size has to start for its byte @room to be on a new page. */
static void rb_test_start_at(struct rb_test *t, unsigned int size,
			     unsigned int page, unsigned int room)
{
	unsigned long first = (page + 1) * PAGE_SIZE - room;

	rb_test_start(t, t->event.attr.write_backward ? first + size : first);
}

struct rb_direction_param {
	const char	*name;
	bool		backward;
};

static const struct rb_direction_param rb_direction_params[] = {
	{ "forward", false },
	{ "backward", true },
};

RB_PARAM_DESC(rb_direction_param)
KUNIT_ARRAY_PARAM(rb_direction, rb_direction_params, rb_direction_param_desc);

/*
 * Begin record number @seq of @size, whose byte @front is on a new page, and write what is
 * in front of the piece at @done.
 */
static void rb_test_begin_piece(struct kunit *test, struct rb_test *t,
				struct perf_output_handle *handle, u64 seq, unsigned int size,
				unsigned int page, unsigned int front, unsigned int done)
{
	struct perf_sample_data data;
	int ret;

	perf_sample_data_init(&data, 0, 0);
	rb_test_start_at(t, size, page, front);
	rb_test_fill(t->record, seq, size);
	ret = perf_output_begin(handle, &data, &t->event, size);
	KUNIT_ASSERT_EQ(test, ret, 0);
	perf_output_copy(handle, t->record, done);
}

static void rb_test_end_piece(struct kunit *test, struct rb_test *t,
			      struct perf_output_handle *handle, unsigned int size)
{
	perf_output_end(handle);
	rb_test_mirror(t, t->record, size);
	rb_test_compare_guarded(test, t);
}

static void test_copy_at_page_end(struct kunit *test)
{
	static const unsigned int sizes[] = {
		1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 40, 63, 64,
	};
	const struct rb_direction_param *p = test->param_value;
	const unsigned int record = 160, front = 80;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	struct perf_output_handle handle;
	unsigned int i, page, room, done;
	u64 seq = 0;

	rb_test_guard(test, t);

	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		unsigned int size = sizes[i / 2];

		page = i % 2;
		for (room = 1; room <= size + 2; room++) {
			done = front - room;
			rb_test_begin_piece(test, t, &handle, seq++, record, page, front, done);
			rb_test_put(&handle, t->record + done, size);
			done += size;
			rb_test_put(&handle, t->record + done, record - done);
			rb_test_end_piece(test, t, &handle, record);
		}
	}
}

/*
 * What is short is copied by words, and what is left of it by bytes: whole pieces of any
 * length, wherever they start, up to the longest and beyond.
 */
static void test_short_copy_at_page_end(struct kunit *test)
{
	static const unsigned int longer[] = {
		OUTPUT_COPY_SHORT_MAX - 4, OUTPUT_COPY_SHORT_MAX - 1, OUTPUT_COPY_SHORT_MAX,
		OUTPUT_COPY_SHORT_MAX + 1, OUTPUT_COPY_SHORT_MAX + 8,
	};
	const struct rb_direction_param *p = test->param_value;
	const unsigned int record = 1200, front = 600, shorter = 33;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	struct perf_output_handle handle;
	unsigned int i, room, done, size;
	u64 seq = 0;
	int ret;

	rb_test_guard(test, t);

	for (i = 0; i < shorter + ARRAY_SIZE(longer); i++) {
		size = i < shorter ? i : longer[i - shorter];

		for (room = 1; room <= size + 9; room++) {
			/* Nothing else happens far from both ends. */
			if (room == 10 && size > shorter)
				room = size - 9;
			done = front - room;
			rb_test_begin_piece(test, t, &handle, seq++, record, i % 2, front, done);
			ret = __output_copy_short(&handle, t->record + done, size);
			KUNIT_EXPECT_EQ(test, ret, 0);
			done += size;
			perf_output_copy(&handle, t->record + done, record - done);
			rb_test_end_piece(test, t, &handle, record);
		}
	}
}

/* 0x01 in all bytes. Older kernels have it from a register, which may have 32 bits. */
#define RB_TEST_IP	(~0UL / 0xff)

/* Each value that a sample may have; none has a byte in common with another. */
static void rb_test_sample_values(struct perf_sample_data *data)
{
	data->ip = RB_TEST_IP;
	data->tid_entry.pid = 0x03030303;
	data->tid_entry.tid = 0x04040404;
	data->time = 0x0505050506060606ULL;
	data->addr = 0x0707070708080808ULL;
	data->id = 0x090909090a0a0a0aULL;
	data->stream_id = 0x0b0b0b0b0c0c0c0cULL;
	data->cpu_entry.cpu = 0x0d0d0d0d;
	data->cpu_entry.reserved = 0x0e0e0e0e;
	data->period = 0x0f0f0f0f10101010ULL;
	data->weight.full = 0x1111111112121212ULL;
	data->data_src.val = 0x1313131314141414ULL;
	data->txn = 0x1515151516161616ULL;
	data->phys_addr = 0x1717171718181818ULL;
	data->cgroup = 0x191919191a1a1a1aULL;
	data->data_page_size = 0x1b1b1b1b1c1c1c1cULL;
	data->code_page_size = 0x1d1d1d1d1e1e1e1eULL;
}

/* Two u32 after another, the first one at the lower address. */
static u64 rb_test_pair(u32 first, u32 second)
{
	u32 pair[2] = { first, second };
	u64 value;

	memcpy(&value, pair, sizeof(value));

	return value;
}

/* The order is that of the ABI, see PERF_RECORD_SAMPLE in the uapi header. */
static unsigned int rb_test_sample_head(u64 *to, u64 type)
{
	u64 *start = to;

	if (type & PERF_SAMPLE_IDENTIFIER)
		*to++ = 0x090909090a0a0a0aULL;
	if (type & PERF_SAMPLE_IP)
		*to++ = RB_TEST_IP;
	if (type & PERF_SAMPLE_TID)
		*to++ = rb_test_pair(0x03030303, 0x04040404);
	if (type & PERF_SAMPLE_TIME)
		*to++ = 0x0505050506060606ULL;
	if (type & PERF_SAMPLE_ADDR)
		*to++ = 0x0707070708080808ULL;
	if (type & PERF_SAMPLE_ID)
		*to++ = 0x090909090a0a0a0aULL;
	if (type & PERF_SAMPLE_STREAM_ID)
		*to++ = 0x0b0b0b0b0c0c0c0cULL;
	if (type & PERF_SAMPLE_CPU)
		*to++ = rb_test_pair(0x0d0d0d0d, 0x0e0e0e0e);
	if (type & PERF_SAMPLE_PERIOD)
		*to++ = 0x0f0f0f0f10101010ULL;

	return (to - start) * sizeof(u64);
}

static unsigned int rb_test_sample_tail(u64 *to, u64 type,
					const struct perf_sample_data *data)
{
	u64 *start = to;

	if (type & PERF_SAMPLE_WEIGHT_TYPE)
		*to++ = 0x1111111112121212ULL;
	if (type & PERF_SAMPLE_DATA_SRC)
		*to++ = 0x1313131314141414ULL;
	if (type & PERF_SAMPLE_TRANSACTION)
		*to++ = 0x1515151516161616ULL;
	if (type & PERF_SAMPLE_PHYS_ADDR)
		*to++ = 0x1717171718181818ULL;
	/* Older kernels find these out by themselves, whatever there was before. */
	if (type & PERF_SAMPLE_CGROUP)
		*to++ = data->cgroup;
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		*to++ = data->data_page_size;
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		*to++ = data->code_page_size;

	return (to - start) * sizeof(u64);
}

/* All of rb_test_sample_head(), in pieces that a loop can combine. */
static const u64 rb_test_head_bits[] = {
	PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,
	PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_PERIOD,
};

/* The same for rb_test_sample_tail(). */
static const u64 rb_test_tail_bits[] = {
	PERF_SAMPLE_WEIGHT, PERF_SAMPLE_DATA_SRC, PERF_SAMPLE_TRANSACTION,
	PERF_SAMPLE_PHYS_ADDR, PERF_SAMPLE_CGROUP, PERF_SAMPLE_DATA_PAGE_SIZE,
	PERF_SAMPLE_CODE_PAGE_SIZE,
};

/* Those of the @n bits that the lowest bits of @set say. */
static u64 rb_test_subset(const u64 *bits, unsigned int n, unsigned int set)
{
	unsigned int i;
	u64 type = 0;

	for (i = 0; i < n; i++) {
		if (set & BIT(i))
			type |= bits[i];
	}

	return type;
}

struct rb_sample_param {
	const char	*name;
	bool		backward;
	bool		tail;		/* fields behind the raw data */
	u64		raw;		/* PERF_SAMPLE_RAW or 0 */
	unsigned int	frags[2];	/* sizes of its parts */
};

static const struct rb_sample_param rb_sample_params[] = {
	/* name, backward, tail, raw, its sizes */
	{ "forward", false, false, 0 },
	{ "forward, raw", false, false, PERF_SAMPLE_RAW, { 68 } },
	{ "forward, raw, padded", false, false, PERF_SAMPLE_RAW, { 13, 9 } },
	{ "forward, raw, empty", false, false, PERF_SAMPLE_RAW },
	{ "forward, tail", false, true, 0 },
	{ "forward, raw and tail", false, true, PERF_SAMPLE_RAW, { 20 } },
	{ "backward", true, false, 0 },
	{ "backward, raw", true, false, PERF_SAMPLE_RAW, { 68 } },
	{ "backward, raw, padded", true, false, PERF_SAMPLE_RAW, { 13, 9 } },
	{ "backward, raw, empty", true, false, PERF_SAMPLE_RAW },
	{ "backward, tail", true, true, 0 },
	{ "backward, raw and tail", true, true, PERF_SAMPLE_RAW, { 20 } },
};

RB_PARAM_DESC(rb_sample_param)
KUNIT_ARRAY_PARAM(rb_sample, rb_sample_params, rb_sample_param_desc);

/* Write a sample with its byte @room on a new page, and compare. */
static void rb_test_sample(struct kunit *test, struct rb_test *t,
			   unsigned int size, unsigned int page,
			   unsigned int room)
{
	const struct rb_sample_param *p = test->param_value;
	u64 type = t->event.attr.sample_type;
	struct perf_event_header *header = (void *)t->record;
	struct perf_raw_frag second = { };
	struct perf_raw_record raw = { };
	struct perf_sample_data data;
	struct pt_regs regs = { };
	unsigned int i, done;

	rb_test_start_at(t, size, page, room);

	/* Nothing is left to prepare. */
	perf_sample_data_init(&data, 0, 0);
	rb_test_sample_values(&data);
	data.sample_flags = ~(u64)PERF_SAMPLE_RAW;
	/* Zeroed registers are those of user space on some architectures. */
	perf_fetch_caller_regs(&regs);
	/* Older kernels look there all the same. */
	instruction_pointer_set(&regs, data.ip);
	if (p->frags[0]) {
		raw.frag.size = p->frags[0];
		raw.frag.data = t->nested;
		if (p->frags[1]) {
			second.size = p->frags[1];
			second.data = t->nested + p->frags[0];
			raw.frag.next = &second;
		}
		perf_sample_save_raw_data(&data, &t->event, &raw);
	}

	if (p->backward)
		perf_event_output_backward(&t->event, &data, &regs);
	else
		perf_event_output_forward(&t->event, &data, &regs);

	/* Padding is what was there before. */
	for (i = 0; i < size; i++)
		t->record[i] = t->mirror[((page + 1) * PAGE_SIZE - room + i) %
					 t->data_size];
	header->type = PERF_RECORD_SAMPLE;
	header->misc = PERF_RECORD_MISC_KERNEL;
	header->size = size;
	done = sizeof(*header);
	done += rb_test_sample_head((u64 *)(t->record + done), type);
	if (type & PERF_SAMPLE_RAW) {
		u32 bytes = round_up(p->frags[0] + p->frags[1] + 4, 8) - 4;

		memcpy(t->record + done, &bytes, 4);
		memcpy(t->record + done + 4, t->nested,
		       p->frags[0] + p->frags[1]);
		if (!p->frags[0])
			memset(t->record + done + 4, 0, 4);
		done += 4 + bytes;
	}
	done += rb_test_sample_tail((u64 *)(t->record + done), type, &data);
	KUNIT_ASSERT_EQ(test, done, size);

	rb_test_mirror(t, t->record, size);
	rb_test_compare_guarded(test, t);
}

static void test_sample_at_page_end(struct kunit *test)
{
	const struct rb_sample_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	unsigned int set, size, raw = 0, room;
	u64 type;

	rb_test_guard(test, t);
	rb_test_fill(t->nested, 1, 128);
	if (p->raw)
		raw = round_up(p->frags[0] + p->frags[1] + 4, 8);

	for (set = 0; set < BIT(ARRAY_SIZE(rb_test_head_bits)); set++) {
		type = rb_test_subset(rb_test_head_bits,
				      ARRAY_SIZE(rb_test_head_bits), set);
		if (p->tail)
			type |= rb_test_subset(rb_test_tail_bits,
					       ARRAY_SIZE(rb_test_tail_bits), set);

		/* Each of 8 bytes: what the event's header_size says. */
		size = hweight64(type) * sizeof(u64);
		t->event.attr.sample_type = type | p->raw;
		t->event.header_size = size;
		t->event.fixed_size = t->event.header_size;
		size += sizeof(struct perf_event_header) + raw;

		/* From what ends 8 bytes in front of the end to what starts there. */
		for (room = 0; room <= size + 8; room += 8)
			rb_test_sample(test, t, size, room / 8 % 2, room);
	}
}

/* Write a sample of the registers in @mask with its byte @room on a new page. */
static void rb_test_regs(struct kunit *test, struct rb_test *t,
			 struct pt_regs *regs, u64 mask, unsigned int page,
			 unsigned int room)
{
	const struct rb_direction_param *p = test->param_value;
	struct perf_event_header *header = (void *)t->record;
	u64 *to = (u64 *)(t->record + sizeof(*header));
	struct perf_sample_data data;
	unsigned int bit;

	header->type = PERF_RECORD_SAMPLE;
	header->misc = user_mode(regs) ? PERF_RECORD_MISC_USER :
					 PERF_RECORD_MISC_KERNEL;
	*to++ = perf_reg_abi(current);
	for (bit = 0; bit < BITS_PER_TYPE(mask); bit++) {
		if (mask & BIT_ULL(bit))
			*to++ = perf_reg_value(regs, bit);
	}
	header->size = (u8 *)to - t->record;

	rb_test_start_at(t, header->size, page, room);
	t->event.attr.sample_regs_intr = mask;
	perf_sample_data_init(&data, 0, 0);
	if (p->backward)
		perf_event_output_backward(&t->event, &data, regs);
	else
		perf_event_output_forward(&t->event, &data, regs);

	rb_test_mirror(t, t->record, header->size);
	rb_test_compare_guarded(test, t);
}

static void test_regs_at_page_end(struct kunit *test)
{
	const struct rb_direction_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	unsigned long words[sizeof(struct pt_regs) / sizeof(unsigned long)];
	unsigned int bit, i, room;
	u64 all = 0, masks[3];

	for (bit = 0; bit < BITS_PER_TYPE(all); bit++) {
		if (!perf_reg_validate(BIT_ULL(bit)))
			all |= BIT_ULL(bit);
	}
	all &= ~(u64)PERF_REG_EXTENDED_MASK;
	if (!all)
		kunit_skip(test, "no registers in samples here");
	masks[0] = all;
	masks[1] = all & 0x5555555555555555ULL;
	masks[2] = all & -all;

	/* No two alike, and no flag that means something in the lowest bits. */
	for (i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = (i + 1) * 0x01000100UL;

	rb_test_guard(test, t);
	t->event.attr.sample_type = PERF_SAMPLE_REGS_INTR;
	t->event.header_size = 0;
	t->event.fixed_size = t->event.header_size;
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		unsigned int size = (2 + hweight64(masks[i])) * sizeof(u64);

		for (room = 0; room <= size + 8; room += 8)
			rb_test_regs(test, t, (struct pt_regs *)words, masks[i],
				     room / 8 % 2, room);
	}
}

/* What is written of a sample that nobody gave any values, bit by bit. */
static void test_sample_without_values(struct kunit *test)
{
	static const struct {
		u64	bit;
		bool	fixed;
		u64	value;
	} fields[] = {
		{ PERF_SAMPLE_ADDR, true },
		{ PERF_SAMPLE_RAW, false },
		{ PERF_SAMPLE_BRANCH_STACK, false },
		{ PERF_SAMPLE_REGS_USER, false, PERF_SAMPLE_REGS_ABI_NONE },
		{ PERF_SAMPLE_STACK_USER, false },
		{ PERF_SAMPLE_WEIGHT, true },
		{ PERF_SAMPLE_DATA_SRC, true, PERF_MEM_NA },
		{ PERF_SAMPLE_TRANSACTION, true },
		{ PERF_SAMPLE_PHYS_ADDR, true },
		{ PERF_SAMPLE_DATA_PAGE_SIZE, true },
		{ PERF_SAMPLE_CODE_PAGE_SIZE, true },
	};
	struct rb_test *t = rb_test_attach(test, 1, 0, false, false, 0);
	struct perf_event_header *header = (void *)t->record;
	struct perf_sample_data data;
	struct pt_regs regs = { };
	unsigned int set, i;

	perf_fetch_caller_regs(&regs);
	/* There is no page at 0, so PERF_SAMPLE_CODE_PAGE_SIZE is 0. */
	instruction_pointer_set(&regs, 0);
	for (set = 0; set < BIT(ARRAY_SIZE(fields)); set++) {
		u64 *to = (u64 *)(t->record + sizeof(*header));

		t->event.attr.sample_type = 0;
		t->event.header_size = 0;
		for (i = 0; i < ARRAY_SIZE(fields); i++) {
			if (!(set & BIT(i)))
				continue;
			t->event.attr.sample_type |= fields[i].bit;
			if (fields[i].fixed)
				t->event.header_size += sizeof(u64);
			*to++ = fields[i].bit == PERF_SAMPLE_RAW ?
				rb_test_pair(sizeof(u32), 0) : fields[i].value;
		}
		t->event.fixed_size = t->event.header_size;
		header->type = PERF_RECORD_SAMPLE;
		header->misc = PERF_RECORD_MISC_KERNEL;
		header->size = (u8 *)to - t->record;

		/*
		 * The sample data is on the caller's stack, with anything in it. The
		 * addresses are valid: code that uses them by mistake shows in a record.
		 */
		memset(&data, 0xa5, sizeof(data));
		data.addr = (unsigned long)t->record;
		data.ip = (unsigned long)t->record;
		perf_sample_data_init(&data, 0, 0);
		perf_event_output_forward(&t->event, &data, &regs);

		rb_test_mirror(t, t->record, header->size);
		rb_test_compare(test, t);
	}
}

/* The fields that follow all other records, in their order in the ABI. */
static const u64 rb_test_id_bits[] = {
	PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ID,
	PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER,
};

static unsigned int rb_test_id_sample(u64 *to, u64 type, const u64 *values)
{
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(rb_test_id_bits); i++) {
		if (type & rb_test_id_bits[i])
			to[n++] = values[i];
	}

	return n * sizeof(u64);
}

static void test_id_sample_at_page_end(struct kunit *test)
{
	const u64 values[ARRAY_SIZE(rb_test_id_bits)] = {
		rb_test_pair(0x03030303, 0x04040404), 0x0505050506060606ULL,
		0x090909090a0a0a0aULL, 0x0b0b0b0b0c0c0c0cULL,
		rb_test_pair(0x0d0d0d0d, 0x0e0e0e0e), 0x090909090a0a0a0aULL,
	};
	const struct rb_direction_param *p = test->param_value;
	struct rb_test *t = rb_test_attach(test, 2, 0, p->backward, false, 0);
	struct perf_output_handle handle;
	struct perf_sample_data data;
	unsigned int set, size, room;
	int ret;

	rb_test_guard(test, t);
	perf_sample_data_init(&data, 0, 0);
	rb_test_sample_values(&data);
	t->event.attr.sample_id_all = 1;

	for (set = 0; set < BIT(ARRAY_SIZE(rb_test_id_bits)); set++) {
		data.type = rb_test_subset(rb_test_id_bits, ARRAY_SIZE(rb_test_id_bits), set);
		size = 16;
		size += rb_test_id_sample((u64 *)(t->record + size), data.type, values);

		for (room = 0; room <= size + 8; room += 8) {
			rb_test_fill(t->record, set, 16);
			rb_test_start_at(t, size, room / 8 % 2, room);
			ret = perf_output_begin(&handle, &data, &t->event, size);
			KUNIT_ASSERT_EQ(test, ret, 0);
			perf_output_copy(&handle, t->record, 16);
			perf_event__output_id_sample(&t->event, &handle, &data);
			perf_output_end(&handle);

			rb_test_mirror(t, t->record, size);
			rb_test_compare_guarded(test, t);
		}
	}
}

/* What the function called next finds in its variables. */
static noinline void rb_test_poison_stack(void)
{
	u8 stack[768];

	memset(stack, 0xa5, sizeof(stack));
	barrier_data(stack);
}

static u64 rb_test_clock(void)
{
	return 0x0505050506060606ULL;
}

/* The fields at the end of a record come from its writer's stack, which isn't cleared. */
static void test_id_sample_after_poison(struct kunit *test)
{
	u64 values[ARRAY_SIZE(rb_test_id_bits)] = {
		rb_test_pair(task_tgid_nr(current), task_pid_nr(current)),
		rb_test_clock(), RB_TEST_ID, RB_TEST_ID, 0, RB_TEST_ID,
	};
	struct rb_test *t = rb_test_attach(test, 1, 0, false, false, 0);
	struct perf_event_header *header = (void *)t->record;
	struct perf_event *event = &t->event;
	unsigned int set;

	event->attr.sample_id_all = 1;
	event->clock = rb_test_clock;
	event->ns = &init_pid_ns;
	/* The CPU stays the same from here on. */
	migrate_disable();
	values[4] = rb_test_pair(raw_smp_processor_id(), 0);
	for (set = 0; set < BIT(ARRAY_SIZE(rb_test_id_bits)); set++) {
		u64 type = rb_test_subset(rb_test_id_bits, ARRAY_SIZE(rb_test_id_bits), set);
		u64 *to = (u64 *)(t->record + sizeof(*header));

		*to++ = set;
		event->id_header_size = rb_test_id_sample(to, type, values);
		header->type = PERF_RECORD_LOST_SAMPLES;
		header->misc = 0;
		header->size = sizeof(*header) + sizeof(u64) + event->id_header_size;

		event->attr.sample_type = type;
		rb_test_poison_stack();
		perf_log_lost_samples(event, set);

		rb_test_mirror(t, t->record, header->size);
		rb_test_compare(test, t);
	}
	migrate_enable();
}

static void rb_field_test_exit(struct kunit *test)
{
	rb_test_unguard(test->priv);
	rb_test_exit(test);
}

static struct kunit_case rb_field_test_cases[] = {
	KUNIT_CASE_PARAM(test_copy_at_page_end, rb_direction_gen_params),
	KUNIT_CASE_PARAM(test_short_copy_at_page_end, rb_direction_gen_params),
	KUNIT_CASE_PARAM(test_sample_at_page_end, rb_sample_gen_params),
	KUNIT_CASE_PARAM(test_regs_at_page_end, rb_direction_gen_params),
	KUNIT_CASE(test_sample_without_values),
	KUNIT_CASE_PARAM(test_id_sample_at_page_end, rb_direction_gen_params),
	KUNIT_CASE(test_id_sample_after_poison),
	{}
};

static struct kunit_suite rb_field_test_suite = {
	.name = "perf_ring_buffer_fields",
	.init = rb_test_init,
	.exit = rb_field_test_exit,
	.test_cases = rb_field_test_cases,
};

kunit_test_suite(rb_field_test_suite);
