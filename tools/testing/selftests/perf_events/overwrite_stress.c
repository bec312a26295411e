// SPDX-License-Identifier: GPL-2.0
/*
 * All CPUs write as fast as they can, from task context and from the interrupts
 * that nest in it, while all buffers are paused, read and resumed, thousands of
 * times. Each writer numbers its records. In what a snapshot finds new there is
 * no gap in the numbers, no repetition, and no record that isn't whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define SNAPSHOTS	3000
#define SNAPSHOTS_MIN	100
#define SECONDS_MAX	15
/* To be seen in all snapshots together, however long it takes. */
#define FAULTS_MIN	(10 * SNAPSHOTS_MIN)
#define NAMES_MIN	SNAPSHOTS_MIN
#define TICKS_MIN	(SNAPSHOTS_MIN / 4)
#define CPUS_MAX	16
#define WRITERS_MIN	4

#define BUFFER_PAGES	16
/* More than there are records in a buffer, so that they number themselves. */
#define AREA_PAGES	4096
#define FAULTS_PER_NAME	8
#define CLOCK_PERIOD	200000

/*
 * Losses are told by the first records after a resume and, if an interrupt was
 * refused within a writer that had come before the pause, by the last ones. The
 * interrupts of some ticks at once may come between.
 */
#define NEAR_LOSS	16

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* One CPU's events, which share a buffer. */
enum event {
	FAULT,		/* in task context */
	CLOCK,		/* in interrupts, even in the midst of writing a name */
	NAME,		/* in task context */
	EVENTS,
};

struct sample {
	struct perf_event_header	header;
	__u64				id;
	__u32				pid, tid;
	__u64				time;
	__u64				addr;
	__u32				cpu, reserved;
};

struct trailer {
	__u32	pid, tid;
	__u64	time;
	__u32	cpu, reserved;
	__u64	id;
};

#define SAMPLE_TYPE	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | \
			 PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU)

struct channel {
	int			cpu;
	struct perf_overwrite	ow;
	struct perf_overwrite_walk walk;
	int			fds[EVENTS];
	__u64			ids[EVENTS];
};

/* A process, and what of it has been seen in the snapshot that is being read. */
struct writer {
	pid_t			pid;
	int			cpu;
	unsigned int		faults, names;
	unsigned int		last_fault, last_name;
};

struct stress {
	struct channel		channels[CPUS_MAX];
	int			nr_channels;
	struct writer		writers[CPUS_MAX];
	int			nr_writers;
	struct fault_area	area;
	cpu_set_t		cpus;
	/* Over all snapshots. */
	__u64			seen[EVENTS], other, losses, lapped;
};

FIXTURE(overwrite_stress)
{
	struct stress	test;
};

/* Returns whether the test goes on. */
static bool open_channel(struct __test_metadata *_metadata, struct channel *channel)
{
	struct perf_event_attr attrs[EVENTS] = {
		[FAULT] = FAULT_EVENT(SAMPLE_TYPE),
		[CLOCK] = FAULT_EVENT(SAMPLE_TYPE),
		[NAME] = NAME_EVENT(true),
	};

	attrs[CLOCK].config = PERF_COUNT_SW_CPU_CLOCK;
	attrs[CLOCK].sample_period = CLOCK_PERIOD;
	attrs[CLOCK].exclude_kernel = 0;
	attrs[NAME].disabled = 1;
	attrs[NAME].sample_type = SAMPLE_TYPE & ~PERF_SAMPLE_ADDR;
	attrs[NAME].sample_id_all = 1;

	for (int i = 0; i < EVENTS; i++) {
		channel->fds[i] = open_event(_metadata, &attrs[i], -1, channel->cpu);
		if (channel->fds[i] < 0)
			return false;
		channel->ids[i] = event_id(channel->fds[i]);
		if (i) {
			ASSERT_EQ(0, ioctl(channel->fds[i], PERF_EVENT_IOC_SET_OUTPUT,
					   channel->fds[0]));
			continue;
		}
		ASSERT_EQ(0, perf_overwrite_map(&channel->ow, channel->fds[0],
						BUFFER_PAGES, false)) {
			TH_LOG("mmap: %s", strerror(errno));
		}
	}
	return true;
}

/* Fault n is at page n modulo the area's size, name n is the number n. */
static void write_on(const struct fault_area *area, int cpu)
{
	char name[NAME_SIZE];

	if (go_to_cpu(cpu))
		_exit(1);
	for (unsigned int seq = 0; ; seq++) {
		make_fault(area, seq);
		if (seq % FAULTS_PER_NAME)
			continue;
		snprintf(name, sizeof(name), "%010u", seq / FAULTS_PER_NAME);
		prctl(PR_SET_NAME, name);
	}
}

FIXTURE_SETUP(overwrite_stress)
{
	struct stress *test = &self->test;
	int cpus[CPUS_MAX], nr_cpus = allowed_cpus(cpus, CPUS_MAX);

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(test->cpus), &test->cpus));
	ASSERT_EQ(0, map_fault_area(&test->area, AREA_PAGES));

	for (int i = 0; i < nr_cpus; i++) {
		test->channels[test->nr_channels].cpu = cpus[i];
		if (!open_channel(_metadata, &test->channels[test->nr_channels]))
			return;
		test->nr_channels++;
	}

	/* Before the writers, so that it gets through to them. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });

	do {
		int cpu = test->channels[test->nr_writers % test->nr_channels].cpu;
		struct writer *writer = &test->writers[test->nr_writers++];

		writer->cpu = cpu;
		writer->pid = fork_tied();
		if (!writer->pid) {
			sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
			write_on(&test->area, cpu);
		}
		ASSERT_LT(0, writer->pid);
	} while (test->nr_writers < test->nr_channels || test->nr_writers < WRITERS_MIN);
}

FIXTURE_TEARDOWN(overwrite_stress)
{
	struct stress *test = &self->test;

	for (int i = 0; i < test->nr_writers; i++)
		stop_child(_metadata, test->writers[i].pid);
	for (int c = 0; c < test->nr_channels; c++) {
		EXPECT_EQ(0, perf_overwrite_unmap(&test->channels[c].ow));
		for (int i = 0; i < EVENTS; i++)
			EXPECT_EQ(0, close(test->channels[c].fds[i]));
	}
}

/* The writer of this CPU with this pid, or NULL. */
static struct writer *find_writer(struct stress *test,
				  const struct channel *channel, pid_t pid)
{
	for (int i = 0; i < test->nr_writers; i++)
		if (test->writers[i].pid == pid && test->writers[i].cpu == channel->cpu)
			return &test->writers[i];
	return NULL;
}

static void check_fault(struct __test_metadata *_metadata,
			struct stress *test,
			struct writer *writer, __u64 addr)
{
	const struct fault_area *area = &test->area;
	unsigned int page = (addr - (unsigned long)area->base) / area->page_size;

	if (addr < (unsigned long)area->base || page >= area->pages) {
		test->other++;
		return;
	}
	if (writer->faults++)
		ASSERT_EQ((writer->last_fault + area->pages - 1) % area->pages, page);
	writer->last_fault = page;
	test->seen[FAULT]++;
}

static void check_sample(struct __test_metadata *_metadata,
			 struct stress *test,
			 const struct channel *channel,
			 const struct sample *sample, __u64 *clock)
{
	struct writer *writer;

	ASSERT_EQ(sizeof(*sample), sample->header.size);
	ASSERT_EQ(channel->cpu, sample->cpu);
	ASSERT_EQ(0, sample->reserved);
	if (sample->id == channel->ids[CLOCK]) {
		/* A clock that is corrected may stand still for a moment. */
		ASSERT_LE(sample->time, *clock);
		*clock = sample->time;
		test->seen[CLOCK]++;
		return;
	}
	ASSERT_EQ(channel->ids[FAULT], sample->id);
	writer = find_writer(test, channel, sample->pid);
	if (writer)
		check_fault(_metadata, test, writer, sample->addr);
	else
		test->other++;
}

static void check_name(struct __test_metadata *_metadata,
		       struct stress *test,
		       const struct channel *channel, const struct comm_record *record)
{
	const char *text = (const char *)record;
	struct trailer trailer;
	struct writer *writer;
	unsigned int name;
	char *end;

	ASSERT_LT(sizeof(*record) - NAME_SIZE + sizeof(trailer), record->header.size);
	memcpy(&trailer, text + record->header.size - sizeof(trailer), sizeof(trailer));
	ASSERT_EQ(channel->ids[NAME], trailer.id);
	ASSERT_EQ(channel->cpu, trailer.cpu);

	writer = find_writer(test, channel, record->pid);
	name = strtoul(record->name, &end, 10);
	/* Until its first name the writer is called like this test. */
	if (!writer || end == record->name) {
		test->other++;
		return;
	}
	ASSERT_EQ(sizeof(*record) + sizeof(trailer), record->header.size);
	ASSERT_EQ(0, *end);
	ASSERT_EQ(10, end - record->name);
	if (writer->names++)
		ASSERT_EQ(writer->last_name - 1, name);
	writer->last_name = name;
	test->seen[NAME]++;
}

/* Everything that the snapshot found new on one CPU. */
static void check_channel(struct __test_metadata *_metadata,
			  struct stress *test, struct channel *channel)
{
	unsigned int records = 0, losses = 0, older = 0;
	struct perf_overwrite_walk *walk = &channel->walk;
	struct perf_event_header *header;
	__u64 clock = -1ULL;

	for (int i = 0; i < test->nr_writers; i++) {
		test->writers[i].faults = 0;
		test->writers[i].names = 0;
	}

	perf_overwrite_begin_new(walk, &channel->ow);
	while ((header = perf_overwrite_next(walk, space))) {
		records++;
		older += !!older;
		switch (header->type) {
		case PERF_RECORD_SAMPLE:
			check_sample(_metadata, test, channel,
				     (struct sample *)header, &clock);
			break;
		case PERF_RECORD_COMM:
			check_name(_metadata, test, channel,
				   (struct comm_record *)header);
			break;
		case PERF_RECORD_LOST:
			losses++;
			if (records > NEAR_LOSS && !older)
				older = 1;
			break;
		case PERF_RECORD_FORK:
		case PERF_RECORD_EXIT:
		case PERF_RECORD_THROTTLE:
		case PERF_RECORD_UNTHROTTLE:
			/* Of whatever else there is on this CPU. */
			test->other++;
			break;
		default:
			ASSERT_EQ(PERF_RECORD_SAMPLE, header->type);
		}
	}

	/* To the very byte where the last snapshot began, or as far as possible. */
	ASSERT_LT(walk->left, walk->missed ? sizeof(struct sample) + sizeof(struct trailer) : 1);
	ASSERT_LE(older, NEAR_LOSS);
	test->losses += losses;
	test->lapped += walk->missed != 0;
}

/*
 * Pauses all. A writer that was past the check of the paused flag isn't
 * preempted until it is done: when this has run on its CPU it is. A grace period
 * (see perf_overwrite_drain()) would do as well, but takes its time.
 */
static void pause_all(struct __test_metadata *_metadata,
		      struct stress *test)
{
	for (int c = 0; c < test->nr_channels; c++)
		ASSERT_EQ(0, perf_overwrite_pause(test->channels[c].fds[c % EVENTS]));
	for (int c = 0; c < test->nr_channels; c++)
		ASSERT_EQ(0, go_to_cpu(test->channels[c].cpu));
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(test->cpus), &test->cpus));
}

/* Many snapshots or, if the machine is too busy for that, many for some time. */
static bool enough(const struct stress *test, unsigned int snapshots, time_t seconds)
{
	if (snapshots < SNAPSHOTS_MIN || !test->losses || test->seen[FAULT] < FAULTS_MIN ||
	    test->seen[NAME] < NAMES_MIN || test->seen[CLOCK] < TICKS_MIN)
		return false;
	return snapshots >= SNAPSHOTS || seconds >= SECONDS_MAX;
}

TEST_F(overwrite_stress, snapshots)
{
	struct stress *test = &self->test;
	time_t begin = time(NULL);
	unsigned int snapshots;

	for (int c = 0; c < test->nr_channels; c++)
		for (int i = 0; i < EVENTS; i++)
			ASSERT_EQ(0, ioctl(test->channels[c].fds[i],
					   PERF_EVENT_IOC_ENABLE, 0));

	for (snapshots = 0; !enough(test, snapshots, time(NULL) - begin); snapshots++) {
		__u64 heads[CPUS_MAX];

		/* Mostly less than a lap, sometimes more. */
		usleep(snapshots % 16 ? 300 : 5000);

		pause_all(_metadata, test);
		for (int c = 0; c < test->nr_channels; c++)
			heads[c] = perf_overwrite_head(&test->channels[c].ow);
		for (int c = 0; c < test->nr_channels; c++)
			check_channel(_metadata, test, &test->channels[c]);
		/* It was a pause: nothing came meanwhile. */
		for (int c = 0; c < test->nr_channels; c++)
			ASSERT_EQ(heads[c], perf_overwrite_head(&test->channels[c].ow));
		for (int c = 0; c < test->nr_channels; c++)
			ASSERT_EQ(0, perf_overwrite_resume(test->channels[c].ow.fd));
		for (int i = 0; i < test->nr_writers; i++)
			ASSERT_TRUE(is_alive(test->writers[i].pid));
	}

	TH_LOG("%u snapshots of %d CPUs, %llu lapped, %llu losses", snapshots,
	       test->nr_channels, test->lapped, test->losses);
	TH_LOG("%llu faults, %llu names, %llu ticks, %llu others", test->seen[FAULT],
	       test->seen[NAME], test->seen[CLOCK], test->other);
}

TEST_HARNESS_MAIN
