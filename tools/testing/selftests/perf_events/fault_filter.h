/* SPDX-License-Identifier: GPL-2.0 */
/* A BPF program that drops the samples of three page faults in four. */
#ifndef _SELFTESTS_FAULT_FILTER_H
#define _SELFTESTS_FAULT_FILTER_H

#include <errno.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include "overwrite_test.h"

/* Whether the program lets the fault of this page of the area pass. */
static inline bool passes_filter(unsigned int page)
{
	return page % 4 == 3;
}

static inline int load_fault_filter(unsigned int page_size)
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

/* The same as a test's set-up. Returns a descriptor, or -1 and the test skipped. */
static inline int open_fault_filter(struct __test_metadata *_metadata)
{
	int program, error;

	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		SKIP(return -1, "no BPF in this kernel");
	program = load_fault_filter(sysconf(_SC_PAGESIZE));
	error = errno;
	if (program < 0 && error == EPERM)
		SKIP(return -1, "no permission to load a BPF program");
	if (program < 0 && error == EACCES && kernel_long() != sizeof(long))
		SKIP(return -1, "a program's context has other registers in this kernel");
	ASSERT_LE(0, program) {
		TH_LOG("BPF_PROG_LOAD: %s", strerror(error));
	}
	return program;
}

/* Returns 0, or -1 with errno set: an area of @pages, the first of which divides by four. */
static inline int map_filtered_area(struct fault_area *area, unsigned int pages)
{
	if (map_fault_area(area, pages + 3))
		return -1;
	while (fault_address(area, 0) / area->page_size % 4)
		area->base += area->page_size;
	area->pages = pages;
	return 0;
}

#endif /* _SELFTESTS_FAULT_FILTER_H */
