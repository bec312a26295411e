/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process that is nearly always in the midst of writing a record: many events
 * share a buffer, each page fault is a sample of all of them, and each sample has
 * a large piece of the stack, which takes long to copy.
 *
 * A pause that doesn't wait for writers in flight is caught by this within a few
 * tries, even where processors are emulated.
 */
#ifndef _SELFTESTS_PAUSE_WRITER_H
#define _SELFTESTS_PAUSE_WRITER_H

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "overwrite_stack.h"

#define WRITER_EVENTS		16
#define WRITER_STACK_BYTES	16384
#define WRITER_BUFFER_BYTES	(256 * 1024)
#define WRITER_CLOCK_PERIOD	200000
#define WRITER_AREA_PAGES	4096

struct writer_sample {
	struct perf_event_header	header;
	__u64				addr;
	__u64				stack_size;
	__u64				stack[WRITER_STACK_BYTES / sizeof(__u64)];
	__u64				stack_used;
};

/* Made by a clock's interrupts: nests in the others. */
struct writer_tick {
	struct perf_event_header	header;
	__u64				addr;
};

/* Whose the events are, hence the buffer: each is paused in another way. */
enum writer_events {
	WRITER_OF_CPU,		/* of all tasks on a CPU */
	WRITER_OF_TASK_ON_CPU,
	WRITER_OF_TASK,		/* wherever it is */
};

struct pause_writer {
	struct perf_overwrite	ow;
	struct perf_event_attr	attr;
	enum writer_events	events;
	struct fault_area	area;
	bool			backward;
	int			cpu;
	pid_t			pid;
	int			fds[WRITER_EVENTS + 1];
	int			nr_fds;
};

static inline void writer_fault(const struct pause_writer *writer, unsigned int seq)
{
	fault_with_stack(&writer->area, seq, WRITER_STACK_BYTES);
	/* A CPU that goes offline throws its tasks out. */
	if (sched_getcpu() != writer->cpu)
		go_to_cpu(writer->cpu);
}

static inline void writer_run(const struct pause_writer *writer)
{
	if (go_to_cpu(writer->cpu))
		_exit(1);
	/* Touch all that will be touched, so that from here on only the area faults. */
	writer_fault(writer, 0);
	raise(SIGSTOP);
	for (unsigned int seq = 0; ; seq++)
		writer_fault(writer, seq);
}

static inline pid_t writer_events_pid(const struct pause_writer *writer)
{
	return writer->events == WRITER_OF_CPU ? -1 : writer->pid;
}

static inline int writer_events_cpu(const struct pause_writer *writer)
{
	return writer->events == WRITER_OF_TASK ? -1 : writer->cpu;
}

/* The pages of WRITER_BUFFER_BYTES, whatever their size. */
static inline size_t writer_buffer_pages(void)
{
	return WRITER_BUFFER_BYTES / sysconf(_SC_PAGESIZE);
}

/*
 * Starts a writer on @cpu. If @nested, the first of its events is a clock. Returns
 * whether it writes; if it doesn't the test is skipped.
 */
static inline bool writer_start(struct __test_metadata *_metadata,
				struct pause_writer *writer, int cpu,
				enum writer_events events, bool backward, bool nested)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER);
	size_t pages = writer_buffer_pages();
	int status;

	attr.sample_stack_user = WRITER_STACK_BYTES;
	attr.write_backward = backward;
	if (lacks_stack_dump(attr, 0))
		SKIP(return false, "no dumps of the user's stack on this architecture");

	ASSERT_EQ(0, map_fault_area(&writer->area, WRITER_AREA_PAGES));
	writer->attr = attr;
	writer->events = events;
	writer->backward = backward;
	writer->cpu = cpu;
	writer->pid = fork_tied();
	if (!writer->pid)
		writer_run(writer);
	ASSERT_LT(0, writer->pid);
	ASSERT_EQ(writer->pid, waitpid(writer->pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));

	for (int i = 0; i < WRITER_EVENTS + nested; i++) {
		struct perf_event_attr this = attr;

		if (nested && !i) {
			this.config = PERF_COUNT_SW_CPU_CLOCK;
			this.sample_period = WRITER_CLOCK_PERIOD;
			this.sample_type = PERF_SAMPLE_ADDR;
			this.sample_stack_user = 0;
			this.exclude_kernel = 0;
		}
		writer->fds[i] = open_event(_metadata, &this, writer_events_pid(writer),
					    writer_events_cpu(writer));
		if (writer->fds[i] < 0)
			return false;
		writer->nr_fds++;
		if (i) {
			ASSERT_EQ(0, ioctl(writer->fds[i], PERF_EVENT_IOC_SET_OUTPUT,
					   writer->fds[0]));
		} else if (map_event(_metadata, &writer->ow, writer->fds[0], pages, false)) {
			return false;
		}
	}
	/* A kernel that can't pause fails here, and not with the writer at work. */
	ASSERT_EQ(0, perf_overwrite_pause(writer->ow.fd));
	ASSERT_EQ(0, perf_overwrite_resume(writer->ow.fd));
	for (int i = 0; i < writer->nr_fds; i++)
		ASSERT_EQ(0, ioctl(writer->fds[i], PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, kill(writer->pid, SIGCONT));
	return true;
}

/*
 * The events of a CPU are gone for good when it goes offline. Opens others, which write
 * to the same buffer. Returns whether there are any.
 */
static inline bool writer_renew_events(struct pause_writer *writer)
{
	struct perf_event_attr attr = writer->attr;

	attr.disabled = 0;
	for (int i = 1; i < writer->nr_fds; i++) {
		int fd = perf_overwrite_open(&attr, writer_events_pid(writer),
					     writer_events_cpu(writer), -1);

		if (fd < 0)
			return false;
		close(writer->fds[i]);
		writer->fds[i] = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, writer->ow.fd))
			return false;
	}
	return true;
}

static inline void writer_stop(struct __test_metadata *_metadata,
			       struct pause_writer *writer)
{
	stop_child(_metadata, writer->pid);
	if (writer->ow.meta)
		EXPECT_EQ(0, perf_overwrite_unmap(&writer->ow));
	for (int i = 0; i < writer->nr_fds; i++)
		EXPECT_EQ(0, close(writer->fds[i]));
}

static inline __u64 writer_lost(const struct pause_writer *writer)
{
	__u64 lost = 0;

	for (int i = 0; i < writer->nr_fds; i++)
		lost += lost_count(writer->fds[i]);
	return lost;
}

/* Returns the head as soon as it isn't @head any more, or @head if the writer is gone. */
static inline __u64 writer_wait(const struct pause_writer *writer, __u64 head)
{
	unsigned int polls = 0;
	__u64 now;

	do {
		now = perf_overwrite_head(&writer->ow);
	} while (now == head && (++polls % 4096 || is_alive(writer->pid)));
	return now;
}

/* Returns when the writer has met its paused buffer again. False if it is gone. */
static inline bool writer_meets_pause(const struct pause_writer *writer)
{
	/* The last event's sample is the last that a fault makes. */
	int fd = writer->fds[writer->nr_fds - 1];
	__u64 lost = lost_count(fd);

	while (lost_count(fd) == lost)
		if (!is_alive(writer->pid))
			return false;
	return true;
}

/*
 * Whether this is a record of the writer's, with all that belongs to it. Events of a
 * CPU have other tasks' samples, too.
 */
static inline bool writer_made(const struct pause_writer *writer,
			       const struct perf_event_header *header)
{
	const struct writer_sample *sample = (const struct writer_sample *)header;
	const struct fault_area *area = &writer->area;
	unsigned int seq;

	if (header->type == PERF_RECORD_LOST)
		return header->size == sizeof(struct lost_record);
	if (is_of_throttling(header))
		return header->size == sizeof(struct throttle_record);
	if (header->type != PERF_RECORD_SAMPLE)
		return false;
	if (header->size == sizeof(struct writer_tick))
		return true;
	if (header->size != sizeof(*sample) || sample->stack_size != sizeof(sample->stack))
		return false;
	if (writer->events == WRITER_OF_CPU &&
	    (sample->addr < fault_address(area, 0) ||
	     sample->addr > fault_address(area, area->pages - 1)))
		return true;

	/* The page tells the number but for the round, which the stack tells. */
	seq = sample->stack[sizeof(sample->stack) / sizeof(__u64) - 1] >> 32;
	return sample->addr == fault_address(area, seq) &&
	       stack_is(sample->stack, sizeof(sample->stack), seq);
}

#endif /* _SELFTESTS_PAUSE_WRITER_H */
