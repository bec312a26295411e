// SPDX-License-Identifier: GPL-2.0
/*
 * With attr.inherit_stat a task that exits leaves a PERF_RECORD_READ with what
 * its events have counted; with attr.remove_on_exec, so does one that execs. An
 * event that is bound to a CPU writes to a buffer that only this CPU may write to,
 * wherever the task does that.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "kept_file.h"
#include "function_calls.h"
#include "overwrite_test.h"

#define FAULTS		20
#define STORM_TASKS	400
#define EXEC_TASKS	200
/* Says to this program that it was just to be exec'ed. */
#define EXECED		"READ_INHERIT_STAT_EXECED"
#define STORM_PAGES	512
/* Events of one task, and the tasks that exit with them. */
#define MANY_EVENTS	128
#define MANY_TASKS	10
/* Of which so many are told in one interrupt. */
#define EVENTS_AT_ONCE	64
/* Or, as groups have larger ones, so many bytes of records and the rest of the last. */
#define BYTES_AT_ONCE	(16 << 10)

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

/* A PERF_RECORD_LOST with its sample_id. */
struct told_record {
	struct perf_event_header	header;
	__u64				id, lost;
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
	struct kept_file	online;
};

__attribute__((constructor))
static void leave_if_execed(void)
{
	if (getenv(EXECED))
		_exit(0);
}

/* The event whose records these are: it counts and takes no samples. */
static struct perf_event_attr stat_event(void)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ID | PERF_SAMPLE_CPU);

	attr.sample_period = 0;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			   PERF_FORMAT_LOST;
	attr.sample_id_all = 1;
	attr.write_backward = 0;
	attr.inherit = 1;
	attr.inherit_stat = 1;
	attr.disabled = 0;
	return attr;
}

/* In a child: makes @faults where the event counts, and goes to where it ends. */
static void make_faults_there(struct fault_area *area, int cpu, unsigned int faults,
			      int end_cpu)
{
	if (faults) {
		if (go_to_cpu(cpu))
			_exit(1);
		for (unsigned int seq = 0; seq < faults; seq++)
			make_fault(area, seq);
	}
	if (go_to_cpu(end_cpu))
		_exit(2);
}

/* A task that makes @faults where the event counts, exits there or elsewhere. */
static pid_t fork_task(struct fault_area *area, int cpu, unsigned int faults, int exit_cpu)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	make_faults_there(area, cpu, faults, exit_cpu);
	_exit(0);
}

/* The same, and it execs there or elsewhere. */
static pid_t fork_exec(struct fault_area *area, int cpu, unsigned int faults, int exec_cpu)
{
	static char *const argv[] = { "read_inherit_stat", NULL };
	static char *const envp[] = { EXECED "=1", NULL };
	pid_t pid = fork();

	if (pid)
		return pid;
	make_faults_there(area, cpu, faults, exec_cpu);
	execve("/proc/self/exe", argv, envp);
	_exit(3);
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

/* An event that is inherited, and its buffer. False if the test is to be skipped. */
static bool open_stat(struct __test_metadata *_metadata,
		      FIXTURE_DATA(read_inherit_stat) *self, struct perf_event_attr *attr)
{
	struct perf_event_attr uninherited = NAME_EVENT(0);
	int cpus[2];

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return false, "needs two CPUs");
	/* The first CPU can't go offline on some machines. */
	self->cpu = cpus[1];
	self->reader.cpu = self->cpu;
	self->elsewhere = cpus[0];
	ASSERT_EQ(0, map_fault_area(&self->area, FAULTS));

	self->fd = open_event(_metadata, attr, 0, self->cpu);
	if (self->fd < 0)
		return false;
	if (map_event(_metadata, &self->reader.ow, self->fd, STORM_PAGES, true))
		return false;

	/*
	 * A switch from a task to its child exchanges their events, if they are
	 * all the same. It is the events' first owner of whom nothing is told,
	 * and that is to be this task here.
	 */
	self->uninherited = open_event(_metadata, &uninherited, 0, -1);
	ASSERT_LE(0, self->uninherited);
	return true;
}

static void close_stat(struct __test_metadata *_metadata,
		       FIXTURE_DATA(read_inherit_stat) *self)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->reader.ow));
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, close(self->uninherited));
}

FIXTURE_SETUP(read_inherit_stat)
{
	struct perf_event_attr attr = stat_event();

	if (!open_stat(_metadata, self, &attr))
		return;

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
	EXPECT_EQ(0, restore_file(&self->online));
	close_stat(_metadata, self);
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

/* What was lost is told by the next record, and is about the same task. */
TEST_F(read_inherit_stat, lost_names_task)
{
	const struct told_record *told = (const struct told_record *)space;
	struct perf_event_header *record;
	pid_t pid;

	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS, self->elsewhere));
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	EXPECT_EQ(NULL, next_record(&self->reader));

	pid = fork_task(&self->area, self->cpu, FAULTS, self->elsewhere);
	run_task(_metadata, pid);
	record = next_record(&self->reader);
	ASSERT_NE(NULL, record);
	ASSERT_EQ(PERF_RECORD_LOST, record->type);
	ASSERT_EQ(sizeof(*told), record->size);
	EXPECT_EQ(1, told->lost);
	EXPECT_EQ(pid, told->sample_id.pid);
	EXPECT_EQ(pid, told->sample_id.tid);

	record = next_record(&self->reader);
	ASSERT_NE(NULL, record);
	ASSERT_EQ(PERF_RECORD_READ, record->type);
	EXPECT_EQ(pid, ((struct read_record *)record)->sample_id.pid);
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
	pid_t pid = fork_tied();

	if (!pid) {
		make_faults_there(&self->area, self->cpu, FAULTS, self->elsewhere);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));

	error = keep_online(&self->online, self->cpu) || set_online(self->cpu, false);
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
 * Makes faults all the time, but not too many before the buffer was emptied again,
 * if there is a count of that.
 */
static void make_faults(struct fault_area *area, int cpu, const unsigned long *emptied)
{
	const unsigned long room = STORM_PAGES * area->page_size / sizeof(struct sample_record);
	unsigned long seen = 0, made = 0;

	if (go_to_cpu(cpu))
		_exit(1);
	raise(SIGSTOP);
	for (unsigned int seq = 0; ; seq++, made++) {
		unsigned long now;

		while (emptied && made > room / 4) {
			now = __atomic_load_n(emptied, __ATOMIC_ACQUIRE);
			if (now != seen)
				made = 0;
			seen = now;
		}
		make_fault(area, seq);
	}
}

/* A task that makes samples in the buffer of @fd all the time, and its event. */
static pid_t start_sampler(struct __test_metadata *_metadata, struct fault_area *area,
			   int cpu, int fd, int *sampler, unsigned long **emptied)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ID | PERF_SAMPLE_CPU);
	int status;
	pid_t busy;

	*emptied = mmap(NULL, sizeof(**emptied), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, *emptied);
	/* Not inherited from here: it has nothing to do with the event itself. */
	busy = fork_tied();
	if (!busy)
		make_faults(area, cpu, *emptied);
	ASSERT_LT(0, busy);
	ASSERT_EQ(busy, waitpid(busy, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	attr.sample_id_all = 1;
	attr.write_backward = 0;
	attr.disabled = 0;
	*sampler = open_event(_metadata, &attr, busy, cpu);
	ASSERT_LE(0, *sampler);
	ASSERT_EQ(0, ioctl(*sampler, PERF_EVENT_IOC_SET_OUTPUT, fd));
	ASSERT_EQ(0, kill(busy, SIGCONT));
	return busy;
}

struct storm {
	/* One that makes some faults where the event counts, and ends elsewhere. */
	pid_t		(*fork)(struct fault_area *area, int cpu, unsigned int faults,
				int end_cpu);
	unsigned int	tasks;
	/* Every so manyth of them makes any. */
	unsigned int	makers;
};

struct told {
	unsigned long	tasks;
	unsigned long	sampler;
};

/*
 * One task makes samples all the time where the event counts, others come and go. The
 * buffer is to stay readable. Says how often the others were told, and how often the one.
 */
static struct told run_storm(struct __test_metadata *_metadata,
			     FIXTURE_DATA(read_inherit_stat) *self,
			     const struct storm *storm)
{
	unsigned long tasks = 0, samples = 0, *emptied;
	struct told told = { };
	struct perf_event_header *record;
	bool over = false;
	pid_t busy;
	int fd;

	busy = start_sampler(_metadata, &self->area, self->cpu, self->fd, &fd, &emptied);
	while (!over) {
		if (tasks < storm->tasks) {
			unsigned int faults = ++tasks % storm->makers ? 0 : FAULTS;

			run_task(_metadata, storm->fork(&self->area, self->cpu, faults,
							self->elsewhere));
		} else if (samples > storm->tasks) {
			ASSERT_EQ(0, kill(busy, SIGKILL));
			ASSERT_EQ(busy, waitpid(busy, NULL, 0));
			over = true;
		} else {
			ASSERT_TRUE(is_alive(busy));
		}
		while ((record = next_record(&self->reader))) {
			switch (record->type) {
			case PERF_RECORD_SAMPLE:
				ASSERT_EQ(sizeof(struct sample_record), record->size);
				ASSERT_EQ(busy, ((struct sample_record *)record)->sample_id.pid);
				samples++;
				break;
			case PERF_RECORD_READ:
				/* What follows when two CPUs write is anything. */
				ASSERT_EQ(self->cpu, ((struct read_record *)record)->sample_id.cpu);
				check_read(_metadata, &self->reader, record, 0);
				if (((struct read_record *)record)->pid == (__u32)busy)
					told.sampler++;
				else
					told.tasks++;
				break;
			default:
				ASSERT_TRUE(is_of_throttling(record)) {
					TH_LOG("a record of type %u, size %u", record->type,
					       record->size);
				}
			}
		}
		__atomic_store_n(emptied, *emptied + 1, __ATOMIC_RELEASE);
	}
	/* All that was written was read: no record is damaged, the head goes on. */
	EXPECT_EQ(perf_overwrite_head(&self->reader.ow), self->reader.position);
	EXPECT_LT(storm->tasks, samples);
	ASSERT_EQ(0, close(fd));
	return told;
}

TEST_F(read_inherit_stat, storm)
{
	const struct storm storm = { .fork = fork_task, .tasks = STORM_TASKS, .makers = 1 };
	struct told told = run_storm(_metadata, self, &storm);

	EXPECT_EQ(STORM_TASKS, told.tasks);
	/* It ends as they do. */
	EXPECT_EQ(1, told.sampler);
}

/*
 * A task that ends interrupts the CPU of its events once for 64 of them: no sample of
 * a task that runs there comes between their records. It does it again for the next 64,
 * as a user may have any number of them. Where records are left out and counted, no CPU
 * is interrupted.
 */
static void end_all_at_once(struct __test_metadata *_metadata,
			    FIXTURE_DATA(read_inherit_stat) *self, struct perf_event_attr *attr,
			    pid_t (*fork_one)(struct fault_area *area, int cpu,
					      unsigned int faults, int end_cpu))
{
	unsigned int samples = 0, between = 0, reads = 0, lost, tasks = 0;
	struct perf_event_header *record;
	int events[MANY_EVENTS - 1];
	unsigned long *emptied;
	__u64 calls = 0;
	__u32 pid = 0;
	pid_t busy;
	int fd, counter;

	for (int i = 0; i < MANY_EVENTS - 1; i++) {
		events[i] = open_event(_metadata, attr, 0, self->cpu);
		ASSERT_LE(0, events[i]);
		ASSERT_EQ(0, ioctl(events[i], PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	}
	busy = start_sampler(_metadata, &self->area, self->cpu, self->fd, &fd, &emptied);
	/* If the function's name is shown. */
	counter = open_function_calls(tracepoint_id("csd", "csd_function_entry"),
				      "__perf_event_read_task", self->cpu);

	for (int i = 0; i < MANY_TASKS; i++) {
		run_task(_metadata, fork_one(&self->area, self->cpu, FAULTS, self->elsewhere));
		while ((record = next_record(&self->reader))) {
			if (record->type != PERF_RECORD_READ) {
				ASSERT_NE(PERF_RECORD_LOST, record->type);
				samples += record->type == PERF_RECORD_SAMPLE;
				between += reads % EVENTS_AT_ONCE != 0;
				continue;
			}
			ASSERT_EQ(self->cpu, ((struct read_record *)record)->sample_id.cpu);
			tasks += ((struct read_record *)record)->pid != pid;
			pid = ((struct read_record *)record)->pid;
			reads++;
		}
		__atomic_store_n(emptied, *emptied + 1, __ATOMIC_RELEASE);
	}
	ASSERT_EQ(0, kill(busy, SIGKILL));
	ASSERT_EQ(busy, waitpid(busy, NULL, 0));
	lost = lost_records(self->fd);
	for (int i = 0; i < MANY_EVENTS - 1; i++) {
		lost += lost_records(events[i]);
		ASSERT_EQ(0, close(events[i]));
	}
	EXPECT_EQ(MANY_TASKS * MANY_EVENTS, reads + lost);
	EXPECT_EQ(reads ? MANY_TASKS : 0, tasks);
	EXPECT_TRUE(!reads || !lost);
	EXPECT_LT(0, samples);
	EXPECT_EQ(0, between);
	if (counter >= 0) {
		ASSERT_EQ(sizeof(calls), read(counter, &calls, sizeof(calls)));
		EXPECT_EQ(reads / EVENTS_AT_ONCE, calls);
		ASSERT_EQ(0, close(counter));
	}
	ASSERT_EQ(0, close(fd));
}

TEST_F(read_inherit_stat, all_at_once)
{
	struct perf_event_attr attr = stat_event();

	end_all_at_once(_metadata, self, &attr, fork_task);
	EXPECT_EQ(0, lost_records(self->fd));
}

/*
 * Of a group each event tells what all of them have counted: an interrupt is for fewer
 * of these, as it is not to last longer.
 */
TEST_F(read_inherit_stat, group_in_pieces)
{
	struct perf_event_attr attr = stat_event();
	unsigned int reads = 0, bytes = 0, size = 0;
	struct perf_event_header *record;
	int events[MANY_EVENTS], counter;
	struct sample_id *id;
	__u64 calls;

	attr.read_format |= PERF_FORMAT_GROUP;
	for (int i = 0; i < MANY_EVENTS; i++) {
		events[i] = syscall(__NR_perf_event_open, &attr, 0, self->cpu,
				    i ? events[0] : -1, PERF_FLAG_FD_CLOEXEC);
		ASSERT_LE(0, events[i]);
		ASSERT_EQ(0, ioctl(events[i], PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	}
	counter = open_function_calls(tracepoint_id("csd", "csd_function_entry"),
				      "__perf_event_read_task", self->cpu);
	run_task(_metadata, fork_task(&self->area, self->cpu, FAULTS, self->elsewhere));
	while ((record = next_record(&self->reader))) {
		ASSERT_EQ(PERF_RECORD_READ, record->type);
		id = (struct sample_id *)((char *)record + record->size) - 1;
		ASSERT_EQ(self->cpu, id->cpu);
		size = record->size > size ? record->size : size;
		bytes += record->size;
		reads++;
	}
	for (int i = MANY_EVENTS; i--; )
		ASSERT_EQ(0, close(events[i]));
	/* The fixture's is none of the group. */
	EXPECT_EQ(MANY_EVENTS + 1, reads);
	/* Each value comes with how many samples were lost. */
	EXPECT_LT(MANY_EVENTS * 2 * sizeof(__u64), size);
	if (counter >= 0) {
		ASSERT_EQ(sizeof(calls), read(counter, &calls, sizeof(calls)));
		EXPECT_LE(bytes / (BYTES_AT_ONCE + size), calls);
		/* Nor is it one by one. */
		EXPECT_GT(reads / 2, calls);
		ASSERT_EQ(0, close(counter));
	}
}

/*
 * A task that execs has its events removed while it goes on. Its counts are written
 * by the CPU of the buffer, or left out and counted: never by another CPU.
 */
FIXTURE(read_on_exec)
{
	FIXTURE_DATA(read_inherit_stat) stat;
};

static struct perf_event_attr removed_event(void)
{
	struct perf_event_attr attr = stat_event();

	attr.remove_on_exec = 1;
	return attr;
}

FIXTURE_SETUP(read_on_exec)
{
	struct perf_event_attr attr = removed_event();

	if (open_stat(_metadata, &self->stat, &attr))
		ASSERT_EQ(0, go_to_cpu(self->stat.elsewhere));
}

FIXTURE_TEARDOWN(read_on_exec)
{
	close_stat(_metadata, &self->stat);
}

TEST_F(read_on_exec, exec_there)
{
	FIXTURE_DATA(read_inherit_stat) *stat = &self->stat;
	pid_t pid = fork_exec(&stat->area, stat->cpu, FAULTS, stat->cpu);
	struct perf_event_header *record;

	run_task(_metadata, pid);
	record = next_record(&stat->reader);
	ASSERT_NE(NULL, record);
	check_read(_metadata, &stat->reader, record, pid);
	EXPECT_EQ(NULL, next_record(&stat->reader));
	EXPECT_EQ(0, lost_records(stat->fd));
}

TEST_F(read_on_exec, exec_elsewhere)
{
	FIXTURE_DATA(read_inherit_stat) *stat = &self->stat;
	pid_t pid = fork_exec(&stat->area, stat->cpu, FAULTS, stat->elsewhere);
	struct perf_event_header *record;
	struct counts counts;

	run_task(_metadata, pid);
	record = next_record(&stat->reader);
	if (record) {
		check_read(_metadata, &stat->reader, record, pid);
		EXPECT_EQ(NULL, next_record(&stat->reader));
	}
	EXPECT_EQ(record ? 0 : 1, lost_records(stat->fd));

	/* What it has counted isn't lost. */
	ASSERT_EQ(sizeof(counts), read(stat->fd, &counts, sizeof(counts)));
	EXPECT_LE(FAULTS, counts.value);
}

TEST_F(read_on_exec, never_there)
{
	FIXTURE_DATA(read_inherit_stat) *stat = &self->stat;

	run_task(_metadata, fork_exec(&stat->area, stat->cpu, 0, stat->elsewhere));
	EXPECT_EQ(NULL, next_record(&stat->reader));
	EXPECT_EQ(0, lost_records(stat->fd));
}

TEST_F(read_on_exec, all_at_once)
{
	struct perf_event_attr attr = removed_event();

	end_all_at_once(_metadata, &self->stat, &attr, fork_exec);
}

/* Each task is told or counted, and a pause finds the end of the last record. */
TEST_F(read_on_exec, storm)
{
	const struct storm storm = { .fork = fork_exec, .tasks = EXEC_TASKS, .makers = 2 };
	struct told told = run_storm(_metadata, &self->stat, &storm);

	/* The sampler exits, which not all kernels tell. */
	EXPECT_EQ(EXEC_TASKS / 2, told.tasks + lost_records(self->stat.fd));
	/* Where the ioctl is missing there is no pause that could wait for ever. */
	if (perf_overwrite_pause(self->stat.fd))
		ASSERT_EQ(ENOTTY, errno);
}

TEST_HARNESS_MAIN
