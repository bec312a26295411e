// SPDX-License-Identifier: GPL-2.0
/*
 * A mapped buffer can be read through /proc/<pid>/mem and by ptrace(): this is
 * how the data of a recorder that hangs is rescued. It can't be written.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"

#define DATA_PAGES	4

FIXTURE(map_access)
{
	struct perf_overwrite	ow;
	size_t			page_size;
	size_t			size;
	int			fd;
	int			mem;
};

FIXTURE_VARIANT(map_access)
{
	bool	writable;
};

FIXTURE_VARIANT_ADD(map_access, read_only)
{
	.writable = false,
};

FIXTURE_VARIANT_ADD(map_access, writable)
{
	.writable = true,
};

/* In /proc/<pid>/mem, which a program of 32 bits reads beyond 2 GiB, too. */
static off64_t position(const char *at)
{
	return (unsigned long)at;
}

FIXTURE_SETUP(map_access)
{
	struct perf_event_attr attr = NAME_EVENT(0);

	self->page_size = sysconf(_SC_PAGESIZE);
	self->size = (1 + DATA_PAGES) * self->page_size;
	self->fd = open_event(_metadata, &attr, 0, -1);
	if (self->fd < 0)
		return;
	ASSERT_EQ(0, perf_overwrite_map(&self->ow, self->fd, DATA_PAGES, variant->writable));
	/* All pages have something in them, and nothing changes from then on. */
	write_names(0, DATA_PAGES * self->page_size / 28, 0);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_LT((DATA_PAGES - 1) * self->page_size, perf_overwrite_head(&self->ow));
	self->mem = open("/proc/self/mem", O_RDWR);
	ASSERT_LE(0, self->mem);
}

FIXTURE_TEARDOWN(map_access)
{
	EXPECT_EQ(0, close(self->mem));
	EXPECT_EQ(0, perf_overwrite_unmap(&self->ow));
	EXPECT_EQ(0, close(self->fd));
}

TEST_F(map_access, proc_mem)
{
	const char *area = (const char *)self->ow.meta;
	char *copy = malloc(self->size);

	ASSERT_NE(NULL, copy);
	memset(copy, 0xa5, self->size);
	ASSERT_EQ(self->size, pread64(self->mem, copy, self->size, position(area)));
	EXPECT_EQ(0, memcmp(area, copy, self->size));
	free(copy);
}

/* From the midst of a page into the next one, at each of them. */
TEST_F(map_access, proc_mem_across_pages)
{
	const char *area = (const char *)self->ow.meta;
	char copy[64];

	for (size_t page = 1; page <= DATA_PAGES; page++) {
		size_t offset = page * self->page_size - 27;

		memset(copy, 0xa5, sizeof(copy));
		ASSERT_EQ(sizeof(copy), pread64(self->mem, copy, sizeof(copy),
						position(area) + offset));
		ASSERT_EQ(0, memcmp(area + offset, copy, sizeof(copy))) {
			TH_LOG("at the end of page %zu", page - 1);
		}
	}
}

/* What is behind the mapping is no business of it. */
TEST_F(map_access, ends_with_the_mapping)
{
	char *area, copy[64];

	/* The same once more, in front of a hole. */
	area = mmap(NULL, self->size + self->page_size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, area);
	ASSERT_EQ(0, munmap(area + self->size, self->page_size));
	ASSERT_EQ(area, mmap(area, self->size, PROT_READ | (variant->writable ? PROT_WRITE : 0),
			     MAP_SHARED | MAP_FIXED, self->fd, 0));
	ASSERT_EQ(24, pread64(self->mem, copy, sizeof(copy), position(area) + self->size - 24));
	ASSERT_EQ(0, memcmp(area + self->size - 24, copy, 24));
	ASSERT_EQ(-1, pread64(self->mem, copy, sizeof(copy), position(area) + self->size));
	ASSERT_EQ(EIO, errno);
	ASSERT_EQ(0, munmap(area, self->size));
}

TEST_F(map_access, ptrace_peek)
{
	int status;
	long word;
	pid_t pid = fork();

	if (!pid) {
		struct perf_event_attr attr = NAME_EVENT(0);
		int fd = perf_overwrite_open(&attr, 0, -1, -1);
		void *area = (char *)self->ow.meta;

		/* Children have no copy of the mapping: one of its own, in the same place. */
		if (fd < 0)
			_exit(1);
		if (mmap(area, self->size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != area)
			_exit(1);
		write_names(100, 1, 0);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(2);
		raise(SIGSTOP);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status)) {
		TH_LOG("status 0x%x", status);
	}
	errno = 0;
	EXPECT_EQ(name_record_size(100, 0),
		  ptrace(PTRACE_PEEKDATA, pid, &self->ow.meta->data_head, NULL));
	EXPECT_EQ(0, errno);
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid,
		      self->ow.data + offsetof(struct comm_record, pid), NULL);
	EXPECT_EQ(0, errno);
	/* What is in front of the word, whichever half of it that is. */
	EXPECT_EQ(0, memcmp(&word, &pid, sizeof(pid)));
	ASSERT_EQ(0, ptrace(PTRACE_CONT, pid, NULL, NULL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

TEST_F(map_access, not_for_writing)
{
	char *area = (char *)self->ow.meta, before[64], zeroes[64] = { 0 };
	size_t offset = self->page_size;

	memcpy(before, area + offset, sizeof(before));
	ASSERT_NE(0, memcmp(before, zeroes, sizeof(before)));
	EXPECT_EQ(-1, pwrite64(self->mem, zeroes, sizeof(zeroes), position(area) + offset));
	EXPECT_EQ(EIO, errno);
	EXPECT_EQ(0, memcmp(area + offset, before, sizeof(before)));
}

TEST_HARNESS_MAIN
