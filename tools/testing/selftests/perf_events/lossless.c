// SPDX-License-Identifier: GPL-2.0
/*
 * Swapping buffers under load: the recording events write to the buffer of an
 * event that does nothing but hold it, and are directed to another holder's when
 * the first buffer is to be read. Then this one is paused, and complete.
 *
 * An event that is directed elsewhere may be in the midst of writing to the old
 * buffer, or be about to: it has got hold of that buffer before. For the former
 * the pause waits. The latter finds the buffer paused, and writes to the other.
 *
 * And for as long as ENDURANCE_SECONDS says: four writers at full speed, of which one
 * reader reads half by pauses, another one half by swaps. Each record that was written
 * is readable, overwritten, or lost in a pause, and each of these is counted in a way of
 * its own: numbers, bytes, the kernel's count.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
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

	prctl(PR_SET_PDEATHSIG, SIGKILL);
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
	self->pid = fork();
	ASSERT_LE(0, self->pid);
	if (!self->pid)
		write_on(&self->area, self->progress, cpus[1]);
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
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		ASSERT_EQ(self->pid, waitpid(self->pid, NULL, 0));
	}
	for (int i = 0; i < EVENTS; i++)
		close(self->fds[i]);
	for (int i = 0; i < 2; i++) {
		if (self->ow[i].meta)
			ASSERT_EQ(0, perf_overwrite_unmap(&self->ow[i]));
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

#define WRITERS			4
#define WRITER_BUFFER_BYTES	(1024 * 1024)
#define WRITER_STACK_BYTES	512
#define ENDURANCE_SECONDS	5
#define SNAPSHOTS_MIN		20

struct small_sample {
	struct perf_event_header	header;
	__u64				addr;
	__u64				stack_size;
	__u64				stack[WRITER_STACK_BYTES / sizeof(__u64)];
	__u64				stack_used;
};

/* Shared with a writer. */
struct order {
	bool		stop;
	bool		stopped;
	unsigned int	written;
};

struct writer {
	pid_t			pid;
	struct order		*order;
	int			fd;
	unsigned int		nr_buffers;
	int			holders[2];
	struct perf_overwrite	ow[2];

	/* Numbers before @begin aren't counted: what a writer does at first faults, too. */
	unsigned int		begin;
	unsigned int		end;		/* the number that comes next */
	__u64			snapshots, lapped;
	__u64			readable, overwritten, lost, told, others;
};

struct reader {
	pthread_t		thread;
	const struct fault_area	*area;
	struct writer		*writers[WRITERS];
	unsigned int		nr_writers;
	__u64			end_ns;
	char			why[200];	/* it ended before, or "" */
};

FIXTURE(endurance)
{
	struct fault_area	area;
	struct writer		writers[WRITERS];
	struct reader		readers[2];
};

static void write_fast(const struct fault_area *area, struct order *order, int cpu)
{
	unsigned int seq;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (go_to_cpu(cpu))
		_exit(1);
	/* Touch what will be touched, so that from here on only the area faults. */
	touch_stack();
	fault_with_stack(area, 1, WRITER_STACK_BYTES);
	__atomic_store_n(&order->stopped, false, __ATOMIC_RELEASE);
	raise(SIGSTOP);
	for (seq = 0; !__atomic_load_n(&order->stop, __ATOMIC_ACQUIRE); seq++)
		fault_with_stack(area, seq, WRITER_STACK_BYTES);
	order->written = seq;
	__atomic_store_n(&order->stopped, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

FIXTURE_SETUP(endurance)
{
	size_t pages = WRITER_BUFFER_BYTES / sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR | PERF_SAMPLE_STACK_USER);
	struct perf_event_attr holder = NAME_EVENT(true);
	int cpus[WRITERS], nr_cpus = allowed_cpus(cpus, WRITERS);

	attr.sample_stack_user = WRITER_STACK_BYTES;
	holder.comm = 0;
	if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));

	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &self->writers[i];
		struct reader *reader = &self->readers[i % 2];
		int cpu = cpus[i % nr_cpus], status;

		writer->order = mmap(NULL, sizeof(*writer->order), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, writer->order);
		writer->pid = fork();
		ASSERT_LE(0, writer->pid);
		if (!writer->pid)
			write_fast(&self->area, writer->order, cpu);
		ASSERT_EQ(writer->pid, waitpid(writer->pid, &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status));

		/* One buffer to pause, or two to swap. */
		for (int b = 0; b <= i % 2; b++) {
			writer->holders[b] = open_event(_metadata, &holder, writer->pid, cpu);
			if (writer->holders[b] < 0)
				return;
			writer->nr_buffers++;
			if (map_event(_metadata, &writer->ow[b], writer->holders[b], pages, false))
				return;
			ASSERT_EQ(0, perf_overwrite_pause(writer->holders[b]));
			ASSERT_EQ(0, perf_overwrite_resume(writer->holders[b]));
		}
		writer->fd = open_event(_metadata, &attr, writer->pid, cpu);
		if (writer->fd < 0)
			return;
		ASSERT_EQ(0, ioctl(writer->fd, PERF_EVENT_IOC_SET_OUTPUT, writer->holders[0]));
		ASSERT_EQ(0, ioctl(writer->fd, PERF_EVENT_IOC_ENABLE, 0));
		reader->writers[reader->nr_writers++] = writer;
	}
}

FIXTURE_TEARDOWN(endurance)
{
	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &self->writers[i];

		if (writer->pid > 0) {
			kill(writer->pid, SIGKILL);
			ASSERT_EQ(writer->pid, waitpid(writer->pid, NULL, 0));
		}
		if (writer->fd > 0)
			close(writer->fd);
		for (unsigned int b = 0; b < writer->nr_buffers; b++) {
			if (writer->ow[b].meta)
				ASSERT_EQ(0, perf_overwrite_unmap(&writer->ow[b]));
			close(writer->holders[b]);
		}
	}
}

/* Ends a reader: says why, once, and returns false. */
static bool ends(struct reader *reader, const struct writer *writer, const char *format, ...)
{
	int at = snprintf(reader->why, sizeof(reader->why), "snapshot %llu: ", writer->snapshots);
	va_list args;

	va_start(args, format);
	vsnprintf(reader->why + at, sizeof(reader->why) - at, format, args);
	va_end(args);

	return false;
}

/* Accounts for all that @ow, which is paused, has had since it was read last. */
static bool read_all(struct reader *reader, struct writer *writer, struct perf_overwrite *ow,
		     __u64 *room)
{
	unsigned int oldest = 0, newest = 0, count = 0, losses = 0;
	__u64 head = perf_overwrite_head(ow), told = 0, unread, over, lost, cut;
	const struct fault_area *area = reader->area;
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;

	perf_overwrite_begin_new(&walk, ow);
	while ((header = perf_overwrite_next(&walk, room))) {
		const struct lost_record *loss = (const struct lost_record *)header;
		const struct small_sample *sample = (const struct small_sample *)header;
		unsigned int seq;

		if (header->type == PERF_RECORD_LOST && header->size == sizeof(*loss)) {
			losses++;
			told += loss->lost;
			continue;
		}
		if (header->type != PERF_RECORD_SAMPLE || header->size != sizeof(*sample))
			return ends(reader, writer, "a record of type %u has %u bytes",
				    header->type, header->size);
		/* The writer may fault for other reasons, too. */
		if (sample->addr - fault_address(area, 0) >= area->pages * area->page_size) {
			writer->others++;
			continue;
		}
		seq = sample->stack[ARRAY_SIZE(sample->stack) - 1] >> 32;
		if (sample->addr != fault_address(area, seq) ||
		    !stack_is(sample->stack, sizeof(sample->stack), seq))
			return ends(reader, writer, "number %u is torn", seq);
		if (!count++)
			newest = seq;
		else if (seq != oldest - 1)
			return ends(reader, writer, "number %u comes before %u", seq, oldest);
		oldest = seq;
	}
	if (perf_overwrite_head(ow) != head)
		return ends(reader, writer, "the head moved while it was paused");
	writer->snapshots++;
	writer->lapped += !!walk.missed;

	/* By bytes what was overwritten, the cut record included; by numbers what is gone. */
	unread = walk.missed + walk.left;
	if (!walk.missed && unread)
		return ends(reader, writer, "%llu bytes are no records", unread);
	if (!count)
		return !unread || ends(reader, writer, "nothing readable in %llu bytes", unread);
	if (!writer->begin) {
		writer->begin = newest + 1;
		writer->end = newest + 1;
		return true;
	}
	if ((int)(oldest - writer->end) < 0)
		return ends(reader, writer, "number %u turned up twice or late", oldest);
	over = unread / sizeof(struct small_sample);
	lost = oldest - writer->end - over;
	if ((__s64)lost < 0)
		return ends(reader, writer, "%llu overwritten, %u missing", over,
			    oldest - writer->end);
	/* What a pause has lost is told before all else, if that wasn't overwritten. */
	cut = lost && !losses ? sizeof(struct lost_record) : 0;
	if (unread % sizeof(struct small_sample) != cut ||
	    (losses ? told != lost || losses > 1 : lost && !unread))
		return ends(reader, writer, "%llu lost, %llu told, %llu bytes overwritten", lost,
			    told, unread);
	if (lost && writer->nr_buffers > 1)
		return ends(reader, writer, "%llu lost in a swap", lost);

	writer->readable += count;
	writer->overwritten += over;
	writer->lost += lost;
	writer->told += told;
	writer->end = newest + 1;
	return true;
}

/* One snapshot by pause, or by swap. */
static bool read_writer(struct reader *reader, struct writer *writer, __u64 *room)
{
	unsigned int turn = writer->snapshots % writer->nr_buffers;
	unsigned int next = (turn + 1) % writer->nr_buffers;
	struct perf_overwrite *ow = &writer->ow[turn];
	bool done;

	if (writer->nr_buffers > 1 &&
	    (perf_overwrite_resume(writer->holders[next]) ||
	     ioctl(writer->fd, PERF_EVENT_IOC_SET_OUTPUT, writer->holders[next])))
		return ends(reader, writer, "swap: %s", strerror(errno));
	if (perf_overwrite_pause(ow->fd))
		return ends(reader, writer, "pause: %s", strerror(errno));
	done = read_all(reader, writer, ow, room);
	if (done && writer->nr_buffers == 1 && perf_overwrite_resume(ow->fd))
		return ends(reader, writer, "resume: %s", strerror(errno));
	return done;
}

/* What is left when the writer has stopped. */
static bool read_last(struct reader *reader, struct writer *writer, __u64 *room)
{
	unsigned int written, lost;

	__atomic_store_n(&writer->order->stop, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->order->stopped, __ATOMIC_ACQUIRE))
		if (usleep(1000) || !is_alive(writer->pid))
			return ends(reader, writer, "the writer is gone");
	written = writer->order->written;
	for (unsigned int i = 0; i < writer->nr_buffers; i++)
		if (!read_writer(reader, writer, room))
			return false;

	/* A pause that nothing came after told of nothing. */
	lost = written - writer->end;
	if (lost && writer->nr_buffers > 1)
		return ends(reader, writer, "%u missing in the end", lost);
	writer->lost += lost;
	if (writer->lost != lost_count(writer->fd))
		return ends(reader, writer, "%llu lost, and %llu by the kernel's count",
			    writer->lost, lost_count(writer->fd));
	if (writer->readable + writer->overwritten + writer->lost != written - writer->begin)
		return ends(reader, writer, "%u written, and %llu + %llu + %llu accounted for",
			    written - writer->begin, writer->readable, writer->overwritten,
			    writer->lost);
	return true;
}

static void *read_on(void *arg)
{
	static __thread __u64 room[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
	struct reader *reader = arg;

	/* The writers leave no time to others. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	for (unsigned int n = 0; n < SNAPSHOTS_MIN || now_ns() < reader->end_ns; n++) {
		for (unsigned int i = 0; i < reader->nr_writers; i++)
			if (!read_writer(reader, reader->writers[i], room))
				return NULL;
		/* Mostly less than a lap, sometimes more. */
		usleep(n % 16 ? 3000 : 100000);
	}
	for (unsigned int i = 0; i < reader->nr_writers; i++)
		if (!read_last(reader, reader->writers[i], room))
			return NULL;
	return NULL;
}

static unsigned int endurance_seconds(void)
{
	const char *number = getenv("ENDURANCE_SECONDS");

	return number && atoi(number) > 0 ? atoi(number) : ENDURANCE_SECONDS;
}

/* For an hour of it TEST_LIMIT has to be larger: see scripts/check-all. */
TEST_F(endurance, all_accounted)
{
	__u64 end_ns = now_ns() + endurance_seconds() * 1000000000ULL;
	struct writer all = { 0 };

	for (int i = 0; i < WRITERS; i++)
		ASSERT_EQ(0, kill(self->writers[i].pid, SIGCONT));
	for (int i = 0; i < 2; i++) {
		struct reader *reader = &self->readers[i];

		reader->area = &self->area;
		reader->end_ns = end_ns;
		ASSERT_EQ(0, pthread_create(&reader->thread, NULL, read_on, reader));
	}
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(self->readers[i].thread, NULL));

	for (int i = 0; i < WRITERS; i++) {
		const struct writer *writer = &self->writers[i];

		TH_LOG("%s: %u written = %llu readable + %llu overwritten + %llu lost",
		       writer->nr_buffers > 1 ? "swaps" : "pauses",
		       writer->order->written - writer->begin, writer->readable,
		       writer->overwritten, writer->lost);
		TH_LOG("%llu snapshots, %llu lapped, %llu told lost, %llu others",
		       writer->snapshots, writer->lapped, writer->told, writer->others);
		all.readable += writer->readable;
		all.overwritten += writer->overwritten;
		all.lost += writer->lost;
		all.snapshots += writer->snapshots;
	}
	TH_LOG("%llu snapshots: %llu records readable, %llu overwritten, %llu lost",
	       all.snapshots, all.readable, all.overwritten, all.lost);
	for (int i = 0; i < 2; i++)
		ASSERT_STREQ("", self->readers[i].why);
	for (int i = 0; i < WRITERS; i++)
		ASSERT_LT(0, self->writers[i].readable);
}

TEST_HARNESS_MAIN
