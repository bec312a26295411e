// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer takes one writing CPU at a time. The children of an inherited event
 * that follows a task run anywhere: such an event can't be mapped, but it can be
 * directed to the buffer of another event of the task. Its children then write
 * there if no other CPU does, else their record is lost and counted. Where an
 * event is bound to a CPU its children write from there only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_stack.h"

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(set_output_inherit)
{
	struct perf_overwrite	ow;
	int			owner;
	int			cpu;
};

FIXTURE_VARIANT(set_output_inherit)
{
	bool	backward;
	bool	per_cpu;
	bool	inherit;
	/* Of a mapping of its own. */
	int	error;
};

FIXTURE_VARIANT_ADD(set_output_inherit, task_forward)
{
	.backward = false,
	.error = 0,
};

FIXTURE_VARIANT_ADD(set_output_inherit, task_forward_inherited)
{
	.backward = false,
	.inherit = true,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(set_output_inherit, task_backward)
{
	.backward = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(set_output_inherit, task_backward_inherited)
{
	.backward = true,
	.inherit = true,
	.error = EINVAL,
};

FIXTURE_VARIANT_ADD(set_output_inherit, cpu_forward)
{
	.backward = false,
	.per_cpu = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(set_output_inherit, cpu_forward_inherited)
{
	.backward = false,
	.per_cpu = true,
	.inherit = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(set_output_inherit, cpu_backward)
{
	.backward = true,
	.per_cpu = true,
	.error = 0,
};

FIXTURE_VARIANT_ADD(set_output_inherit, cpu_backward_inherited)
{
	.backward = true,
	.per_cpu = true,
	.inherit = true,
	.error = 0,
};

/* The owner itself isn't inherited: its buffer is to have this task's records. */
FIXTURE_SETUP(set_output_inherit)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int cpu = pin_to_cpu();

	ASSERT_LE(0, cpu);
	self->cpu = variant->per_cpu ? cpu : -1;
	self->owner = open_event(_metadata, &attr, 0, self->cpu);
	if (self->owner < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->owner, 1, false));
}

FIXTURE_TEARDOWN(set_output_inherit)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->owner));
}

/* Checks that one more name of this task makes @records more records. */
static void check_own(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
		      bool backward, unsigned int seq, unsigned int records)
{
	__u64 older = perf_overwrite_head(ow);
	struct perf_overwrite_walk walk;

	write_names(seq, 1, 0);
	begin_since(&walk, ow, older, backward);
	for (unsigned int i = 0; i < records; i++) {
		struct perf_event_header *record = perf_overwrite_next(&walk, space);

		ASSERT_NE(NULL, record);
		ASSERT_TRUE(is_name(record, seq, 0));
	}
	ASSERT_EQ(0, walk.left);
}

/* Checks that one name of a child makes @records more records. */
static void check_child(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
			bool backward, unsigned int seq, unsigned int records)
{
	const struct comm_record *record = (const struct comm_record *)space;
	__u64 older = perf_overwrite_head(ow);
	struct perf_overwrite_walk walk;
	unsigned int seen = 0;
	char name[NAME_SIZE];
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		write_names(seq, 1, 0);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	/* Its beginning and its end may have been recorded, too. */
	make_name(name, seq);
	begin_since(&walk, ow, older, backward);
	while (perf_overwrite_next(&walk, space)) {
		if (record->header.type != PERF_RECORD_COMM)
			continue;
		ASSERT_EQ((__u32)pid, record->pid);
		ASSERT_STREQ(name, record->name);
		seen++;
	}
	ASSERT_EQ(0, walk.left);
	ASSERT_EQ(records, seen);
}

/* An event that was directed to the owner's buffer; negative if the test is to be skipped. */
static int open_directed(struct __test_metadata *_metadata,
			 FIXTURE_DATA(set_output_inherit) *self,
			 const FIXTURE_VARIANT(set_output_inherit) *variant)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int event;

	attr.inherit = variant->inherit;
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return event;

	ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	check_own(_metadata, &self->ow, variant->backward, 0, 2);
	return event;
}

TEST_F(set_output_inherit, by_ioctl)
{
	int event = open_directed(_metadata, self, variant);

	if (event < 0)
		return;
	check_child(_metadata, &self->ow, variant->backward, 1, variant->inherit);

	/* To write nowhere is always possible, and possible twice. */
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L));
		check_own(_metadata, &self->ow, variant->backward, 2, 1);
		check_child(_metadata, &self->ow, variant->backward, 3, 0);
	}
	ASSERT_EQ(0, close(event));
}

/* The -1 of a program of 32 bits is 0xffffffff to a kernel of 64. */
TEST_F(set_output_inherit, none_of_32_bits)
{
	int event = open_directed(_metadata, self, variant);

	if (event < 0)
		return;

	ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, 0xffffffffUL));
	check_own(_metadata, &self->ow, variant->backward, 1, 1);
	ASSERT_EQ(0, close(event));
}

TEST_F(set_output_inherit, by_open_flag)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int event;

	attr.inherit = variant->inherit;
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	ASSERT_EQ(0, close(event));

	event = perf_overwrite_open(&attr, 0, self->cpu, self->owner);
	ASSERT_LE(0, event);
	check_own(_metadata, &self->ow, variant->backward, 0, 2);
	check_child(_metadata, &self->ow, variant->backward, 1, variant->inherit);
	ASSERT_EQ(0, close(event));
	check_own(_metadata, &self->ow, variant->backward, 2, 1);
}

/* The other way round: an inherited event has the buffer that it was given. */
TEST_F(set_output_inherit, towards_inherited)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int middle, event;

	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	attr.inherit = variant->inherit;
	middle = open_event(_metadata, &attr, 0, self->cpu);
	if (middle < 0)
		return;

	ASSERT_EQ(0, ioctl(middle, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, middle));
	check_own(_metadata, &self->ow, variant->backward, 0, 3);
	check_child(_metadata, &self->ow, variant->backward, 1, variant->inherit);
	ASSERT_EQ(0, close(middle));
	ASSERT_EQ(0, close(event));
}

/* As it always was: it has no mapping of its own, unless it is bound to a CPU. */
TEST_F(set_output_inherit, own_mapping)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	struct perf_overwrite own;
	int event;

	attr.inherit = variant->inherit;
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	if (variant->error) {
		ASSERT_EQ(-1, perf_overwrite_map(&own, event, 1, false));
		ASSERT_EQ(variant->error, errno);
	} else {
		ASSERT_EQ(0, perf_overwrite_map(&own, event, 1, false));
		check_own(_metadata, &own, variant->backward, 0, 1);
		ASSERT_EQ(0, perf_overwrite_unmap(&own));
	}
	ASSERT_EQ(0, close(event));
}

/*
 * Children of one task that write to its buffer at the same time, from a CPU
 * each: what all of them make is either there, whole and in order, or was lost
 * and counted.
 */
#define CHILDREN	3
#define FAULTS		3000
#define SHARED_PAGES	128
#define SHARED_PAUSES	50
/* A pause meets a writer in flight if there is always one, and its record is large. */
#define DUMPS		16
#define SHARED_STACK	16384
/* How often to try to have the children meet. */
#define ROUNDS		10

struct fault_record {
	struct perf_event_header	header;
	__u32				pid, tid;
	__u64				addr;
};

struct child {
	pid_t		pid;
	int		cpu;
	unsigned int	seen;
	/* The number of the fault that was seen last. */
	unsigned int	last;
};

FIXTURE(set_output_shared)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	struct child		children[CHILDREN];
	/* Told by PERF_RECORD_LOST. */
	__u64			told;
	/* Samples of all tasks. */
	__u64			seen;
	int			owner;
	int			event;
};

FIXTURE_VARIANT(set_output_shared)
{
	bool	backward;
};

FIXTURE_VARIANT_ADD(set_output_shared, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(set_output_shared, backward)
{
	.backward = true,
};

/* False if the test is to be skipped. */
static bool open_shared(struct __test_metadata *_metadata,
			FIXTURE_DATA(set_output_shared) *self, bool backward)
{
	struct perf_event_attr owner_attr = NAME_EVENT(backward);
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_ADDR);

	/* It has the buffer, and writes nothing itself. */
	owner_attr.comm = 0;
	self->owner = open_event(_metadata, &owner_attr, 0, -1);
	if (self->owner < 0)
		return false;
	if (map_event(_metadata, &self->ow, self->owner, SHARED_PAGES, false))
		return false;

	attr.inherit = 1;
	attr.write_backward = backward;
	self->event = open_event(_metadata, &attr, 0, -1);
	if (self->event < 0)
		return false;
	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	return true;
}

static void close_shared(struct __test_metadata *_metadata,
			 FIXTURE_DATA(set_output_shared) *self)
{
	EXPECT_EQ(0, close(self->event));
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->owner));
}

FIXTURE_SETUP(set_output_shared)
{
	int cpus[CHILDREN], count;

	count = allowed_cpus(cpus, CHILDREN);
	if (count < 2)
		SKIP(return, "needs two CPUs");
	for (int i = 0; i < CHILDREN; i++)
		self->children[i].cpu = cpus[i % count];

	if (open_shared(_metadata, self, variant->backward))
		ASSERT_EQ(0, map_fault_area(&self->area, FAULTS));
}

FIXTURE_TEARDOWN(set_output_shared)
{
	close_shared(_metadata, self);
}

/*
 * A child that makes its faults as soon as nobody holds the other end of @go, or one
 * after the other until it is killed.
 */
static pid_t fork_child(const struct fault_area *area, int cpu, const int go[2], bool endless)
{
	pid_t pid = fork_tied();
	char byte;

	if (pid)
		return pid;
	close(go[1]);
	if (go_to_cpu(cpu) || read(go[0], &byte, 1))
		_exit(1);
	if (endless) {
		touch_stack();
		for (unsigned int seq = 0; ; seq++)
			fault_with_stack(area, seq, SHARED_STACK);
	}
	for (unsigned int seq = 0; seq < FAULTS; seq++)
		make_fault(area, seq);
	_exit(0);
}

/* All of them begin at the same time, as near as that can be. */
static void start_children(struct __test_metadata *_metadata,
			   FIXTURE_DATA(set_output_shared) *self, bool endless)
{
	int go[2];

	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_ENABLE));
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &self->children[i];

		child->pid = fork_child(&self->area, child->cpu, go, endless);
		ASSERT_LE(0, child->pid);
	}
	close(go[0]);
	close(go[1]);
}

static void wait_for_child(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

/* Checks each record of the buffer, in which there is room for all of them. */
static void walk_shared(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
			bool backward, const struct fault_area *area,
			struct child *children, __u64 *told, __u64 *seen)
{
	__u64 bytes = FAULTS * area->page_size, number;
	struct perf_overwrite_walk walk;
	struct perf_event_header *header;

	*told = 0;
	*seen = 0;
	for (int i = 0; i < CHILDREN; i++)
		children[i].seen = 0;

	begin_since(&walk, ow, 0, backward);
	while ((header = perf_overwrite_next(&walk, space))) {
		const struct fault_record *record = (const struct fault_record *)header;
		struct child *child = NULL;

		if (header->type == PERF_RECORD_LOST) {
			*told += ((const struct lost_record *)header)->lost;
			continue;
		}
		ASSERT_EQ(PERF_RECORD_SAMPLE, header->type);
		ASSERT_EQ(sizeof(*record), header->size);
		ASSERT_EQ(record->pid, record->tid);
		(*seen)++;

		/* The stack and the like, or this task itself. */
		number = record->addr - (unsigned long)area->base;
		if (record->addr < (unsigned long)area->base || number >= bytes)
			continue;
		number /= area->page_size;
		for (int i = 0; i < CHILDREN; i++)
			if (children[i].pid == (pid_t)record->pid)
				child = &children[i];
		if (!child)
			continue;
		if (child->seen++)
			ASSERT_TRUE(backward ? number < child->last : number > child->last) {
				TH_LOG("%llu after %u", number, child->last);
			}
		child->last = number;
	}
	ASSERT_EQ(0, walk.left);
}

/* Each fault that was counted made a record that is there, or that is counted lost. */
static void check_shared(struct __test_metadata *_metadata, const struct perf_overwrite *ow,
			 bool backward, const struct fault_area *area, int event,
			 struct child *children, __u64 *told, __u64 *seen)
{
	struct event_counts counts;

	/* One more record of this task tells what was lost before. */
	make_fault(area, 0);
	ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_DISABLE));
	ASSERT_EQ(sizeof(counts), read(event, &counts, sizeof(counts)));
	walk_shared(_metadata, ow, backward, area, children, told, seen);
	TH_LOG("%llu faults, %llu samples, %llu lost, %llu told", counts.value, *seen,
	       counts.lost, *told);
	ASSERT_LT(CHILDREN * FAULTS, counts.value);
	ASSERT_EQ(counts.value, *seen + counts.lost);
	ASSERT_EQ(counts.lost, *told);
}

/*
 * Children that don't meet, on a busy machine, show nothing: only a loss says that they
 * did. One that meets a writer whose processor was taken away may lose all of its own:
 * each of them gets through in one round or another.
 */
TEST_F(set_output_shared, one_cpu_at_a_time)
{
	bool through[CHILDREN] = { false }, met = false;
	int round, left = CHILDREN;

	for (round = 0; round < ROUNDS && (!met || left); round++) {
		if (round) {
			close_shared(_metadata, self);
			ASSERT_TRUE(open_shared(_metadata, self, variant->backward));
		}
		start_children(_metadata, self, false);
		for (int i = 0; i < CHILDREN; i++)
			wait_for_child(_metadata, self->children[i].pid);

		check_shared(_metadata, &self->ow, variant->backward, &self->area,
			     self->event, self->children, &self->told, &self->seen);
		met |= self->told != 0;
		for (int i = 0; i < CHILDREN; i++) {
			left -= !through[i] && self->children[i].seen;
			through[i] |= self->children[i].seen != 0;
		}
	}
	EXPECT_EQ(0, left);
	TH_LOG("%d rounds, the children %s", round, met ? "met" : "never met");
}

/* Whether a task sleeps: in waitpid(), as far as this test is concerned. */
static bool is_asleep(pid_t pid)
{
	char path[32], line[256] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = 0;
	fclose(file);
	state = strrchr(line, ')');
	return state && state[1] && state[2] == 'S';
}

/* One after the other, wherever they are, they don't meet: nothing is lost. */
TEST_F(set_output_shared, nobody_meets)
{
	ASSERT_EQ(0, ioctl(self->event, PERF_EVENT_IOC_ENABLE));
	for (int i = 0; i < CHILDREN; i++) {
		struct child *child = &self->children[i];

		child->pid = fork();
		if (!child->pid) {
			if (go_to_cpu(child->cpu))
				_exit(1);
			while (!is_asleep(getppid()))
				usleep(1000);
			for (unsigned int seq = 0; seq < FAULTS; seq++)
				make_fault(&self->area, seq);
			_exit(0);
		}
		ASSERT_LT(0, child->pid);
		wait_for_child(_metadata, child->pid);
	}
	check_shared(_metadata, &self->ow, variant->backward, &self->area, self->event,
		     self->children, &self->told, &self->seen);
	for (int i = 0; i < CHILDREN; i++)
		ASSERT_EQ(FAULTS, self->children[i].seen);
}

/*
 * Waits until the head is another one. Where processors write to a buffer at the same
 * time without regard for each other, it may stay for good, however many records are
 * written: then this returns false.
 */
static bool head_moves(const struct perf_overwrite *ow, int event, __u64 head)
{
	struct event_counts counts, since;

	if (read(event, &since, sizeof(since)) != sizeof(since))
		return false;
	while (perf_overwrite_head(ow) == head) {
		sched_yield();
		if (read(event, &counts, sizeof(counts)) != sizeof(counts))
			return false;
		if (counts.value - counts.lost > since.value - since.lost + FAULTS)
			return perf_overwrite_head(ow) != head;
	}
	return true;
}

/* A pause freezes such a buffer, too, whoever writes to it at that moment. */
TEST_F(set_output_shared, pause_freezes)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_STACK_USER);
	static unsigned char before[SHARED_PAGES * 65536];
	unsigned int moved = 0, changed = 0;
	int dumps[DUMPS];

	attr.inherit = 1;
	attr.write_backward = variant->backward;
	attr.sample_stack_user = SHARED_STACK;
	attr.disabled = 0;
	if (lacks_stack_dump(attr, 0))
		SKIP(return, "no dumps of the user's stack on this architecture");
	for (int i = 0; i < DUMPS; i++) {
		dumps[i] = open_event(_metadata, &attr, 0, -1);
		ASSERT_LE(0, dumps[i]);
		ASSERT_EQ(0, ioctl(dumps[i], PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	}
	ASSERT_LE(self->ow.size, sizeof(before));
	start_children(_metadata, self, true);

	for (int i = 0; i < SHARED_PAUSES; i++) {
		__u64 head, lost;
		size_t newest;

		ASSERT_EQ(0, perf_overwrite_pause(self->owner));
		head = perf_overwrite_head(&self->ow);
		/* First where the newest record is. */
		newest = (variant->backward ? head : head - 2 * SHARED_STACK) % self->ow.size;
		memcpy(before + newest, self->ow.data + newest, self->ow.size - newest);
		memcpy(before, self->ow.data, newest);
		/* They go on: that is what is lost. */
		lost = lost_count(self->event);
		while (lost_count(self->event) < lost + CHILDREN)
			sched_yield();
		moved += head != perf_overwrite_head(&self->ow);
		changed += !!memcmp(before, self->ow.data, self->ow.size);
		ASSERT_EQ(0, perf_overwrite_resume(self->owner));
		/* As they do when it has ended. */
		ASSERT_TRUE(head_moves(&self->ow, self->event, head));
	}
	for (int i = 0; i < CHILDREN; i++)
		stop_child(_metadata, self->children[i].pid);
	for (int i = 0; i < DUMPS; i++)
		ASSERT_EQ(0, close(dumps[i]));
	TH_LOG("%d pauses, %u saw the head move, %u the data change", SHARED_PAUSES, moved,
	       changed);
	ASSERT_EQ(0, moved);
	ASSERT_EQ(0, changed);
}

TEST_HARNESS_MAIN
