// SPDX-License-Identifier: GPL-2.0
/*
 * A user may lock kernel.perf_event_mlock_kb of perf buffers for each CPU that is
 * online. A buffer that is mapped twice counts once, and gives back as many pages. Who
 * maps its AUX area has to have it mapped. Whoever unmaps it last gives its pages back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define MAX_BUFFERS	1024

static int open_name_event(struct __test_metadata *_metadata)
{
	struct perf_event_attr attr = NAME_EVENT(0);

	return open_event(_metadata, &attr, 0, -1);
}

FIXTURE(map_twice)
{
	/* Of one buffer, without its first page: a power of two. */
	size_t	pages;
	/* How many of them a user may have. */
	long	limit;
};

FIXTURE_SETUP(map_twice)
{
	struct rlimit none = { 0, 0 };
	long kb = read_number("/proc/sys/kernel/perf_event_mlock_kb");
	long locked;
	int fd;

	if (read_number("/proc/sys/kernel/perf_event_paranoid") == -1)
		SKIP(return, "kernel.perf_event_paranoid allows everything, or there is no perf");
	ASSERT_LT(0, kb);
	locked = kb * 1024 / sysconf(_SC_PAGESIZE) * sysconf(_SC_NPROCESSORS_ONLN);

	/* Some sixteen of them. */
	self->pages = 1;
	while ((2 * self->pages + 1) * 16 <= (size_t)locked)
		self->pages *= 2;
	self->limit = locked / (self->pages + 1);
	ASSERT_LE(2, self->limit);
	ASSERT_GE(MAX_BUFFERS, self->limit);

	/* No other memory than perf's own, and nobody to whom limits don't apply. */
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
	if (become_nobody())
		SKIP(return, "can't become nobody: %s", strerror(errno));
	fd = open_name_event(_metadata);
	if (fd < 0)
		return;
	ASSERT_EQ(0, close(fd));
}

FIXTURE_TEARDOWN(map_twice)
{
}

/* Maps as many buffers as it may, each @times, and unmaps them. Returns how many. */
static long map_many(struct __test_metadata *_metadata, size_t pages, int times)
{
	static struct perf_overwrite ows[MAX_BUFFERS + 1][2];
	static int fds[MAX_BUFFERS + 1];
	long count;

	for (count = 0; count <= MAX_BUFFERS; count++) {
		fds[count] = open_name_event(_metadata);
		ASSERT_LE(0, fds[count]);
		if (perf_overwrite_map(&ows[count][0], fds[count], pages, true)) {
			EXPECT_EQ(EPERM, errno);
			close(fds[count]);
			break;
		}
		if (times == 2) {
			ASSERT_EQ(0, perf_overwrite_map(&ows[count][1], fds[count], pages, true));
			/* It is the same buffer. */
			ows[count][0].meta->data_tail = count + 1;
			ASSERT_EQ(count + 1, ows[count][1].meta->data_tail);
		}
	}
	for (long i = 0; i < count; i++) {
		for (int j = 0; j < times; j++)
			ASSERT_EQ(0, perf_overwrite_unmap(&ows[i][j]));
		ASSERT_EQ(0, close(fds[i]));
	}
	return count;
}

TEST_F(map_twice, takes_its_pages_once)
{
	ASSERT_EQ(self->limit, map_many(_metadata, self->pages, 1));
	EXPECT_EQ(self->limit, map_many(_metadata, self->pages, 2));
}

TEST_F(map_twice, gives_back_what_it_took)
{
	for (long round = 0; round < 2 * self->limit; round++) {
		struct perf_overwrite ows[2];
		int fd = open_name_event(_metadata);

		ASSERT_LE(0, fd);
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(0, perf_overwrite_map(&ows[i], fd, self->pages, true)) {
				TH_LOG("mapping %d in round %ld: %s", i, round, strerror(errno));
			}
		}
		for (int i = 0; i < 2; i++)
			ASSERT_EQ(0, perf_overwrite_unmap(&ows[i]));
		ASSERT_EQ(0, close(fd));
	}
	EXPECT_EQ(self->limit, map_many(_metadata, self->pages, 1));
}

/*
 * Two processes unmap an event at the same time, or one maps it while the other unmaps
 * it. The pages are given back in any case, and a new buffer's first page is filled in.
 */
#define MEETINGS	400

TEST_F(map_twice, unmapped_by_two)
{
	int go[2], done[2], status;
	char byte;
	pid_t pid;

	for (long i = 0; i < MEETINGS; i++) {
		bool both_have_it = i % 2;
		struct perf_overwrite ow, mine;
		int fd = open_name_event(_metadata);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, perf_overwrite_map(&ow, fd, self->pages, true));
		ASSERT_EQ(0, pipe(go));
		ASSERT_EQ(0, pipe(done));
		pid = fork_tied();
		if (!pid) {
			close(go[1]);
			if ((both_have_it && perf_overwrite_map(&mine, fd, self->pages, true)) ||
			    write(done[1], "", 1) != 1 || read(go[0], &byte, 1))
				_exit(1);
			if (!both_have_it) {
				if (perf_overwrite_map(&mine, fd, self->pages, true))
					_exit(2);
				/* The event is enabled since it was opened. */
				if (!mine.meta->time_enabled)
					_exit(3);
			}
			perf_overwrite_unmap(&mine);
			_exit(0);
		}
		ASSERT_LT(0, pid);
		/* A child that has ended closes its end: nobody waits for it. */
		close(go[0]);
		close(done[1]);
		ASSERT_LE(0, read(done[0], &byte, 1));
		/* The child sees the end of the file, and both go. */
		close(go[1]);
		ASSERT_EQ(0, perf_overwrite_unmap(&ow));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status) {
			TH_LOG("round %ld: wait status %#x", i, status);
		}
		close(done[0]);
		ASSERT_EQ(0, close(fd));
	}
	EXPECT_EQ(self->limit, map_many(_metadata, self->pages, 1));
}

/*
 * The mapping of another event's buffer may go at any time: an event that has none of its
 * own has no AUX area there.
 */
TEST_F(map_twice, aux_of_redirected)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = open_name_event(_metadata), redirected = open_name_event(_metadata);
	struct utsname name;
	struct perf_overwrite ow;
	void *area;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, redirected);
	ASSERT_EQ(0, perf_overwrite_map(&ow, fd, self->pages, true));
	ow.meta->aux_offset = (self->pages + 1) * page;
	ow.meta->aux_size = page;
	ASSERT_EQ(0, ioctl(redirected, PERF_EVENT_IOC_SET_OUTPUT, fd));
	area = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, redirected,
		    ow.meta->aux_offset);
	EXPECT_EQ(MAP_FAILED, area);
	ASSERT_EQ(0, uname(&name));
	/* Earlier kernels ask the PMU first, as is right where mappings are counted otherwise. */
	if (errno == EOPNOTSUPP && atoi(name.release) < 7)
		SKIP(return, "a kernel that lets an event map another one's AUX area");
	EXPECT_EQ(EBUSY, errno);
	ASSERT_EQ(0, close(redirected));
	ASSERT_EQ(0, perf_overwrite_unmap(&ow));
	ASSERT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
