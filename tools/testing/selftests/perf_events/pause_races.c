// SPDX-License-Identifier: GPL-2.0
/*
 * A pause returns, and the buffer is frozen, even if at the same moment the task that
 * writes to it exits, its mapping goes away, events are directed elsewhere, or signals
 * come.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/time.h>

#include "../kselftest_harness.h"
#include "pause_writer.h"

#define EXITS		20
/* How often the pause meets a buffer, or none, and how often that changes. */
#define MEETINGS	30
#define CHANGES		25

struct races {
	struct pause_writer	writer;
	int			cpu, thread_cpu;
	int			spare;
	unsigned char		*copy;

	/* The other thread. */
	pthread_t		thread;
	bool			running, stop;
	int			other;		/* an event with a buffer */
	unsigned long		done, failed;
};

FIXTURE(pause_races)
{
	struct races	test;
};

FIXTURE_VARIANT(pause_races)
{
	enum writer_events	events;
};

FIXTURE_VARIANT_ADD(pause_races, cpu)
{
	.events = WRITER_OF_CPU,
};

FIXTURE_VARIANT_ADD(pause_races, task_on_cpu)
{
	.events = WRITER_OF_TASK_ON_CPU,
};

FIXTURE_VARIANT_ADD(pause_races, task)
{
	.events = WRITER_OF_TASK,
};

/* Whether there is a writer, which writes then. */
static bool start_writer(struct __test_metadata *_metadata, struct races *test,
			 enum writer_events events)
{
	if (!writer_start(_metadata, &test->writer, test->cpu, events, true, false))
		return false;
	ASSERT_NE(0, writer_wait(&test->writer, 0));
	return true;
}

/* Another event of the writer's, for a buffer of its own. */
static bool open_other(struct __test_metadata *_metadata, struct races *test, bool disabled)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);

	attr.disabled = disabled;
	test->other = open_event(_metadata, &attr, writer_events_pid(&test->writer),
				 writer_events_cpu(&test->writer));
	return test->other >= 0;
}

static void start_thread(struct __test_metadata *_metadata, struct races *test,
			 void *(*function)(void *))
{
	ASSERT_EQ(0, pthread_create(&test->thread, NULL, function, test));
	test->running = true;
}

static void stop_thread(struct __test_metadata *_metadata, struct races *test)
{
	__atomic_store_n(&test->stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(test->thread, NULL));
	test->running = false;
}

FIXTURE_SETUP(pause_races)
{
	struct races *test = &self->test;
	struct perf_event_attr attr = FAULT_EVENT(0);
	int cpus[3], nr_cpus = allowed_cpus(cpus, 3);

	if (nr_cpus < 2)
		SKIP(return, "needs two CPUs");
	ASSERT_EQ(0, go_to_cpu(cpus[0]));
	test->cpu = cpus[1];
	test->thread_cpu = cpus[nr_cpus - 1];
	test->copy = malloc(WRITER_BUFFER_BYTES);
	ASSERT_NE(NULL, test->copy);
	/*
	 * The kernel patches itself when the first event of a kind comes and when
	 * the last one goes. What is tested here doesn't need that over and over.
	 */
	test->spare = open_event(_metadata, &attr, 0, -1);
}

FIXTURE_TEARDOWN(pause_races)
{
	struct races *test = &self->test;

	if (test->running)
		stop_thread(_metadata, test);
	writer_stop(_metadata, &test->writer);
	EXPECT_EQ(0, close(test->spare));
	free(test->copy);
}

TEST_F(pause_races, task_exits)
{
	struct races *test = &self->test;
	struct pause_writer *writer = &test->writer;
	struct perf_overwrite *ow = &writer->ow;
	unsigned int changed = 0;

	for (unsigned int n = 0; n < EXITS; n++) {
		siginfo_t info;
		__u64 head;

		if (!start_writer(_metadata, test, variant->events))
			return;
		ASSERT_EQ(0, kill(writer->pid, SIGKILL));
		ASSERT_EQ(0, perf_overwrite_pause(ow->fd));
		head = perf_overwrite_head(ow);
		memcpy(test->copy, ow->data, ow->size);

		/* Until it is dead, and its events with it. */
		ASSERT_EQ(0, waitid(P_PID, writer->pid, &info, WEXITED | WNOWAIT));
		changed += memcmp(test->copy, ow->data, ow->size) != 0 ||
			   head != perf_overwrite_head(ow);
		ASSERT_EQ(0, perf_overwrite_pause(ow->fd));
		ASSERT_EQ(0, perf_overwrite_resume(ow->fd));
		ASSERT_EQ(0, perf_overwrite_pause(ow->fd));
		/* Events of a CPU may have been written to by another task. */
		changed += variant->events != WRITER_OF_CPU &&
			   head != perf_overwrite_head(ow);

		writer_stop(_metadata, writer);
		memset(writer, 0, sizeof(*writer));
	}
	EXPECT_EQ(0, changed);
}

static void *map_and_unmap(void *argument)
{
	struct races *test = argument;
	struct perf_overwrite ow;

	go_to_cpu(test->thread_cpu);
	while (!__atomic_load_n(&test->stop, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(&test->done, 1, __ATOMIC_RELAXED);
		if (perf_overwrite_map(&ow, test->other, 4, false)) {
			test->failed++;
			continue;
		}
		/* Sometimes there is time for records and for many pauses. */
		if (test->done % 2)
			usleep(2000);
		perf_overwrite_unmap(&ow);
	}
	return NULL;
}

/* There is a buffer or there is none, and nothing between. */
TEST_F(pause_races, buffer_unmapped)
{
	struct races *test = &self->test;
	unsigned long paused = 0, without = 0, pauses;

	if (!start_writer(_metadata, test, variant->events))
		return;
	if (!open_other(_metadata, test, false))
		return;
	start_thread(_metadata, test, map_and_unmap);

	for (pauses = 0; paused < MEETINGS || without < MEETINGS ||
	     __atomic_load_n(&test->done, __ATOMIC_RELAXED) < CHANGES; pauses++) {
		if (!perf_overwrite_pause(test->other)) {
			paused++;
		} else {
			ASSERT_EQ(EINVAL, errno);
			without++;
		}
		if (perf_overwrite_resume(test->other))
			ASSERT_EQ(EINVAL, errno);
	}
	TH_LOG("of %lu pauses %lu met a buffer, of %lu mappings", pauses, paused, test->done);
	stop_thread(_metadata, test);
	ASSERT_EQ(0, test->failed);
	ASSERT_EQ(0, close(test->other));
}

/* Stores there where the kernel publishes the head, as fast as it can. */
static void scribble(int fd)
{
	struct perf_overwrite ow;

	if (perf_overwrite_map(&ow, fd, 4, true))
		_exit(1);
	raise(SIGSTOP);
	for (__u64 n = 1; ; n += 0x9e3779b97f4a7c15ULL)
		*(volatile __u64 *)&ow.meta->data_head = n;
}

/*
 * A writable mapping lets a process write over data_head. That is its own trouble: a
 * pause neither waits for it nor believes it.
 */
TEST_F(pause_races, head_scribbled)
{
	struct races *test = &self->test;
	struct perf_overwrite ow;
	__u64 head;
	int status;
	pid_t pid;

	if (!start_writer(_metadata, test, variant->events))
		return;
	if (!open_other(_metadata, test, false))
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, test->other, 4, true));
	/* Until the buffer is full: with no tail that moves the head stays from then on. */
	while (!lost_count(test->other))
		usleep(100);
	ASSERT_EQ(0, perf_overwrite_pause(test->other));
	head = perf_overwrite_head(&ow);
	ASSERT_EQ(0, perf_overwrite_resume(test->other));

	pid = fork_tied();
	if (!pid)
		scribble(test->other);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, kill(pid, SIGCONT));
	for (int i = 0; i < MEETINGS; i++) {
		ASSERT_EQ(0, perf_overwrite_pause(test->other)) {
			TH_LOG("pause %d: %s", i, strerror(errno));
		}
		ASSERT_EQ(0, perf_overwrite_resume(test->other));
	}
	ASSERT_EQ(0, waitpid(pid, NULL, WNOHANG));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));

	ASSERT_EQ(0, perf_overwrite_pause(test->other));
	if (perf_overwrite_freezes(test->other))
		EXPECT_EQ(head, perf_overwrite_head(&ow));
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(test->other));
}

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
	signals++;
}

/* A signal doesn't end a pause, but its handler needn't wait for that. */
TEST_F(pause_races, signals_come)
{
	const struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	/* Without SA_RESTART. */
	struct sigaction action = { .sa_handler = count_signal };
	struct races *test = &self->test;
	int fd, i;

	if (!start_writer(_metadata, test, variant->events))
		return;
	fd = test->writer.ow.fd;
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (i = 0; i < MEETINGS || signals < MEETINGS; i++) {
		ASSERT_EQ(0, perf_overwrite_pause(fd)) {
			TH_LOG("pause %d, after %d signals: %s", i, (int)signals, strerror(errno));
		}
		ASSERT_EQ(0, perf_overwrite_resume(fd));
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	TH_LOG("%d pauses, %d signals", i, (int)signals);
}

static void *redirect(void *argument)
{
	struct races *test = argument;

	go_to_cpu(test->thread_cpu);
	while (!__atomic_load_n(&test->stop, __ATOMIC_ACQUIRE)) {
		int to = test->done % 2 ? test->writer.fds[0] : test->other;

		if (ioctl(test->writer.fds[1], PERF_EVENT_IOC_SET_OUTPUT, to))
			test->failed++;
		__atomic_fetch_add(&test->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* It is one of the two that is paused, and the other one runs on. */
TEST_F(pause_races, output_redirected)
{
	struct races *test = &self->test;
	struct pause_writer *writer = &test->writer;
	struct perf_overwrite ow;
	unsigned long pauses;

	if (!start_writer(_metadata, test, variant->events))
		return;
	if (!open_other(_metadata, test, true))
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, test->other, writer_buffer_pages(), false));
	start_thread(_metadata, test, redirect);

	for (pauses = 0; pauses < MEETINGS ||
	     __atomic_load_n(&test->done, __ATOMIC_RELAXED) < CHANGES; pauses++) {
		ASSERT_EQ(0, perf_overwrite_pause(writer->fds[1])) {
			TH_LOG("pause %lu: %s", pauses, strerror(errno));
		}
		ASSERT_EQ(0, perf_overwrite_resume(writer->fds[1]));
	}
	stop_thread(_metadata, test);
	TH_LOG("%lu pauses, %lu redirections", pauses, test->done);
	ASSERT_EQ(0, test->failed);

	/* Both still do what they are told, whatever was resumed last. */
	for (int i = 0; i < 2; i++) {
		struct perf_overwrite *this = i ? &ow : &writer->ow;
		__u64 head, lost;

		ASSERT_EQ(0, ioctl(writer->fds[1], PERF_EVENT_IOC_SET_OUTPUT, this->fd));
		ASSERT_EQ(0, perf_overwrite_pause(this->fd));
		head = perf_overwrite_head(this);
		memcpy(test->copy, this->data, this->size);
		for (lost = lost_count(writer->fds[1]); lost_count(writer->fds[1]) == lost; )
			ASSERT_TRUE(is_alive(writer->pid));
		EXPECT_EQ(0, memcmp(test->copy, this->data, this->size));
		ASSERT_EQ(head, perf_overwrite_head(this));
		ASSERT_EQ(0, perf_overwrite_resume(this->fd));
		while (perf_overwrite_head(this) == head)
			ASSERT_TRUE(is_alive(writer->pid));
	}
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(test->other));
}

TEST_HARNESS_MAIN
