// SPDX-License-Identifier: GPL-2.0
/*
 * A dump of the user's stack ends where the address space does. The stack pointer
 * is user space's own affair, so the end may be any number of bytes above it, but a
 * record is a multiple of 8 bytes: the dump is cut to whole words.
 *
 * All of this is done as an ordinary user, who must be able to neither lose a sample
 * nor make the kernel warn by it. Kernels without the fix warn; see
 * perf_prepare_header().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define STACK		8192
/* Of a sample with a dump: the header, the dump's size, how much was there of it. */
#define FIXED		(sizeof(struct perf_event_header) + 2 * sizeof(__u64))

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Touches @page with the stack pointer at @sp, where there may be no stack at all. */
static void touch_with_stack_at(unsigned long sp, const unsigned char *page)
{
	sigset_t all, old;
	unsigned long saved;

	/* No handler would find a stack. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
#if defined(__x86_64__)
	asm volatile("mov %%rsp, %[saved]\n\t"
		     "mov %[sp], %%rsp\n\t"
		     "testb $1, (%[page])\n\t"
		     "mov %[saved], %%rsp"
		     : [saved] "=&r" (saved)
		     : [sp] "r" (sp), [page] "r" (page) : "memory", "cc");
#elif defined(__i386__)
	asm volatile("mov %%esp, %[saved]\n\t"
		     "mov %[sp], %%esp\n\t"
		     "testb $1, (%[page])\n\t"
		     "mov %[saved], %%esp"
		     : [saved] "=&r" (saved)
		     : [sp] "r" (sp), [page] "r" (page) : "memory", "cc");
#elif defined(__aarch64__)
	/* Only what is addressed by the stack pointer needs it aligned. */
	asm volatile("mov %[saved], sp\n\t"
		     "mov sp, %[sp]\n\t"
		     "ldrb wzr, [%[page]]\n\t"
		     "mov sp, %[saved]"
		     : [saved] "=&r" (saved)
		     : [sp] "r" (sp), [page] "r" (page) : "memory", "cc");
#else
	(void)sp;
	(void)page;
	(void)saved;
#endif
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Whether the address space has a page at @address, free or not. */
static bool page_may_be_at(unsigned long address, size_t page_size)
{
	void *page = mmap((void *)address, page_size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (page == MAP_FAILED)
		return errno == EEXIST;
	munmap(page, page_size);
	return true;
}

/* Where the address space ends: it depends on the processor, not on the kernel alone. */
static unsigned long address_space_end(size_t page_size)
{
	unsigned long is, beyond = -1UL & ~(page_size - 1);

	is = (unsigned long)&space & ~(page_size - 1);
	while (beyond - is > page_size) {
		unsigned long middle = (is + (beyond - is) / 2) & ~(page_size - 1);

		if (page_may_be_at(middle, page_size))
			is = middle;
		else
			beyond = middle;
	}
	return beyond;
}

FIXTURE(stack_top)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			event;
	unsigned long		sp;
	/* What is at the end of the address space is this test's own. */
	bool			ours;
};

/* How far below the end of the address space the stack pointer is. */
FIXTURE_VARIANT(stack_top)
{
	bool	backward;
	size_t	below;
	size_t	dump;
};

FIXTURE_VARIANT_ADD(stack_top, forward_1003)
{
	.backward = false,
	.below = 1003,
	.dump = 1000,
};

FIXTURE_VARIANT_ADD(stack_top, backward_1003)
{
	.backward = true,
	.below = 1003,
	.dump = 1000,
};

/* As it is for a task of 32 bits without randomisation. */
FIXTURE_VARIANT_ADD(stack_top, backward_1004)
{
	.backward = true,
	.below = 1004,
	.dump = 1000,
};

FIXTURE_VARIANT_ADD(stack_top, backward_1008)
{
	.backward = true,
	.below = 1008,
	.dump = 1008,
};

/* Less than a word is nothing. */
FIXTURE_VARIANT_ADD(stack_top, backward_7)
{
	.backward = true,
	.below = 7,
	.dump = 0,
};

FIXTURE_VARIANT_ADD(stack_top, backward_0)
{
	.backward = true,
	.below = 0,
	.dump = 0,
};

/* The last size at which the address space has a say, and the first without. */
FIXTURE_VARIANT_ADD(stack_top, backward_8191)
{
	.backward = true,
	.below = STACK - 1,
	.dump = STACK - 8,
};

FIXTURE_VARIANT_ADD(stack_top, backward_8193)
{
	.backward = true,
	.below = STACK + 1,
	.dump = STACK,
};

FIXTURE_SETUP(stack_top)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_STACK_USER);
	size_t page_size = sysconf(_SC_PAGESIZE);
	unsigned long end;
	void *top;

#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
	SKIP(return, "can't move the stack pointer on this architecture");
#endif
	if (become_nobody())
		SKIP(return, "can't become nobody: %s", strerror(errno));
	attr.sample_stack_user = STACK;
	attr.write_backward = variant->backward;
	self->event = open_event(_metadata, &attr, 0, -1);
	if (self->event < 0)
		return;
	if (map_event(_metadata, &self->ow, self->event, 16, false))
		return;
	ASSERT_EQ(0, map_fault_area(&self->area, 16));

	end = address_space_end(page_size);
	self->sp = end - variant->below;
	top = (void *)(end - page_size);
	self->ours = mmap(top, page_size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == top;
	if (self->ours)
		for (size_t i = 0; i < page_size; i++)
			((unsigned char *)top)[i] = i % 251;
}

FIXTURE_TEARDOWN(stack_top)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->event));
}

/* Each fault's sample is there, as long as it should be, with the stack in it. */
TEST_F(stack_top, dumps_whole_words)
{
	const struct perf_event_header *record = (const struct perf_event_header *)space;
	size_t size = variant->dump ? FIXED + variant->dump : FIXED - sizeof(__u64);
	struct perf_overwrite_walk walk;
	const int faults = 3;

	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_ENABLE, 0));
	for (int i = 0; i < faults; i++)
		touch_with_stack_at(self->sp, self->area.base + i * self->area.page_size);
	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, lost_count(self->event));

	begin_since(&walk, &self->ow, 0, variant->backward);
	for (int i = 0; i < faults; i++) {
		do {
			ASSERT_NE(NULL, perf_overwrite_next(&walk, space)) {
				TH_LOG("%d samples of %d", i, faults);
			}
			ASSERT_EQ(PERF_RECORD_SAMPLE, record->type);
			/* The system calls may have faulted as well, where they return to. */
		} while (record->size != size);
		ASSERT_EQ(variant->dump, space[1]);
		if (!self->ours || !variant->dump || variant->below > self->area.page_size)
			continue;
		ASSERT_EQ(variant->dump, space[size / sizeof(__u64) - 1]);
		ASSERT_EQ(0, memcmp((void *)self->sp, space + 2, variant->dump));
	}
}

TEST_HARNESS_MAIN
