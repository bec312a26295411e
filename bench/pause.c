// SPDX-License-Identifier: GPL-2.0
/*
 * What a snapshot takes: to pause and resume some buffers of a CPU, to disable their events
 * instead, and to read the records, each against a plain copy of the buffer.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite.h"

#define BUFFER	(512ul * 4096)
#define MOST	256

static const unsigned int numbers[] = { 1, 4, 16, 64, 256 };

static struct buffer buffers[MOST];
static unsigned int used;

static void must(int failed, const char *what)
{
	if (failed)
		die("%s: %s", what, strerror(errno));
}

/* As perf_overwrite.h tells readers to: start with all, then wait for each. */
static void pause_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(perf_overwrite_pause_start(buffers[i].fd), "pause");
	for (unsigned int i = 0; i < used; i++)
		must(perf_overwrite_pause(buffers[i].fd), "pause");
}

static void pause_once(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(perf_overwrite_pause(buffers[i].fd), "pause");
}

static void resume_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(perf_overwrite_resume(buffers[i].fd), "resume");
}

static void enable_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(ioctl(buffers[i].fd, PERF_EVENT_IOC_ENABLE, 0), "enable");
}

static void disable_all(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < used; i++)
		must(ioctl(buffers[i].fd, PERF_EVENT_IOC_DISABLE, 0), "disable");
}

/* Events of this CPU, each with a buffer of its own; none happens while they are paused. */
static void open_buffers(void)
{
	for (unsigned int i = 0; i < MOST; i++)
		open_disabled(&buffers[i], 0);
}

/* Figures for up to most buffers, of each buffer: what op takes, with before ahead of it. */
static void each(const char *what, void (*before)(void *), void (*op)(void *), unsigned int most)
{
	char name[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(numbers) && numbers[i] <= most; i++) {
		used = numbers[i];
		snprintf(name, sizeof(name), "%s_%u", what, used);
		if (op)
			print_figure(name, (double)measure(name, before, op, NULL, 1) / used);
		else
			print_none(name);
	}
}

static uint64_t space[PERF_OVERWRITE_RECORD_MAX / sizeof(uint64_t)];
static unsigned int records;

static void walk(void *arg)
{
	struct perf_overwrite *ow = arg;
	struct perf_overwrite_walk w;

	records = 0;
	perf_overwrite_begin(&w, ow);
	while (perf_overwrite_next(&w, space))
		records++;
}

static unsigned char copy[BUFFER];

static void copy_all(void *arg)
{
	const struct perf_overwrite *ow = arg;
	const volatile uint64_t *from = (const uint64_t *)ow->data;
	volatile uint64_t *to = (uint64_t *)copy;

	for (unsigned int i = 0; i < BUFFER / 8; i += 4) {
		to[i] = from[i];
		to[i + 1] = from[i + 1];
		to[i + 2] = from[i + 2];
		to[i + 3] = from[i + 3];
	}
}

/* A full buffer of the records of records.c is paused and read. */
static void snapshot(void)
{
	struct perf_event_attr attr = tracepoint_event("raw_syscalls/sys_enter", SAMPLE);
	struct perf_overwrite ow = { 0 };
	struct buffer b;
	double reading;

	attr.write_backward = 1;
	if (open_buffer(&b, &attr, BUFFER, 0)) {
		print_none("read_record");
		print_none("read_bytes");
		print_none("copy_bytes");
		return;
	}
	while (-b.user->data_head < 2 * BUFFER)
		call_close(NULL);
	must(perf_overwrite_pause(b.fd), "pause");
	ow.fd = b.fd;
	ow.meta = b.user;
	ow.data = (unsigned char *)b.user + sysconf(_SC_PAGESIZE);
	ow.size = BUFFER;
	memset(copy, 0, sizeof(copy));
	reading = measure("read_record", NULL, walk, &ow, 1);
	if (records < BUFFER / 200)
		die("%u records are too few for the buffer", records);
	print_figure("read_record", reading / records);
	print_figure("read_bytes", BUFFER / reading);
	print_figure("copy_bytes", BUFFER / (double)measure("copy", NULL, copy_all, &ow, 1));
	close_buffer(&b);
}

int main(void)
{
	int can_pause;

	bench_init();
	open_buffers();
	can_pause = !perf_overwrite_pause(buffers[0].fd);
	if (!can_pause && errno != ENOTTY)
		die("pause: %s", strerror(errno));
	if (can_pause)
		must(perf_overwrite_resume(buffers[0].fd), "resume");
	used = MOST;
	enable_all(NULL);
	each("pause", resume_all, can_pause ? pause_once : NULL, MOST);
	each("start_and_pause", resume_all, can_pause ? pause_all : NULL, MOST);
	each("resume", pause_once, can_pause ? resume_all : NULL, MOST);
	each("disable", enable_all, disable_all, MOST);
	/* With more it takes longer than a tick: each one reschedules all that are there. */
	each("enable", disable_all, enable_all, 64);
	for (unsigned int i = 0; i < MOST; i++)
		close_buffer(&buffers[i]);
	snapshot();
	return 0;
}
