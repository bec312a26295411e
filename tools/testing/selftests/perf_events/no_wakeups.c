// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder that doesn't poll can turn wakeups off: with attr.watermark and
 * the largest wakeup_watermark there is, a buffer that is mapped read-only causes no
 * wakeup, however often it is overwritten.
 *
 * All else wakes as it always did: a watermark that is larger than the data area
 * counts as its size, none or 0 as half of it; a writable buffer's reader has to
 * be woken or it would starve, so UINT_MAX is just a large number there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define LAPS	20
#define NEVER	0

FIXTURE(no_wakeups)
{
	struct perf_overwrite	ow;
	int			fd;
	sigset_t		signals;
	bool			told;		/* of watermarks, by signals */
	/* Bytes that have to be exceeded for a wakeup, NEVER for none. */
	size_t			watermark;
};

FIXTURE_VARIANT(no_wakeups)
{
	bool		backward;
	bool		writable;
	bool		watermark;
	unsigned int	value;
	/* What it comes to, in halves of the data area. */
	unsigned int	halves;
};

FIXTURE_VARIANT_ADD(no_wakeups, forward_readonly_max)
{
	.backward = false,
	.writable = false,
	.watermark = true,
	.value = UINT_MAX,
	.halves = NEVER,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_max)
{
	.backward = true,
	.writable = false,
	.watermark = true,
	.value = UINT_MAX,
	.halves = NEVER,
};

FIXTURE_VARIANT_ADD(no_wakeups, forward_writable_max)
{
	.backward = false,
	.writable = true,
	.watermark = true,
	.value = UINT_MAX,
	.halves = 2,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_writable_max)
{
	.backward = true,
	.writable = true,
	.watermark = true,
	.value = UINT_MAX,
	.halves = 2,
};

/* One less isn't that number. */
FIXTURE_VARIANT_ADD(no_wakeups, forward_readonly_large)
{
	.backward = false,
	.writable = false,
	.watermark = true,
	.value = UINT_MAX - 1,
	.halves = 2,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_large)
{
	.backward = true,
	.writable = false,
	.watermark = true,
	.value = UINT_MAX - 1,
	.halves = 2,
};

/* As large as a signed number can be, and one more. */
FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_int_max)
{
	.backward = true,
	.writable = false,
	.watermark = true,
	.value = INT_MAX,
	.halves = 2,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_int_min)
{
	.backward = true,
	.writable = false,
	.watermark = true,
	.value = INT_MAX + 1u,
	.halves = 2,
};

FIXTURE_VARIANT_ADD(no_wakeups, forward_readonly_zero)
{
	.backward = false,
	.writable = false,
	.watermark = true,
	.value = 0,
	.halves = 1,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_zero)
{
	.backward = true,
	.writable = false,
	.watermark = true,
	.value = 0,
	.halves = 1,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_writable_zero)
{
	.backward = true,
	.writable = true,
	.watermark = true,
	.value = 0,
	.halves = 1,
};

/* Without attr.watermark the same field is wakeup_events, and says nothing here. */
FIXTURE_VARIANT_ADD(no_wakeups, forward_readonly_events)
{
	.backward = false,
	.writable = false,
	.watermark = false,
	.value = UINT_MAX,
	.halves = 1,
};

FIXTURE_VARIANT_ADD(no_wakeups, backward_readonly_events)
{
	.backward = true,
	.writable = false,
	.watermark = false,
	.value = UINT_MAX,
	.halves = 1,
};

/* Whether there is a signal, or comes one within @ms milliseconds: less than a second. */
static bool is_signalled(const sigset_t *signals, unsigned int ms)
{
	struct timespec timeout = { .tv_nsec = ms * 1000000 };

	return sigtimedwait(signals, NULL, &timeout) == SIGIO;
}

static bool wait_for_signal(const sigset_t *signals)
{
	return sigwaitinfo(signals, NULL) == SIGIO;
}

/* Has a signal sent for each wakeup of @fd, too. */
static void ask_for_signals(struct __test_metadata *_metadata, int fd)
{
	ASSERT_EQ(0, fcntl(fd, F_SETOWN, getpid()));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_ASYNC));
}

/*
 * Whether a watermark sends one, and not just the overflow of an event. On older kernels
 * only poll() tells of watermarks. Should it send one later than can be waited for here,
 * less is tested than could be.
 */
static bool watermark_signals(struct __test_metadata *_metadata, const sigset_t *signals)
{
	struct perf_event_attr attr = NAME_EVENT(false);
	struct perf_overwrite ow;
	bool signalled;
	int fd;

	attr.watermark = 1;
	attr.wakeup_watermark = 1;
	fd = open_event(_metadata, &attr, 0, -1);
	if (fd < 0)
		return false;
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, 1, true));
	ask_for_signals(_metadata, fd);
	write_names(0, 1, 0);
	signalled = is_signalled(signals, 900);
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
	/* A late one isn't to be taken for one of what follows. */
	return is_signalled(signals, 0) || signalled;
}

/* Signals are kept pending, to be asked for. */
FIXTURE_SETUP(no_wakeups)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	sigemptyset(&self->signals);
	sigaddset(&self->signals, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &self->signals, NULL));

	self->told = watermark_signals(_metadata, &self->signals);
	attr.watermark = variant->watermark;
	attr.wakeup_watermark = variant->value;
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 1, variant->writable));
	self->watermark = variant->halves * self->ow.size / 2;
	ask_for_signals(_metadata, self->fd);
}

FIXTURE_TEARDOWN(no_wakeups)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

static bool is_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) == 1;
}

/* For so many laps: one less, as the last one may be about to come. */
static unsigned int least_wakeups(unsigned int laps, unsigned int halves)
{
	return halves == NEVER ? 0 : laps * 2 / halves - 1;
}

TEST_F(no_wakeups, laps)
{
	unsigned int wakeups = 0, seq = 0;
	__u64 written = 0, woken = 0, head;

	ASSERT_FALSE(is_readable(self->fd));
	while (written < LAPS * self->ow.size) {
		bool crossed = false;

		written += write_names(seq++, 1, 0);
		if (self->watermark != NEVER && written - woken > self->watermark) {
			woken += self->watermark;
			crossed = true;
			wakeups++;
		}
		ASSERT_EQ(crossed, is_readable(self->fd)) {
			TH_LOG("after %llu bytes, record %u", written, seq);
		}
		/* The reader keeps up, just not as soon as all is full. */
		ASSERT_TRUE(!crossed || !self->told || wait_for_signal(&self->signals));
		if (variant->writable)
			perf_overwrite_set_tail(&self->ow, perf_overwrite_head(&self->ow));
	}
	if (self->told || self->watermark == NEVER)
		ASSERT_FALSE(is_signalled(&self->signals, 50));

	/* All of it was really written, and the wakeups are no fewer than that. */
	head = perf_overwrite_head(&self->ow);
	ASSERT_EQ(written, variant->backward ? perf_overwrite_written(0, head) : head);
	ASSERT_EQ(0, lost_count(self->fd));
	ASSERT_LE(least_wakeups(LAPS, variant->halves), wakeups);
}

/* The watermark is the buffer's, whatever those ask for that only write to it. */
TEST_F(no_wakeups, sharing_event)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	unsigned int wakeups = 0, laps = 4, seq = 0;
	__u64 written = 0;
	int other;

	attr.watermark = 1;
	attr.wakeup_watermark = self->watermark == NEVER ? 1 : UINT_MAX;
	other = open_event(_metadata, &attr, 0, -1);
	if (other < 0)
		return;
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	while (written < laps * self->ow.size) {
		written += 2 * write_names(seq++, 1, 0);
		wakeups += is_readable(self->fd);
		if (variant->writable)
			perf_overwrite_set_tail(&self->ow, perf_overwrite_head(&self->ow));
	}
	ASSERT_NE(0, perf_overwrite_head(&self->ow));
	ASSERT_LE(least_wakeups(laps, variant->halves), wakeups);
	ASSERT_EQ(self->watermark != NEVER, wakeups != 0);
	/* Signals are for the crossings of the owner, and those may be of the other. */
	ASSERT_TRUE(self->watermark != NEVER || !is_signalled(&self->signals, 50));
	ASSERT_EQ(0, close(other));
}

TEST_HARNESS_MAIN
