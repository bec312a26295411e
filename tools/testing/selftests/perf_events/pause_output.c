// SPDX-License-Identifier: GPL-2.0
/*
 * PERF_EVENT_IOC_PAUSE_OUTPUT: nothing is written while the buffer is paused, each
 * record that meets it is counted, and all earlier records stay readable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

/* Fit into a page by far, so that a writable buffer never refuses anything. */
#define BEFORE	7
#define AFTER	5

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

FIXTURE(pause_output)
{
	struct perf_overwrite	ow;
	int			fd;
	unsigned char		*before;
};

FIXTURE_VARIANT(pause_output)
{
	bool	backward;
	bool	writable;
};

/* Pausing has nothing to do with the direction, nor with who may write. */
FIXTURE_VARIANT_ADD(pause_output, forward_readonly)
{
	.backward = false,
	.writable = false,
};

FIXTURE_VARIANT_ADD(pause_output, forward_writable)
{
	.backward = false,
	.writable = true,
};

FIXTURE_VARIANT_ADD(pause_output, backward_readonly)
{
	.backward = true,
	.writable = false,
};

FIXTURE_VARIANT_ADD(pause_output, backward_writable)
{
	.backward = true,
	.writable = true,
};

FIXTURE_SETUP(pause_output)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, variant->writable));
	self->before = malloc(self->ow.size);
	ASSERT_NE(NULL, self->before);
}

FIXTURE_TEARDOWN(pause_output)
{
	free(self->before);
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

/*
 * The record at place @at in the order of writing, of all that were written:
 * their total is in *@total. Both directions, and no more than a lap.
 */
static struct perf_event_header *record_at(const struct perf_overwrite *ow,
					   bool backward, unsigned int at,
					   unsigned int *total)
{
	struct perf_overwrite_walk walk;
	__u64 position, head = perf_overwrite_head(ow);

	*total = 0;
	if (!backward) {
		struct perf_event_header *record = NULL;

		position = 0;
		while (forward_next(ow, &position, head, space))
			++*total;
		position = 0;
		for (unsigned int i = 0; i <= at; i++)
			record = forward_next(ow, &position, head, space);
		return record;
	}

	perf_overwrite_begin(&walk, ow);
	while (perf_overwrite_next(&walk, space))
		++*total;
	if (at >= *total)
		return NULL;
	perf_overwrite_begin(&walk, ow);
	for (unsigned int i = *total - 1; i > at; i--)
		perf_overwrite_next(&walk, space);
	return perf_overwrite_next(&walk, space);
}

/*
 * Checks that the place @at and the next one hold record number @seq and one
 * that tells that @lost records of event @id were lost before it. Both are
 * written in one go; which of the two comes first isn't promised.
 */
static void check_loss(struct __test_metadata *_metadata,
		       const struct perf_overwrite *ow, bool backward,
		       unsigned int at, unsigned int seq, __u64 id, __u64 lost)
{
	unsigned int total, names = 0, losses = 0;

	for (unsigned int i = at; i < at + 2; i++) {
		struct perf_event_header *record = record_at(ow, backward, i, &total);
		struct lost_record *loss = (struct lost_record *)record;

		ASSERT_NE(NULL, record);
		if (record->type != PERF_RECORD_LOST) {
			ASSERT_TRUE(is_name(record, seq, 0));
			names++;
			continue;
		}
		ASSERT_EQ(sizeof(*loss), record->size);
		ASSERT_EQ(id, loss->id);
		ASSERT_EQ(lost, loss->lost);
		losses++;
	}
	ASSERT_EQ(1, names);
	ASSERT_EQ(1, losses);
}

static void check_name(struct __test_metadata *_metadata,
		       const struct perf_overwrite *ow, bool backward,
		       unsigned int at, unsigned int seq)
{
	unsigned int total;
	struct perf_event_header *record = record_at(ow, backward, at, &total);

	ASSERT_NE(NULL, record);
	ASSERT_TRUE(is_name(record, seq, 0)) {
		TH_LOG("record %u of %u isn't number %u", at, total, seq);
	}
}

TEST_F(pause_output, nothing_is_written)
{
	__u64 head;

	write_names(0, BEFORE, 0);
	head = perf_overwrite_head(&self->ow);
	ASSERT_NE(0, head);
	memcpy(self->before, self->ow.data, self->ow.size);

	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(BEFORE, 1000, 0);

	ASSERT_EQ(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(0, memcmp(self->before, self->ow.data, self->ow.size));
}

/* PERF_RECORD_LOST and PERF_FORMAT_LOST have the exact number, each time. */
TEST_F(pause_output, lost_is_exact)
{
	static const unsigned int losses[] = { 1, 2, 100, 4097 };
	unsigned int seq = 0, at = 0, total;
	__u64 lost = 0, id = event_id(self->fd);

	ASSERT_NE(0, id);
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		write_names(seq, BEFORE, 0);
		seq += BEFORE;
		at += BEFORE;
		ASSERT_EQ(lost, lost_count(self->fd));

		ASSERT_EQ(0, perf_overwrite_pause(self->fd));
		write_names(seq, losses[i], 0);
		seq += losses[i];
		lost += losses[i];
		ASSERT_EQ(lost, lost_count(self->fd));
		ASSERT_EQ(0, perf_overwrite_resume(self->fd));

		/* The first record after the gap comes with the news of it ... */
		write_names(seq, 1, 0);
		check_loss(_metadata, &self->ow, variant->backward, at, seq, id,
			   losses[i]);
		seq++;
		at += 2;

		/* ... and the others don't. */
		write_names(seq, AFTER, 0);
		for (unsigned int after = 0; after < AFTER; after++)
			check_name(_metadata, &self->ow, variant->backward,
				   at + after, seq + after);
		seq += AFTER;
		at += AFTER;
		record_at(&self->ow, variant->backward, 0, &total);
		ASSERT_EQ(at, total);
		ASSERT_EQ(lost, lost_count(self->fd));
	}
}

/* A pause in which nothing happened leaves no trace. */
TEST_F(pause_output, nothing_lost)
{
	unsigned int total;

	write_names(0, BEFORE, 0);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(BEFORE, AFTER, 0);

	for (unsigned int i = 0; i < BEFORE + AFTER; i++)
		check_name(_metadata, &self->ow, variant->backward, i, i);
	record_at(&self->ow, variant->backward, 0, &total);
	ASSERT_EQ(BEFORE + AFTER, total);
	ASSERT_EQ(0, lost_count(self->fd));
}

/* Twice is the same as once: pauses don't count, nor do resumes. */
TEST_F(pause_output, idempotent)
{
	__u64 id = event_id(self->fd);

	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(0, 1, 0);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(1, 2, 0);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(3, 3, 0);
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	ASSERT_EQ(5, lost_count(self->fd));

	write_names(6, 1, 0);
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(7, 1, 0);

	check_name(_metadata, &self->ow, variant->backward, 0, 0);
	check_loss(_metadata, &self->ow, variant->backward, 1, 6, id, 5);
	check_name(_metadata, &self->ow, variant->backward, 3, 7);
	ASSERT_EQ(5, lost_count(self->fd));
}

/* Zero resumes, all the rest pauses. */
TEST_F(pause_output, argument)
{
	static const unsigned long arguments[] = { 1, 2, 3, 0x100, 0x80000000, 0xffffffff };
	unsigned int seq = 0;
	__u64 head;

	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++) {
		seq += write_names(seq, 1, 0) != 0;
		head = perf_overwrite_head(&self->ow);

		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, arguments[i]));
		seq += write_names(seq, 1, 0) != 0;
		ASSERT_EQ(head, perf_overwrite_head(&self->ow));

		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 0));
		seq += write_names(seq, 1, 0) != 0;
		ASSERT_NE(head, perf_overwrite_head(&self->ow));
	}
}

/* What was there before the pause is there during it, and after it. */
TEST_F(pause_output, past_stays_readable)
{
	unsigned int total;

	write_names(0, BEFORE, 0);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(BEFORE, 10, 0);
	for (unsigned int i = 0; i < BEFORE; i++)
		check_name(_metadata, &self->ow, variant->backward, i, i);
	ASSERT_EQ(NULL, record_at(&self->ow, variant->backward, BEFORE, &total));
	ASSERT_EQ(BEFORE, total);

	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(BEFORE + 10, 1, 0);
	for (unsigned int i = 0; i < BEFORE; i++)
		check_name(_metadata, &self->ow, variant->backward, i, i);
	record_at(&self->ow, variant->backward, 0, &total);
	ASSERT_EQ(BEFORE + 2, total);
}

/* The pause is the buffer's: any event that writes to it may ask for it. */
TEST_F(pause_output, sharing_event)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	unsigned int total;
	__u64 head, lost;
	int other;

	other = open_event(_metadata, &attr, 0, -1);
	if (other < 0)
		return;
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));

	/* Each name is a record of both. */
	write_names(0, 1, 0);
	record_at(&self->ow, variant->backward, 0, &total);
	ASSERT_EQ(2, total);
	head = perf_overwrite_head(&self->ow);

	ASSERT_EQ(0, perf_overwrite_pause(other));
	write_names(1, 3, 0);
	ASSERT_EQ(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(3, lost_count(self->fd));
	ASSERT_EQ(3, lost_count(other));

	/* Resumed through the owner, paused again through it. */
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(4, 1, 0);
	record_at(&self->ow, variant->backward, 0, &total);
	ASSERT_EQ(2 + 3, total);
	lost = 0;
	for (unsigned int i = 2; i < total; i++) {
		struct perf_event_header *record;

		record = record_at(&self->ow, variant->backward, i, &total);
		ASSERT_TRUE(record->type == PERF_RECORD_LOST || is_name(record, 4, 0));
		if (record->type == PERF_RECORD_LOST)
			lost += ((struct lost_record *)record)->lost;
	}
	ASSERT_EQ(6, lost);

	head = perf_overwrite_head(&self->ow);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(5, 2, 0);
	ASSERT_EQ(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(0, perf_overwrite_resume(other));
	write_names(7, 1, 0);
	ASSERT_NE(head, perf_overwrite_head(&self->ow));
	ASSERT_EQ(0, close(other));
}

/* Directing the event elsewhere and back: without a buffer there is no pause. */
TEST_F(pause_output, no_buffer)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int other;

	other = open_event(_metadata, &attr, 0, -1);
	if (other < 0)
		return;
	for (int argument = 0; argument < 2; argument++) {
		ASSERT_EQ(-1, ioctl(other, PERF_EVENT_IOC_PAUSE_OUTPUT, argument));
		ASSERT_EQ(EINVAL, errno);
	}

	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	ASSERT_EQ(0, perf_overwrite_pause(other));
	ASSERT_EQ(0, perf_overwrite_resume(other));

	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	ASSERT_EQ(-1, perf_overwrite_pause(other));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(other));
}

/* Just the control page: there is nothing to pause, and nothing is lost. */
TEST_F(pause_output, no_data_pages)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	struct perf_overwrite ow;
	int other;

	other = open_event(_metadata, &attr, 0, -1);
	if (other < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&ow, other, 0, variant->writable));
	for (int argument = 0; argument < 2; argument++) {
		ASSERT_EQ(-1, ioctl(other, PERF_EVENT_IOC_PAUSE_OUTPUT, argument));
		ASSERT_EQ(EINVAL, errno);
	}

	write_names(0, 3, 0);
	ASSERT_EQ(0, perf_overwrite_head(&ow));
	ASSERT_EQ(0, lost_count(other));
	/* The names were worth a record where there is a place for it. */
	ASSERT_NE(0, perf_overwrite_head(&self->ow));

	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(-1, perf_overwrite_pause(other));
	ASSERT_EQ(EINVAL, errno);
	ASSERT_EQ(0, close(other));
}

/* Within a minute the signal of one more overflow comes; with it, whoever polls is woken. */
static void wait_for_signal(struct __test_metadata *_metadata, const sigset_t *signals)
{
	const struct timespec minute = { .tv_sec = 60 };
	siginfo_t info;

	ASSERT_LT(0, sigtimedwait(signals, &info, &minute)) {
		TH_LOG("no signal: %s", strerror(errno));
	}
}

/* Each sample sends a signal, but only one that is written wakes whoever polls. */
TEST_F(pause_output, signals_go_on)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_ADDR);
	struct fault_area area;
	struct perf_overwrite ow;
	struct pollfd poll_fd;
	sigset_t signals;
	int fd;

	attr.write_backward = variant->backward;
	attr.wakeup_events = 1;
	fd = open_event(_metadata, &attr, 0, -1);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 1, variant->writable));
	ASSERT_EQ(0, map_fault_area(&area, 3));
	sigemptyset(&signals);
	sigaddset(&signals, SIGRTMIN);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &signals, NULL));
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETSIG, SIGRTMIN));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_ASYNC));
	poll_fd = (struct pollfd){ .fd = fd, .events = POLLIN };

	for (unsigned int seq = 0; seq < 3; seq++) {
		bool paused = seq == 1;

		ASSERT_EQ(0, paused ? perf_overwrite_pause(fd) : 0);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		make_fault(&area, seq);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		/* Other pages may fault, too: at least one. */
		wait_for_signal(_metadata, &signals);
		EXPECT_EQ(!paused, poll(&poll_fd, 1, 0));
		if (!paused)
			continue;
		EXPECT_LT(0, lost_count(fd));
		ASSERT_EQ(0, perf_overwrite_resume(fd));
		/* Those of the pause. */
		while (sigtimedwait(&signals, NULL, &(struct timespec){ 0 }) > 0)
			;
	}
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
