// SPDX-License-Identifier: GPL-2.0
/*
 * How the cost grows: of a record with the size of the buffer and with the number of events
 * that share it, of a pause with the number of buffers that are paused together. With several CPUs
 * only how often the pause of many buffers calls into the other CPUs, whose they are; with one CPU,
 * into that one, too.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/function_calls.h"

#define MOST	256

static const size_t sizes[] = {
	4096, 65536, 1ul << 20, 1ul << 24, 1ul << 28, 1ul << 30
};
static const unsigned int numbers[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };

static struct buffer buffers[MOST];

static void must(int failed, const char *what)
{
	if (failed)
		die("%s: %s", what, strerror(errno));
}

/* Instructions of each of n events' samples, all of them in b, above the same calls without. */
static double sample_of(const char *name, struct buffer *b, const int *fd, unsigned int n)
{
	unsigned int calls = BATCH / n;
	uint64_t head = b->user->data_head;
	double without, with;

	without = measure_mean(NULL, call_close, NULL, calls);
	for (unsigned int i = 0; i < n; i++)
		enable(fd[i]);
	with = measure_mean(NULL, call_close, NULL, calls);
	if (written(b, head) < (BATCHES + 1ul) * BATCH * 64)
		die("%s: not all samples were written", name);
	return (with - without) / calls / n;
}

/* A sample of each of n events of one tracepoint, which share a buffer of so many bytes. */
static void record_of(const char *name, size_t size, unsigned int n)
{
	struct perf_event_attr attr = tracepoint_event("raw_syscalls/sys_enter", SAMPLE);
	struct buffer b;
	int fd[MOST];

	attr.write_backward = 1;
	attr.disabled = 1;
	if (open_buffer(&b, &attr, size, 0))
		die("this kernel doesn't write backward");
	fd[0] = b.fd;
	for (unsigned int i = 1; i < n; i++) {
		fd[i] = open_event(&attr, 0, -1);
		must(ioctl(fd[i], PERF_EVENT_IOC_SET_OUTPUT, b.fd), "SET_OUTPUT");
	}
	print_figure(name, sample_of(name, &b, fd, n));
	for (unsigned int i = 1; i < n; i++)
		close(fd[i]);
	close_buffer(&b);
}

static unsigned int used;
static uint64_t longest;

static void pause_one(int fd, int (*op)(int))
{
	uint64_t start = instructions(), took;

	must(op(fd), "pause");
	took = instructions() - start;
	longest = took > longest ? took : longest;
}

/* As perf_overwrite.h tells readers to: start with all, then wait for each. */
static void pause_all(void *arg)
{
	(void)arg;
	longest = 0;
	for (unsigned int i = 0; i < used; i++)
		pause_one(buffers[i].fd, perf_overwrite_pause_start);
	for (unsigned int i = 0; i < used; i++)
		pause_one(buffers[i].fd, perf_overwrite_pause);
}

static void resume_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(perf_overwrite_resume(buffers[i].fd), "resume");
}

static void pause_of(unsigned int n)
{
	char name[64];
	double total;

	used = n;
	snprintf(name, sizeof(name), "pause_total_%u", n);
	total = measure(name, resume_all, pause_all, NULL, 1);
	print_figure(name, total);
	snprintf(name, sizeof(name), "pause_longest_%u", n);
	print_figure(name, longest);
	resume_all(NULL);
}

/*
 * How often the other CPUs are called by one pause of buffers of theirs, or a single CPU by one of
 * its own. Calls that wait there together take one interrupt: interrupts.c counts these.
 */
static void calls(int cpus)
{
	int first = cpus > 1;
	unsigned int id = tracepoint_id("csd/csd_function_entry");
	uint64_t sum = 0;
	int fd[MOST];
	char name[64];

	go_to_cpu(0);
	for (unsigned int i = 0; i < MOST; i++) {
		open_disabled(&buffers[i], first + i % (cpus - first));
		enable(buffers[i].fd);
	}
	for (int cpu = first; cpu < cpus; cpu++) {
		fd[cpu] = open_function_calls(id, "rb_pause_answer", cpu);
		/* A kernel that lacks the function calls nobody for a pause. */
		must(fd[cpu] < 0 && errno != ENOENT, "a counter of function calls");
		/* Other functions were counted until there was a filter. */
		sum -= fd[cpu] < 0 ? 0 : event_count(fd[cpu]);
	}
	used = MOST;
	pause_all(NULL);
	for (int cpu = first; cpu < cpus; cpu++)
		sum += fd[cpu] < 0 ? 0 : event_count(fd[cpu]);
	snprintf(name, sizeof(name), "calls_%d", cpus);
	print_figure(name, sum);
}

int main(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char name[64];

	if (cpus > 1) {
		calls(cpus);
		return 0;
	}
	bench_init();
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		snprintf(name, sizeof(name), "size_%zu", sizes[i]);
		record_of(name, sizes[i], 1);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		snprintf(name, sizeof(name), "sharing_%u", numbers[i]);
		record_of(name, 1ul << 20, numbers[i]);
	}
	for (unsigned int i = 0; i < MOST; i++)
		open_disabled(&buffers[i], 0);
	for (unsigned int i = 0; i < MOST; i++)
		enable(buffers[i].fd);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		pause_of(numbers[i]);
	for (unsigned int i = 0; i < MOST; i++)
		close_buffer(&buffers[i]);
	calls(cpus);
	return 0;
}
