// SPDX-License-Identifier: GPL-2.0
/*
 * Of the errors that Documentation/userspace-api/perf_trigger.rst lists those that take
 * an effort to meet: limits, signals, memory that isn't there, and calls that find
 * another one under way. trigger.c has the others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <linux/userfaultfd.h>

#include "../kselftest_harness.h"
#include "overwrite_test.h"
#include "trigger.h"
#include "trigger_test.h"

#define AREA_PAGES	64
/* Of a set, and of a set on a CPU. */
#define MEMBERS_MAX	4096
#define CPU_MAX		64
#define HOUR_NS		(3600 * 1000000000ULL)
#define SIGNALS		3
#define FIRE_ROUNDS	50

FIXTURE(trigger_errors)
{
	struct recorded		mine;
	struct fault_area	area;
	int			set;
	__u64			generation;
};

FIXTURE_SETUP(trigger_errors)
{
	self->set = -1;
	self->mine = NOT_RECORDED;
	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));
	if (open_recorded(_metadata, &self->mine, 0, FAULT_EVENT(PERF_SAMPLE_IDENTIFIER)))
		return;
	self->set = open_set(_metadata, self->mine.names, at_once());
}

FIXTURE_TEARDOWN(trigger_errors)
{
	close(self->set);
	close_recorded(&self->mine);
}

static void build(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_errors) *self)
{
	ASSERT_EQ(0, perf_trigger_join(self->set, self->mine.names));
	ASSERT_EQ(0, perf_trigger_add(self->set, self->mine.faults));
}

/* The set is frozen, by FIRE. */
static void freeze(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_errors) *self)
{
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	ASSERT_EQ(0, perf_trigger_fire(self->set));
	ASSERT_TRUE(is_readable(self->set, -1));
}

TEST_F(trigger_errors, no_descriptor_left)
{
	struct perf_trigger_attr attr = at_once();
	struct rlimit limit, none;
	int lowest, set;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	lowest = fcntl(self->mine.names, F_DUPFD, 0);
	ASSERT_LE(0, lowest);
	ASSERT_EQ(0, close(lowest));
	none = limit;
	none.rlim_cur = lowest;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_ERROR(EMFILE, perf_trigger_set(self->mine.names, &attr));
	none.rlim_cur = lowest + 1;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	set = perf_trigger_set(self->mine.names, &attr);
	EXPECT_EQ(lowest, set);
	EXPECT_EQ(0, close(set));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

/* What is just accepted, and what is just too much. */
TEST_F(trigger_errors, largest_attributes)
{
	const __u64 long_max = kernel_long() == sizeof(__u64) ? LLONG_MAX : INT_MAX;
	const struct {
		struct perf_trigger_attr	attr;
		int				error;
	} cases[] = {
		{ { .depth_ns = HOUR_NS }, 0 },
		{ { .depth_ns = HOUR_NS + 1 }, ERANGE },
		{ { .depth_ns = 1, .holdoff_ns = HOUR_NS }, 0 },
		{ { .depth_ns = 1, .holdoff_ns = HOUR_NS + 1 }, ERANGE },
		{ { .depth_ns = 1, .depth_bytes = long_max }, 0 },
		{ { .depth_ns = 1, .depth_bytes = long_max + 1 }, ERANGE },
		{ { .depth_ns = 1, .holdoff_bytes = long_max }, 0 },
		{ { .depth_ns = 1, .holdoff_bytes = long_max + 1 }, ERANGE },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_trigger_attr attr = cases[i].attr;
		int set;

		errno = 0;
		set = perf_trigger_set(self->mine.names, &attr);
		EXPECT_EQ(cases[i].error, errno) {
			TH_LOG("case %u", i);
		}
		EXPECT_EQ(!cases[i].error, set >= 0);
		close(set);
	}
}

TEST_F(trigger_errors, what_is_missing)
{
	struct perf_event_attr clocked = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	int fd;

	clocked.use_clockid = 1;
	clocked.clockid = CLOCK_MONOTONIC;
	fd = open_event(_metadata, &clocked, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_ERROR(EXDEV, perf_trigger_add(self->set, fd));
	close(fd);

	/* With its last mapping the buffer is gone for all that write to it. */
	ASSERT_EQ(0, perf_overwrite_unmap(&self->mine.ow));
	EXPECT_ERROR(ENXIO, perf_trigger_join(self->set, self->mine.names));
	EXPECT_ERROR(ENXIO, perf_trigger_join(self->set, self->mine.faults));
	if (map_event(_metadata, &self->mine.ow, self->mine.names, TRIGGER_PAGES, false))
		return;
	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	fd = open_event(_metadata, &faults, 0, -1);
	ASSERT_LE(0, fd);
	EXPECT_ERROR(EALREADY, perf_trigger_add(self->set, fd));
	close(fd);
}

/* Two pages, the second of which is of no use to a call. */
static char *map_half(struct __test_metadata *_metadata, int prot)
{
	size_t size = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, mprotect(pages + size, size, prot));
	return pages + size;
}

TEST_F(trigger_errors, bad_addresses)
{
	struct perf_trigger_attr attr = at_once(), *far;
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	char *end, *frozen;
	__u64 *generation;

	/* The size can be read, but not all that it is of; then it can't be corrected. */
	end = map_half(_metadata, PROT_NONE);
	attr.size = sizeof(attr);
	far = (struct perf_trigger_attr *)(end - sizeof(attr) / 2);
	memcpy(far, &attr, sizeof(attr) / 2);
	EXPECT_ERROR(EFAULT, ioctl(self->mine.names, PERF_EVENT_IOC_TRIGGER_SET, far));
	end = map_half(_metadata, PROT_READ);
	EXPECT_ERROR(EFAULT, ioctl(self->mine.names, PERF_EVENT_IOC_TRIGGER_SET, end));

	build(_metadata, self);
	EXPECT_ERROR(EFAULT, ioctl(self->set, PERF_TRIGGER_IOC_ARM, 8));
	EXPECT_TRUE(has_state(self->set, "idle"));
	/* It is armed if the generation can be read, which is 0 there, but not written. */
	generation = (__u64 *)end;
	EXPECT_ERROR(EFAULT, perf_trigger_arm(self->set, generation));
	EXPECT_TRUE(has_state(self->set, "armed"));
	EXPECT_EQ(1, fd_info_number(self->set, "trigger-generation"));
	EXPECT_ERROR(ESTALE, perf_trigger_arm(self->set, generation));
	self->generation = 1;
	EXPECT_ERROR(EALREADY, perf_trigger_arm(self->set, &self->generation));

	sample_fault(self->mine.faults, &self->area, 0);
	ASSERT_TRUE(is_readable(self->set, -1));
	/* Neither a part of the report nor one of a buffer, and it can be read again. */
	end = map_half(_metadata, PROT_NONE);
	EXPECT_ERROR(EFAULT, read(self->set, end - 8, sizeof(report)));
	frozen = end - sizeof(report) - 8;
	EXPECT_ERROR(EFAULT, read(self->set, frozen, sizeof(report) + sizeof(buffer)));
	ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
	EXPECT_EQ(self->mine.id, report.id);
	EXPECT_EQ(perf_overwrite_head(&self->mine.ow), buffer.head);
}

/* How often the handler ran, for the process that sends the signals, too. */
static volatile int *signals;

static void count_signal(int number)
{
	(void)number;
	++*signals;
}

static void handle_signal(struct __test_metadata *_metadata, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	signals = mmap(NULL, sizeof(*signals), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)signals);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
}

static void wait_for_sleep(pid_t pid, char state)
{
	while (task_state(pid) != state)
		usleep(1000);
}

/* A process that sends @count signals to this one, each when it sleeps, then fires @set. */
static pid_t start_interrupting(struct __test_metadata *_metadata, int count, int set)
{
	pid_t parent = getpid(), pid = fork_tied();

	if (pid) {
		ASSERT_LT(0, pid);
		return pid;
	}
	for (int i = 0; i < count; i++) {
		wait_for_sleep(parent, 'S');
		if (kill(parent, SIGUSR1))
			_exit(1);
		while (*signals == i)
			usleep(1000);
	}
	if (set >= 0) {
		wait_for_sleep(parent, 'S');
		if (perf_trigger_fire(set))
			_exit(2);
	}
	_exit(0);
}

static void check_exited(struct __test_metadata *_metadata, pid_t pid)
{
	int status;

	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(trigger_errors, read_interrupted)
{
	struct perf_trigger_report report;
	pid_t pid;

	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	handle_signal(_metadata, 0);
	pid = start_interrupting(_metadata, 1, -1);
	EXPECT_ERROR(EINTR, read(self->set, &report, sizeof(report)));
	EXPECT_EQ(1, *signals);
	check_exited(_metadata, pid);
	EXPECT_TRUE(has_state(self->set, "armed"));
	/* It can still be fired. */
	sample_fault(self->mine.faults, &self->area, 0);
	ASSERT_EQ(sizeof(report), read(self->set, &report, sizeof(report)));
	EXPECT_EQ(self->mine.id, report.id);
}

TEST_F(trigger_errors, read_restarted)
{
	struct perf_trigger_report report;
	pid_t pid;

	build(_metadata, self);
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
	handle_signal(_metadata, SA_RESTART);
	pid = start_interrupting(_metadata, SIGNALS, self->set);
	ASSERT_EQ(sizeof(report), read(self->set, &report, sizeof(report)));
	EXPECT_EQ(PERF_TRIGGER_BY_USER, report.flags);
	EXPECT_EQ(SIGNALS, *signals);
	check_exited(_metadata, pid);
}

/* A page that isn't there: a call that stores to it waits until it is given one. */
struct missing_page {
	int	fd;
	void	*page;
	size_t	size;
};

/* Returns 0, or -1 and the test skipped. */
static int map_missing(struct __test_metadata *_metadata, struct missing_page *missing)
{
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_api api = { .api = UFFD_API };

	missing->size = sysconf(_SC_PAGESIZE);
	missing->fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	/* Not there, or no permission to handle the kernel's page faults. */
	if (missing->fd < 0)
		SKIP(return -1, "userfaultfd: %s", strerror(errno));
	ASSERT_EQ(0, ioctl(missing->fd, UFFDIO_API, &api));
	missing->page = mmap(NULL, missing->size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, missing->page);
	range.range.start = (unsigned long)missing->page;
	range.range.len = missing->size;
	ASSERT_EQ(0, ioctl(missing->fd, UFFDIO_REGISTER, &range));
	return 0;
}

static void give_page(struct __test_metadata *_metadata, struct missing_page *missing)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (unsigned long)missing->page, .len = missing->size },
	};

	ASSERT_EQ(0, ioctl(missing->fd, UFFDIO_ZEROPAGE, &zero));
}

struct reading {
	pthread_t	thread;
	int		set;
	void		*to;
	ssize_t		length;
};

static void *read_set(void *arg)
{
	struct reading *reading = arg;

	reading->length = read(reading->set, reading->to, sizeof(struct perf_trigger_report));
	return NULL;
}

/* A fatal signal ends a JOIN or an ARM that waits for another call. */
static void check_killed(struct __test_metadata *_metadata, int set, unsigned long call,
			 unsigned long arg)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		ioctl(set, call, arg);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	while (task_state(pid) != 'D') {
		ASSERT_TRUE(is_alive(pid)) {
			TH_LOG("the call doesn't wait");
		}
		usleep(1000);
	}
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

/* A read() waits for a page of its reader's, and other calls for it. */
TEST_F(trigger_errors, call_under_way)
{
	struct pollfd fault = { .events = POLLIN };
	struct perf_trigger_report report;
	struct missing_page missing;
	struct reading reading;
	int flags;
	pid_t pid;

	if (self->set < 0 || map_missing(_metadata, &missing))
		return;
	build(_metadata, self);
	freeze(_metadata, self);
	reading = (struct reading){ .set = self->set, .to = missing.page };
	ASSERT_EQ(0, pthread_create(&reading.thread, NULL, read_set, &reading));
	fault.fd = missing.fd;
	ASSERT_EQ(1, poll(&fault, 1, -1));
	ASSERT_EQ(POLLIN, fault.revents);

	flags = fcntl(self->set, F_GETFL);
	ASSERT_EQ(0, fcntl(self->set, F_SETFL, flags | O_NONBLOCK));
	EXPECT_ERROR(EAGAIN, read(self->set, &report, sizeof(report)));
	ASSERT_EQ(0, fcntl(self->set, F_SETFL, flags));

	handle_signal(_metadata, 0);
	pid = start_interrupting(_metadata, 1, -1);
	EXPECT_ERROR(EINTR, read(self->set, &report, sizeof(report)));
	check_exited(_metadata, pid);

	check_killed(_metadata, self->set, PERF_TRIGGER_IOC_ARM,
		     (unsigned long)&self->generation);
	check_killed(_metadata, self->set, PERF_TRIGGER_IOC_JOIN, self->mine.names);
	EXPECT_TRUE(has_state(self->set, "frozen"));

	give_page(_metadata, &missing);
	ASSERT_EQ(0, pthread_join(reading.thread, NULL));
	EXPECT_EQ(sizeof(report), reading.length);
	memcpy(&report, missing.page, sizeof(report));
	EXPECT_EQ(self->generation, report.generation);
	freeze(_metadata, self);
	close(missing.fd);
}

/* Whatever the moment: FIRE knows a set that was armed before. */
TEST_F(trigger_errors, fired_at_any_time)
{
	struct perf_trigger_report report;
	int status;
	pid_t pid;

	build(_metadata, self);
	EXPECT_ERROR(EINVAL, perf_trigger_fire(self->set));
	freeze(_metadata, self);
	pid = fork_tied();
	if (!pid) {
		while (!perf_trigger_fire(self->set) || errno == EALREADY)
			;
		_exit(errno);
	}
	ASSERT_LT(0, pid);
	for (int i = 0; i < FIRE_ROUNDS && is_alive(pid); i++) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		/* That process fires it. */
		while (!is_readable(self->set, 10) && is_alive(pid))
			;
		if (!is_alive(pid))
			break;
		ASSERT_EQ(sizeof(report), read(self->set, &report, sizeof(report)));
		EXPECT_EQ(PERF_TRIGGER_BY_USER, report.flags);
		EXPECT_EQ(self->generation, report.generation);
	}
	EXPECT_TRUE(is_alive(pid));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status)) {
		TH_LOG("FIRE: %s", strerror(WEXITSTATUS(status)));
	}
}

/* Returns 0, or -1 and the test skipped. */
static int allow_files(struct __test_metadata *_metadata, unsigned int count)
{
	struct rlimit limit;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur >= count)
		return 0;
	limit.rlim_cur = count;
	if (limit.rlim_max < count)
		limit.rlim_max = count;
	if (setrlimit(RLIMIT_NOFILE, &limit)) {
		ASSERT_EQ(EPERM, errno);
		SKIP(return -1, "no permission to have %u files", count);
	}
	return 0;
}

TEST_F(trigger_errors, triggers_at_most)
{
	struct perf_event_attr attr = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	static int fds[MEMBERS_MAX + 1];

	if (self->set < 0 || allow_files(_metadata, MEMBERS_MAX + 100))
		return;
	ASSERT_EQ(0, perf_trigger_join(self->set, self->mine.names));
	for (int i = 0; i <= MEMBERS_MAX; i++) {
		fds[i] = open_event(_metadata, &attr, 0, -1);
		ASSERT_LE(0, fds[i]);
		if (i < MEMBERS_MAX)
			ASSERT_EQ(0, perf_trigger_add(self->set, fds[i]));
	}
	EXPECT_ERROR(ENOSPC, perf_trigger_add(self->set, fds[MEMBERS_MAX]));
	EXPECT_EQ(MEMBERS_MAX, fd_info_number(self->set, "trigger-events"));
	/* There is room again for one that goes. */
	ASSERT_EQ(0, close(fds[0]));
	EXPECT_EQ(0, perf_trigger_add(self->set, fds[MEMBERS_MAX]));
	EXPECT_EQ(MEMBERS_MAX, fd_info_number(self->set, "trigger-events"));
	EXPECT_ERROR(ENOSPC, perf_trigger_add(self->set, self->mine.faults));

	/* The first and the last fire. */
	for (int i = 1; i <= MEMBERS_MAX; i += MEMBERS_MAX - 1) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		sample_fault(fds[i], &self->area, i);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(event_id(fds[i]), report.id);
		EXPECT_EQ(PERF_TRIGGER_NO_RECORD, report.flags);
	}
	for (int i = 1; i <= MEMBERS_MAX; i++)
		close(fds[i]);
	EXPECT_EQ(0, fd_info_number(self->set, "trigger-events"));
}

TEST_F(trigger_errors, buffers_at_most)
{
	struct perf_event_attr attr = NAME_EVENT(1);
	static struct perf_trigger_buffer buffers[MEMBERS_MAX];
	static struct perf_overwrite ow[MEMBERS_MAX + 1];
	struct perf_trigger_report report;

	if (self->set < 0 || allow_files(_metadata, MEMBERS_MAX + 100))
		return;
	attr.disabled = 1;
	for (int i = 0; i <= MEMBERS_MAX; i++) {
		int fd = open_event(_metadata, &attr, 0, -1);

		ASSERT_LE(0, fd);
		if (map_event(_metadata, &ow[i], fd, 1, false))
			return;
		if (i < MEMBERS_MAX)
			ASSERT_EQ(0, perf_trigger_join(self->set, fd));
	}
	EXPECT_ERROR(ENOSPC, perf_trigger_join(self->set, ow[MEMBERS_MAX].fd));
	EXPECT_EQ(MEMBERS_MAX, fd_info_number(self->set, "trigger-buffers"));

	/* All of them are frozen, and told of. */
	ASSERT_EQ(0, perf_trigger_add(self->set, self->mine.faults));
	ASSERT_EQ(0, ioctl(ow[1].fd, PERF_EVENT_IOC_ENABLE, 0));
	for (int round = 0; round < 2; round++) {
		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		write_names(0, 5, 0);
		sample_fault(self->mine.faults, &self->area, round);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, buffers, MEMBERS_MAX));
		EXPECT_EQ(self->mine.id, report.id);
		EXPECT_EQ(MEMBERS_MAX, report.nr);
		write_names(0, 5, 0);
		for (int i = 0; i < MEMBERS_MAX; i++)
			ASSERT_EQ(perf_overwrite_head(&ow[i]), buffers[i].head);
		EXPECT_NE(0, buffers[1].head);
	}
	for (int i = 0; i <= MEMBERS_MAX; i++) {
		ASSERT_EQ(0, perf_overwrite_unmap(&ow[i]));
		close(ow[i].fd);
	}
}

/* So many buffers does an interrupt walk before it tells that the set was fired. */
TEST(buffers_of_one_cpu)
{
	struct perf_event_attr attr = NAME_EVENT(1);
	struct perf_overwrite ow[CPU_MAX + 1], other;
	int cpus[2], count, set, second, fd;

	attr.comm = 0;
	count = allowed_cpus(cpus, 2);
	ASSERT_LT(0, count);
	set = -1;
	second = -1;
	for (int i = 0; i <= CPU_MAX; i++) {
		fd = open_event(_metadata, &attr, -1, cpus[0]);
		if (fd < 0 || map_event(_metadata, &ow[i], fd, 1, false))
			return;
		if (!i) {
			set = open_set(_metadata, fd, at_once());
			second = open_set(_metadata, fd, at_once());
			if (second < 0)
				return;
		}
		if (i < CPU_MAX)
			ASSERT_EQ(0, perf_trigger_join(set, fd));
	}
	EXPECT_ERROR(ENOSPC, perf_trigger_join(set, ow[CPU_MAX].fd));
	EXPECT_EQ(CPU_MAX, fd_info_number(set, "trigger-buffers"));
	/* It is the CPU that is full, and of this set. */
	EXPECT_EQ(0, perf_trigger_join(second, ow[CPU_MAX].fd));
	if (count > 1) {
		fd = open_event(_metadata, &attr, -1, cpus[1]);
		ASSERT_LE(0, fd);
		if (map_event(_metadata, &other, fd, 1, false))
			return;
		EXPECT_EQ(0, perf_trigger_join(set, fd));
		ASSERT_EQ(0, perf_overwrite_unmap(&other));
		close(fd);
	}
	close(set);
	close(second);
	for (int i = 0; i <= CPU_MAX; i++) {
		ASSERT_EQ(0, perf_overwrite_unmap(&ow[i]));
		close(ow[i].fd);
	}
}

TEST_HARNESS_MAIN
