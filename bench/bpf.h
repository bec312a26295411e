/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much BPF as the benchmarks need: maps, and programs of a few instructions that run at each
 * system call, without a library.
 */
#ifndef BENCH_BPF_H
#define BENCH_BPF_H

#include "bench.h"
#include <linux/bpf.h>

/* Newer than the headers here may be. */
#define RINGBUF_OVERWRITE	(1u << 19)

static inline int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

/* Returns -1 with errno set: whether the kernel has this map is for the caller to judge. */
static inline int bpf_map(enum bpf_map_type type, unsigned int key, unsigned int value,
			  unsigned int entries, unsigned int flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	return bpf(BPF_MAP_CREATE, &attr);
}

static inline void bpf_map_set(int map, unsigned int key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)value;
	if (bpf(BPF_MAP_UPDATE_ELEM, &attr))
		die("can't update a BPF map: %s", strerror(errno));
}

/* The instructions that are used, by their names in the kernel's samples. */
#define INSN(_code, _dst, _src, _off, _imm) ((struct bpf_insn) {	\
	.code = (_code), .dst_reg = (_dst), .src_reg = (_src), .off = (_off), .imm = (_imm) })
#define MOV_REG(_dst, _src)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, _dst, _src, 0, 0)
#define MOV_IMM(_dst, _imm)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, _dst, 0, 0, _imm)
#define MOV32_IMM(_dst, _imm)	INSN(BPF_ALU | BPF_MOV | BPF_K, _dst, 0, 0, _imm)
#define CALL(_function)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, _function)
#define EXIT()			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
/* Two slots each: a map, and the address of the first byte of an array's only value. */
#define LOAD_MAP(_dst, _fd)	\
	INSN(BPF_LD | BPF_DW | BPF_IMM, _dst, BPF_PSEUDO_MAP_FD, 0, _fd),	\
	INSN(0, 0, 0, 0, 0)
#define LOAD_VALUE(_dst, _fd)	\
	INSN(BPF_LD | BPF_DW | BPF_IMM, _dst, BPF_PSEUDO_MAP_VALUE, 0, _fd),	\
	INSN(0, 0, 0, 0, 0)

/* Load a program and run it at each system call of anybody until its returned fd is closed. */
static inline int bpf_at_sys_enter(const struct bpf_insn *insns, unsigned int count)
{
	static char log[4096];
	union bpf_attr attr;
	int prog, link;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = count;
	attr.license = (uintptr_t)"GPL";
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	prog = bpf(BPF_PROG_LOAD, &attr);
	if (prog < 0)
		die("can't load a BPF program: %s: %s", strerror(errno), log);

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)"sys_enter";
	attr.raw_tracepoint.prog_fd = prog;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	if (link < 0)
		die("can't attach a BPF program: %s", strerror(errno));
	close(prog);
	return link;
}

#define AT_SYS_ENTER(...)	\
	bpf_at_sys_enter((struct bpf_insn[]) { __VA_ARGS__ },	\
			 sizeof((struct bpf_insn[]) { __VA_ARGS__ }) / sizeof(struct bpf_insn))

/* Give the first bytes of an array's value to bpf_perf_event_output(), to this CPU's buffer. */
static inline int bpf_output_at_sys_enter(int events, int array, unsigned int size)
{
	return AT_SYS_ENTER(LOAD_MAP(BPF_REG_2, events),
			    MOV32_IMM(BPF_REG_3, (int)BPF_F_CURRENT_CPU),
			    LOAD_VALUE(BPF_REG_4, array),
			    MOV_IMM(BPF_REG_5, size),
			    CALL(BPF_FUNC_perf_event_output),
			    MOV_IMM(BPF_REG_0, 0),
			    EXIT());
}

/* An event for it, with a buffer, and the map that takes it there; -1 if the kernel can't. */
static inline int open_bpf_output(struct buffer *b, size_t size, int backward, int writable)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.write_backward = backward,
	};
	int map;

	if (open_buffer(b, &attr, size, writable))
		return -1;
	map = bpf_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0);
	if (map < 0)
		die("no perf event array: %s", strerror(errno));
	bpf_map_set(map, 0, &b->fd);
	return map;
}

#endif /* BENCH_BPF_H */
