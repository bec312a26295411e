// SPDX-License-Identifier: GPL-2.0
/*
 * What a trigger adds to its own sample when it fires: that sample's page fault, as a
 * trigger of an armed set of some buffers, above the same fault without. The interrupt
 * that marks the other buffers and wakes the set's worker comes right after the sample
 * and counts; the worker itself doesn't, it runs when the bench sleeps. `suppressed` is
 * the same for a set that has fired already: its buffer is frozen, the sample is dropped.
 */
#include "bench.h"
#include "../tools/testing/selftests/perf_events/perf_overwrite.h"
#include "../tools/testing/selftests/perf_events/trigger.h"

#define MOST	64
#define PAGES	(BATCHES + 2)

static const unsigned int numbers[] = { 1, 4, 16, 64 };

static struct buffer buffers[MOST];
static int set, fault_fd;
static __u64 generation;
static unsigned int page;
static unsigned char *area;

static void must(int failed, const char *what)
{
	if (failed)
		die("%s: %s", what, strerror(errno));
}

static void touch(void *arg)
{
	(void)arg;
	*(volatile unsigned char *)&area[page++ * 4096] = 1;
}

static void arm(void *arg)
{
	struct perf_trigger_report report;

	(void)arg;
	/* The first one has no report to read. */
	if (generation)
		must(perf_trigger_read(set, &report, NULL, 0), "read");
	must(perf_trigger_arm(set, &generation), "arm");
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

/* Instructions of one fault, each of a page of its own: the median, as a queue may have been busy. */
static double fault(void (*before)(void *))
{
	uint64_t count[BATCHES];

	page = 0;
	must(madvise(area, PAGES * 4096ul, MADV_DONTNEED), "madvise");
	/* The table of pages is there from here on. */
	touch(NULL);
	count_batches(before, touch, NULL, 1, count);
	qsort(count, BATCHES, sizeof(*count), compare);
	return count[BATCHES / 2];
}

static void fire_of(unsigned int used, double plain)
{
	struct perf_trigger_attr attr = { .flags = PERF_TRIGGER_AT_ONCE };
	char name[64];

	set = perf_trigger_set(buffers[0].fd, &attr);
	must(set < 0, "PERF_EVENT_IOC_TRIGGER_SET");
	for (unsigned int i = 0; i < used; i++)
		must(perf_trigger_join(set, buffers[i].fd), "join");
	must(perf_trigger_add(set, fault_fd), "add");
	generation = 0;
	snprintf(name, sizeof(name), "fires_%u", used);
	print_figure(name, fault(arm) - plain);
	snprintf(name, sizeof(name), "suppressed_%u", used);
	print_figure(name, fault(NULL) - plain);
	arm(NULL);
	close(set);
}

int main(void)
{
	struct perf_event_attr names = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
		.write_backward = 1, .comm = 1,
	};
	struct perf_event_attr faults = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_type = SAMPLE & ~PERF_SAMPLE_RAW, .sample_period = 1, .write_backward = 1,
	};
	struct perf_trigger_attr attr = { .flags = PERF_TRIGGER_AT_ONCE };
	double plain;

	bench_init();
	for (unsigned int i = 0; i < MOST; i++)
		if (open_buffer(&buffers[i], &names, 4096, 0))
			break;
	set = buffers[0].fd > 0 ? perf_trigger_set(buffers[0].fd, &attr) : -1;
	must(buffers[0].fd > 0 && set < 0 && errno != ENOTTY, "PERF_EVENT_IOC_TRIGGER_SET");
	if (set < 0) {
		print_none("plain");
		for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
			char name[64];

			snprintf(name, sizeof(name), "fires_%u", numbers[i]);
			print_none(name);
			snprintf(name, sizeof(name), "suppressed_%u", numbers[i]);
			print_none(name);
		}
		return 0;
	}
	close(set);
	fault_fd = open_event(&faults, 0, -1);
	must(ioctl(fault_fd, PERF_EVENT_IOC_SET_OUTPUT, buffers[0].fd), "SET_OUTPUT");
	area = mmap(NULL, PAGES * 4096ul, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(area == MAP_FAILED, "mmap");
	must(madvise(area, PAGES * 4096ul, MADV_NOHUGEPAGE) && errno != EINVAL, "madvise");

	plain = fault(NULL);
	print_figure("plain", plain);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		fire_of(numbers[i], plain);
	return 0;
}
