// SPDX-License-Identifier: GPL-2.0
/*
 * The size of a record is 16 bits wide. A sample that adds up to more isn't
 * written: less would be reserved for it than it takes, and older records be
 * overwritten. It is counted lost, and a BPF program that made it is told so.
 *
 * The samples are those of bpf_perf_event_output(): the size of the data is all
 * up to the program, which takes it from a map. The program is run here, and what
 * the helper returns is what it returns.
 *
 * Others are as large by their call chain, once the sysctl perf_event_max_stack
 * allows for it.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <linux/bpf.h>

#include "../kselftest_harness.h"
#include "kept_file.h"
#include "overwrite_test.h"

/* The largest multiple of 8 that header.size can tell, and what is in front of the data. */
#define RECORD_MAX	(PERF_OVERWRITE_RECORD_MAX - 8)
#define DATA_OFFSET	(sizeof(struct perf_event_header) + sizeof(__u32))
#define DATA_MAX	(RECORD_MAX - DATA_OFFSET)
#define MAP_BYTES	(4 * PERF_OVERWRITE_RECORD_MAX)
#define BUFFER_BYTES	(512 * 1024)
#define SMALL		40
#define STACK		8192
#define TRIES		3

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

struct program {
	int	fd;
	size_t	size;
};

struct output {
	struct perf_overwrite	ow;
	int			event;
	/* The event, for the programs, and their data. */
	int			events_map, data_map;
	__u32			*data;
	struct program		small, large;
	unsigned char		*before;
};

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

/* A program that outputs the first @size bytes of the map of data. */
static int load_program(int events_map, int data_map, size_t size)
{
	const struct bpf_insn program[] = {
		/* r1 is the context; r2 = the map of the event, which is at index r3 = 0 */
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_PSEUDO_MAP_FD, .imm = events_map },
		{ },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		/* r4 = the data, r5 = its size */
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_4,
		  .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = data_map },
		{ },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_5, .imm = size },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_perf_event_output },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

/* Outputs the data with @number as its first word. Returns what the helper does. */
static int output(struct __test_metadata *_metadata, const struct output *test,
		  const struct program *program, __u32 number)
{
	union bpf_attr attr = { .test.prog_fd = program->fd };

	test->data[0] = number;
	ASSERT_EQ(0, bpf(BPF_PROG_TEST_RUN, &attr)) {
		TH_LOG("BPF_PROG_TEST_RUN: %s", strerror(errno));
	}
	return (int)attr.test.retval;
}

static int create_map(struct __test_metadata *_metadata, int type, unsigned int value_size,
		      unsigned int flags)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = sizeof(__u32),
		.value_size = value_size,
		.max_entries = 1,
		.map_flags = flags,
	};
	int fd = bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0 && errno == EPERM)
		SKIP(return -1, "no permission to create a BPF map");
	ASSERT_LE(0, fd) {
		TH_LOG("BPF_MAP_CREATE: %s", strerror(errno));
	}
	return fd;
}

static size_t record_size(size_t data_size)
{
	return (DATA_OFFSET + data_size + 7) / 8 * 8;
}

static void set_up(struct __test_metadata *_metadata, struct output *test,
		   bool backward, bool writable, size_t large, size_t stack, bool registers)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.write_backward = backward,
	};
	union bpf_attr update = { };
	__u32 key = 0;

	if (stack) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = stack;
		if (lacks_stack_dump(attr, 0))
			SKIP(return, "no dumps of the user's stack on this architecture");
	}
	if (registers) {
		attr.sample_type |= PERF_SAMPLE_REGS_INTR;
		attr.sample_regs_intr = 1;
	}
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		SKIP(return, "no BPF in this kernel");
	test->event = open_event(_metadata, &attr, 0, -1);
	if (test->event < 0)
		return;
	if (map_event(_metadata, &test->ow, test->event, BUFFER_BYTES / sysconf(_SC_PAGESIZE),
		      writable))
		return;

	test->events_map = create_map(_metadata, BPF_MAP_TYPE_PERF_EVENT_ARRAY,
				      sizeof(__u32), 0);
	if (test->events_map < 0)
		return;
	update.map_fd = test->events_map;
	update.key = (unsigned long)&key;
	update.value = (unsigned long)&test->event;
	ASSERT_EQ(0, bpf(BPF_MAP_UPDATE_ELEM, &update));

	test->data_map = create_map(_metadata, BPF_MAP_TYPE_ARRAY, MAP_BYTES, BPF_F_MMAPABLE);
	if (test->data_map < 0)
		return;
	test->data = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  test->data_map, 0);
	ASSERT_NE(MAP_FAILED, test->data);
	for (__u32 i = 0; i < MAP_BYTES / sizeof(*test->data); i++)
		test->data[i] = 0xda7a0000 + i;

	test->small = (struct program){ .size = SMALL };
	test->large = (struct program){ .size = large };
	test->small.fd = load_program(test->events_map, test->data_map, SMALL);
	if (test->small.fd < 0 && errno == EPERM)
		SKIP(return, "no permission to load a BPF program");
	ASSERT_LE(0, test->small.fd) {
		TH_LOG("BPF_PROG_LOAD: %s", strerror(errno));
	}
	test->large.fd = load_program(test->events_map, test->data_map, large);
	ASSERT_LE(0, test->large.fd) {
		TH_LOG("BPF_PROG_LOAD with %zu bytes: %s", large, strerror(errno));
	}
	test->before = malloc(test->ow.size);
	ASSERT_NE(NULL, test->before);
}

static void tear_down(struct __test_metadata *_metadata, struct output *test)
{
	free(test->before);
	ASSERT_EQ(0, close(test->large.fd));
	ASSERT_EQ(0, close(test->small.fd));
	ASSERT_EQ(0, munmap(test->data, MAP_BYTES));
	ASSERT_EQ(0, close(test->data_map));
	ASSERT_EQ(0, close(test->events_map));
	ASSERT_EQ(0, perf_overwrite_unmap(&test->ow));
	ASSERT_EQ(0, close(test->event));
}

/* Whether @record is that of @program's output number @number, to the last byte. */
static bool is_output(const struct perf_event_header *record, const struct output *test,
		      const struct program *program, __u32 number)
{
	const unsigned char *bytes = (const unsigned char *)record;
	__u32 raw_size;

	if (record->type != PERF_RECORD_SAMPLE || record->size != record_size(program->size))
		return false;
	memcpy(&raw_size, bytes + sizeof(*record), sizeof(raw_size));
	if (raw_size != record->size - DATA_OFFSET)
		return false;
	bytes += DATA_OFFSET;
	return !memcmp(bytes, &number, sizeof(number)) &&
	       !memcmp(bytes + sizeof(number), &test->data[1], program->size - sizeof(number));
}

FIXTURE(sample_too_large)
{
	struct output	test;
};

FIXTURE_VARIANT(sample_too_large)
{
	bool	backward;
	bool	writable;
	size_t	size;
};

/* One byte more than fits: the next multiple of 8 has a 0 in its lower 16 bits. */
FIXTURE_VARIANT_ADD(sample_too_large, forward_readonly_smallest)
{
	.backward = false,
	.writable = false,
	.size = DATA_MAX + 1,
};

FIXTURE_VARIANT_ADD(sample_too_large, backward_readonly_smallest)
{
	.backward = true,
	.writable = false,
	.size = DATA_MAX + 1,
};

FIXTURE_VARIANT_ADD(sample_too_large, forward_writable_smallest)
{
	.backward = false,
	.writable = true,
	.size = DATA_MAX + 1,
};

FIXTURE_VARIANT_ADD(sample_too_large, backward_writable_smallest)
{
	.backward = true,
	.writable = true,
	.size = DATA_MAX + 1,
};

/* Truncated to 16 bits it would be some kilobytes. */
FIXTURE_VARIANT_ADD(sample_too_large, forward_readonly_70000)
{
	.backward = false,
	.writable = false,
	.size = 70000,
};

FIXTURE_VARIANT_ADD(sample_too_large, backward_readonly_70000)
{
	.backward = true,
	.writable = false,
	.size = 70000,
};

FIXTURE_VARIANT_ADD(sample_too_large, forward_writable_70000)
{
	.backward = false,
	.writable = true,
	.size = 70000,
};

FIXTURE_VARIANT_ADD(sample_too_large, backward_writable_70000)
{
	.backward = true,
	.writable = true,
	.size = 70000,
};

/* Truncated to 16 bits it would be 0 again. */
FIXTURE_VARIANT_ADD(sample_too_large, forward_readonly_131060)
{
	.backward = false,
	.writable = false,
	.size = 131060,
};

FIXTURE_VARIANT_ADD(sample_too_large, backward_readonly_131060)
{
	.backward = true,
	.writable = false,
	.size = 131060,
};

FIXTURE_SETUP(sample_too_large)
{
	set_up(_metadata, &self->test, variant->backward, variant->writable, variant->size, 0,
	       false);
}

FIXTURE_TEARDOWN(sample_too_large)
{
	tear_down(_metadata, &self->test);
}

/* Outputs small ones, numbered from @first on. */
static void output_small(struct __test_metadata *_metadata, struct output *test,
			 __u32 first, __u32 count)
{
	for (__u32 number = first; number < first + count; number++)
		ASSERT_EQ(0, output(_metadata, test, &test->small, number));
}

/* Outputs a large one, which must leave all as it is, and be counted. */
static void check_refused(struct __test_metadata *_metadata, struct output *test)
{
	__u64 head = perf_overwrite_head(&test->ow), lost = lost_count(test->event);

	memcpy(test->before, test->ow.data, test->ow.size);
	ASSERT_EQ(-EMSGSIZE, output(_metadata, test, &test->large, -1));
	ASSERT_EQ(head, perf_overwrite_head(&test->ow));
	ASSERT_EQ(0, memcmp(test->before, test->ow.data, test->ow.size));
	ASSERT_EQ(lost + 1, lost_count(test->event));
}

/* Nothing is overwritten, and the next small one brings the number of large ones. */
TEST_F(sample_too_large, is_lost)
{
	const struct lost_record *loss = (const struct lost_record *)space;
	const __u32 rounds = 5, batch = 20;
	struct output *test = &self->test;
	struct perf_overwrite_walk walk;
	__u32 seen = 0, losses = 0;

	for (__u32 round = 0; round < rounds; round++) {
		output_small(_metadata, test, round * batch, batch);
		for (int i = 0; i < TRIES; i++)
			check_refused(_metadata, test);
	}
	output_small(_metadata, test, rounds * batch, batch);
	ASSERT_EQ(rounds * TRIES, lost_count(test->event));

	begin_since(&walk, &test->ow, 0, variant->backward);
	while (perf_overwrite_next(&walk, space)) {
		__u32 number = variant->backward ? (rounds + 1) * batch - 1 - seen : seen;

		if (loss->header.type == PERF_RECORD_LOST) {
			ASSERT_EQ(sizeof(*loss), loss->header.size);
			ASSERT_EQ(TRIES, loss->lost);
			losses++;
			continue;
		}
		ASSERT_TRUE(is_output(&loss->header, test, &test->small, number)) {
			TH_LOG("record %u, %zu bytes before the end", seen, walk.left);
		}
		seen++;
	}
	ASSERT_EQ(0, walk.left);
	ASSERT_EQ((rounds + 1) * batch, seen);
	ASSERT_EQ(rounds, losses);
}

/* Where all of the buffer is in use, and every byte too many would be seen. */
TEST_F(sample_too_large, full_buffer)
{
	const __u32 fit = BUFFER_BYTES / record_size(SMALL);
	struct output *test = &self->test;

	if (variant->writable) {
		output_small(_metadata, test, 0, fit - 1);
		check_refused(_metadata, test);
		return;
	}
	for (__u32 number = 0; number < 3 * fit; number += fit / 2) {
		output_small(_metadata, test, number, fit / 2);
		check_refused(_metadata, test);
	}
	ASSERT_LE(2 * BUFFER_BYTES, perf_overwrite_written(variant->backward ?
		  perf_overwrite_head(&test->ow) : 0, variant->backward ?
		  0 : perf_overwrite_head(&test->ow)));
}

FIXTURE(sample_fits)
{
	struct output	test;
};

FIXTURE_VARIANT(sample_fits)
{
	bool	backward;
	bool	writable;
	size_t	size;
};

/* What fits to the byte, and what is padded. */
FIXTURE_VARIANT_ADD(sample_fits, forward_readonly_largest)
{
	.backward = false,
	.writable = false,
	.size = DATA_MAX,
};

FIXTURE_VARIANT_ADD(sample_fits, backward_readonly_largest)
{
	.backward = true,
	.writable = false,
	.size = DATA_MAX,
};

FIXTURE_VARIANT_ADD(sample_fits, forward_writable_largest)
{
	.backward = false,
	.writable = true,
	.size = DATA_MAX,
};

FIXTURE_VARIANT_ADD(sample_fits, backward_writable_largest)
{
	.backward = true,
	.writable = true,
	.size = DATA_MAX,
};

FIXTURE_VARIANT_ADD(sample_fits, forward_readonly_padded)
{
	.backward = false,
	.writable = false,
	.size = DATA_MAX - 7,
};

FIXTURE_VARIANT_ADD(sample_fits, backward_readonly_padded)
{
	.backward = true,
	.writable = false,
	.size = DATA_MAX - 7,
};

FIXTURE_SETUP(sample_fits)
{
	set_up(_metadata, &self->test, variant->backward, variant->writable, variant->size, 0,
	       false);
}

FIXTURE_TEARDOWN(sample_fits)
{
	tear_down(_metadata, &self->test);
}

/* They are written as ever, beside small ones, and whole wherever they begin. */
TEST_F(sample_fits, is_written)
{
	const struct perf_event_header *record = (const struct perf_event_header *)space;
	struct output *test = &self->test;
	const __u32 rounds = 40;
	__u64 written = 0;

	for (__u32 round = 0; round < rounds; round++) {
		__u64 older = perf_overwrite_head(&test->ow);
		struct perf_overwrite_walk walk;

		ASSERT_EQ(0, output(_metadata, test, &test->small, 2 * round));
		ASSERT_EQ(0, output(_metadata, test, &test->large, 2 * round + 1));
		begin_since(&walk, &test->ow, older, variant->backward);
		written += walk.left;
		for (__u32 i = 0; i < 2; i++) {
			bool large = i != variant->backward;

			ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
			ASSERT_TRUE(is_output(record, test, large ? &test->large : &test->small,
					      2 * round + large));
		}
		ASSERT_EQ(0, walk.left);
		if (variant->writable)
			perf_overwrite_set_tail(&test->ow, perf_overwrite_head(&test->ow));
	}
	ASSERT_LT(4 * BUFFER_BYTES, written);
	ASSERT_EQ(0, lost_count(test->event));
}

FIXTURE(sample_stack)
{
	struct output	test;
};

/* A register, and in front of it which kind of registers it is of. */
#define REGISTERS	(2 * sizeof(__u64))

/*
 * What precedes the dump of the stack has @used bytes, what follows it @after: none,
 * or REGISTERS. The dump, STACK bytes if there is room for it, takes 8 bytes for its
 * size, and if that isn't 0 as many for how much of it was there to be dumped.
 */
FIXTURE_VARIANT(sample_stack)
{
	bool	backward;
	size_t	used;
	size_t	dump;
	size_t	after;
	bool	fits;
};

FIXTURE_VARIANT_ADD(sample_stack, forward_whole)
{
	.backward = false,
	.used = 1024,
	.dump = STACK,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_whole)
{
	.backward = true,
	.used = 1024,
	.dump = STACK,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, forward_cut)
{
	.backward = false,
	.used = 60000,
	.dump = RECORD_MAX - 60000 - 16,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_cut)
{
	.backward = true,
	.used = 60000,
	.dump = RECORD_MAX - 60000 - 16,
	.fits = true,
};

/* Room for one word. */
FIXTURE_VARIANT_ADD(sample_stack, backward_word)
{
	.backward = true,
	.used = RECORD_MAX - 24,
	.dump = 8,
	.fits = true,
};

/* Room for the two sizes, and for one. */
FIXTURE_VARIANT_ADD(sample_stack, backward_none)
{
	.backward = true,
	.used = RECORD_MAX - 16,
	.dump = 0,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, forward_left_out)
{
	.backward = false,
	.used = RECORD_MAX - 8,
	.dump = 0,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_left_out)
{
	.backward = true,
	.used = RECORD_MAX - 8,
	.dump = 0,
	.fits = true,
};

/* What follows the dump has its room, whatever is left for that. */
FIXTURE_VARIANT_ADD(sample_stack, forward_whole_and_registers)
{
	.backward = false,
	.used = 1024,
	.dump = STACK,
	.after = REGISTERS,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, forward_cut_for_registers)
{
	.backward = false,
	.used = 60000,
	.dump = RECORD_MAX - 60000 - 16 - REGISTERS,
	.after = REGISTERS,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_cut_for_registers)
{
	.backward = true,
	.used = 60000,
	.dump = RECORD_MAX - 60000 - 16 - REGISTERS,
	.after = REGISTERS,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_left_out_for_registers)
{
	.backward = true,
	.used = RECORD_MAX - 8 - REGISTERS,
	.dump = 0,
	.after = REGISTERS,
	.fits = true,
};

/* Not even the size of the dump, 0, has a place. */
FIXTURE_VARIANT_ADD(sample_stack, forward_too_large)
{
	.backward = false,
	.used = RECORD_MAX,
	.dump = 0,
	.fits = false,
};

FIXTURE_VARIANT_ADD(sample_stack, backward_too_large)
{
	.backward = true,
	.used = RECORD_MAX,
	.dump = 0,
	.fits = false,
};

FIXTURE_SETUP(sample_stack)
{
	set_up(_metadata, &self->test, variant->backward, false,
	       variant->used - DATA_OFFSET, STACK, variant->after);
}

FIXTURE_TEARDOWN(sample_stack)
{
	tear_down(_metadata, &self->test);
}

/* The dump takes what is left of the 16 bits, if need be nothing at all. */
TEST_F(sample_stack, takes_the_rest)
{
	const struct perf_event_header *record = (const struct perf_event_header *)space;
	size_t size = variant->used + sizeof(__u64);
	struct output *test = &self->test;
	__u64 stack_size;
	struct perf_overwrite_walk walk;
	size_t end;

	if (variant->dump)
		size += variant->dump + sizeof(__u64);
	end = size / sizeof(*space);
	size += variant->after;
	for (int i = 0; i < TRIES; i++) {
		__u64 older = perf_overwrite_head(&test->ow);

		memcpy(test->before, test->ow.data, test->ow.size);
		ASSERT_EQ(variant->fits ? 0 : -EMSGSIZE,
			  output(_metadata, test, &test->large, i));
		if (!variant->fits) {
			ASSERT_EQ(0, perf_overwrite_head(&test->ow));
			ASSERT_EQ(0, memcmp(test->before, test->ow.data, test->ow.size));
			ASSERT_EQ(i + 1, lost_count(test->event));
			continue;
		}
		begin_since(&walk, &test->ow, older, variant->backward);
		ASSERT_EQ(size, walk.left);
		ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
		ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
		ASSERT_EQ(size, record->size);
		stack_size = space[variant->used / sizeof(*space)];
		ASSERT_EQ(variant->dump, stack_size);
		/* As much of it as was there is told at the end. */
		ASSERT_TRUE(!variant->dump ||
			    space[end - 1] <= variant->dump);
		ASSERT_TRUE(!variant->after || space[end] == PERF_SAMPLE_REGS_ABI_32 ||
			    space[end] == PERF_SAMPLE_REGS_ABI_64);
	}
	ASSERT_EQ(variant->fits ? 0 : TRIES, lost_count(test->event));

	/* None of them is on another's place. */
	begin_since(&walk, &test->ow, 0, variant->backward);
	for (int i = 0; variant->fits && i < TRIES; i++) {
		ASSERT_NE(NULL, perf_overwrite_next(&walk, space));
		ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
		ASSERT_EQ(size, record->size);
	}
	ASSERT_EQ(0, walk.left);
}

#define MAX_STACK_FILE	"/proc/sys/kernel/perf_event_max_stack"
#define MAX_STACK	10000
/* What the sample has beside its entries: the header, their number, the context. */
#define CHAIN_FIXED	(sizeof(struct perf_event_header) + 2 * sizeof(__u64))
#define CHAIN_MAX	((RECORD_MAX - CHAIN_FIXED) / sizeof(__u64))

struct chain_record {
	struct perf_event_header	header;
	__u64				nr;
	__u64				ips[];
};

/* Where in fault_below() all but the last of its calls return to. */
static __u64 returns_to;

/*
 * Makes fault number @seq, @depth calls below. Who asks for its frame has one that
 * call chains find, however this is compiled. The calls are neither tail calls nor,
 * as the compiler doesn't know what they are of, inlined.
 */
static void fault_below(const struct fault_area *area, unsigned int seq,
			unsigned int depth)
{
	void (*below)(const struct fault_area *area, unsigned int seq,
		      unsigned int depth) = fault_below;

	if (depth) {
		asm volatile("" : "+r" (below));
		below(area, seq, depth - 1);
	} else {
		returns_to = (unsigned long)__builtin_return_address(0);
		make_fault(area, seq);
	}
	asm volatile("" : : "r" (__builtin_frame_address(0)) : "memory");
}

FIXTURE(sample_chain)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			names, chains;
	struct kept_file	max_stack;
	unsigned int		fault;
	unsigned char		*before;
};

FIXTURE_VARIANT(sample_chain)
{
	bool		backward;
	unsigned int	entries;
	bool		fits;
};

FIXTURE_VARIANT_ADD(sample_chain, forward_largest)
{
	.backward = false,
	.entries = CHAIN_MAX,
	.fits = true,
};

FIXTURE_VARIANT_ADD(sample_chain, backward_largest)
{
	.backward = true,
	.entries = CHAIN_MAX,
	.fits = true,
};

/* Truncated to 16 bits its size would be 0. */
FIXTURE_VARIANT_ADD(sample_chain, forward_too_large)
{
	.backward = false,
	.entries = CHAIN_MAX + 1,
	.fits = false,
};

FIXTURE_VARIANT_ADD(sample_chain, backward_too_large)
{
	.backward = true,
	.entries = CHAIN_MAX + 1,
	.fits = false,
};

FIXTURE_VARIANT_ADD(sample_chain, forward_too_large_9000)
{
	.backward = false,
	.entries = 9000,
	.fits = false,
};

FIXTURE_VARIANT_ADD(sample_chain, backward_too_large_9000)
{
	.backward = true,
	.entries = 9000,
	.fits = false,
};

FIXTURE_SETUP(sample_chain)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

#if !defined(__x86_64__) && !defined(__aarch64__)
	SKIP(return, "may have no call chains by frame pointers on this architecture");
#endif
	if (keep_file(&self->max_stack, MAX_STACK_FILE))
		SKIP(return, MAX_STACK_FILE ": %s", strerror(errno));
	self->names = open_event(_metadata, &attr, 0, -1);
	if (self->names < 0)
		return;
	if (map_event(_metadata, &self->ow, self->names, BUFFER_BYTES / sysconf(_SC_PAGESIZE),
		      false))
		return;
	self->before = malloc(self->ow.size);
	ASSERT_NE(NULL, self->before);
	ASSERT_EQ(0, map_fault_area(&self->area, 4096));
	/* Touch more of the stack than will be used, so that only the area faults. */
	self->fault = 1;
	fault_below(&self->area, self->fault, 2 * MAX_STACK);

	if (write_number(MAX_STACK_FILE, MAX_STACK)) {
		if (errno == EBUSY)
			SKIP(return, "somebody else samples call chains");
		ASSERT_EQ(EACCES, errno);
		SKIP(return, "no permission to have longer call chains");
	}
	attr = FAULT_EVENT(PERF_SAMPLE_CALLCHAIN);
	attr.exclude_callchain_kernel = 1;
	attr.sample_max_stack = variant->entries;
	attr.write_backward = variant->backward;
	self->chains = perf_overwrite_open(&attr, 0, -1, -1);
	ASSERT_LE(0, self->chains);
	ASSERT_EQ(0, ioctl(self->chains, PERF_EVENT_IOC_SET_OUTPUT, self->names));
}

FIXTURE_TEARDOWN(sample_chain)
{
	/* It can't be changed as long as there is an event with call chains. */
	EXPECT_EQ(0, close(self->chains));
	EXPECT_EQ(0, restore_file(&self->max_stack));
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->names));
	free(self->before);
}

/* Whether this is a fault's sample with all @entries that it may have, to the last. */
static bool is_chain(const struct perf_event_header *header, unsigned int entries)
{
	const struct chain_record *record = (const struct chain_record *)header;

	if (header->type != PERF_RECORD_SAMPLE ||
	    header->size != CHAIN_FIXED + entries * sizeof(__u64) ||
	    record->nr != entries + 1 || record->ips[0] != (__u64)PERF_CONTEXT_USER)
		return false;
	/* Behind the instruction that faults, and its caller if that is a function. */
	for (unsigned int i = 3; i < record->nr; i++)
		if (record->ips[i] != returns_to)
			return false;
	return true;
}

/* A chain that fits is written in full, another is lost; older records stay. */
TEST_F(sample_chain, whole_or_lost)
{
	const struct perf_event_header *record = (const struct perf_event_header *)space;
	const struct lost_record *loss = (const struct lost_record *)space;
	unsigned int names = 0, chains = 0, losses = 0;
	const unsigned int rounds = 3, batch = 20;
	struct perf_overwrite_walk walk;

	for (unsigned int round = 0; round < rounds; round++) {
		__u64 head;

		write_names(round * batch, batch, 0);
		head = perf_overwrite_head(&self->ow);
		memcpy(self->before, self->ow.data, self->ow.size);
		ASSERT_EQ(0, ioctl(self->chains, PERF_EVENT_IOC_ENABLE, 0));
		fault_below(&self->area, ++self->fault, MAX_STACK);
		ASSERT_EQ(0, ioctl(self->chains, PERF_EVENT_IOC_DISABLE, 0));
		if (variant->fits)
			continue;
		ASSERT_EQ(head, perf_overwrite_head(&self->ow));
		ASSERT_EQ(0, memcmp(self->before, self->ow.data, self->ow.size));
		ASSERT_EQ(round + 1, lost_count(self->chains));
	}
	write_names(rounds * batch, batch, 0);

	begin_since(&walk, &self->ow, 0, variant->backward);
	while (perf_overwrite_next(&walk, space)) {
		if (record->type == PERF_RECORD_SAMPLE) {
			ASSERT_TRUE(is_chain(record, variant->entries));
			ASSERT_EQ(0, names % batch);
			chains++;
		} else if (record->type == PERF_RECORD_LOST) {
			ASSERT_EQ(1, loss->lost);
			losses++;
		} else {
			ASSERT_TRUE(is_name(record, variant->backward ?
					    (rounds + 1) * batch - 1 - names : names, 0));
			names++;
		}
	}
	ASSERT_EQ(0, walk.left);
	ASSERT_EQ((rounds + 1) * batch, names);
	ASSERT_EQ(variant->fits ? rounds : 0, chains);
	ASSERT_EQ(variant->fits ? 0 : rounds, losses);
	ASSERT_EQ(losses, lost_count(self->chains));
}

TEST_HARNESS_MAIN
