// SPDX-License-Identifier: GPL-2.0
/*
 * The two tests by which this feature was judged first, each in millions of instructions with all
 * that comes between, ticks included: 3,000,000 times close(-1) under raw_syscalls:sys_enter,
 * which takes the overflow handler's way, and PR_SET_NAME under COMM records, which go through
 * perf_output_begin().
 */
#include "bench.h"
#include <sys/prctl.h>

#define CALLS	3000000
#define BUFFER	(512ul * 4096)

static uint64_t closes(void)
{
	uint64_t start = instructions();

	for (int i = 0; i < CALLS; i++)
		syscall(__NR_close, -1);
	return instructions() - start;
}

static uint64_t names(void)
{
	uint64_t start = instructions();

	for (int i = 0; i < CALLS; i++)
		prctl(PR_SET_NAME, "aaaaaaaaaaaaaaa");
	return instructions() - start;
}

static void run(const char *test, uint64_t (*calls)(void), struct perf_event_attr attr,
		int backward)
{
	const char *way = backward ? "backward" : "forward";
	struct buffer b;
	uint64_t taken;
	char name[64];

	attr.write_backward = backward;
	snprintf(name, sizeof(name), "%s_%s", test, way);
	if (open_buffer(&b, &attr, BUFFER, 0)) {
		print_none(name);
		return;
	}
	taken = calls();
	if (written(&b, 0) < CALLS * 16ull)
		die("%s: %llu bytes were written", name, (unsigned long long)written(&b, 0));
	print_figure(name, taken / 1e6);
	close_buffer(&b);
}

int main(void)
{
	struct perf_event_attr at_enter = tracepoint_event("raw_syscalls/sys_enter", SAMPLE);
	struct perf_event_attr comm = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = SAMPLE,
		.comm = 1,
	};

	bench_init();
	print_figure("close_untraced", closes() / 1e6);
	run("close", closes, at_enter, 0);
	run("close", closes, at_enter, 1);
	print_figure("name_untraced", names() / 1e6);
	run("name", names, comm, 0);
	run("name", names, comm, 1);
	return 0;
}
