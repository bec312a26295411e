// SPDX-License-Identifier: GPL-2.0
/*
 * Every field that a sample can have without a PMU, each by itself and all
 * together, of each kind of event that there is without one. A sample ends where
 * its fields end, and a field that the event has no value for is zero or says so: it
 * has no bytes of the kernel's stack.
 *
 * What remains is for a kernel with KMSAN to find: whatever is in these samples
 * was written by somebody.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <linux/hw_breakpoint.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define REGS		0xff
#define STACK		64
#define SAMPLES		20

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
static volatile unsigned long watched;

enum kind { FAULT, CLOCK, SWITCH, SYSCALL, BREAKPOINT };

/* In their order in a sample; some architectures don't have some. */
static const struct {
	__u64	bit;
	bool	optional;
} fields[] = {
	{ PERF_SAMPLE_IDENTIFIER, false },
	{ PERF_SAMPLE_IP, false },
	{ PERF_SAMPLE_TID, false },
	{ PERF_SAMPLE_TIME, false },
	{ PERF_SAMPLE_ADDR, false },
	{ PERF_SAMPLE_ID, false },
	{ PERF_SAMPLE_STREAM_ID, false },
	{ PERF_SAMPLE_CPU, false },
	{ PERF_SAMPLE_PERIOD, false },
	{ PERF_SAMPLE_READ, false },
	{ PERF_SAMPLE_CALLCHAIN, false },
	{ PERF_SAMPLE_RAW, false },
	{ PERF_SAMPLE_REGS_USER, true },
	{ PERF_SAMPLE_STACK_USER, true },
	{ PERF_SAMPLE_WEIGHT, false },
	{ PERF_SAMPLE_DATA_SRC, false },
	{ PERF_SAMPLE_TRANSACTION, false },
	{ PERF_SAMPLE_REGS_INTR, true },
	{ PERF_SAMPLE_PHYS_ADDR, false },
	{ PERF_SAMPLE_CGROUP, true },
	{ PERF_SAMPLE_DATA_PAGE_SIZE, true },
	{ PERF_SAMPLE_CODE_PAGE_SIZE, true },
};

FIXTURE(sample_fields)
{
	struct perf_event_attr	attr;
	struct fault_area	area;
	/* All that can be asked for here. */
	__u64			all;
};

FIXTURE_VARIANT(sample_fields)
{
	enum kind	kind;
	bool		backward;
};

FIXTURE_VARIANT_ADD(sample_fields, forward_fault)
{
	.kind = FAULT,
	.backward = false,
};

FIXTURE_VARIANT_ADD(sample_fields, forward_clock)
{
	.kind = CLOCK,
	.backward = false,
};

FIXTURE_VARIANT_ADD(sample_fields, forward_switch)
{
	.kind = SWITCH,
	.backward = false,
};

FIXTURE_VARIANT_ADD(sample_fields, forward_syscall)
{
	.kind = SYSCALL,
	.backward = false,
};

FIXTURE_VARIANT_ADD(sample_fields, forward_breakpoint)
{
	.kind = BREAKPOINT,
	.backward = false,
};

FIXTURE_VARIANT_ADD(sample_fields, backward_fault)
{
	.kind = FAULT,
	.backward = true,
};

FIXTURE_VARIANT_ADD(sample_fields, backward_syscall)
{
	.kind = SYSCALL,
	.backward = true,
};

/* What these fields need besides their bits. */
static struct perf_event_attr with_fields(struct perf_event_attr attr, __u64 bits)
{
	attr.sample_type = bits;
	attr.sample_regs_user = bits & PERF_SAMPLE_REGS_USER ? REGS : 0;
	attr.sample_regs_intr = bits & PERF_SAMPLE_REGS_INTR ? REGS : 0;
	attr.sample_stack_user = bits & PERF_SAMPLE_STACK_USER ? STACK : 0;
	return attr;
}

FIXTURE_SETUP(sample_fields)
{
	struct perf_event_attr *attr = &self->attr, one;
	int fd;

	*attr = (struct perf_event_attr)FAULT_EVENT(0);
	attr->write_backward = variant->backward;
	attr->exclude_kernel = 0;
	switch (variant->kind) {
	case FAULT:
		break;
	case CLOCK:
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = 1000000;
		break;
	case SWITCH:
		attr->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
		break;
	case SYSCALL:
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = tracepoint_id("raw_syscalls", "sys_enter");
		if (attr->config == (__u64)-1)
			SKIP(return, "no tracepoint raw_syscalls:sys_enter to be seen");
		break;
	case BREAKPOINT:
		attr->type = PERF_TYPE_BREAKPOINT;
		attr->config = 0;
		attr->bp_type = HW_BREAKPOINT_W;
		attr->bp_addr = (unsigned long)&watched;
		attr->bp_len = sizeof(watched);
		fd = perf_overwrite_open(attr, 0, -1, -1);
		if (fd < 0 && errno != EINVAL && errno != EACCES)
			SKIP(return, "no breakpoint to be had");
		if (fd >= 0)
			close(fd);
		break;
	}
	ASSERT_EQ(0, map_fault_area(&self->area, SAMPLES));

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		one = with_fields(*attr, fields[i].bit);
		fd = fields[i].optional ? perf_overwrite_open(&one, 0, -1, -1) :
					  open_event(_metadata, &one, 0, -1);
		if (fd < 0 && !fields[i].optional)
			return;
		if (fd < 0)
			continue;
		self->all |= fields[i].bit;
		ASSERT_EQ(0, close(fd));
	}
}

FIXTURE_TEARDOWN(sample_fields)
{
}

/* Does what the event is about, until the buffer shows that it was seen. */
static void make_sample(enum kind kind, const struct fault_area *area,
			const struct perf_overwrite *ow, unsigned int seq)
{
	unsigned char *page = area->base + seq % area->pages * area->page_size;
	__u64 head = perf_overwrite_head(ow);
	unsigned int us = 1;

	do {
		switch (kind) {
		case FAULT:
			madvise(page, area->page_size, MADV_DONTNEED);
			*(volatile unsigned char *)page;
			break;
		case CLOCK:
			break;
		case SWITCH:
			/* Where going to sleep takes longer than the sleep there is no switch. */
			usleep(us);
			us = us < 10000 ? 2 * us : us;
			break;
		case SYSCALL:
			syscall(__NR_getppid);
			break;
		case BREAKPOINT:
			watched = seq;
			break;
		}
	} while (perf_overwrite_head(ow) == head);
}

static __u64 take(const __u64 **at)
{
	return *(*at)++;
}

static void skip_regs(const __u64 **at)
{
	if (take(at) != PERF_SAMPLE_REGS_ABI_NONE)
		*at += __builtin_popcount(REGS);
}

/* Whether the sample consists of these fields, with nothing where nothing is known. */
static void check_sample(struct __test_metadata *_metadata, const struct perf_event_header *record,
			 __u64 bits, enum kind kind)
{
	bool has_addr = kind == FAULT || kind == BREAKPOINT;
	const __u64 *at = (const __u64 *)(record + 1);
	const __u64 *end = (const __u64 *)((const char *)record + record->size);

	ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
	at += __builtin_popcountll(bits & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
					   PERF_SAMPLE_TID | PERF_SAMPLE_TIME));
	if (bits & PERF_SAMPLE_ADDR) {
		__u64 addr = take(&at);

		ASSERT_EQ(has_addr, addr != 0);
		ASSERT_TRUE(kind != BREAKPOINT || addr == (unsigned long)&watched);
	}
	at += __builtin_popcountll(bits & (PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	/* Two words of 32 bits, the second one for later use. */
	if (bits & PERF_SAMPLE_CPU) {
		ASSERT_EQ(0, ((const __u32 *)at)[1]);
		at++;
	}
	at += !!(bits & PERF_SAMPLE_PERIOD);
	/* The value, the event's id and the lost ones. */
	if (bits & PERF_SAMPLE_READ)
		at += 3;
	if (bits & PERF_SAMPLE_CALLCHAIN) {
		__u64 nr = take(&at);

		ASSERT_GE(end - at, nr);
		at += nr;
	}
	if (bits & PERF_SAMPLE_RAW) {
		__u32 size = *(const __u32 *)at;

		ASSERT_EQ(0, (sizeof(size) + size) % sizeof(*at));
		at += (sizeof(size) + size) / sizeof(*at);
	}
	if (bits & PERF_SAMPLE_REGS_USER)
		skip_regs(&at);
	if (bits & PERF_SAMPLE_STACK_USER) {
		__u64 size = take(&at);

		ASSERT_GE(STACK, size);
		if (size) {
			at += size / sizeof(*at);
			ASSERT_GE(size, take(&at));
		}
	}
	if (bits & PERF_SAMPLE_WEIGHT)
		ASSERT_EQ(0, take(&at));
	if (bits & PERF_SAMPLE_DATA_SRC) {
		union perf_mem_data_src src = { .val = take(&at) };

		ASSERT_TRUE(src.mem_op == PERF_MEM_OP_NA && src.mem_lvl == PERF_MEM_LVL_NA &&
			    src.mem_dtlb == PERF_MEM_TLB_NA);
	}
	if (bits & PERF_SAMPLE_TRANSACTION)
		ASSERT_EQ(0, take(&at));
	if (bits & PERF_SAMPLE_REGS_INTR)
		skip_regs(&at);
	/* What is found out from the address, asked for or not. */
	if (bits & PERF_SAMPLE_PHYS_ADDR)
		ASSERT_TRUE(!take(&at) || has_addr);
	at += !!(bits & PERF_SAMPLE_CGROUP);
	if (bits & PERF_SAMPLE_DATA_PAGE_SIZE)
		ASSERT_TRUE(!take(&at) || has_addr);
	at += !!(bits & PERF_SAMPLE_CODE_PAGE_SIZE);
	ASSERT_EQ(end, at) {
		TH_LOG("a sample of %d bytes has %td more than its fields", record->size,
		       ((char *)end - (char *)at));
	}
}

/* Some samples of these fields. */
static void try_fields(struct __test_metadata *_metadata, FIXTURE_DATA(sample_fields) *self,
		       const FIXTURE_VARIANT(sample_fields) *variant, __u64 bits)
{
	struct perf_event_attr attr = with_fields(self->attr, bits);
	struct perf_overwrite_walk walk;
	struct perf_event_header *record;
	struct perf_overwrite ow;
	unsigned int count = 0;
	int fd;

	fd = open_event(_metadata, &attr, 0, -1);
	if (fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 16, false));

	for (unsigned int seq = 0; seq < SAMPLES; seq++) {
		__u64 head = perf_overwrite_head(&ow);

		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		make_sample(variant->kind, &self->area, &ow, seq);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));

		begin_since(&walk, &ow, head, variant->backward);
		while ((record = perf_overwrite_next(&walk, space)) != NULL) {
			if (is_of_throttling(record))
				continue;
			check_sample(_metadata, record, bits, variant->kind);
			count++;
		}
		ASSERT_EQ(0, walk.left);
	}
	ASSERT_LE(SAMPLES, count);
	ASSERT_EQ(0, lost_count(fd));
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
}

TEST_F(sample_fields, each_alone)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (self->all & fields[i].bit)
			try_fields(_metadata, self, variant, fields[i].bit);
	}
}

/* What is found out from a field that isn't asked for. */
TEST_F(sample_fields, each_left_out)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (self->all & fields[i].bit)
			try_fields(_metadata, self, variant, self->all & ~fields[i].bit);
	}
}

TEST_F(sample_fields, together)
{
	try_fields(_metadata, self, variant, self->all);
}

TEST_HARNESS_MAIN
