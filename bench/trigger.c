// SPDX-License-Identifier: GPL-2.0
/*
 * How much buffers take between a trigger and their end, and how long that is. On each CPU a task
 * makes 50 system calls, sleeps for a millisecond, and so on; each call is a record. A task that
 * gives itself a name is the trigger, now and then. Run by scripts/bench-trigger, in a guest with
 * several CPUs.
 *
 *   trigger stop       perf's triggers, at once, and a reader that polls and pauses (see
 *                      perf_overwrite_set.h): with 1, 4 and 16 buffers of each CPU
 *   trigger ftrace     ftrace's trigger traceoff
 *   trigger load N     the load and N triggers alone, for a recorder that is another program;
 *                      prints the time after each
 *
 * Figures: records and bytes of each buffer later than the trigger's record, apart for the
 * trigger's own CPU; stop_us, the time from that record to the last one of all buffers, and
 * read_us, until a reader has been told; the median, the 99th percentile and the most of all
 * firings.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite_set.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define FIRINGS		100
#define MOST_CPUS	16
#define MOST_BUFFERS	16
/* So that a reader finds the trigger's record. */
#define PAGES		1024
#define BETWEEN_US	20000
#define CALLS		50
#define PAUSE_US	1000
#define TRACING		"/sys/kernel/tracing/"
#define TRACEOFF	"traceoff if newcomm == \"fired\""
#define SPREAD_US	7000

static const unsigned int numbers[] = { 1, 4, 16 };

static int cpus;
static int go;		/* a byte there is a trigger */
static int done;	/* and is answered by the time after it */

/* All that was measured of one thing. */
struct series {
	uint64_t	value[FIRINGS * MOST_CPUS * MOST_BUFFERS];
	unsigned int	count;
};

static struct series own_records, own_bytes, records, bytes, stop_ns, read_ns;

static void add(struct series *series, uint64_t value)
{
	series->value[series->count++] = value;
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return a < b ? -1 : a > b;
}

static void print_series(const char *what, const char *of, struct series *series, double unit)
{
	static const struct {
		const char	*name;
		double		part;
	} parts[] = { { "median", 0.5 }, { "p99", 0.99 }, { "most", 1 } };
	char name[96];

	qsort(series->value, series->count, sizeof(series->value[0]), compare);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts) && series->count; i++) {
		unsigned int at = parts[i].part * (series->count - 1);

		snprintf(name, sizeof(name), "%s.%s.%s", what, of, parts[i].name);
		print_figure(name, series->value[at] / unit);
	}
	series->count = 0;
}

static void print_all(const char *what)
{
	print_series(what, "own_cpu_records", &own_records, 1);
	print_series(what, "own_cpu_bytes", &own_bytes, 1);
	print_series(what, "records", &records, 1);
	print_series(what, "bytes", &bytes, 1);
	print_series(what, "stop_us", &stop_ns, 1000);
	print_series(what, "read_us", &read_ns, 1000);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void must(int failed, const char *what)
{
	if (failed)
		die("%s: %s", what, strerror(errno));
}

/* On each CPU a task that makes system calls, and on the first the one that is the trigger. */
static void trigger_task(int in, int out)
{
	uint64_t time;
	char byte;

	go_to_cpu(0);
	while (read(in, &byte, 1) == 1) {
		prctl(PR_SET_NAME, "fired");
		time = now();
		if (write(out, &time, sizeof(time)) != sizeof(time))
			break;
	}
	_exit(0);
}

static void make_calls(int cpu)
{
	go_to_cpu(cpu);
	for (;; usleep(PAUSE_US))
		for (int i = 0; i < CALLS; i++)
			syscall(__NR_getppid);
}

static int start_task(void)
{
	pid_t pid = fork();

	must(pid < 0, "fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return !pid;
}

static void start_load(void)
{
	int to[2], from[2];

	must(pipe(to) || pipe(from), "pipe");
	if (start_task())
		trigger_task(to[0], from[1]);
	go = to[1];
	done = from[0];
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (!start_task())
			continue;
		make_calls(cpu);
	}
}

/* Not in step with anything. */
static void wait_between(unsigned int firing)
{
	usleep(BETWEEN_US + firing * 7919 % SPREAD_US);
}

static void fire(void)
{
	must(write(go, "", 1) != 1, "write");
}

static uint64_t fired(void)
{
	uint64_t time;

	must(read(done, &time, sizeof(time)) != sizeof(time), "read");
	return time;
}

/* Buffers of all CPUs, each with an event of system calls, and a trigger on each CPU. */
static struct perf_overwrite buffers[MOST_CPUS][MOST_BUFFERS];
static int events[MOST_CPUS][MOST_BUFFERS];
static int triggers[MOST_CPUS];

struct sample {
	struct perf_event_header	header;
	uint64_t			id;
	uint64_t			time;
};

static int open_backward(const char *name, int cpu, unsigned int wakeup_events)
{
	struct perf_event_attr attr = tracepoint_event(name, PERF_SAMPLE_IDENTIFIER |
						       PERF_SAMPLE_TIME | PERF_SAMPLE_RAW);
	int fd;

	attr.write_backward = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.wakeup_events = wakeup_events;
	fd = open_event(&attr, -1, cpu);
	if (fd < 0)
		die("this kernel can't write backward");
	return fd;
}

static void open_set(struct perf_overwrite_set *set, unsigned int per_cpu, int by_reader)
{
	struct perf_overwrite_set_attr at_once = { .clock = CLOCK_MONOTONIC };

	for (int cpu = 0; cpu < cpus; cpu++) {
		for (unsigned int i = 0; i < per_cpu; i++) {
			events[cpu][i] = open_backward("raw_syscalls/sys_enter", cpu, 0);
			must(perf_overwrite_map(&buffers[cpu][i], events[cpu][i], PAGES, false),
			     "mmap");
		}
		triggers[cpu] = open_backward("task/task_rename", cpu, by_reader);
		must(ioctl(triggers[cpu], PERF_EVENT_IOC_SET_OUTPUT, events[cpu][0]),
		     "PERF_EVENT_IOC_SET_OUTPUT");
	}

	must(perf_overwrite_set_open(set, events[0][0], &at_once), "a set");
	if (!by_reader && !perf_overwrite_set_in_kernel(set))
		die("this kernel has no triggers");
	/* A kernel that has them does without, here. */
	if (by_reader && perf_overwrite_set_in_kernel(set)) {
		close(set->fd);
		set->fd = -1;
	}
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (unsigned int i = 0; i < per_cpu; i++)
			must(perf_overwrite_set_join(set, &buffers[cpu][i]), "to join");
		must(perf_overwrite_set_add(set, triggers[cpu], &buffers[cpu][0], 1), "to add");
	}
}

static void close_set(struct perf_overwrite_set *set, unsigned int per_cpu)
{
	perf_overwrite_set_close(set);
	for (int cpu = 0; cpu < cpus; cpu++) {
		close(triggers[cpu]);
		for (unsigned int i = 0; i < per_cpu; i++) {
			perf_overwrite_unmap(&buffers[cpu][i]);
			close(events[cpu][i]);
		}
	}
}

static uint64_t space[PERF_OVERWRITE_RECORD_MAX / sizeof(uint64_t)];

/* The time of the newest record of that event, or 0 if there is none. */
static uint64_t newest_of(const struct perf_overwrite *ow, uint64_t id)
{
	struct perf_overwrite_walk walk;
	struct sample *sample;

	perf_overwrite_begin(&walk, ow);
	while ((sample = (void *)perf_overwrite_next(&walk, space)))
		if (sample->header.type == PERF_RECORD_SAMPLE && sample->id == id)
			return sample->time;
	return 0;
}

/* What is later than that. Returns the time of the newest, or that if there is none. */
static uint64_t count_later(const struct perf_overwrite *ow, uint64_t time, int own)
{
	struct perf_overwrite_walk walk;
	unsigned int later = 0, size = 0;
	struct sample *sample;
	uint64_t newest = time;

	perf_overwrite_begin(&walk, ow);
	while ((sample = (void *)perf_overwrite_next(&walk, space))) {
		/* Of a LOST record the time isn't known: it is with what follows. */
		if (sample->header.type != PERF_RECORD_SAMPLE)
			continue;
		if (sample->time <= time)
			break;
		newest = sample->time > newest ? sample->time : newest;
		later++;
		size += sample->header.size;
	}
	add(own ? &own_records : &records, later);
	add(own ? &own_bytes : &bytes, size);
	return newest;
}

static void stop_once(struct perf_overwrite_set *set, unsigned int per_cpu, struct pollfd *polled)
{
	unsigned int nr_polled = perf_overwrite_set_poll(set, polled);
	struct perf_overwrite_cut cut;
	uint64_t told, time, last;

	fire();
	while (!perf_overwrite_set_stopped(set))
		must(poll(polled, nr_polled, perf_overwrite_set_timeout(set)) < 0, "poll");
	must(perf_overwrite_set_read(set, &cut), "read");
	told = now();
	fired();

	time = newest_of(&buffers[0][0], cut.id);
	if (!time)
		die("the trigger's record was overwritten: the buffers are too small");
	last = time;
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (unsigned int i = 0; i < per_cpu; i++) {
			uint64_t newest = count_later(&buffers[cpu][i], time, !cpu);

			last = newest > last ? newest : last;
		}
	}
	add(&stop_ns, last - time);
	add(&read_ns, told - time);
}

static void stop(unsigned int per_cpu, int by_reader)
{
	struct pollfd polled[MOST_CPUS * MOST_BUFFERS];
	struct perf_overwrite_set set;
	char name[32];

	open_set(&set, per_cpu, by_reader);
	for (unsigned int i = 0; i < FIRINGS; i++) {
		must(perf_overwrite_set_arm(&set), "to arm");
		wait_between(i);
		stop_once(&set, per_cpu, polled);
	}
	close_set(&set, per_cpu);
	snprintf(name, sizeof(name), "%s_%u", by_reader ? "reader" : "trigger", per_cpu);
	print_all(name);
}

static char *read_text(const char *path)
{
	static char text[4 << 20];
	size_t length;
	FILE *f = fopen(path, "r");

	must(!f, path);
	length = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[length] = 0;
	return text;
}

/* The average of what a CPU's buffer has. */
static double entry_bytes(int cpu)
{
	unsigned long entries = 0, size = 0;
	char path[128], *at;

	snprintf(path, sizeof(path), TRACING "per_cpu/cpu%d/stats", cpu);
	at = read_text(path);
	must(sscanf(at, "entries: %lu", &entries) != 1 || !(at = strstr(at, "bytes: ")) ||
	     sscanf(at, "bytes: %lu", &size) != 1, path);
	return entries ? (double)size / entries : 0;
}

/* A line "  task-pid   [cpu] flags  seconds.microseconds: event: ...", in microseconds. */
static int entry_time(const char *line, uint64_t *time)
{
	unsigned long long seconds, us;
	const char *at = strstr(line, "] ");

	if (!at || sscanf(at + 2, "%*s %llu.%llu:", &seconds, &us) != 2)
		return 0;
	*time = seconds * 1000000 + us;
	return 1;
}

/* The trigger's own entry. */
static uint64_t find_rename(void)
{
	char *line = read_text(TRACING "per_cpu/cpu0/trace");
	uint64_t time, found = 0;

	for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, ": task_rename: ") && entry_time(line, &time))
			found = time;
	return found;
}

static void count_entries(int cpu, uint64_t from, uint64_t *last)
{
	unsigned int later = 0;
	char path[128], *line;
	uint64_t time;

	snprintf(path, sizeof(path), TRACING "per_cpu/cpu%d/trace", cpu);
	line = read_text(path);
	for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n")) {
		if (line[0] == '#' || !entry_time(line, &time) || time <= from)
			continue;
		*last = time > *last ? time : *last;
		later++;
	}
	add(cpu ? &records : &own_records, later);
	add(cpu ? &bytes : &own_bytes, later * entry_bytes(cpu));
}

static void ftrace(void)
{
	write_file(TRACING "trace_clock", "mono");
	write_file(TRACING "buffer_size_kb", "64");
	write_file(TRACING "events/raw_syscalls/sys_enter/enable", "1");
	write_file(TRACING "events/task/task_rename/enable", "1");
	/* With a filter it acts after its own entry was begun. */
	write_file(TRACING "events/task/task_rename/trigger", TRACEOFF);
	for (unsigned int i = 0; i < FIRINGS; i++) {
		uint64_t from, last;

		write_file(TRACING "trace", "");
		write_file(TRACING "tracing_on", "1");
		wait_between(i);
		fire();
		fired();
		if (read_text(TRACING "tracing_on")[0] != '0')
			die("traceoff had no effect");
		from = find_rename();
		if (!from)
			die("ftrace's buffer has no trigger");
		last = from;
		for (int cpu = 0; cpu < cpus; cpu++)
			count_entries(cpu, from, &last);
		add(&stop_ns, (last - from) * 1000);
	}
	write_file(TRACING "events/task/task_rename/trigger", "!" TRACEOFF);
	write_file(TRACING "events/raw_syscalls/sys_enter/enable", "0");
	print_all("ftrace");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus < 2 || cpus > MOST_CPUS)
		die("%d CPUs: run it by scripts/bench-trigger, in a guest with several", cpus);
	setvbuf(stdout, NULL, _IOLBF, 0);
	start_load();
	if (!strcmp(what, "stop")) {
		for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
			stop(numbers[i], 0);
			stop(numbers[i], 1);
		}
	} else if (!strcmp(what, "ftrace")) {
		ftrace();
	} else if (!strcmp(what, "load") && argc == 3) {
		for (int i = atoi(argv[2]); i > 0; i--) {
			sleep(3);
			fire();
			printf("fired %llu\n", (unsigned long long)fired());
		}
		sleep(3);
	} else {
		die("stop, ftrace, or load and a number");
	}
	return 0;
}
