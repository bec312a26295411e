// SPDX-License-Identifier: GPL-2.0
/*
 * A pause as user space sees it: the event's fdinfo has the state of the buffer, and
 * PERF_RECORD_LOST comes with its exact contents, older than the record that it came
 * with. A pause needs no lock but that of the buffer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <linux/userfaultfd.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define PAGES		2
/* A pause that takes longer than so many others, and a second, waits for the context. */
#define BLOCKED_PAUSES	100
#define BLOCKED_TRIES	3

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

#define STATE_SIZE	256

/*
 * Writes what the fdinfo of @fd says of the output as words "name=value", in the
 * order that they have there. Nothing if there is nothing.
 */
static void read_state(int fd, char state[STATE_SIZE])
{
	char path[64], line[256], *value;
	size_t used = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	state[0] = 0;
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		value = strstr(line, ":\t");
		if (strncmp(line, "output-", 7) || !value)
			continue;
		*value = 0;
		used += snprintf(state + used, STATE_SIZE - used, "%s%s=%s",
				 used ? " " : "", line + 7, value + 2);
		if (used >= STATE_SIZE)
			break;
	}
	if (file)
		fclose(file);
}

FIXTURE(pause_state)
{
	struct perf_overwrite	ow;
	int			fd;
};

FIXTURE_VARIANT(pause_state)
{
	bool	backward;
	bool	writable;
};

FIXTURE_VARIANT_ADD(pause_state, forward_readonly)
{
	.backward = false,
	.writable = false,
};

FIXTURE_VARIANT_ADD(pause_state, forward_writable)
{
	.backward = false,
	.writable = true,
};

FIXTURE_VARIANT_ADD(pause_state, backward_readonly)
{
	.backward = true,
	.writable = false,
};

FIXTURE_VARIANT_ADD(pause_state, backward_writable)
{
	.backward = true,
	.writable = true,
};

FIXTURE_SETUP(pause_state)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);

	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, PAGES, variant->writable));
}

FIXTURE_TEARDOWN(pause_state)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

#define ASSERT_STATE(_fd, _paused, _lost, _pending)			\
do {									\
	char state[STATE_SIZE], wanted[STATE_SIZE];			\
									\
	snprintf(wanted, sizeof(wanted),				\
		 "pages=%u paused=%u overwrite=%u backward=%u lost=%llu lost-pending=%llu",	\
		 PAGES, _paused, !variant->writable, variant->backward,	\
		 (unsigned long long)(_lost), (unsigned long long)(_pending));	\
	read_state(_fd, state);						\
	ASSERT_STREQ(wanted, state);					\
} while (0)

#define ASSERT_NO_STATE(_fd)						\
do {									\
	char state[STATE_SIZE];						\
									\
	read_state(_fd, state);						\
	ASSERT_STREQ("", state);					\
} while (0)

TEST_F(pause_state, fdinfo_follows)
{
	ASSERT_STATE(self->fd, 0, 0, 0);
	write_names(0, 3, 0);
	ASSERT_STATE(self->fd, 0, 0, 0);

	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	ASSERT_STATE(self->fd, 1, 0, 0);
	write_names(3, 7, 0);
	ASSERT_STATE(self->fd, 1, 7, 7);
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	ASSERT_STATE(self->fd, 0, 7, 7);

	/* With this record one that tells of them is written. */
	write_names(10, 1, 0);
	ASSERT_STATE(self->fd, 0, 7, 0);

	ASSERT_EQ(0, perf_overwrite_pause_start(self->fd));
	ASSERT_STATE(self->fd, 1, 7, 0);
	write_names(11, 2, 0);
	ASSERT_STATE(self->fd, 1, 9, 2);
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	ASSERT_STATE(self->fd, 0, 9, 2);
}

/* The state is the buffer's, but for what each event lost. */
TEST_F(pause_state, fdinfo_of_sharing_event)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	int other = open_event(_metadata, &attr, 0, -1);

	if (other < 0)
		return;
	/* Without a buffer there is none to tell of. */
	ASSERT_NO_STATE(other);

	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(0, 3, 0);
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, self->fd));
	ASSERT_STATE(self->fd, 1, 3, 3);
	ASSERT_STATE(other, 1, 0, 3);
	write_names(3, 1, 0);
	ASSERT_STATE(self->fd, 1, 4, 5);
	ASSERT_STATE(other, 1, 1, 5);

	ASSERT_EQ(0, perf_overwrite_resume(other));
	ASSERT_STATE(self->fd, 0, 4, 5);
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, -1L));
	ASSERT_NO_STATE(other);
	ASSERT_EQ(0, close(other));
}

/* Without a data area it is paused for good. */
TEST_F(pause_state, fdinfo_without_data)
{
	struct perf_event_attr attr = NAME_EVENT(variant->backward);
	char state[STATE_SIZE], wanted[] = "pages=0 paused=1 ";
	int bare = open_event(_metadata, &attr, 0, -1);
	struct perf_overwrite ow;

	ASSERT_LE(0, bare);
	ASSERT_EQ(0, perf_overwrite_map(&ow, bare, 0, variant->writable));
	read_state(bare, state);
	EXPECT_EQ(0, strncmp(wanted, state, strlen(wanted))) {
		TH_LOG("%s", state);
	}
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(bare));
}

/* A writable buffer that is full loses records without being paused. */
TEST_F(pause_state, fdinfo_when_full)
{
	unsigned int names = 2 * self->ow.size / sizeof(struct comm_record);
	__u64 lost;

	write_names(0, names, 0);
	lost = lost_count(self->fd);
	ASSERT_EQ(variant->writable, lost != 0);
	ASSERT_STATE(self->fd, 0, lost, lost);
}

/* What was lost is older than the record that brings the news, in memory, too. */
TEST_F(pause_state, lost_comes_before)
{
	struct perf_overwrite_walk walk;
	struct perf_event_header *records[3];
	unsigned char *copy = malloc(self->ow.size);
	unsigned int count = 0;

	ASSERT_NE(NULL, copy);
	write_names(0, 1, 0);
	ASSERT_EQ(0, perf_overwrite_pause(self->fd));
	write_names(1, 5, 0);
	ASSERT_EQ(0, perf_overwrite_resume(self->fd));
	write_names(6, 1, 0);

	/* Forward the first record is where the buffer begins. */
	perf_overwrite_begin_at(&walk, &self->ow,
				variant->backward ? perf_overwrite_head(&self->ow) : 0,
				self->ow.size);
	while (count < ARRAY_SIZE(records)) {
		void *record = perf_overwrite_next(&walk, copy + walk.covered);

		ASSERT_NE(NULL, record);
		records[variant->backward ? 2 - count : count] = record;
		count++;
	}
	ASSERT_TRUE(is_name(records[0], 0, 0));
	ASSERT_EQ(PERF_RECORD_LOST, records[1]->type) {
		TH_LOG("the record of type %u comes before the lost ones",
		       records[1]->type);
	}
	ASSERT_EQ(5, ((struct lost_record *)records[1])->lost);
	ASSERT_TRUE(is_name(records[2], 6, 0));
	free(copy);
}

struct blocker {
	pthread_t	thread;
	int		fd;
	void		*page;
	int		result, error;
};

/* Keeps the event's context locked: this fetches the period from the page. */
static void *block(void *argument)
{
	struct blocker *blocker = argument;

	blocker->result = ioctl(blocker->fd, PERF_EVENT_IOC_PERIOD, blocker->page);
	blocker->error = errno;
	return NULL;
}

struct pauser {
	pthread_t	thread;
	int		fd;
	int		result;
	bool		begin, done;
};

static void *pause_and_resume(void *argument)
{
	struct pauser *pauser = argument;

	while (!__atomic_load_n(&pauser->begin, __ATOMIC_ACQUIRE))
		usleep(1000);
	pauser->result = perf_overwrite_pause(pauser->fd) ||
			 perf_overwrite_resume(pauser->fd);
	__atomic_store_n(&pauser->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Whether the buffer is paused and resumed while somebody keeps the context locked. */
static bool pauses_while_locked(struct __test_metadata *_metadata, int fd, __u64 limit)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct blocker blocker = { .fd = fd };
	struct pauser pauser = { .fd = fd };
	struct uffd_msg message;
	__u64 begin;
	int faults;
	bool done;

	faults = syscall(__NR_userfaultfd, O_CLOEXEC);
	ASSERT_LE(0, faults);
	ASSERT_EQ(0, ioctl(faults, UFFDIO_API, &api));
	blocker.page = mmap(NULL, page_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, blocker.page);
	reg.range.start = (unsigned long)blocker.page;
	reg.range.len = page_size;
	ASSERT_EQ(0, ioctl(faults, UFFDIO_REGISTER, &reg));

	/* First this one: it would inherit events, which takes the context, too. */
	ASSERT_EQ(0, pthread_create(&pauser.thread, NULL, pause_and_resume, &pauser));
	ASSERT_EQ(0, pthread_create(&blocker.thread, NULL, block, &blocker));
	/* There it is, with the context locked. */
	ASSERT_EQ(sizeof(message), read(faults, &message, sizeof(message)));
	ASSERT_EQ(UFFD_EVENT_PAGEFAULT, message.event);

	__atomic_store_n(&pauser.begin, true, __ATOMIC_RELEASE);
	begin = now_ns();
	do {
		usleep(10000);
		done = __atomic_load_n(&pauser.done, __ATOMIC_ACQUIRE);
	} while (!done && now_ns() - begin < limit);

	/* Without it the page is an ordinary one, of zeroes, which is no period. */
	ASSERT_EQ(0, close(faults));
	ASSERT_EQ(0, pthread_join(blocker.thread, NULL));
	ASSERT_EQ(0, pthread_join(pauser.thread, NULL));
	ASSERT_EQ(0, munmap(blocker.page, page_size));
	ASSERT_EQ(-1, blocker.result);
	ASSERT_EQ(EINVAL, blocker.error);
	ASSERT_EQ(0, pauser.result);
	return done;
}

/*
 * Somebody keeps the event's context locked for as long as it takes. That is a
 * fault of a page that isn't provided for the time being.
 *
 * A pause that waits for the context waits in each try. One that is slow because
 * the machine is needn't be so in all of them, and has longer the slower it is.
 */
TEST_F(pause_state, context_is_locked)
{
	unsigned int tries = 0;
	__u64 begin, limit;
	bool done;
	int faults;

	faults = syscall(__NR_userfaultfd, O_CLOEXEC);
	if (faults < 0)
		SKIP(return, "no userfaultfd: %s", strerror(errno));
	ASSERT_EQ(0, close(faults));

	do {
		begin = now_ns();
		ASSERT_EQ(0, perf_overwrite_pause(self->fd));
		ASSERT_EQ(0, perf_overwrite_resume(self->fd));
		limit = 1000000000ULL + BLOCKED_PAUSES * (now_ns() - begin);
		done = pauses_while_locked(_metadata, self->fd, limit);
	} while (!done && ++tries < BLOCKED_TRIES);
	ASSERT_TRUE(done) {
		TH_LOG("the pause waited for the context, %u times", tries);
	}
}

/* Events that are inherited: whose a sample is stays true next to what was lost. */
FIXTURE(pause_inherited)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	int			fd;
	int			own;
};

FIXTURE_VARIANT(pause_inherited)
{
	bool	backward;
};

FIXTURE_VARIANT_ADD(pause_inherited, forward)
{
	.backward = false,
};

FIXTURE_VARIANT_ADD(pause_inherited, backward)
{
	.backward = true,
};

struct inherited_sample {
	struct perf_event_header	header;
	__u32				pid, tid;
	__u64				time;
	__u64				addr;
	__u64				id;
	__u64				stream;
};

struct inherited_lost {
	struct perf_event_header	header;
	__u64				id, lost;
	__u32				pid, tid;
	__u64				time;
	__u64				trailer_id;
	__u64				stream;
};

FIXTURE_SETUP(pause_inherited)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						  PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
						  PERF_SAMPLE_STREAM_ID);
	struct perf_event_attr own = NAME_EVENT(false);
	int cpu = pin_to_cpu();

	ASSERT_LE(0, cpu);
	/*
	 * One that isn't inherited: tasks whose events are all alike may swap them
	 * when one is switched to the other, and the child would run its parent's.
	 */
	self->own = open_event(_metadata, &own, 0, -1);
	if (self->own < 0)
		return;
	attr.write_backward = variant->backward;
	attr.inherit = 1;
	attr.sample_id_all = 1;
	ASSERT_EQ(0, map_fault_area(&self->area, 16));
	self->fd = open_event(_metadata, &attr, 0, cpu);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, 16, false));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
}

FIXTURE_TEARDOWN(pause_inherited)
{
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
	EXPECT_EQ(0, close(self->own));
}

TEST_F(pause_inherited, stream_of_child)
{
	unsigned char *copy = calloc(1, self->ow.size);
	struct perf_event_header *header;
	unsigned int samples = 0, losses = 0, faults = 0;
	struct perf_overwrite_walk walk;
	__u64 stream = 0, time = 0, reported = 0, id = event_id(self->fd);
	unsigned int together = 0;
	pid_t child;
	int status;

	ASSERT_NE(NULL, copy);
	child = fork();
	if (!child) {
		int bad;

		make_fault(&self->area, 0);
		bad = perf_overwrite_pause(self->fd);
		for (unsigned int seq = 1; seq < 4; seq++)
			make_fault(&self->area, seq);
		bad |= perf_overwrite_resume(self->fd);
		for (unsigned int seq = 4; seq < 8; seq++)
			make_fault(&self->area, seq);
		_exit(bad != 0);
	}
	ASSERT_LT(0, child);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));

	perf_overwrite_begin_at(&walk, &self->ow,
				variant->backward ? perf_overwrite_head(&self->ow) : 0,
				self->ow.size);
	while ((header = perf_overwrite_next(&walk, space))) {
		struct inherited_sample *sample = (struct inherited_sample *)header;
		struct inherited_lost *lost = (struct inherited_lost *)header;
		__u64 this;

		if (header->type == PERF_RECORD_LOST) {
			ASSERT_EQ(sizeof(*lost), header->size);
			ASSERT_EQ((__u32)child, lost->pid);
			ASSERT_EQ(id, lost->id);
			ASSERT_LE(3, lost->lost);
			/* It tells of all who write here: no child's stream. */
			EXPECT_EQ(id, lost->trailer_id);
			EXPECT_EQ(id, lost->stream);
			this = lost->time;
			reported = this;
			losses++;
		} else {
			ASSERT_EQ(PERF_RECORD_SAMPLE, header->type);
			ASSERT_EQ(sizeof(*sample), header->size);
			this = sample->time;
		}
		if (time)
			EXPECT_LE(variant->backward ? this : time,
				  variant->backward ? time : this);
		/* The report has the time of the record that it came with. */
		if (time && reported && (header->type == PERF_RECORD_LOST) == variant->backward) {
			EXPECT_EQ(time, this);
			reported = 0;
			together++;
		}
		time = this;
		if (header->type != PERF_RECORD_SAMPLE || sample->pid != (__u32)child)
			continue;

		samples++;
		faults += sample->addr >= fault_address(&self->area, 0) &&
			  sample->addr <= fault_address(&self->area, 15);
		EXPECT_EQ(id, sample->id);
		EXPECT_NE(id, sample->stream) {
			TH_LOG("sample %u has the stream of the parent", samples);
		}
		if (stream)
			EXPECT_EQ(stream, sample->stream);
		stream = sample->stream;
	}
	ASSERT_EQ(0, walk.missed);
	ASSERT_EQ(5, faults);
	ASSERT_EQ(1, losses);
	ASSERT_EQ(1, together);
	free(copy);
}

TEST_HARNESS_MAIN
