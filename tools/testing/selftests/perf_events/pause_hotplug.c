// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs go offline and come back while their buffers are paused, read and resumed.
 * A pause asks the CPU that writes to the buffer. It also ends if that CPU is offline,
 * or goes offline meanwhile.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>

#include "../kselftest_harness.h"
#include "kept_file.h"
#include "pause_writer.h"

#define CPUS_MAX	3
#define ROUNDS		6
/* Between a CPU's going and its coming back, and the other way round. */
#define PAUSES		10

struct hotplug {
	struct pause_writer	writers[CPUS_MAX];
	/* The first CPU is this thread's, the others may come and go. */
	int			allowed[CPUS_MAX + 1];
	int			nr_allowed;
	int			cpus[CPUS_MAX];
	int			nr_cpus;
	struct kept_file	online[CPUS_MAX];
	unsigned char		*copy;

	/* Of the thread that takes the CPUs offline. */
	pthread_t		thread;
	bool			running, stop, done;
	const char		*trouble;
	int			offline;	/* a CPU, -1 if all are there */
	unsigned long		pauses;		/* made by the other thread */
};

FIXTURE(pause_hotplug)
{
	struct hotplug	test;
};

FIXTURE_SETUP(pause_hotplug)
{
	struct hotplug *test = &self->test;

	test->nr_allowed = allowed_cpus(test->allowed, CPUS_MAX + 1);
	ASSERT_LT(0, test->nr_allowed);
	ASSERT_EQ(0, go_to_cpu(test->allowed[0]));
	test->offline = -1;
	test->copy = malloc(WRITER_BUFFER_BYTES);
	ASSERT_NE(NULL, test->copy);
}

FIXTURE_TEARDOWN(pause_hotplug)
{
	struct hotplug *test = &self->test;

	if (test->running) {
		__atomic_store_n(&test->stop, true, __ATOMIC_RELEASE);
		EXPECT_EQ(0, pthread_join(test->thread, NULL));
	}
	for (int i = 0; i < test->nr_cpus; i++) {
		EXPECT_EQ(0, restore_file(&test->online[i]));
		writer_stop(_metadata, &test->writers[i]);
	}
	free(test->copy);
}

/* Finds out which CPUs can be taken offline, up to @max. */
static void find_cpus(struct hotplug *test, int max)
{
	for (int i = 1; i < test->nr_allowed && test->nr_cpus < max; i++) {
		struct kept_file *online = &test->online[test->nr_cpus];

		if (keep_online(online, test->allowed[i]))
			continue;
		if (set_online(test->allowed[i], false)) {
			restore_file(online);
			continue;
		}
		test->cpus[test->nr_cpus++] = test->allowed[i];
		set_online(test->allowed[i], true);
	}
}

/* Whether nothing changes for as long as it takes to look at all of it twice. */
static bool stays(const struct perf_overwrite *ow, unsigned char *copy)
{
	__u64 head = perf_overwrite_head(ow);

	memcpy(copy, ow->data, ow->size);
	return !memcmp(copy, ow->data, ow->size) && head == perf_overwrite_head(ow);
}

/* Waits for more pauses, and for a record if of a @writer. False if none will come. */
static bool wait_for(struct hotplug *test, unsigned long pauses,
		     const struct pause_writer *writer)
{
	__u64 head = writer ? perf_overwrite_head(&writer->ow) : 0;

	pauses += __atomic_load_n(&test->pauses, __ATOMIC_RELAXED);
	while (__atomic_load_n(&test->pauses, __ATOMIC_RELAXED) < pauses ||
	       (writer && perf_overwrite_head(&writer->ow) == head)) {
		if (__atomic_load_n(&test->stop, __ATOMIC_ACQUIRE) ||
		    (writer && !is_alive(writer->pid)))
			return false;
		usleep(500);
	}
	return true;
}

static const char *come_and_go(struct hotplug *test, int i)
{
	if (set_online(test->cpus[i], false))
		return "a CPU doesn't go offline";
	__atomic_store_n(&test->offline, test->cpus[i], __ATOMIC_RELEASE);
	if (!wait_for(test, PAUSES, NULL))
		return "no pauses while a CPU is offline";
	__atomic_store_n(&test->offline, -1, __ATOMIC_RELEASE);
	if (set_online(test->cpus[i], true))
		return "a CPU doesn't come back";
	if (!writer_renew_events(&test->writers[i]))
		return "no events for a CPU that came back";
	if (!wait_for(test, PAUSES, &test->writers[i]))
		return "no records from a CPU that came back";
	return NULL;
}

static void *take_cpus_offline(void *argument)
{
	struct hotplug *test = argument;

	for (int n = 0; n < ROUNDS * test->nr_cpus && !test->trouble; n++)
		test->trouble = come_and_go(test, n % test->nr_cpus);
	__atomic_store_n(&test->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The writers are tasks that go back to their CPU whenever it is there. */
TEST_F(pause_hotplug, nothing_changes)
{
	struct hotplug *test = &self->test;
	unsigned int changed = 0, offline = 0;
	__u64 longest = 0;

	find_cpus(test, CPUS_MAX);
	if (!test->nr_cpus)
		SKIP(return, "no CPU can be taken offline");
	for (int i = 0; i < test->nr_cpus; i++) {
		if (!writer_start(_metadata, &test->writers[i], test->cpus[i], WRITER_OF_CPU,
				  true, false))
			return;
	}
	ASSERT_EQ(0, pthread_create(&test->thread, NULL, take_cpus_offline, test));
	test->running = true;

	for (unsigned int n = 0; !__atomic_load_n(&test->done, __ATOMIC_ACQUIRE); n++) {
		struct pause_writer *writer = &test->writers[n % test->nr_cpus];
		bool before = __atomic_load_n(&test->offline, __ATOMIC_ACQUIRE) == writer->cpu;
		__u64 time = now_ns();

		ASSERT_EQ(0, perf_overwrite_pause(writer->ow.fd)) {
			TH_LOG("pause %u, of CPU %d: %s", n, writer->cpu, strerror(errno));
		}
		time = now_ns() - time;
		if (time > longest)
			longest = time;
		changed += !stays(&writer->ow, test->copy);
		ASSERT_EQ(0, perf_overwrite_resume(writer->ow.fd));
		offline += before &&
			   __atomic_load_n(&test->offline, __ATOMIC_ACQUIRE) == writer->cpu;
		__atomic_fetch_add(&test->pauses, 1, __ATOMIC_RELAXED);
	}
	TH_LOG("%lu pauses, %u of them of a CPU that was offline, the longest took %llu us",
	       test->pauses, offline, longest / 1000);
	ASSERT_EQ(NULL, test->trouble) {
		TH_LOG("%s", test->trouble);
	}
	EXPECT_LE(ROUNDS * test->nr_cpus, offline);
	EXPECT_EQ(0, changed);
}

/*
 * An event of a CPU, whichever task is there, is gone for good with the CPU, while
 * its buffer stays what it was, and takes the records of another event.
 */
TEST_F(pause_hotplug, buffer_outlives_cpu)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);
	struct hotplug *test = &self->test;
	struct pause_writer *writer = &test->writers[0];
	struct perf_overwrite ow;
	int cpu, old, new;
	__u64 head;

	find_cpus(test, 1);
	if (!test->nr_cpus)
		SKIP(return, "no CPU can be taken offline");
	cpu = test->cpus[0];
	/* Its own events are of no concern here. */
	if (!writer_start(_metadata, writer, cpu, WRITER_OF_CPU, true, false))
		return;

	attr.disabled = 0;
	old = open_event(_metadata, &attr, -1, cpu);
	if (old < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, old, 4, false));
	while (!perf_overwrite_head(&ow))
		ASSERT_TRUE(is_alive(writer->pid));

	/* Paused before: it stays so. */
	ASSERT_EQ(0, perf_overwrite_pause(old));
	head = perf_overwrite_head(&ow);
	memcpy(test->copy, ow.data, ow.size);
	ASSERT_EQ(0, set_online(cpu, false));
	ASSERT_EQ(0, perf_overwrite_pause(old));
	ASSERT_EQ(0, memcmp(test->copy, ow.data, ow.size));
	ASSERT_EQ(head, perf_overwrite_head(&ow));

	/* Paused without its CPU. */
	ASSERT_EQ(0, perf_overwrite_resume(old));
	ASSERT_EQ(0, perf_overwrite_pause_start(old));
	ASSERT_EQ(0, perf_overwrite_pause(old));
	ASSERT_EQ(0, set_online(cpu, true));
	ASSERT_EQ(0, perf_overwrite_pause(old));
	ASSERT_EQ(0, memcmp(test->copy, ow.data, ow.size));
	ASSERT_EQ(head, perf_overwrite_head(&ow));

	new = open_event(_metadata, &attr, -1, cpu);
	ASSERT_LE(0, new);
	ASSERT_EQ(0, ioctl(new, PERF_EVENT_IOC_SET_OUTPUT, old));
	ASSERT_TRUE(stays(&ow, test->copy));
	ASSERT_EQ(head, perf_overwrite_head(&ow));
	ASSERT_EQ(0, perf_overwrite_resume(new));
	while (perf_overwrite_head(&ow) == head)
		ASSERT_TRUE(is_alive(writer->pid));
	ASSERT_EQ(0, perf_overwrite_pause(old));
	ASSERT_TRUE(stays(&ow, test->copy));

	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(new));
	ASSERT_EQ(0, close(old));
}

TEST_HARNESS_MAIN
