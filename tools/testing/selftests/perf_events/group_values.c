// SPDX-License-Identifier: GPL-2.0
/*
 * A sample with the values of its group (PERF_SAMPLE_READ with PERF_FORMAT_GROUP)
 * that is taken while an event joins the group, or leaves it, is as consistent as any
 * other: it says how many values it has, has as many, and is no longer than that.
 *
 * The samples are those of a kprobe, put on one instruction of the function after
 * another that attaches or detaches: the group's leader is hit at each moment of it,
 * as it would be by an NMI.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define SIBLINGS	3
/* Longer functions than this are left in the middle. */
#define MAX_OFFSET	4096

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

#define READ_FORMAT	(PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST)

struct group_value {
	__u64	value, id, lost;
};

struct group_sample {
	struct perf_event_header	header;
	__u64				id;
	__u64				nr;
	struct group_value		values[];
	/* Behind them the raw data: its size, of 32 bits, and as many bytes. */
};

struct function {
	char		name[128];
	unsigned long	size;
};

/*
 * Finds the first of these functions that the compiler left as one: a function that is
 * inlined is in the next. Returns whether there is any.
 */
static bool find_function(struct function *function, const char *const *names)
{
	unsigned long long start = 0, address, next;
	char line[512], name[128], type;
	FILE *file;

	for (; *names; names++) {
		size_t length = strlen(*names);

		file = fopen("/proc/kallsyms", "r");
		if (!file)
			return false;
		start = 0;
		while (fgets(line, sizeof(line), file)) {
			if (sscanf(line, "%llx %c %127s", &address, &type, name) != 3 ||
			    (type != 't' && type != 'T') || strncmp(name, *names, length) ||
			    (name[length] && name[length] != '.') ||
			    strstr(name, ".cold"))
				continue;
			start = address;
			memcpy(function->name, name, sizeof(name));
		}
		if (start)
			break;
		fclose(file);
	}
	if (!*names || !start)
		return false;

	/* Up to the next symbol, wherever in the file that is. */
	next = start + MAX_OFFSET;
	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx", &address) == 1 && address > start && address < next)
			next = address;
	fclose(file);
	function->size = next - start;
	return true;
}

FIXTURE(group_values)
{
	struct perf_overwrite	ow;
	int			buffer;
	int			type;
	struct function		function;
};

FIXTURE_VARIANT(group_values)
{
	bool			backward;
	const char *const	*names;
	/* A sample may be longer than its values by those of one event that has left. */
	bool			leaves;
};

static const char *const attach[] = {
	"perf_group_attach", "add_event_to_ctx", "__perf_install_in_context", NULL
};

static const char *const detach[] = {
	"perf_group_detach", "__perf_remove_from_context", NULL
};

FIXTURE_VARIANT_ADD(group_values, forward_attach)
{
	.backward = false,
	.names = attach,
};

FIXTURE_VARIANT_ADD(group_values, backward_attach)
{
	.backward = true,
	.names = attach,
};

FIXTURE_VARIANT_ADD(group_values, forward_detach)
{
	.backward = false,
	.names = detach,
	.leaves = true,
};

FIXTURE_VARIANT_ADD(group_values, backward_detach)
{
	.backward = true,
	.names = detach,
	.leaves = true,
};

FIXTURE_SETUP(group_values)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	attr.comm = 0;
#ifdef __s390__
	SKIP(return, "kprobes in the midst of instructions, which they change, are not refused");
#endif
	/* The kprobe is this CPU's alone to run into, wherever the patching is seen late. */
	ASSERT_LE(0, pin_to_cpu());
	self->type = read_number("/sys/bus/event_source/devices/kprobe/type");
	if (self->type < 0)
		SKIP(return, "no kprobes in this kernel");
	if (geteuid())
		SKIP(return, "no permission to set a kprobe");
	if (!find_function(&self->function, variant->names))
		SKIP(return, "no function of this kernel to put a kprobe on");
	self->buffer = open_event(_metadata, &attr, 0, -1);
	if (self->buffer < 0)
		return;
	if (map_event(_metadata, &self->ow, self->buffer, 16, false))
		return;
}

FIXTURE_TEARDOWN(group_values)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->buffer));
}

/* A group's leader, hit when the function comes to @offset. Returns it, or -1. */
static int open_leader(const struct function *function, int type, unsigned long offset,
		       bool backward)
{
	struct perf_event_attr attr = {
		.type = type,
		.kprobe_func = (unsigned long)function->name,
		.probe_offset = offset,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ | PERF_SAMPLE_RAW,
		.sample_period = 1,
		.read_format = READ_FORMAT,
		.write_backward = backward,
	};

	return perf_overwrite_open(&attr, 0, -1, -1);
}

static int open_sibling(int leader)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = READ_FORMAT,
	};

	attr.size = sizeof(attr);
	return syscall(__NR_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

/* Opens a group and closes it: the leader may be hit with 0 to SIBLINGS of them. */
static void come_and_go(struct __test_metadata *_metadata, int leader, __u64 *ids)
{
	int siblings[SIBLINGS];

	ids[0] = event_id(leader);
	for (int i = 0; i < SIBLINGS; i++) {
		siblings[i] = open_sibling(leader);
		ASSERT_LE(0, siblings[i]) {
			TH_LOG("a sibling: %s", strerror(errno));
		}
		ids[i + 1] = event_id(siblings[i]);
	}
	/* Not the last one first: one in the middle, then the first. */
	ASSERT_EQ(0, close(siblings[1]));
	ASSERT_EQ(0, close(siblings[0]));
	ASSERT_EQ(0, close(siblings[2]));
}

/* By how many bytes the sample is longer than what it has, or -1 if it isn't whole. */
static int slack(const struct group_sample *sample, const __u64 *ids)
{
	const size_t fixed = sizeof(*sample) + sizeof(__u32);
	__u32 raw_size;
	size_t size;

	if (sample->header.type != PERF_RECORD_SAMPLE || sample->header.size < fixed ||
	    sample->id != ids[0] || !sample->nr || sample->nr > 1 + SIBLINGS)
		return -1;
	size = fixed + sample->nr * sizeof(*sample->values);
	if (sample->header.size < size)
		return -1;
	/* The leader's comes first, then one for each sibling. */
	if (sample->values[0].id != ids[0])
		return -1;
	for (__u64 i = 1; i < sample->nr; i++) {
		int known = 0;

		for (int j = 1; j <= SIBLINGS; j++)
			known += sample->values[i].id == ids[j];
		if (known != 1)
			return -1;
	}
	for (__u64 i = 0; i < sample->nr; i++) {
		if (sample->values[i].lost)
			return -1;
	}
	memcpy(&raw_size, &sample->values[sample->nr], sizeof(raw_size));
	/* More than nothing, or the parts of the sample are not where they should be. */
	if (!raw_size || sample->header.size < size + raw_size)
		return -1;
	return sample->header.size - size - raw_size;
}

TEST_F(group_values, are_as_many_as_fit)
{
	const struct group_sample *sample = (const struct group_sample *)space;
	unsigned int probed = 0, samples = 0;

	for (unsigned long offset = 0; offset < self->function.size; offset++) {
		__u64 older = perf_overwrite_head(&self->ow), ids[1 + SIBLINGS];
		struct perf_overwrite_walk walk;
		int leader = open_leader(&self->function, self->type, offset,
					 variant->backward);

		if (leader < 0 && (errno == EPERM || errno == EACCES))
			SKIP(return, "kprobes aren't permitted: %s", strerror(errno));
		if (leader < 0) {
			/* In the middle of an instruction, or where none can be put. */
			ASSERT_TRUE(errno == EILSEQ || errno == EINVAL || errno == EBUSY ||
				    errno == EOPNOTSUPP || errno == ENOENT) {
				TH_LOG("%s+%lu: %s", self->function.name, offset,
				       strerror(errno));
			}
			continue;
		}
		probed++;
		ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_SET_OUTPUT, self->buffer));
		come_and_go(_metadata, leader, ids);
		ASSERT_EQ(0, close(leader));

		begin_since(&walk, &self->ow, older, variant->backward);
		while (perf_overwrite_next(&walk, space)) {
			int more = slack(sample, ids);

			ASSERT_TRUE(more == 0 || (variant->leaves &&
						  more == sizeof(struct group_value))) {
				TH_LOG("%s+%lu: %d bytes behind a sample of %u with %llu values",
				       self->function.name, offset, more,
				       sample->header.size, sample->nr);
			}
			samples++;
		}
		ASSERT_EQ(0, walk.left);
	}
	TH_LOG("%u instructions of %s, %u samples", probed, self->function.name, samples);
	/* Each is hit at least once, but for what is there for another case. */
	ASSERT_LT(10, probed);
	ASSERT_LT(probed / 2, samples);
}

TEST_HARNESS_MAIN
