// SPDX-License-Identifier: GPL-2.0
/*
 * What the end of a task costs that has inherited events with attr.inherit_stat, bound to a CPU
 * that it has been on: for how long its parent waits for it, and how many function call interrupts
 * all CPUs get meanwhile. It ends on that CPU ("here") or on another one ("elsewhere"). In a guest with
 * several CPUs and a clock of its own: only the interrupts repeat to the digit.
 */
#include "bench.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define MOST	1024
#define TRIES	15
#define FAULTS	10

static const unsigned int numbers[] = { 0, 1, 64, 1024 };

static struct buffer buffer;
static int fds[MOST];
static unsigned int used;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int less(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void one_task(int last_cpu, uint64_t *taken, unsigned long *interrupted)
{
	unsigned long before;
	int ready[2], go[2];
	uint64_t start;
	pid_t child;
	char byte;

	if (pipe(ready) || pipe(go))
		die("pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		close(ready[0]);
		close(go[1]);
		go_to_cpu(1);
		/* So that there is something to tell. */
		for (int i = 0; i < FAULTS; i++) {
			char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			if (page == MAP_FAILED)
				_exit(1);
			*(volatile char *)page = 1;
		}
		go_to_cpu(last_cpu);
		close(ready[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(go[0]);
	if (read(ready[0], &byte, 1))
		die("a task writes what it mustn't");
	before = function_calls();
	start = now();
	close(go[1]);
	if (waitpid(child, NULL, 0) != child)
		die("waitpid: %s", strerror(errno));
	*taken = now() - start;
	*interrupted = function_calls() - before;
	close(ready[0]);
}

static void row(const char *what, int last_cpu)
{
	uint64_t taken[TRIES];
	unsigned long least = -1ul, n;
	char name[64];

	for (int i = 0; i < TRIES; i++) {
		one_task(last_cpu, &taken[i], &n);
		least = n < least ? n : least;
	}
	qsort(taken, TRIES, sizeof(taken[0]), less);
	snprintf(name, sizeof(name), "exit_%s_%u_us", what, used);
	print_figure(name, taken[TRIES / 2] / 1e3);
	snprintf(name, sizeof(name), "exit_%s_%u_interrupts", what, used);
	print_figure(name, least);
}

int main(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_PAGE_FAULTS,
		.inherit	= 1,
		.inherit_stat	= 1,
	};
	struct rlimit files = { 2 * MOST, 2 * MOST };

	if (sysconf(_SC_NPROCESSORS_ONLN) < 3)
		die("there are less than three CPUs: run it by scripts/bench");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit: %s", strerror(errno));
	go_to_cpu(0);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		for (; used < numbers[i]; used++) {
			fds[used] = open_event(&attr, 0, 1);
			if (used) {
				if (ioctl(fds[used], PERF_EVENT_IOC_SET_OUTPUT, fds[0]))
					die("PERF_EVENT_IOC_SET_OUTPUT: %s", strerror(errno));
				continue;
			}
			buffer.fd = fds[0];
			map_buffer(&buffer, 256 * 4096, 0);
		}
		row("here", 1);
		row("elsewhere", 2);
	}
	return 0;
}
