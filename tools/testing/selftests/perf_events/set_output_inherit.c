// SPDX-License-Identifier: GPL-2.0
/*
 * A buffer takes one writing CPU at a time. The children of an inherited event
 * that follows a task run anywhere and write to its buffer: such an event can't
 * be mapped, and can't be made to write to the buffer of another event either.
 * Where it is bound to a CPU its children write from there only, and may.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

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
	ASSERT_EQ(0, perf_overwrite_unmap(&self->ow));
	ASSERT_EQ(0, close(self->owner));
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
	ASSERT_LE(0, pid);
	if (!pid) {
		write_names(seq, 1, 0);
		_exit(0);
	}
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

TEST_F(set_output_inherit, by_ioctl)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int event;

	attr.inherit = variant->inherit;
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;

	if (variant->error) {
		ASSERT_EQ(-1, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
		ASSERT_EQ(variant->error, errno);
		check_own(_metadata, &self->ow, variant->backward, 0, 1);
		check_child(_metadata, &self->ow, variant->backward, 1, 0);
	} else {
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
		check_own(_metadata, &self->ow, variant->backward, 0, 2);
		check_child(_metadata, &self->ow, variant->backward, 1, variant->inherit);
	}

	/* To write nowhere is always possible, and possible twice. */
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, -1L));
		check_own(_metadata, &self->ow, variant->backward, 2, 1);
		check_child(_metadata, &self->ow, variant->backward, 3, 0);
	}
	ASSERT_EQ(0, close(event));
}

TEST_F(set_output_inherit, by_open_flag)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int event;

	/* What is refused below isn't the event as such. */
	attr.inherit = variant->inherit;
	event = open_event(_metadata, &attr, 0, self->cpu);
	if (event < 0)
		return;
	ASSERT_EQ(0, close(event));

	event = perf_overwrite_open(&attr, 0, self->cpu, self->owner);
	if (variant->error) {
		ASSERT_EQ(-1, event);
		ASSERT_EQ(variant->error, errno);
		check_own(_metadata, &self->ow, variant->backward, 0, 1);
		check_child(_metadata, &self->ow, variant->backward, 1, 0);
		return;
	}
	ASSERT_LE(0, event);
	check_own(_metadata, &self->ow, variant->backward, 0, 2);
	check_child(_metadata, &self->ow, variant->backward, 1, variant->inherit);
	ASSERT_EQ(0, close(event));
	check_own(_metadata, &self->ow, variant->backward, 2, 1);
}

/*
 * The other way round: an inherited event of a task has no buffer for others, as
 * it was neither mapped nor given one. One of a CPU has what it was given.
 */
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

	ASSERT_EQ(variant->error ? -1 : 0,
		  ioctl(middle, PERF_EVENT_IOC_SET_OUTPUT, self->owner));
	if (variant->error) {
		ASSERT_EQ(-1, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, middle));
		ASSERT_EQ(variant->error, errno);
		check_own(_metadata, &self->ow, variant->backward, 0, 1);
	} else {
		ASSERT_EQ(0, ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, middle));
		check_own(_metadata, &self->ow, variant->backward, 0, 3);
	}
	check_child(_metadata, &self->ow, variant->backward, 1,
		    variant->inherit && !variant->error);
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

TEST_HARNESS_MAIN
