// SPDX-License-Identifier: GPL-2.0
/*
 * Writers at full speed, for as long as ENDURANCE_SECONDS says, and an account of all
 * that they wrote: four of them make numbered system calls, each of which is a record.
 * One reader reads half of the writers by pauses, another one the other half by swaps,
 * where the event is directed to a second buffer before the first is paused.
 *
 * Each record is readable, overwritten, or lost in a pause, and each of these is counted
 * in a way of its own: by numbers, by bytes, and by the kernel's count and its records.
 * A swap loses none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define SECONDS		5
#define WRITERS		4
#define READERS		2
#define BUFFER_BYTES	(1024 * 1024)
#define SNAPSHOTS_MIN	20
/* Nothing else here calls it, and it does nothing with what it is given. */
#define NUMBERED_CALL	__NR_getppid
#define WORDS		6

/* A sample of raw_syscalls:sys_enter. */
struct call_record {
	struct perf_event_header	header;
	__u32				raw_size;
	__u32				common[2];
	__u64				id;
	__u64				args[WORDS];
	__u32				end;
} __attribute__((packed));

/* Shared with a writer. */
struct order {
	bool	stop;
	bool	stopped;
	__u64	written;
};

struct writer {
	pid_t			pid;
	struct order		*order;
	int			fd;
	unsigned int		nr_buffers;
	int			holders[2];
	struct perf_overwrite	ow[2];

	__u64			end;		/* the number that comes next */
	__u64			snapshots, lapped;
	__u64			readable, overwritten, lost, told;
};

struct reader {
	pthread_t		thread;
	struct writer		*writers[WRITERS];
	unsigned int		nr_writers;
	__u64			end_ns;
	char			why[200];	/* it ended before its time, or "" */
};

FIXTURE(endurance)
{
	struct writer		writers[WRITERS];
	struct reader		readers[READERS];
};

/* Each word tells the number, and its own place. */
static __u64 word(__u64 seq, unsigned int i)
{
	return seq * 8 + i;
}

static void write_on(struct order *order, int cpu)
{
	__u64 seq;

	if (go_to_cpu(cpu))
		_exit(1);
	raise(SIGSTOP);
	for (seq = 0; !__atomic_load_n(&order->stop, __ATOMIC_ACQUIRE); seq++)
		syscall(NUMBERED_CALL, word(seq, 0), word(seq, 1), word(seq, 2),
			word(seq, 3), word(seq, 4), word(seq, 5));
	order->written = seq;
	__atomic_store_n(&order->stopped, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

FIXTURE_SETUP(endurance)
{
	size_t pages = BUFFER_BYTES / sysconf(_SC_PAGESIZE);
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.write_backward = 1,
		.disabled = 1,
	};
	struct perf_event_attr holder = NAME_EVENT(true);
	int cpus[WRITERS], nr_cpus = allowed_cpus(cpus, WRITERS);
	long long id = tracepoint_id("raw_syscalls", "sys_enter");
	char filter[32];

	if (id < 0)
		SKIP(return, "no tracepoint of system calls");
	if (sizeof(long) < sizeof(__u64))
		SKIP(return, "numbers need arguments of 64 bits");
	attr.config = id;
	holder.comm = 0;
	snprintf(filter, sizeof(filter), "id == %d", NUMBERED_CALL);

	ASSERT_LT(0, nr_cpus);
	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &self->writers[i];
		struct reader *reader = &self->readers[i % READERS];
		int cpu = cpus[i % nr_cpus], status;

		writer->order = mmap(NULL, sizeof(*writer->order), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, writer->order);
		writer->pid = fork_tied();
		if (!writer->pid)
			write_on(writer->order, cpu);
		ASSERT_LT(0, writer->pid);
		ASSERT_EQ(writer->pid, waitpid(writer->pid, &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status));

		/* One buffer to pause, or two to swap. */
		for (int b = 0; b <= i % READERS; b++) {
			writer->holders[b] = open_event(_metadata, &holder, writer->pid, cpu);
			if (writer->holders[b] < 0)
				return;
			writer->nr_buffers++;
			if (map_event(_metadata, &writer->ow[b], writer->holders[b], pages, false))
				return;
		}
		writer->fd = open_event(_metadata, &attr, writer->pid, cpu);
		if (writer->fd < 0)
			return;
		ASSERT_EQ(0, ioctl(writer->fd, PERF_EVENT_IOC_SET_FILTER, filter));
		ASSERT_EQ(0, ioctl(writer->fd, PERF_EVENT_IOC_SET_OUTPUT, writer->holders[0]));
		ASSERT_EQ(0, ioctl(writer->fd, PERF_EVENT_IOC_ENABLE, 0));
		reader->writers[reader->nr_writers++] = writer;
	}
}

FIXTURE_TEARDOWN(endurance)
{
	for (int i = 0; i < WRITERS; i++) {
		struct writer *writer = &self->writers[i];

		stop_child(_metadata, writer->pid);
		if (writer->fd > 0)
			close(writer->fd);
		for (unsigned int b = 0; b < writer->nr_buffers; b++) {
			if (writer->ow[b].meta)
				EXPECT_EQ(0, perf_overwrite_unmap(&writer->ow[b]));
			close(writer->holders[b]);
		}
	}
}

/* Says why @_reader ends before its time. */
#define ends(_reader, _writer, ...)						\
	({									\
		int at = snprintf((_reader)->why, sizeof((_reader)->why),	\
				  "snapshot %llu: ", (_writer)->snapshots);	\
		snprintf((_reader)->why + at, sizeof((_reader)->why) - at,	\
			 __VA_ARGS__);						\
		false;								\
	})

static bool is_whole(const struct call_record *call, __u64 seq)
{
	for (unsigned int i = 0; i < WORDS; i++)
		if (call->args[i] != word(seq, i))
			return false;
	return call->id == NUMBERED_CALL;
}

/* Accounts for all that @ow, which is paused, has had since it was read last. */
static bool read_all(struct reader *reader, struct writer *writer, struct perf_overwrite *ow,
		     __u64 *room)
{
	__u64 head = perf_overwrite_head(ow), oldest = 0, newest = 0, count = 0;
	__u64 losses = 0, told = 0, unread, over, lost, lost_bytes;
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;

	perf_overwrite_begin_new(&walk, ow);
	while ((header = perf_overwrite_next(&walk, room))) {
		const struct lost_record *loss = (const struct lost_record *)header;
		const struct call_record *call = (const struct call_record *)header;
		__u64 seq;

		if (header->type == PERF_RECORD_LOST && header->size == sizeof(*loss)) {
			losses++;
			told += loss->lost;
			continue;
		}
		if (header->type != PERF_RECORD_SAMPLE || header->size != sizeof(*call))
			return ends(reader, writer, "a record of type %u has %u bytes",
				    header->type, header->size);
		seq = call->args[0] / 8;
		if (!is_whole(call, seq))
			return ends(reader, writer, "number %llu is torn", seq);
		if (!count++)
			newest = seq;
		else if (seq != oldest - 1)
			return ends(reader, writer, "number %llu comes before %llu", seq, oldest);
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
	if (oldest < writer->end)
		return ends(reader, writer, "number %llu turned up twice or late", oldest);
	over = unread / sizeof(struct call_record);
	if (oldest - writer->end < over)
		return ends(reader, writer, "%llu overwritten, %llu missing", over,
			    oldest - writer->end);
	lost = oldest - writer->end - over;
	/* What a pause has lost is told before all else, if that wasn't overwritten. */
	lost_bytes = lost && !losses ? sizeof(struct lost_record) : 0;
	if (unread % sizeof(struct call_record) != lost_bytes || losses > 1 ||
	    (losses ? told != lost : lost && !unread))
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
	__u64 written, lost;

	__atomic_store_n(&writer->order->stop, true, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->order->stopped, __ATOMIC_ACQUIRE)) {
		if (!is_alive(writer->pid))
			return ends(reader, writer, "the writer is gone");
		usleep(1000);
	}
	written = writer->order->written;
	for (unsigned int i = 0; i < writer->nr_buffers; i++)
		if (!read_writer(reader, writer, room))
			return false;

	/* What nothing came after was told of by no record. */
	lost = written - writer->end;
	if (lost && writer->nr_buffers > 1)
		return ends(reader, writer, "%llu missing in the end", lost);
	writer->lost += lost;
	if (writer->lost != lost_count(writer->fd))
		return ends(reader, writer, "%llu lost, and %llu by the kernel's count",
			    writer->lost, lost_count(writer->fd));
	if (writer->readable + writer->overwritten + writer->lost != written)
		return ends(reader, writer, "%llu written, and %llu accounted for", written,
			    writer->readable + writer->overwritten + writer->lost);
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

	return number && atoi(number) > 0 ? atoi(number) : SECONDS;
}

TEST_F(endurance, all_accounted)
{
	__u64 end_ns = now_ns() + endurance_seconds() * 1000000000ULL;
	struct writer all = { 0 };

	for (int i = 0; i < WRITERS; i++)
		ASSERT_EQ(0, kill(self->writers[i].pid, SIGCONT));
	for (int i = 0; i < READERS; i++) {
		struct reader *reader = &self->readers[i];

		reader->end_ns = end_ns;
		ASSERT_EQ(0, pthread_create(&reader->thread, NULL, read_on, reader));
	}
	for (int i = 0; i < READERS; i++)
		ASSERT_EQ(0, pthread_join(self->readers[i].thread, NULL));

	for (int i = 0; i < WRITERS; i++) {
		const struct writer *writer = &self->writers[i];

		TH_LOG("%s: %llu written = %llu readable + %llu overwritten + %llu lost",
		       writer->nr_buffers > 1 ? "swaps" : "pauses", writer->order->written,
		       writer->readable, writer->overwritten, writer->lost);
		TH_LOG("%llu snapshots, %llu lapped, %llu told lost", writer->snapshots,
		       writer->lapped, writer->told);
		all.readable += writer->readable;
		all.overwritten += writer->overwritten;
		all.lost += writer->lost;
		all.snapshots += writer->snapshots;
	}
	TH_LOG("%llu snapshots: %llu records readable, %llu overwritten, %llu lost",
	       all.snapshots, all.readable, all.overwritten, all.lost);
	for (int i = 0; i < READERS; i++)
		ASSERT_STREQ("", self->readers[i].why);
	for (int i = 0; i < WRITERS; i++)
		ASSERT_LT(0, self->writers[i].readable);
}

TEST_HARNESS_MAIN
