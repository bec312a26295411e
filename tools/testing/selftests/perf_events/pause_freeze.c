// SPDX-License-Identifier: GPL-2.0
/*
 * When PERF_EVENT_IOC_PAUSE_OUTPUT has returned 0, neither data_head nor the data
 * changes until the buffer is resumed, and the newest record is whole: a writer on
 * another CPU that had passed the test of the paused flag is done.
 *
 * The environment variable PAUSES says how many pauses each case makes; a hundred
 * thousand take some minutes.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "../kselftest_harness.h"
#include "pause_writer.h"

#define PAUSES		"300"

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(pause_freeze)
{
	struct pause_writer	writer;
	unsigned char		*copy;
	unsigned long		pauses;
};

FIXTURE_VARIANT(pause_freeze)
{
	enum writer_events	events;
	bool			backward;
	bool			nested;
};

FIXTURE_VARIANT_ADD(pause_freeze, cpu_forward)
{
	.events = WRITER_OF_CPU,
	.backward = false,
	.nested = false,
};

FIXTURE_VARIANT_ADD(pause_freeze, cpu_backward)
{
	.events = WRITER_OF_CPU,
	.backward = true,
	.nested = false,
};

/* Backward only: from there one gets to the newest record whatever its size. */
FIXTURE_VARIANT_ADD(pause_freeze, cpu_backward_nested)
{
	.events = WRITER_OF_CPU,
	.backward = true,
	.nested = true,
};

FIXTURE_VARIANT_ADD(pause_freeze, task_on_cpu_backward)
{
	.events = WRITER_OF_TASK_ON_CPU,
	.backward = true,
	.nested = false,
};

FIXTURE_VARIANT_ADD(pause_freeze, task_on_cpu_backward_nested)
{
	.events = WRITER_OF_TASK_ON_CPU,
	.backward = true,
	.nested = true,
};

FIXTURE_VARIANT_ADD(pause_freeze, task_forward)
{
	.events = WRITER_OF_TASK,
	.backward = false,
	.nested = false,
};

FIXTURE_VARIANT_ADD(pause_freeze, task_backward)
{
	.events = WRITER_OF_TASK,
	.backward = true,
	.nested = false,
};

FIXTURE_VARIANT_ADD(pause_freeze, task_backward_nested)
{
	.events = WRITER_OF_TASK,
	.backward = true,
	.nested = true,
};

FIXTURE_SETUP(pause_freeze)
{
	const char *pauses = getenv("PAUSES");
	int cpus[2];
	char *end;

	if (allowed_cpus(cpus, 2) < 2)
		SKIP(return, "needs two CPUs");
	if (!pauses)
		pauses = PAUSES;
	self->pauses = strtoul(pauses, &end, 10);
	ASSERT_TRUE(self->pauses && !*end) {
		TH_LOG("PAUSES=%s is not a positive number", pauses);
	}
	ASSERT_EQ(0, go_to_cpu(cpus[0]));
	writer_start(_metadata, &self->writer, cpus[1], variant->events,
		     variant->backward, variant->nested);
	self->copy = malloc(WRITER_BUFFER_BYTES);
	ASSERT_NE(NULL, self->copy);
}

FIXTURE_TEARDOWN(pause_freeze)
{
	free(self->copy);
	writer_stop(_metadata, &self->writer);
}

/* The newest record in the copy of the buffer, or NULL. */
static struct perf_event_header *newest_record(const struct pause_writer *writer,
					       const unsigned char *copy, __u64 head)
{
	struct perf_overwrite_walk walk;

	/* Forward the newest one ends at the head, and they are of one size. */
	if (!writer->backward)
		head -= sizeof(struct writer_sample);
	perf_overwrite_begin_at(&walk, &writer->ow, head, writer->ow.size);
	walk.data = copy;
	return perf_overwrite_next(&walk, space);
}

/* Says what there is instead of a record that the writer made. */
static void log_torn(struct __test_metadata *_metadata, const struct pause_writer *writer,
		     const struct perf_event_header *record, unsigned int pause)
{
	const struct writer_sample *sample = (const struct writer_sample *)record;

	if (!record) {
		TH_LOG("pause %u: no record", pause);
		return;
	}
	TH_LOG("pause %u: a record of type %u with %u bytes", pause, record->type, record->size);
	if (record->size != sizeof(*sample))
		return;
	TH_LOG("address %#llx, the area is at %#llx", sample->addr,
	       fault_address(&writer->area, 0));
	TH_LOG("stack: %llu bytes, %llu used, last word %#llx", sample->stack_size,
	       sample->stack_used, sample->stack[sizeof(sample->stack) / sizeof(__u64) - 1]);
}

TEST_F(pause_freeze, nothing_changes)
{
	unsigned int moved = 0, changed = 0, torn = 0;
	struct pause_writer *writer = &self->writer;
	struct perf_overwrite *ow = &writer->ow;
	struct perf_event_header *record;
	__u64 head = 0, begin = now_ns(), lost = writer_lost(writer);

	for (unsigned int i = 0; i < self->pauses; i++) {
		/* It is at work, and this isn't always at the same place of it. */
		__u64 until, before = writer_wait(writer, head);

		ASSERT_NE(head, before) {
			TH_LOG("nothing was written before pause %u", i);
		}
		for (until = now_ns() + i * 7919 % 50000; now_ns() < until; )
			;

		ASSERT_EQ(0, perf_overwrite_pause(ow->fd)) {
			TH_LOG("pause %u: %s", i, strerror(errno));
		}
		head = perf_overwrite_head(ow);
		memcpy(self->copy, ow->data, ow->size);

		/* Looked at until the writer has been there in vain. */
		record = newest_record(writer, self->copy, head);
		if (!record || !writer_made(writer, record)) {
			log_torn(_metadata, writer, record, i);
			torn++;
		}
		ASSERT_TRUE(writer_meets_pause(writer));
		changed += memcmp(self->copy, ow->data, ow->size) != 0;
		moved += head != perf_overwrite_head(ow);
		ASSERT_EQ(0, perf_overwrite_resume(ow->fd));
	}

	lost = writer_lost(writer) - lost;
	TH_LOG("%lu pauses in %llu ms, which %llu records met", self->pauses,
	       (now_ns() - begin) / 1000000, lost);
	TH_LOG("data_head moved in %u, contents changed in %u, the newest record torn in %u",
	       moved, changed, torn);
	EXPECT_EQ(0, moved);
	EXPECT_EQ(0, changed);
	EXPECT_EQ(0, torn);
	/* It went on writing all the time. */
	EXPECT_LT(self->pauses, lost);
}

TEST_HARNESS_MAIN
