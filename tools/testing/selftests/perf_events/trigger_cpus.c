// SPDX-License-Identifier: GPL-2.0
/*
 * Triggers of CPUs, while a task on each of them makes numbered system calls at full
 * speed, each of which is a record. The sample of a rarer call freezes the buffers of all
 * CPUs. Nothing changes in them from then on, and the test accounts for each call: its
 * record is in the buffer, or overwritten, or counted as lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "kept_file.h"
#include "overwrite_test.h"
#include "perf_overwrite_set.h"
#include "trigger.h"
#include "trigger_test.h"

#define MAX_CPUS	4
#define FIRINGS		100
/* From none to some more than a buffer has room for. */
#define MOST_CALLS	600
/* The inode number of the first namespace of processes. */
#define FIRST_PID_NS	0xeffffffcU

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* Shared with the task that makes the calls. */
struct order {
	bool	hold;		/* it is to make no more calls, */
	bool	held;		/* and makes none */
	__u64	made;		/* calls, the numbers of which are less than this */
};

/* What is known of a buffer since it was frozen the last time. */
struct account {
	__u64	head;
	__u64	made;		/* calls */
	__u64	lost;		/* by the kernel's count */
	__u64	told;		/* lost, by records */
	__u64	written;	/* calls, of which those that could be read */
	__u64	readable;	/* when it was frozen */
};

/* A buffer of a CPU, an event that writes the numbered calls there, and a trigger. */
struct sampler {
	struct perf_overwrite	ow;
	int			all;
	int			rare;
	__u64			all_id;
	__u64			rare_id;
	pid_t			load;
	struct order		*order;
	struct account		account;
};

/* A sample of raw_syscalls:sys_enter. */
struct sampled {
	struct perf_event_header	header;
	__u64				id;
	__u64				time;
	__u32				raw_size;
	unsigned char			raw[];
};

/* The first argument: behind what all tracepoints have, and the number of the call. */
static __u64 number_of(const struct sampled *sampled)
{
	size_t size = kernel_long();
	const unsigned char *argument = sampled->raw + 8 + size;
	__u32 half;
	__u64 whole;

	if (size == sizeof(half)) {
		memcpy(&half, argument, sizeof(half));
		return half;
	}
	memcpy(&whole, argument, sizeof(whole));
	return whole;
}

static __u64 time_of(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_SAMPLE ? ((const struct sampled *)header)->time : 0;
}

static void make_calls(struct order *order, int cpu)
{
	go_to_cpu(cpu);
	for (unsigned long number = 0; ; ) {
		if (__atomic_load_n(&order->hold, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&order->held, true, __ATOMIC_RELEASE);
			while (__atomic_load_n(&order->hold, __ATOMIC_ACQUIRE))
				usleep(100);
			__atomic_store_n(&order->held, false, __ATOMIC_RELEASE);
		}
		syscall(__NR_getppid, number++);
		__atomic_store_n(&order->made, number, __ATOMIC_RELEASE);
	}
}

FIXTURE(trigger_cpus)
{
	struct sampler	sampler[MAX_CPUS];
	int		cpus[MAX_CPUS];
	int		count;
	int		set;
	size_t		sample_size;
	__u64		generation;
	/* Those that go offline. */
	struct kept_file	online[3];
};

static void set_filter(struct __test_metadata *_metadata, int fd, int call, pid_t pid)
{
	char filter[64];

	snprintf(filter, sizeof(filter), "id == %d && common_pid == %d", call, pid);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter));
}

/* The tasks make calls, or none: then their number is known. */
static void hold_calls(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_cpus) *self,
		       bool hold)
{
	for (int i = 0; i < self->count; i++)
		__atomic_store_n(&self->sampler[i].order->hold, hold, __ATOMIC_RELEASE);
	for (int i = 0; i < self->count; i++) {
		struct sampler *s = &self->sampler[i];

		while (__atomic_load_n(&s->order->held, __ATOMIC_ACQUIRE) != hold) {
			ASSERT_TRUE(is_alive(s->load));
			usleep(100);
		}
	}
}

FIXTURE_SETUP(trigger_cpus)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.sample_period = 1,
		.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.write_backward = 1,
		.disabled = 1,
	};
	long long id = tracepoint_id("raw_syscalls", "sys_enter");
	struct order *orders;
	struct stat ns;

	self->set = -1;
	if (id < 0)
		SKIP(return, "no tracepoint of system calls");
	if (!stat("/proc/self/ns/pid", &ns) && ns.st_ino != FIRST_PID_NS)
		SKIP(return, "tracepoints know processes by other numbers");
	attr.config = id;

	orders = mmap(NULL, MAX_CPUS * sizeof(*orders), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)orders);
	self->count = allowed_cpus(self->cpus, MAX_CPUS);
	for (int i = 0; i < self->count; i++) {
		struct sampler *s = &self->sampler[i];

		s->all = open_event(_metadata, &attr, -1, self->cpus[i]);
		if (s->all < 0)
			return;
		if (map_event(_metadata, &s->ow, s->all, TRIGGER_PAGES, false))
			return;
		s->rare = open_event(_metadata, &attr, -1, self->cpus[i]);
		ASSERT_LE(0, s->rare);
		ASSERT_EQ(0, ioctl(s->rare, PERF_EVENT_IOC_SET_OUTPUT, s->all));
		s->all_id = event_id(s->all);
		s->rare_id = event_id(s->rare);
	}
	for (int i = 0; i < self->count; i++) {
		struct sampler *s = &self->sampler[i];

		s->order = &orders[i];
		s->order->hold = true;
		s->load = fork_tied();
		if (!s->load)
			make_calls(s->order, self->cpus[i]);
		ASSERT_LT(0, s->load);
		set_filter(_metadata, s->all, __NR_getppid, s->load);
		set_filter(_metadata, s->rare, __NR_getpriority, getpid());
	}
	/* fork_tied() calls getppid(), too, which must not be among those that are counted. */
	hold_calls(_metadata, self, true);
}

FIXTURE_TEARDOWN(trigger_cpus)
{
	for (size_t i = 0; i < ARRAY_SIZE(self->online); i++)
		EXPECT_EQ(0, restore_file(&self->online[i]));
	for (int i = 0; i < self->count; i++) {
		struct sampler *s = &self->sampler[i];

		if (s->load > 0) {
			kill(s->load, SIGKILL);
			waitpid(s->load, NULL, 0);
		}
	}
}

FIXTURE_VARIANT(trigger_cpus)
{
	struct perf_trigger_attr	attr;
	unsigned int			always;
};

FIXTURE_VARIANT_ADD(trigger_cpus, at_once)
{
	.attr = { .flags = PERF_TRIGGER_AT_ONCE },
	.always = FIRINGS,
};

FIXTURE_VARIANT_ADD(trigger_cpus, bytes)
{
	.attr = { .depth_ns = LONG_NS, .depth_bytes = 960 },
	.always = FIRINGS / 2,
};

FIXTURE_VARIANT_ADD(trigger_cpus, time)
{
	.attr = { .depth_ns = 2000000 },
	.always = FIRINGS / 10,
};

static void build_cpus(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_cpus) *self,
		       struct perf_trigger_attr attr)
{
	self->set = open_set(_metadata, self->sampler[0].all, attr);
	if (self->set < 0)
		return;
	for (int i = 0; i < self->count; i++) {
		ASSERT_EQ(0, perf_trigger_join(self->set, self->sampler[i].all));
		ASSERT_EQ(0, perf_trigger_add(self->set, self->sampler[i].rare));
		ASSERT_EQ(0, ioctl(self->sampler[i].all, PERF_EVENT_IOC_ENABLE));
		ASSERT_EQ(0, ioctl(self->sampler[i].rare, PERF_EVENT_IOC_ENABLE));
	}
}

/* Each task makes @count more at least. */
static void wait_for_calls(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_cpus) *self,
			   unsigned int count)
{
	__u64 enough[MAX_CPUS];

	for (int i = 0; i < self->count; i++)
		enough[i] = count + __atomic_load_n(&self->sampler[i].order->made,
						    __ATOMIC_ACQUIRE);
	for (int i = 0; i < self->count; i++) {
		struct sampler *s = &self->sampler[i];

		while (__atomic_load_n(&s->order->made, __ATOMIC_ACQUIRE) < enough[i]) {
			ASSERT_TRUE(is_alive(s->load));
			usleep(100);
		}
	}
}

/* What a walk through a frozen buffer has found, all of it or what is new. */
struct found {
	__u64	samples, triggers;
	__u64	losses, told;
	__u64	newest;			/* number, if there are samples */
};

/*
 * Walks @ow. The numbers have no hole but what a record of lost ones explains, times don't
 * increase, and late records are the newest ones. All that was written in the last @new
 * bytes is counted in @found.
 */
static void walk_buffer(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_cpus) *self,
			struct sampler *s, const struct perf_overwrite_cut *cut, __u64 new,
			struct found *found)
{
	__u64 written = perf_overwrite_written(0, perf_overwrite_head(&s->ow));
	__u64 time = -1ULL, expected = 0, told = 0;
	struct perf_overwrite_span span = { };
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;
	bool begun = false;

	memset(found, 0, sizeof(*found));
	perf_overwrite_begin(&walk, &s->ow);
	while ((header = perf_overwrite_next(&walk, space))) {
		const struct lost_record *loss = (const struct lost_record *)header;
		const struct sampled *sampled = (const struct sampled *)header;
		bool is_new = walk.covered <= new;
		bool kept = perf_overwrite_span_add(&span, cut, time_of(header));
		__u64 number;

		if (header->type == PERF_RECORD_LOST) {
			ASSERT_EQ(sizeof(*loss), header->size);
			told += loss->lost;
			found->losses += is_new;
			found->told += is_new ? loss->lost : 0;
			continue;
		}
		ASSERT_EQ(PERF_RECORD_SAMPLE, header->type);
		if (!self->sample_size)
			self->sample_size = header->size;
		ASSERT_EQ(self->sample_size, header->size);
		ASSERT_LE(sampled->time, time);
		time = sampled->time;
		/* What is dropped is newer than all that isn't. */
		ASSERT_EQ(sampled->time <= cut->until, kept);
		ASSERT_TRUE(kept || !span.records);
		if (sampled->id == s->rare_id) {
			found->triggers += is_new;
			continue;
		}
		ASSERT_EQ(s->all_id, sampled->id);

		number = number_of(sampled);
		if (begun)
			ASSERT_EQ(expected, number + told);
		begun = true;
		told = 0;
		expected = number - 1;
		if (is_new && !found->samples++)
			found->newest = number;
	}
	/* All of the buffer, but for a part of the oldest record. */
	ASSERT_TRUE(written < s->ow.size ? walk.covered == written :
					   walk.left < self->sample_size) {
		TH_LOG("%llu bytes written, %zu covered, %zu left", written, walk.covered,
		       walk.left);
	}
}

/*
 * Accounts for the calls since the buffer was frozen the last time, up to now, when the
 * task makes none. First come those that were lost until the set was armed, which a
 * record tells, then those that were written, then those that were lost since it froze.
 */
static void account_for(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_cpus) *self,
			struct sampler *s, const struct perf_overwrite_cut *cut, bool fired_here)
{
	__u64 head = perf_overwrite_head(&s->ow), made = s->order->made;
	__u64 pending = fd_info_number(s->all, "output-lost-pending");
	struct account *account = &s->account;
	__u64 bytes = perf_overwrite_written(account->head, head);
	__u64 lost = lost_count(s->all), written, told;
	struct found found;

	walk_buffer(_metadata, self, s, cut, bytes, &found);

	/* A call is written or lost, the trigger's sample isn't lost. */
	written = made - account->made - (lost - account->lost);
	ASSERT_LE(written, made - account->made);
	ASSERT_EQ(0, lost_count(s->rare));
	/* As the head moved by just as many bytes, and by those of the record of lost ones. */
	told = lost - account->told - pending;
	ASSERT_EQ((written + fired_here) * self->sample_size +
		  (told ? sizeof(struct lost_record) : 0), bytes);

	/* All of that is readable, unless it is more than a lap. */
	ASSERT_LE(found.samples, written);
	ASSERT_LE(found.triggers, fired_here);
	ASSERT_LE(found.losses, !!told);
	if (bytes <= s->ow.size) {
		ASSERT_EQ(written, found.samples);
		ASSERT_EQ(fired_here, found.triggers);
		ASSERT_EQ(!!told, found.losses);
	}
	if (found.losses)
		ASSERT_EQ(told, found.told);

	account->head = head;
	account->made = made;
	account->lost = lost;
	account->told += told;
	account->written += written;
	account->readable += found.samples;
	if (!written)
		return;
	/* The newest one isn't overwritten: the numbers before it were written, or told. */
	ASSERT_LT(0, found.samples);
	ASSERT_EQ(found.newest + 1, account->written + account->told);
	ASSERT_EQ(made - (found.newest + 1), pending);
}

/* The trigger's record is there, and is the newest one without a depth. */
static void check_trigger(struct __test_metadata *_metadata, struct sampler *s,
			  const struct perf_trigger_report *report,
			  struct perf_trigger_attr attr)
{
	struct perf_overwrite_walk walk;
	const struct sampled *record;
	bool found = false;

	perf_overwrite_begin(&walk, &s->ow);
	for (unsigned int newer = 0; !found; newer++) {
		record = (void *)perf_overwrite_next(&walk, space);
		if (!record)
			break;
		if (record->header.type != PERF_RECORD_SAMPLE || record->id != report->id)
			continue;
		found = true;
		EXPECT_LE(record->time, report->time);
		if (attr.flags)
			EXPECT_EQ(0, newer);
	}
	/* Time alone may be long enough for all of the buffer. */
	if (attr.flags || attr.depth_bytes)
		EXPECT_TRUE(found);
}

/* What a buffer took since its writers found the set fired. */
static void check_depth(struct __test_metadata *_metadata, struct sampler *s,
			const struct perf_trigger_buffer *buffer)
{
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;
	__u64 records = 0;

	if (buffer->bytes > s->ow.size)
		return;
	perf_overwrite_begin_at(&walk, &s->ow, buffer->head, buffer->bytes);
	while ((header = perf_overwrite_next(&walk, space)))
		records += header->type != PERF_RECORD_LOST;
	EXPECT_EQ(buffer->bytes, walk.covered);
	EXPECT_EQ(buffer->records, records);
}

TEST_F(trigger_cpus, frozen_under_load)
{
	struct perf_trigger_buffer buffers[MAX_CPUS];
	unsigned int count = firings(variant->always);
	struct perf_trigger_report report;
	struct account all = { };

	if (self->count < 1)
		return;
	build_cpus(_metadata, self, variant->attr);
	if (self->set < 0)
		return;

	for (unsigned int n = 0; n < count; n++) {
		int mine = n % self->count;
		__u64 heads[MAX_CPUS];
		struct perf_overwrite_cut cut;

		ASSERT_EQ(0, go_to_cpu(self->cpus[mine]));
		/* These meet frozen buffers, but for the first time. */
		hold_calls(_metadata, self, false);
		wait_for_calls(_metadata, self, 1);
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		/* Every other time the set is fired at once. */
		if (n & 1)
			wait_for_calls(_metadata, self, n * 97 % MOST_CALLS);
		syscall(__NR_getpriority, 0, 0);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, buffers, MAX_CPUS));
		EXPECT_EQ(0, report.flags);
		EXPECT_EQ(self->count, report.nr);
		EXPECT_EQ(self->sampler[mine].rare_id, report.id);
		EXPECT_EQ(self->cpus[mine], report.cpu);
		EXPECT_EQ(variant->attr.depth_ns, report.until - report.time);
		cut = (struct perf_overwrite_cut){ .time = report.time, .until = report.until };

		for (int i = 0; i < self->count; i++) {
			heads[i] = perf_overwrite_head(&self->sampler[i].ow);
			EXPECT_EQ(heads[i], buffers[i].head);
			EXPECT_EQ(self->cpus[i], buffers[i].cpu);
			if (variant->attr.depth_bytes)
				EXPECT_LE(buffers[i].bytes, variant->attr.depth_bytes);
			if (variant->attr.flags)
				EXPECT_EQ(0, buffers[i].bytes);
			check_depth(_metadata, &self->sampler[i], &buffers[i]);
		}
		check_trigger(_metadata, &self->sampler[mine], &report, variant->attr);

		hold_calls(_metadata, self, true);
		for (int i = 0; i < self->count; i++) {
			account_for(_metadata, self, &self->sampler[i], &cut, i == mine);
			EXPECT_EQ(heads[i], perf_overwrite_head(&self->sampler[i].ow));
		}
	}

	for (int i = 0; i < self->count; i++) {
		const struct account *account = &self->sampler[i].account;

		EXPECT_EQ(account->made, account->written + account->lost);
		all.made += account->made;
		all.written += account->written;
		all.readable += account->readable;
		all.lost += account->lost;
	}
	TH_LOG("%llu calls = %llu readable + %llu overwritten + %llu lost", all.made,
	       all.readable, all.written - all.readable, all.lost);
}

/*
 * A CPU goes offline while the set is armed, another one while it is fired, a third one
 * while it is frozen, and each comes back. The set is frozen all the same, and stays so.
 */
TEST_F(trigger_cpus, cpu_goes_offline)
{
	struct perf_trigger_buffer buffers[MAX_CPUS];
	struct perf_trigger_attr attr = variant->attr;
	struct perf_trigger_report report;

	if (self->count < 1)
		return;
	if (self->count < 4)
		SKIP(return, "needs four CPUs");
	for (size_t i = 0; i < ARRAY_SIZE(self->online); i++)
		if (keep_online(&self->online[i], self->cpus[i + 1]))
			SKIP(return, "CPU %d can't be taken offline", self->cpus[i + 1]);
	/* A CPU that isn't there writes no bytes. */
	if (attr.depth_bytes)
		attr.depth_ns = 200 * 1000000;
	build_cpus(_metadata, self, attr);
	if (self->set < 0)
		return;
	hold_calls(_metadata, self, false);

	for (int when = 0; when < 3; when++) {
		__u64 heads[MAX_CPUS];
		int cpu = self->cpus[when + 1];

		ASSERT_EQ(0, go_to_cpu(self->cpus[0]));
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		if (when == 0 && set_online(cpu, false))
			SKIP(return, "CPU %d can't be taken offline", cpu);
		syscall(__NR_getpriority, 0, 0);
		if (when == 1)
			EXPECT_EQ(0, set_online(cpu, false));
		EXPECT_EQ(0, perf_trigger_read(self->set, &report, buffers, MAX_CPUS));
		if (when == 2)
			EXPECT_EQ(0, set_online(cpu, false));

		EXPECT_EQ(self->sampler[0].rare_id, report.id);
		EXPECT_EQ(self->generation, report.generation);
		for (int i = 0; i < self->count; i++) {
			heads[i] = perf_overwrite_head(&self->sampler[i].ow);
			EXPECT_EQ(heads[i], buffers[i].head);
			EXPECT_EQ(0, buffers[i].flags);
		}
		ASSERT_EQ(0, set_online(cpu, true));
		for (int i = 0; i < self->count; i++)
			EXPECT_EQ(heads[i], perf_overwrite_head(&self->sampler[i].ow));
	}
}

TEST_HARNESS_MAIN
