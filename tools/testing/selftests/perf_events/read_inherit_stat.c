// SPDX-License-Identifier: GPL-2.0
/*
 * With attr.inherit_stat a task that exits leaves a PERF_RECORD_READ with what
 * its events have counted. An event that is bound to a CPU writes to a buffer
 * that only this CPU may write to, wherever the task exits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define FAULTS		20
#define STORM_TASKS	400

struct sample_id {
	__u32	pid, tid;
	__u64	time;
	__u64	id;
	__u32	cpu, reserved;
};

/* What a read() of the event returns, and what a PERF_RECORD_READ has. */
struct counts {
	__u64	value, enabled, running, lost;
};

struct read_record {
	struct perf_event_header	header;
	__u32				pid, tid;
	struct counts			counts;
	struct sample_id		sample_id;
};

struct sample_record {
	struct perf_event_header	header;
	struct sample_id		sample_id;
};

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* A buffer and how far it was read. */
struct reader {
	struct perf_overwrite	ow;
	__u64			position;
	/* The newest time that was seen. */
	__u64			time;
	/* Where the event counts. */
	int			cpu;
};

FIXTURE(read_inherit_stat)
{
	struct reader		reader;
	struct fault_area	area;
	int			fd;
	int			uninherited;
	/* The reader's CPU, and another one. */
	int			cpu;
	int			elsewhere;
};

/* A task that makes @faults where the event counts, exits there or elsewhere. */
static pid_t fork_task(struct fault_area *area, int cpu, unsigned int faults, int exit_cpu)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (faults) {
		if (go_to_cpu(cpu))
			_exit(1);
		for (unsigned int seq = 0; seq < faults; seq++)
			make_fault(area, seq);
	}
	_exit(go_to_cpu(exit_cpu) ? 2 : 0);
}

static void run_task(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_LE(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

/* The next record of the buffer, or NULL; what has been read is given back. */
static struct perf_event_header *next_record(struct reader *reader)
{
	struct perf_overwrite *ow = &reader->ow;
	struct perf_event_header *record;

	record = forward_next(ow, &reader->position, perf_overwrite_head(ow), space);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&ow->meta->data_tail, reader->position, __ATOMIC_RELAXED);
	return record;
}

/* A task's counts, written where they should be and in the order of time. */
static void check_read(struct __test_metadata *_metadata, struct reader *reader,
		       const struct perf_event_header *record, pid_t pid)
{
	const struct read_record *read_record = (const struct read_record *)record;

	ASSERT_EQ(PERF_RECORD_READ, record->type);
	ASSERT_EQ(sizeof(*read_record), record->size);
	if (pid) {
		EXPECT_EQ(pid, read_record->pid);
		EXPECT_EQ(pid, read_record->tid);
	}
	EXPECT_EQ(read_record->pid, read_record->sample_id.pid);
	EXPECT_EQ(read_record->tid, read_record->sample_id.tid);
	EXPECT_LE(FAULTS, read_record->counts.value);
	EXPECT_LT(0, read_record->counts.running);
	EXPECT_LE(read_record->counts.running, read_record->counts.enabled);
	/* Who has written it. */
	EXPECT_EQ(reader->cpu, read_record->sample_id.cpu);
	EXPECT_LE(reader->time, read_record->sample_id.time);
	reader->time = read_record->sample_id.time;
}

FIXTURE_SETUP(read_inherit_stat)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ID | PERF_SAMPLE_CPU);
	struct perf_event_attr uninherited = NAME_EVENT(0);
	int cpus[2];

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	/* The first CPU can't go offline on some machines. */
	self->cpu = cpus[1];
	self->reader.cpu = self->cpu;
	self->elsewhere = cpus[0];
	ASSERT_EQ(0, map_fault_area(&self->area, FAULTS));

	attr.sample_period = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_LOST;
	attr.sample_id_all = 1;
	attr.write_backward = 0;
	attr.inherit = 1;
	attr.inherit_stat = 1;
	attr.disabled = 0;
	self->fd = open_event(_metadata, &attr, 0, self->cpu);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->reader.ow, self->fd, 512, true));

	/*
	 * A switch from a task to its child exchanges their events, if they are
	 * all the same. It is the events' first owner of whom nothing is told,
	 * and that is to be this task here.
	 */
	self->uninherited = open_event(_metadata, &uninherited, 0, -1);
	ASSERT_LE(0, self->uninherited);

	/* Does the kernel write such records at all? */
	ASSERT_EQ(0, go_to_cpu(self->cpu));
	run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS, self->cpu));
	if (!perf_overwrite_head(&self->reader.ow))
		SKIP(return, "no PERF_RECORD_READ for tasks that exit in this kernel");
	check_read(_metadata, &self->reader, next_record(&self->reader), 0);
	ASSERT_EQ(NULL, next_record(&self->reader));
	ASSERT_EQ(0, go_to_cpu(self->elsewhere));
}

FIXTURE_TEARDOWN(read_inherit_stat)
{
	ASSERT_EQ(0, perf_overwrite_unmap(&self->reader.ow));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(0, close(self->uninherited));
}

TEST_F(read_inherit_stat, exit_there)
{
	pid_t pid = fork_task(&self->area, self->cpu, FAULTS, self->cpu);

	run_task(_metadata, pid);
	check_read(_metadata, &self->reader, next_record(&self->reader), pid);
	EXPECT_EQ(NULL, next_record(&self->reader));
}

TEST_F(read_inherit_stat, exit_elsewhere)
{
	pid_t pid = fork_task(&self->area, self->cpu, FAULTS, self->elsewhere);

	run_task(_metadata, pid);
	check_read(_metadata, &self->reader, next_record(&self->reader), pid);
	EXPECT_EQ(NULL, next_record(&self->reader));
}

TEST_F(read_inherit_stat, never_there)
{
	run_task(_metadata, fork_task(&self->area, self->cpu, 0, self->elsewhere));
	EXPECT_EQ(NULL, next_record(&self->reader));

	/* The one that has been there is told again. */
	run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS, self->elsewhere));
	EXPECT_NE(NULL, next_record(&self->reader));
	EXPECT_EQ(NULL, next_record(&self->reader));
}

static __u64 lost_records(int fd)
{
	struct counts counts;

	return read(fd, &counts, sizeof(counts)) == sizeof(counts) ? counts.lost : -1;
}

/* Nobody may write to the buffer then, but what isn't told is counted. */
TEST_F(read_inherit_stat, cpu_offline)
{
	int status, error;
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (go_to_cpu(self->cpu))
			_exit(1);
		for (unsigned int seq = 0; seq < FAULTS; seq++)
			make_fault(&self->area, seq);
		if (go_to_cpu(self->elsewhere))
			_exit(2);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));

	error = set_online(self->cpu, false);
	ASSERT_EQ(0, kill(pid, SIGCONT));
	run_task(_metadata, pid);
	if (error)
		SKIP(return, "CPU %d doesn't go offline", self->cpu);
	EXPECT_EQ(NULL, next_record(&self->reader));
	EXPECT_EQ(1, lost_records(self->fd));

	ASSERT_EQ(0, set_online(self->cpu, true));
	run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS, self->elsewhere));
	EXPECT_NE(NULL, next_record(&self->reader));
	EXPECT_EQ(NULL, next_record(&self->reader));
	EXPECT_EQ(1, lost_records(self->fd));
}

/*
 * One task makes samples all the time where the event counts, others come and
 * go. The buffer is to stay readable, and all of them are to be told.
 */
TEST_F(read_inherit_stat, storm)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ID | PERF_SAMPLE_CPU);
	unsigned long reads = 0, samples = 0;
	struct perf_event_header *record;
	pid_t busy;
	int fd;

	/* Not inherited from here: it has nothing to do with the event itself. */
	busy = fork();
	ASSERT_LE(0, busy);
	if (!busy) {
		/* It must not outlive a test that fails. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (go_to_cpu(self->cpu))
			_exit(1);
		for (unsigned int seq = 0; ; seq++)
			make_fault(&self->area, seq);
	}
	attr.sample_id_all = 1;
	attr.write_backward = 0;
	attr.disabled = 0;
	fd = open_event(_metadata, &attr, busy, self->cpu);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, self->fd));

	for (int i = 0; i <= STORM_TASKS; i++) {
		if (i < STORM_TASKS) {
			run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS,
						      self->elsewhere));
		} else {
			ASSERT_EQ(0, kill(busy, SIGKILL));
			ASSERT_EQ(busy, waitpid(busy, NULL, 0));
		}
		while ((record = next_record(&self->reader))) {
			switch (record->type) {
			case PERF_RECORD_SAMPLE:
				ASSERT_EQ(sizeof(struct sample_record), record->size);
				ASSERT_EQ(busy, ((struct sample_record *)record)->sample_id.pid);
				samples++;
				break;
			case PERF_RECORD_READ:
				check_read(_metadata, &self->reader, record, 0);
				reads++;
				break;
			case PERF_RECORD_THROTTLE:
			case PERF_RECORD_UNTHROTTLE:
				break;
			case PERF_RECORD_LOST:
			default:
				ASSERT_TRUE(false) {
					TH_LOG("a record of type %u, size %u", record->type,
					       record->size);
				}
			}
		}
	}
	/* All that was written was read: no record is damaged, the head goes on. */
	EXPECT_EQ(perf_overwrite_head(&self->reader.ow), self->reader.position);
	EXPECT_EQ(STORM_TASKS + 1, reads);
	EXPECT_LT(STORM_TASKS, samples);
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
