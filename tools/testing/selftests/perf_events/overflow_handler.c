// SPDX-License-Identifier: GPL-2.0
/*
 * The default overflow handler is chosen by the direction when an event is made
 * and must be a default one to all who ask: architectures step over a breakpoint
 * only for those. So breakpoints and watchpoints deliver every sample, in both
 * directions, with a signal for each as well, and an inherited event has its
 * parent's handler. With another handler, as ptrace's, they don't step. On arm no
 * event of a CPU may have the default one.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#ifdef __aarch64__
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <asm/ptrace.h>
#endif
#include <linux/hw_breakpoint.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define HITS	20
#define STACK_BYTES	512
#define MARK	0x5eed5eed00000000ULL

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Written by one store, also where a __u64 takes two. */
static unsigned long watched;

/* The number of the hit is on the stack, next to a word that nothing else has. */
static void hit_me(const __u64 *mark)
{
	asm volatile("" : : "r" (mark) : "memory");
}

enum source {
	EXECUTE,
	WATCH,
	FAULT,
};

FIXTURE(overflow_handler)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			fd;
};

FIXTURE_VARIANT(overflow_handler)
{
	bool		backward;
	enum source	source;
};

FIXTURE_VARIANT_ADD(overflow_handler, forward_execute)
{
	.backward = false,
	.source = EXECUTE,
};

FIXTURE_VARIANT_ADD(overflow_handler, forward_watch)
{
	.backward = false,
	.source = WATCH,
};

FIXTURE_VARIANT_ADD(overflow_handler, forward_fault)
{
	.backward = false,
	.source = FAULT,
};

FIXTURE_VARIANT_ADD(overflow_handler, backward_execute)
{
	.backward = true,
	.source = EXECUTE,
};

FIXTURE_VARIANT_ADD(overflow_handler, backward_watch)
{
	.backward = true,
	.source = WATCH,
};

FIXTURE_VARIANT_ADD(overflow_handler, backward_fault)
{
	.backward = true,
	.source = FAULT,
};

static struct perf_event_attr sampling_attr(enum source source, bool backward)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_ADDR |
						  PERF_SAMPLE_STACK_USER);

	attr.sample_stack_user = STACK_BYTES;
	attr.write_backward = backward;
	attr.wakeup_events = 1;
	if (source == FAULT)
		return attr;

	attr.type = PERF_TYPE_BREAKPOINT;
	attr.config = 0;
	if (source == EXECUTE) {
		attr.bp_type = HW_BREAKPOINT_X;
		attr.bp_addr = (unsigned long)hit_me;
		attr.bp_len = kernel_long();
	} else {
		attr.bp_type = HW_BREAKPOINT_W;
		attr.bp_addr = (unsigned long)&watched;
		attr.bp_len = sizeof(watched);
	}
	return attr;
}

/* Makes hit number @seq of any source. */
static void hit(enum source source, const struct fault_area *area, unsigned int seq)
{
	void (*call)(const __u64 *mark) = hit_me;
	__u64 mark[2] = { MARK, seq };

	/* What it calls isn't known to the compiler, hence not inlined. */
	asm volatile("" : "+r" (call) : "r" (mark) : "memory");
	if (source == EXECUTE)
		call(mark);
	else if (source == WATCH)
		watched = seq;
	else
		make_fault(area, seq);
	/* Else a later stack may have it in a hole, in front of its own. */
	mark[0] = 0;
	asm volatile("" : : "r" (mark) : "memory");
}

struct sample {
	struct perf_event_header	header;
	__u32				pid, tid;
	__u64				addr;
	__u64				stack_size;
	__u64				stack[STACK_BYTES / sizeof(__u64)];
};

/* The number of the hit that the sample was made by, or -1. */
static unsigned int sample_seq(const struct sample *sample)
{
	__u64 words[2];

	/* A stack of 32 bits needn't begin where a __u64 does. */
	for (size_t at = 0; at + sizeof(words) <= sizeof(sample->stack); at += sizeof(__u32)) {
		memcpy(words, (const char *)sample->stack + at, sizeof(words));
		if (words[0] == MARK)
			return words[1];
	}
	return -1;
}

static __u64 hit_addr(enum source source, const struct fault_area *area, unsigned int seq)
{
	if (source == FAULT)
		return fault_address(area, seq);
	return source == WATCH ? (unsigned long)&watched : (unsigned long)hit_me;
}

FIXTURE_SETUP(overflow_handler)
{
	struct perf_event_attr attr = sampling_attr(variant->source, variant->backward);
	int error;

#ifdef __powerpc__
	if (variant->source == EXECUTE)
		SKIP(return, "hardware breakpoints only watch data on this architecture");
#endif
	self->fd = perf_overwrite_open(&attr, 0, -1, -1);
	error = errno;
	if (self->fd >= 0)
		close(self->fd);
	else if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	else if (variant->source != FAULT && (error == ENOSPC || error == EOPNOTSUPP ||
					      error == ENODEV || error == ENOENT))
		SKIP(return, "no hardware breakpoints: %s", strerror(error));
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, map_fault_area(&self->area, 64));
	/* Writable, as that is what both directions can read without a pause. */
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 8, true));
	hit(FAULT, &self->area, 0);
}

FIXTURE_TEARDOWN(overflow_handler)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/* The next record, except for samples of the faults of a parent of @pid. */
static struct sample *next_sample(const struct perf_overwrite *ow, bool backward,
				  struct perf_overwrite_walk *walk, __u64 *position,
				  pid_t pid)
{
	__u64 head = perf_overwrite_head(ow);
	struct sample *sample;

	do {
		sample = (struct sample *)(backward ? perf_overwrite_next(walk, space) :
					   forward_next(ow, position, head, space));
	} while (sample && sample->header.type == PERF_RECORD_SAMPLE &&
		 sample->pid != (__u32)pid);
	return sample;
}

/*
 * Checks that the samples of the hits of @pid from 0 to @end - 1 are there, each
 * once and in order, and nothing else.
 */
static void check_samples(struct __test_metadata *_metadata,
			  const struct perf_overwrite *ow,
			  const struct fault_area *area, enum source source,
			  bool backward, pid_t pid, unsigned int end)
{
	struct perf_overwrite_walk walk;
	struct sample *sample;
	__u64 position = 0;

	perf_overwrite_begin(&walk, ow);
	for (unsigned int i = 0; i < end; i++) {
		unsigned int seq = backward ? end - 1 - i : i;

		sample = next_sample(ow, backward, &walk, &position, pid);
		ASSERT_NE(NULL, sample);
		ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
		ASSERT_EQ(seq, sample_seq(sample));
		ASSERT_EQ(hit_addr(source, area, seq), sample->addr);
	}
	ASSERT_EQ(NULL, next_sample(ow, backward, &walk, &position, pid));
	ASSERT_EQ(0, lost_count(ow->fd));
}

TEST_F(overflow_handler, samples)
{
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	for (unsigned int seq = 0; seq < HITS; seq++)
		hit(variant->source, &self->area, seq);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));

	check_samples(_metadata, &self->ow, &self->area, variant->source,
		      variant->backward, getpid(), HITS);
}

/* A queued signal for each sample, with the event's descriptor. */
TEST_F(overflow_handler, signals)
{
	sigset_t signals;
	siginfo_t info;

	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &signals, NULL));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_ASYNC));
	ASSERT_EQ(0, fcntl(self->fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(self->fd, F_SETOWN, getpid()));

	for (unsigned int seq = 0; seq < HITS; seq++) {
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
		hit(variant->source, &self->area, seq);
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));

		ASSERT_EQ(SIGRTMIN, sigwaitinfo(&signals, &info));
		ASSERT_EQ(self->fd, info.si_fd);
		ASSERT_EQ(POLL_IN, info.si_code);
	}
	/* That was all. */
	ASSERT_EQ(-1, sigtimedwait(&signals, &info, &(struct timespec){ 0 }));
	ASSERT_EQ(EAGAIN, errno);
	check_samples(_metadata, &self->ow, &self->area, variant->source,
		      variant->backward, getpid(), HITS);
}

/* What is counted down to is reached, and stops the event. */
TEST_F(overflow_handler, refresh)
{
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_REFRESH, 7));
	for (unsigned int seq = 0; seq < HITS; seq++)
		hit(variant->source, &self->area, seq);

	check_samples(_metadata, &self->ow, &self->area, variant->source,
		      variant->backward, getpid(), 7);
}

/*
 * A child's event has the parent's handler, and writes the parent's way. Enabling
 * the one enables the other, too.
 */
TEST_F(overflow_handler, inherited)
{
	struct perf_event_attr attr = sampling_attr(variant->source, variant->backward);
	int cpu = pin_to_cpu(), status;
	pid_t child;

	/* Only of one CPU can an inherited event have a buffer. */
	ASSERT_LE(0, cpu);
	ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
	ASSERT_EQ(0, close(self->fd));
	attr.inherit = 1;
	self->fd = open_event(_metadata, &attr, 0, cpu);
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 8, true));

	child = fork();
	if (!child) {
		/* Once without, so that its copies of pages are made. */
		for (unsigned int seq = 0; seq < HITS; seq++)
			hit(variant->source, &self->area, seq);
		ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0);
		for (unsigned int seq = 0; seq < HITS; seq++)
			hit(variant->source, &self->area, seq);
		ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0);
		_exit(0);
	}
	ASSERT_LT(0, child);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	check_samples(_metadata, &self->ow, &self->area, variant->source,
		      variant->backward, child, HITS);
}

#ifdef __aarch64__
/* The register set @which of @pid from the first @size bytes at @from. */
static int set_regs(pid_t pid, unsigned long which, void *from, size_t size)
{
	struct iovec iov = { from, size };

	return ptrace(PTRACE_SETREGSET, pid, which, &iov);
}

FIXTURE(ptrace) {};

FIXTURE_VARIANT(ptrace) {
	enum source		source;
	unsigned long		registers;
	const void		*addr;
	/* Enabled, the user's: an instruction of four bytes, or stores to eight. */
	__u32			ctrl;
};

FIXTURE_VARIANT_ADD(ptrace, breakpoint)
{
	.source = EXECUTE,
	.registers = NT_ARM_HW_BREAK,
	.addr = hit_me,
	.ctrl = 0xf << 5 | 2 << 1 | 1,
};

FIXTURE_VARIANT_ADD(ptrace, watchpoint)
{
	.source = WATCH,
	.registers = NT_ARM_HW_WATCH,
	.addr = &watched,
	.ctrl = 0xff << 5 | 2 << 3 | 2 << 1 | 1,
};

FIXTURE_SETUP(ptrace)
{
}

FIXTURE_TEARDOWN(ptrace)
{
}

/* The tracer moves the task on, not the kernel: until then it is hit again and again. */
TEST_F(ptrace, is_not_stepped_over)
{
	struct user_hwdebug_state state = { };
	size_t size = offsetof(struct user_hwdebug_state, dbg_regs[1]);
	unsigned long pc = 0;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) || raise(SIGSTOP))
			_exit(1);
		hit(variant->source, NULL, 1);
		_exit(variant->source == WATCH && watched != 1);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));

	state.dbg_regs[0].addr = (unsigned long)variant->addr;
	state.dbg_regs[0].ctrl = variant->ctrl;
	ASSERT_EQ(0, set_regs(pid, variant->registers, &state, size));
	for (int i = 0; i < 3; i++) {
		struct user_pt_regs regs;
		struct iovec iov = { &regs, sizeof(regs) };

		ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, NULL, NULL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_TRUE(WIFSTOPPED(status)) {
			TH_LOG("after %d stops the task went on: %#x", i, status);
		}
		ASSERT_EQ(SIGTRAP, WSTOPSIG(status));
		ASSERT_EQ(0, ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov));
		if (!i)
			pc = variant->source == EXECUTE ? (unsigned long)hit_me : regs.pc;
		ASSERT_EQ(pc, regs.pc);
		/* Stopped in front of it, not behind. */
		if (variant->source == WATCH)
			ASSERT_EQ(0, ptrace(PTRACE_PEEKDATA, pid, variant->addr, NULL));
	}

	state.dbg_regs[0].ctrl = 0;
	ASSERT_EQ(0, set_regs(pid, variant->registers, &state, size));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, NULL, NULL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}
#endif

#ifdef __arm__
/* The kernel takes no breakpoint of four bytes in Thumb code. */
__attribute__((target("arm"), noinline))
static void hit_arm_code(void)
{
	asm volatile("" : : : "memory");
}

/*
 * The kernel steps over by a breakpoint on a mismatch, which emulators lack: there no
 * hit but the first is seen. That it ends shows that the kernel steps.
 */
FIXTURE(step)
{
	struct perf_event_attr	attr;
};

FIXTURE_VARIANT(step)
{
	bool		backward;
	enum source	source;
};

FIXTURE_VARIANT_ADD(step, forward_execute)
{
	.backward = false,
	.source = EXECUTE,
};

FIXTURE_VARIANT_ADD(step, forward_watch)
{
	.backward = false,
	.source = WATCH,
};

FIXTURE_VARIANT_ADD(step, backward_execute)
{
	.backward = true,
	.source = EXECUTE,
};

FIXTURE_VARIANT_ADD(step, backward_watch)
{
	.backward = true,
	.source = WATCH,
};

FIXTURE_SETUP(step)
{
	self->attr = sampling_attr(variant->source, variant->backward);
	if (variant->source == EXECUTE)
		self->attr.bp_addr = (unsigned long)hit_arm_code;
	else
		/* One on stores alone is refused, as older processors don't tell them. */
		self->attr.bp_type = HW_BREAKPOINT_RW;
}

FIXTURE_TEARDOWN(step)
{
}

TEST_F(step, over)
{
	void (*call)(void) = hit_arm_code;
	struct perf_overwrite_walk walk;
	struct perf_overwrite ow;
	struct sample *sample;
	__u64 position = 0;
	int fd = open_event(_metadata, &self->attr, 0, -1);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 8, true));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	if (variant->source == EXECUTE)
		call();
	else
		watched = 1;
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));

	perf_overwrite_begin(&walk, &ow);
	sample = next_sample(&ow, variant->backward, &walk, &position, getpid());
	ASSERT_NE(NULL, sample);
	EXPECT_EQ(self->attr.bp_addr, sample->addr);
	EXPECT_EQ(0, perf_overwrite_unmap(&ow));
	EXPECT_EQ(0, close(fd));
}

/* It can't step over one of a CPU. */
TEST_F(step, not_of_a_cpu)
{
	EXPECT_EQ(-1, perf_overwrite_open(&self->attr, -1, 0, -1));
	EXPECT_EQ(EINVAL, errno);
}
#endif

TEST_HARNESS_MAIN
