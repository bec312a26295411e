// SPDX-License-Identifier: GPL-2.0
/*
 * How the cost grows: of a record with the size of the buffer and with the number of events
 * that share it, of a pause with the number of buffers that are paused together. In a guest with
 * several CPUs only: how often the pause of many buffers calls into the other CPUs, whose they are.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite.h"

/* What a pause has the CPU call that writes to the buffer. */
#define PAUSE_FUNCTION	"rb_pause_answer"

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

static struct perf_event_attr system_calls(void)
{
	struct perf_event_attr attr = tracepoint_event("raw_syscalls/sys_enter", SAMPLE);

	attr.write_backward = 1;
	attr.disabled = 1;
	return attr;
}

/*
 * Instructions of a sample of each of n events, all of them in b, above the same calls with the
 * events disabled.
 */
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

/* A sample where the buffer has so many bytes. */
static int record_of(size_t size)
{
	struct perf_event_attr attr = system_calls();
	struct buffer b;
	char name[64];

	snprintf(name, sizeof(name), "size_%zu", size);
	if (open_buffer(&b, &attr, size, 0)) {
		print_none(name);
		return -1;
	}
	print_figure(name, sample_of(name, &b, &b.fd, 1));
	close_buffer(&b);
	return 0;
}

/* One of those that n events of a tracepoint write to one buffer. */
static void record_of_sharing(unsigned int n)
{
	struct perf_event_attr attr = system_calls();
	struct buffer b;
	int fd[MOST];
	char name[64];

	snprintf(name, sizeof(name), "sharing_%u", n);
	if (open_buffer(&b, &attr, 1ul << 20, 0))
		die("%s: no buffer", name);
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

/* The address of a function of the kernel; 0 if there is none. */
static unsigned long kernel_function(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long address, found = 0;
	char symbol[256];

	if (!f)
		die("can't read /proc/kallsyms: %s", strerror(errno));
	while (!found && fscanf(f, "%lx %*c %255s%*[^\n]", &address, symbol) == 2)
		if (!strcmp(symbol, name))
			found = address;
	fclose(f);
	return found;
}

/* A counter of the calls of this function that another CPU asked for. */
static int count_calls(unsigned long function, int cpu)
{
	struct perf_event_attr attr = tracepoint_event("csd/csd_function_entry", 0);
	char filter[64];
	int fd;

	attr.sample_period = 0;
	fd = open_event(&attr, -1, cpu);
	snprintf(filter, sizeof(filter), "func == 0x%lx && csd != 0", function);
	must(ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter), "SET_FILTER");
	return fd;
}

/*
 * How often the other CPUs are called by one pause of buffers of theirs. Calls that wait there
 * together take one interrupt: interrupts.c counts these.
 */
static void calls(int cpus)
{
	unsigned long function = kernel_function(PAUSE_FUNCTION);
	int fd[MOST] = { 0 };
	uint64_t before = 0, after = 0;
	char name[64];

	go_to_cpu(0);
	for (unsigned int i = 0; i < MOST; i++) {
		open_disabled(&buffers[i], 1 + i % (cpus - 1));
		enable(buffers[i].fd);
	}
	/* A kernel that lacks the function calls nobody for a pause. */
	for (int cpu = 1; function && cpu < cpus; cpu++)
		before += event_count(fd[cpu] = count_calls(function, cpu));
	used = MOST;
	pause_all(NULL);
	for (int cpu = 1; function && cpu < cpus; cpu++)
		after += event_count(fd[cpu]);
	snprintf(name, sizeof(name), "calls_%d", cpus);
	print_figure(name, after - before);
}

int main(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus > 1) {
		calls(cpus);
		return 0;
	}
	bench_init();
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
		if (record_of(sizes[i]))
			die("this kernel doesn't write backward");
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		record_of_sharing(numbers[i]);
	for (unsigned int i = 0; i < MOST; i++)
		open_disabled(&buffers[i], 0);
	for (unsigned int i = 0; i < MOST; i++)
		enable(buffers[i].fd);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		pause_of(numbers[i]);
	return 0;
}
