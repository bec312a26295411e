// SPDX-License-Identifier: GPL-2.0
/*
 * Swapping buffers under load: the recording events write to the buffer of an
 * event that does nothing but hold it, and are directed to another holder's when
 * the first buffer is to be read. Then this one is paused, and complete.
 *
 * An event that is directed elsewhere may be in the midst of writing to the old
 * buffer, or be about to: it has got hold of that buffer before. For the former
 * the pause waits. The latter finds the buffer paused, and writes to the other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

#define SWAPS		400
#define BUFFER_BYTES	(4 * 1024 * 1024)
#define STACK_BYTES	4096
#define AREA_PAGES	4096
#define FAULTS_PER_NAME	4
/* From one record to the next: a buffer lasts for longer than a swap takes. */
#define PACE_NS		150000

enum event {
	NAME,
	FAULT,		/* directed last, so that the pause comes right after it */
	EVENTS,
};

struct sample {
	struct perf_event_header	header;
	__u64				addr;
	__u64				stack_size;
	__u64				stack[STACK_BYTES / sizeof(__u64)];
	__u64				stack_used;
};

/* So many faults, with names between them, fit into a buffer in any case. */
#define FAULTS_MAX	(BUFFER_BYTES / (sizeof(struct sample) + 64))

/* Shared with the writer, who doesn't get further ahead than the buffer holds. */
struct progress {
	unsigned int	written;
	unsigned int	read;
};

struct sequence {
	unsigned int	end;		/* the number that comes next */
	__u64		missing;
};

FIXTURE(lossless)
{
	struct fault_area	area;
	struct progress		*progress;
	struct perf_overwrite	ow[2];
	int			holders[2];
	int			fds[EVENTS];
	pid_t			pid;
};

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

static void write_on(const struct fault_area *area, struct progress *progress, int cpu)
{
	char name[NAME_SIZE];

	if (go_to_cpu(cpu))
		_exit(1);
	/* Touch what will be touched, so that from here on only the area faults. */
	fault_with_stack(area, 1, STACK_BYTES);
	__atomic_store_n(&progress->written, 0, __ATOMIC_RELEASE);
	raise(SIGSTOP);
	for (unsigned int seq = 0; ; seq++) {
		__u64 next = now_ns() + PACE_NS;

		if (seq % FAULTS_PER_NAME == 0) {
			snprintf(name, sizeof(name), "%010u", seq / FAULTS_PER_NAME);
			prctl(PR_SET_NAME, name);
		}
		fault_with_stack(area, seq, STACK_BYTES);
		__atomic_store_n(&progress->written, seq + 1, __ATOMIC_RELEASE);
		while (now_ns() < next ||
		       seq - __atomic_load_n(&progress->read, __ATOMIC_ACQUIRE) + 2 > FAULTS_MAX)
			;
	}
}

FIXTURE_SETUP(lossless)
{
	size_t pages = BUFFER_BYTES / sysconf(_SC_PAGESIZE);
	struct perf_event_attr attrs[EVENTS] = {
		[NAME] = NAME_EVENT(true),
		[FAULT] = FAULT_EVENT(PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER),
	};
	struct perf_event_attr holder = NAME_EVENT(true);
	int cpus[2], status;

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, go_to_cpu(cpus[0]));
	attrs[NAME].disabled = 1;
	attrs[FAULT].sample_stack_user = STACK_BYTES;
	holder.comm = 0;
	if (lacks_stack_dump(attrs[FAULT], 0))
		SKIP(return, "no dumps of the user's stack on this architecture");

	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));
	self->progress = mmap(NULL, sizeof(*self->progress), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->progress);
	self->pid = fork_tied();
	if (!self->pid)
		write_on(&self->area, self->progress, cpus[1]);
	ASSERT_LT(0, self->pid);
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));

	for (int i = 0; i < 2; i++) {
		self->holders[i] = open_event(_metadata, &holder, self->pid, cpus[1]);
		if (self->holders[i] < 0)
			return;
		if (map_event(_metadata, &self->ow[i], self->holders[i], pages, false))
			return;
		ASSERT_EQ(0, perf_overwrite_pause(self->holders[i]));
		ASSERT_EQ(0, perf_overwrite_resume(self->holders[i]));
	}
	for (int i = 0; i < EVENTS; i++) {
		self->fds[i] = open_event(_metadata, &attrs[i], self->pid, cpus[1]);
		if (self->fds[i] < 0)
			return;
		ASSERT_EQ(0, ioctl(self->fds[i], PERF_EVENT_IOC_SET_OUTPUT, self->holders[0]));
	}
	/* What an event may be redirected to is no mapping of its own. */
	ASSERT_EQ(-1, ioctl(self->holders[0], PERF_EVENT_IOC_SET_OUTPUT, self->holders[1]));
	ASSERT_EQ(EINVAL, errno);

	for (int i = 0; i < EVENTS; i++)
		ASSERT_EQ(0, ioctl(self->fds[i], PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, kill(self->pid, SIGCONT));
}

FIXTURE_TEARDOWN(lossless)
{
	stop_child(_metadata, self->pid);
	for (int i = 0; i < EVENTS; i++)
		close(self->fds[i]);
	for (int i = 0; i < 2; i++) {
		if (self->ow[i].meta)
			EXPECT_EQ(0, perf_overwrite_unmap(&self->ow[i]));
		close(self->holders[i]);
	}
}

/*
 * Takes number @seq, which is the next older one of what was taken before from
 * the same buffer, of which it was @oldest.
 */
static void take(struct __test_metadata *_metadata, unsigned int seq,
		 unsigned int *oldest, unsigned int *newest, unsigned int *count)
{
	if (!(*count)++)
		*newest = seq;
	else
		ASSERT_EQ(*oldest - 1, seq);
	*oldest = seq;
}

/* Appends what one buffer had: numbers that come after all that came before. */
static void append(struct __test_metadata *_metadata, struct sequence *sequence,
		   unsigned int oldest, unsigned int newest, unsigned int count)
{
	if (!count)
		return;
	ASSERT_LE(sequence->end, oldest) {
		TH_LOG("number %u turned up after the buffer had been read", oldest);
	}
	sequence->missing += oldest - sequence->end;
	sequence->end = newest + 1;
}

static void read_buffer(struct __test_metadata *_metadata, struct perf_overwrite *ow,
			const struct fault_area *area, struct sequence *sequences)
{
	unsigned int oldest[EVENTS] = {}, newest[EVENTS] = {}, count[EVENTS] = {};
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;

	perf_overwrite_begin_new(&walk, ow);
	ASSERT_EQ(0, walk.missed);
	while ((header = perf_overwrite_next(&walk, space))) {
		const struct comm_record *name = (const struct comm_record *)header;
		const struct sample *sample = (const struct sample *)header;
		unsigned int seq;

		if (header->type == PERF_RECORD_LOST)
			continue;
		if (header->type == PERF_RECORD_COMM) {
			take(_metadata, strtoul(name->name, NULL, 10), &oldest[NAME],
			     &newest[NAME], &count[NAME]);
			continue;
		}
		ASSERT_EQ(PERF_RECORD_SAMPLE, header->type);
		ASSERT_EQ(sizeof(*sample), header->size);
		/* The writer may fault for other reasons, too. */
		if (sample->addr - fault_address(area, 0) >= AREA_PAGES * area->page_size)
			continue;
		seq = sample->stack[ARRAY_SIZE(sample->stack) - 1] >> 32;
		ASSERT_EQ(fault_address(area, seq), sample->addr);
		ASSERT_TRUE(stack_is(sample->stack, STACK_BYTES, seq));
		take(_metadata, seq, &oldest[FAULT], &newest[FAULT], &count[FAULT]);
	}
	/* To the very byte where it ended the last time. */
	ASSERT_EQ(0, walk.left);
	for (int i = 0; i < EVENTS; i++)
		append(_metadata, &sequences[i], oldest[i], newest[i], count[i]);
}

TEST_F(lossless, swaps)
{
	struct sequence sequences[EVENTS] = {};
	struct progress *progress = self->progress;
	unsigned int swaps, at_work = 0;
	__u64 begin = now_ns();

	/* A swap tells something if the writer is at work meanwhile. */
	for (swaps = 0; swaps < SWAPS || at_work <= SWAPS / 2; swaps++) {
		struct perf_overwrite *old = &self->ow[swaps % 2];
		struct perf_overwrite *new = &self->ow[(swaps + 1) % 2];
		unsigned int before = __atomic_load_n(&progress->written, __ATOMIC_ACQUIRE);
		unsigned int after;
		__u64 head;

		ASSERT_EQ(0, perf_overwrite_resume(new->fd));
		for (int event = 0; event < EVENTS; event++)
			ASSERT_EQ(0, ioctl(self->fds[event], PERF_EVENT_IOC_SET_OUTPUT,
					   new->fd));
		ASSERT_EQ(0, perf_overwrite_pause(old->fd)) {
			TH_LOG("swap %u: %s", swaps, strerror(errno));
		}

		head = perf_overwrite_head(old);
		after = __atomic_load_n(&progress->written, __ATOMIC_ACQUIRE);
		at_work += after != before && after - progress->read < FAULTS_MAX - 1;
		read_buffer(_metadata, old, &self->area, sequences);
		ASSERT_EQ(head, perf_overwrite_head(old));
		ASSERT_TRUE(is_alive(self->pid));
		__atomic_store_n(&progress->read, sequences[FAULT].end, __ATOMIC_RELEASE);
	}

	TH_LOG("%u swaps in %llu ms, %u of them with the writer at work all the time", swaps,
	       (now_ns() - begin) / 1000000, at_work);
	TH_LOG("%u faults, %llu missing; %u names, %llu missing", sequences[FAULT].end,
	       sequences[FAULT].missing, sequences[NAME].end, sequences[NAME].missing);
	for (int i = 0; i < EVENTS; i++) {
		ASSERT_EQ(0, sequences[i].missing);
		/* The very last ones may have been lost with nothing behind them yet. */
		ASSERT_EQ(0, lost_count(self->fds[i]));
	}
}

TEST_HARNESS_MAIN
