// SPDX-License-Identifier: GPL-2.0
/*
 * Several sources of records in one overwritable backward buffer: events that
 * share it, children that inherit an event, whatever runs on a CPU, and the
 * records that aren't samples. Each source is complete and in its own order.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* All samples begin with these. */
struct sample {
	struct perf_event_header	header;
	__u64				id;
	__u32				pid, tid;
	__u64				addr;
	__u32				cpu, reserved;
};

#define SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | \
			 PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU)

FIXTURE(overwrite_events)
{
	struct fault_area	area;
	cpu_set_t		allowed;
	int			cpu;
};

FIXTURE_SETUP(overwrite_events)
{
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(self->allowed), &self->allowed));
	self->cpu = pin_to_cpu();
	ASSERT_LE(0, self->cpu);
	ASSERT_EQ(0, map_fault_area(&self->area, 1024));
	make_fault(&self->area, 0);
}

FIXTURE_TEARDOWN(overwrite_events)
{
}

/*
 *   page fault -> a small sample, and as a minor one a sample with a piece of
 *                 the stack
 *   name       -> comm record, of the third event
 *
 * all of them into the first one's buffer.
 */
TEST_F(overwrite_events, shared_buffer)
{
	enum { SMALL, STACK, NAME, EVENTS };
	unsigned int straddled = 0, stop = 0, seq = 0, batch = 29 * page_scale();
	struct perf_event_attr attrs[EVENTS] = {
		[SMALL] = FAULT_EVENT(SAMPLE_TYPE),
		[STACK] = FAULT_EVENT(SAMPLE_TYPE | PERF_SAMPLE_STACK_USER),
		[NAME] = NAME_EVENT(true),
	};
	struct perf_overwrite_walk walk;
	struct perf_overwrite ow;
	__u64 ids[EVENTS];
	int fds[EVENTS];

	attrs[STACK].config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	attrs[STACK].sample_stack_user = 168;
	attrs[NAME].disabled = 1;
	if (lacks_stack_dump(attrs[STACK], 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	for (int i = 0; i < EVENTS; i++) {
		fds[i] = open_event(_metadata, &attrs[i], 0, -1);
		if (fds[i] < 0)
			return;
		ids[i] = event_id(fds[i]);
	}
	ASSERT_EQ(0, perf_overwrite_map(&ow, fds[0], 2, false));
	for (int i = 1; i < EVENTS; i++)
		ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_SET_OUTPUT, fds[0]));

	for (unsigned int round = 0; round < 20; round++) {
		unsigned int seen[EVENTS] = { 0 };
		unsigned int most = 0, least = -1U;

		for (int i = 0; i < EVENTS; i++)
			ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0));
		for (stop = seq + batch; seq < stop; seq++) {
			make_fault(&self->area, seq);
			write_names(seq, 1, 0);
		}
		for (int i = 0; i < EVENTS; i++)
			ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_DISABLE, 0));

		ASSERT_EQ(0, perf_overwrite_pause(fds[round % EVENTS]));
		perf_overwrite_begin(&walk, &ow);
		for (;;) {
			struct sample *sample = (struct sample *)space;
			size_t offset = walk.offset;
			int i;

			if (!perf_overwrite_next(&walk, space))
				break;
			straddled += offset + sample->header.size > ow.size;
			if (sample->header.type == PERF_RECORD_COMM) {
				seen[NAME]++;
				ASSERT_TRUE(is_name(&sample->header, seq - seen[NAME], 0));
				continue;
			}
			ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
			for (i = 0; i < NAME; i++)
				if (sample->id == ids[i])
					break;
			ASSERT_LT(i, NAME);
			/* The program itself may fault, too. */
			if (sample->addr < fault_address(&self->area, 0) ||
			    sample->addr > fault_address(&self->area, self->area.pages - 1))
				continue;
			seen[i]++;
			ASSERT_EQ(fault_address(&self->area, seq - seen[i]), sample->addr);
			ASSERT_EQ(syscall(__NR_gettid), sample->tid);
			ASSERT_EQ(self->cpu, sample->cpu);
		}
		ASSERT_EQ(0, perf_overwrite_resume(fds[(round + 1) % EVENTS]));

		/* As each fault and name makes one of each, none is ahead by two. */
		for (int i = 0; i < EVENTS; i++) {
			most = seen[i] > most ? seen[i] : most;
			least = seen[i] < least ? seen[i] : least;
			ASSERT_LE(seen[i], seq);
		}
		ASSERT_LE(most, least + 1);
		if (walk.covered < ow.size - 400)
			ASSERT_EQ(seq, least);
	}
	/* They came round more than three times. */
	ASSERT_LT(3 * ow.size, perf_overwrite_written(0, perf_overwrite_head(&ow)));
	ASSERT_NE(0, straddled);

	for (int i = 0; i < EVENTS; i++)
		ASSERT_EQ(0, lost_count(fds[i]));
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	for (int i = 0; i < EVENTS; i++)
		ASSERT_EQ(0, close(fds[i]));
}

/*
 * Children inherit the event and write to their parent's buffer, which is
 * allowed for an event of one CPU.
 */
TEST_F(overwrite_events, inherited)
{
	struct perf_event_attr attr = FAULT_EVENT(SAMPLE_TYPE);
	const unsigned int children = 8, faults = 100 * page_scale();
	unsigned int whole = 0, child;
	struct perf_overwrite_walk walk;
	struct perf_overwrite ow;
	pid_t pids[8];
	int fd, status, begin[2];

	attr.inherit = 1;
	fd = open_event(_metadata, &attr, 0, self->cpu);
	if (fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 4, false));

	for (child = 0; child < children; child++) {
		char byte = 0;

		ASSERT_EQ(0, pipe(begin));
		pids[child] = fork();
		if (!pids[child]) {
			/* Begins when the event is enabled, with nothing but faults. */
			if (read(begin[0], &byte, 1) != 1)
				_exit(1);
			for (unsigned int i = 1; i <= faults; i++)
				make_fault(&self->area, i);
			_exit(0);
		}
		ASSERT_LT(0, pids[child]);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		ASSERT_EQ(1, write(begin[1], &byte, 1));
		ASSERT_EQ(pids[child], waitpid(pids[child], &status, 0));
		ASSERT_EQ(0, status);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_EQ(0, close(begin[0]));
		ASSERT_EQ(0, close(begin[1]));
	}
	ASSERT_LT(ow.size, children * faults * sizeof(struct sample));

	/*
	 * From the last child to the first, and its faults from the last to the
	 * first; what else faulted in between isn't in the area.
	 */
	ASSERT_EQ(0, perf_overwrite_pause(fd));
	perf_overwrite_begin(&walk, &ow);
	for (child = children; child--; ) {
		unsigned int next = faults;

		while (next && perf_overwrite_next(&walk, space)) {
			struct sample *sample = (struct sample *)space;

			ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
			ASSERT_EQ(sizeof(*sample), sample->header.size);
			ASSERT_EQ(self->cpu, sample->cpu);
			if (sample->addr < fault_address(&self->area, 0) ||
			    sample->addr > fault_address(&self->area, self->area.pages - 1))
				continue;
			ASSERT_EQ(pids[child], sample->pid);
			ASSERT_EQ(pids[child], sample->tid);
			ASSERT_EQ(fault_address(&self->area, next), sample->addr);
			next--;
		}
		if (next)
			break;
		whole++;
	}
	ASSERT_EQ(0, perf_overwrite_resume(fd));
	ASSERT_LE(2, whole);
	ASSERT_LT(ow.size - sizeof(struct sample), walk.covered);
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
}

/* Whatever runs on a CPU: of all there is, and nothing of the others. */
TEST_F(overwrite_events, per_cpu)
{
	const unsigned int faults = 1000;
	struct perf_overwrite ows[8];
	int fds[8], cpus[8], used;

	/* The fixture's one CPU isn't enough here. */
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(self->allowed), &self->allowed));
	used = allowed_cpus(cpus, 8);
	if (used < 2)
		SKIP(return, "needs two CPUs");

	for (int i = 0; i < used; i++) {
		struct perf_event_attr attr = FAULT_EVENT(SAMPLE_TYPE);

		fds[i] = open_event(_metadata, &attr, -1, cpus[i]);
		if (fds[i] < 0)
			return;
		ASSERT_EQ(0, perf_overwrite_map(&ows[i], fds[i], 64, false));
		ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0));
	}

	/* Ten pages here, ten pages there. */
	for (unsigned int seq = 0; seq < faults; seq++) {
		if (seq % 10 == 0)
			ASSERT_EQ(0, go_to_cpu(cpus[seq / 10 % used]));
		make_fault(&self->area, seq);
	}

	for (int i = 0; i < used; i++)
		ASSERT_EQ(0, perf_overwrite_pause(fds[i]));
	/* A pause that freezes has waited itself: with nohz_full CPUs this call can't. */
	if (!perf_overwrite_freezes(fds[0]))
		ASSERT_EQ(0, perf_overwrite_drain());
	for (int i = 0; i < used; i++) {
		unsigned int next = faults, seen = 0;
		struct perf_overwrite_walk walk;

		perf_overwrite_begin(&walk, &ows[i]);
		while (perf_overwrite_next(&walk, space)) {
			struct sample *sample = (struct sample *)space;

			ASSERT_EQ(PERF_RECORD_SAMPLE, sample->header.type);
			ASSERT_EQ(cpus[i], sample->cpu);
			if (sample->tid != (__u32)syscall(__NR_gettid) ||
			    sample->addr < fault_address(&self->area, 0) ||
			    sample->addr > fault_address(&self->area, faults - 1))
				continue;
			/* The next older fault that was made on this CPU. */
			do {
				ASSERT_LT(0, next);
				next--;
			} while ((int)(next / 10 % used) != i);
			ASSERT_EQ(fault_address(&self->area, next), sample->addr);
			seen++;
		}
		/* All of them, but for what others have overwritten. */
		while (next && (int)((next - 1) / 10 % used) != i)
			next--;
		ASSERT_TRUE(!next || walk.covered > ows[i].size - sizeof(struct sample)) {
			TH_LOG("CPU %d: %u", cpus[i], seen);
		}
	}
	for (int i = 0; i < used; i++) {
		ASSERT_EQ(0, perf_overwrite_unmap(&ows[i]));
		ASSERT_EQ(0, close(fds[i]));
	}
}

TEST_HARNESS_MAIN
