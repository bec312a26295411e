// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF program that is attached to an event decides about each overflow, before
 * the default handler writes a sample in the event's direction.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define FAULTS	40

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Whether the program lets the fault of this page pass. */
static bool passes(unsigned int page)
{
	return page % 4 == 3;
}

static int load_program(unsigned int page_size)
{
	const struct bpf_insn program[] = {
		/* r0 = context->addr / page_size % 4 == 3 */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, addr) },
		{ .code = BPF_ALU64 | BPF_DIV | BPF_K, .dst_reg = BPF_REG_2,
		  .imm = page_size },
		{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 3 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_2, .off = 1,
		  .imm = 3 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

struct filter {
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			fd;
	int			program;
};

FIXTURE(overflow_filter)
{
	struct filter	test;
};

FIXTURE_VARIANT(overflow_filter)
{
	bool	backward;
};

FIXTURE_VARIANT_ADD(overflow_filter, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(overflow_filter, backward)
{
	.backward = true,
};

FIXTURE_SETUP(overflow_filter)
{
	struct filter *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);

	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		SKIP(return, "no BPF in this kernel");
	test->program = load_program(sysconf(_SC_PAGESIZE));
	if (test->program < 0 && errno == EPERM)
		SKIP(return, "no permission to load a BPF program");
	if (test->program < 0 && errno == EACCES && kernel_long() != sizeof(long))
		SKIP(return, "a program's context has other registers in this kernel");
	ASSERT_LE(0, test->program) {
		TH_LOG("BPF_PROG_LOAD: %s", strerror(errno));
	}

	attr.write_backward = variant->backward;
	test->fd = open_event(_metadata, &attr, 0, -1);
	if (test->fd < 0)
		return;
	ASSERT_EQ(0, map_fault_area(&test->area, FAULTS));
	/* The area's first page is one of those whose number divides by four. */
	while (fault_address(&test->area, 0) / test->area.page_size % 4)
		test->area.base += test->area.page_size;
	test->area.pages = FAULTS - 4;
	ASSERT_EQ(0, perf_overwrite_map(&test->ow, test->fd, 8, true));
}

FIXTURE_TEARDOWN(overflow_filter)
{
	struct filter *test = &self->test;

	ASSERT_EQ(0, perf_overwrite_unmap(&test->ow));
	ASSERT_EQ(0, close(test->fd));
	ASSERT_EQ(0, close(test->program));
}

/* Checks that there are samples of the faults that pass, or of all. */
static unsigned int check_samples(struct __test_metadata *_metadata,
				  struct filter *test,
				  bool backward, bool filtered)
{
	__u64 head = perf_overwrite_head(&test->ow), position = 0;
	unsigned int pages = test->area.pages, seen = 0;
	struct perf_event_header *record;
	struct perf_overwrite_walk walk;

	perf_overwrite_begin(&walk, &test->ow);
	for (unsigned int i = 0; i < pages; i++) {
		unsigned int page = backward ? pages - 1 - i : i;

		if (filtered && !passes(page))
			continue;
		record = backward ? perf_overwrite_next(&walk, space) :
				forward_next(&test->ow, &position, head, space);
		ASSERT_NE(NULL, record);
		ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
		ASSERT_EQ(fault_address(&test->area, page), space[1]);
		seen++;
	}
	record = backward ? perf_overwrite_next(&walk, space) :
			forward_next(&test->ow, &position, head, space);
	ASSERT_EQ(NULL, record);
	return seen;
}

static void make_faults(struct __test_metadata *_metadata,
			struct filter *test)
{
	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_ENABLE, 0));
	for (unsigned int page = 0; page < test->area.pages; page++)
		make_fault(&test->area, page);
	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_DISABLE, 0));
}

TEST_F(overflow_filter, without_program)
{
	struct filter *test = &self->test;

	make_faults(_metadata, test);
	ASSERT_EQ(test->area.pages,
		  check_samples(_metadata, test, variant->backward, false));
}

TEST_F(overflow_filter, with_program)
{
	struct filter *test = &self->test;

	ASSERT_EQ(0, ioctl(test->fd, PERF_EVENT_IOC_SET_BPF, test->program));
	make_faults(_metadata, test);
	ASSERT_EQ(test->area.pages / 4,
		  check_samples(_metadata, test, variant->backward, true));
	/* What was filtered isn't lost. */
	ASSERT_EQ(0, lost_count(test->fd));
}

TEST_HARNESS_MAIN
