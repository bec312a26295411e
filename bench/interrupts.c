// SPDX-License-Identifier: GPL-2.0
/*
 * Whom it disturbs to stop some buffers: the interrupts of other CPUs, by a pause and, as without
 * it, by disabling the events. The only one of the benchmarks for a guest with several CPUs; all
 * of them are busy, so that no interrupt is saved because a CPU idles.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite.h"
#include <signal.h>
#include <sys/prctl.h>

#define MOST	256
#define TRIES	7

static const unsigned int numbers[] = { 1, 4, 16, 64, 256 };

static struct buffer buffers[MOST];
static unsigned int used;

static void ioctl_all(unsigned long request, unsigned long arg)
{
	for (unsigned int i = 0; i < used; i++)
		if (ioctl(buffers[i].fd, request, arg))
			die("ioctl %#lx: %s", request, strerror(errno));
}

static void pause_all(void)
{
	ioctl_all(PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_OVERWRITE_PAUSE_START);
	ioctl_all(PERF_EVENT_IOC_PAUSE_OUTPUT, PERF_OVERWRITE_PAUSE);
}

static void resume_all(void)
{
	ioctl_all(PERF_EVENT_IOC_PAUSE_OUTPUT, 0);
}

static void disable_all(void)
{
	ioctl_all(PERF_EVENT_IOC_DISABLE, 0);
}

static void enable_all(void)
{
	ioctl_all(PERF_EVENT_IOC_ENABLE, 0);
}

/*
 * The least of some tries, of all buffers: what else interrupts a CPU now and then is none of
 * ours.
 */
static void each(const char *what, void (*op)(void), void (*undo)(void), unsigned int most)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers) && numbers[i] <= most; i++) {
		unsigned long least = -1ul;
		char name[64];

		used = numbers[i];
		snprintf(name, sizeof(name), "interrupts_%s_%u", what, used);
		if (!op) {
			print_none(name);
			continue;
		}
		for (int try = 0; try < TRIES; try++) {
			unsigned long before, n;

			undo();
			before = function_calls();
			op();
			n = function_calls() - before;
			least = n < least ? n : least;
		}
		print_figure(name, least);
	}
}

static void keep_busy(int cpu)
{
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	go_to_cpu(cpu);
	for (;;)
		__asm__ volatile("");
}

int main(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), can_pause;

	if (cpus < 2)
		die("there is one CPU: run it by scripts/bench, in a guest with several");
	setvbuf(stdout, NULL, _IOLBF, 0);
	go_to_cpu(0);
	for (int cpu = 1; cpu < cpus; cpu++)
		keep_busy(cpu);
	/* The buffers are those of all CPUs but this one. */
	for (unsigned int i = 0; i < MOST; i++)
		open_disabled(&buffers[i], 1 + i % (cpus - 1));
	can_pause = !perf_overwrite_pause(buffers[0].fd);
	if (!can_pause && errno != ENOTTY)
		die("pause: %s", strerror(errno));
	if (can_pause && perf_overwrite_resume(buffers[0].fd))
		die("resume: %s", strerror(errno));
	/* Until they are there, and all that comes with it is over. */
	usleep(100000);
	each("pause", can_pause ? pause_all : NULL, resume_all, MOST);
	/* To enable many takes long: each one reschedules all that are there. */
	each("disable", disable_all, enable_all, 64);
	return 0;
}
