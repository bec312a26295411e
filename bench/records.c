// SPDX-License-Identifier: GPL-2.0
/*
 * What a record costs: the instructions of a system call that leaves one, above those of the same
 * call with the event disabled.
 *
 * With the name of a row as its argument it does that one alone, between two calls of mark(), for
 * scripts/bench-functions.
 */
#include "bench.h"
#include <sys/prctl.h>

#define STACK	(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
/* What an unwinder needs at the least, see enum perf_event_x86_regs. */
#define BP_SP_IP	(7ull << 6)
#define BUFFER	(512ul * 4096)

enum { COMM = 1, BACKWARD = 2, WRITABLE = 4, PAUSED = 8, USER = 16 };

static const struct row {
	const char *name;
	uint64_t sample_type;
	unsigned int is;
} rows[] = {
	{ "forward_writable", SAMPLE, WRITABLE },
	{ "forward_readonly", SAMPLE, 0 },
	{ "backward_readonly", SAMPLE, BACKWARD },
	{ "backward_writable", SAMPLE, BACKWARD | WRITABLE },
	{ "comm_forward_writable", SAMPLE, COMM | WRITABLE },
	{ "comm_forward_readonly", SAMPLE, COMM },
	{ "comm_backward_readonly", SAMPLE, COMM | BACKWARD },
	{ "callchain_forward_readonly", SAMPLE | PERF_SAMPLE_CALLCHAIN, 0 },
	{ "callchain_backward_readonly", SAMPLE | PERF_SAMPLE_CALLCHAIN, BACKWARD },
	{ "callchain_user_forward_readonly", SAMPLE | PERF_SAMPLE_CALLCHAIN, USER },
	{ "callchain_user_backward_readonly", SAMPLE | PERF_SAMPLE_CALLCHAIN, USER | BACKWARD },
	{ "stack_forward_readonly", SAMPLE | STACK, 0 },
	{ "stack_backward_readonly", SAMPLE | STACK, BACKWARD },
	{ "paused_forward_readonly", SAMPLE, PAUSED },
	{ "paused_backward_readonly", SAMPLE, BACKWARD | PAUSED },
	{ "paused_callchain_forward", SAMPLE | PERF_SAMPLE_CALLCHAIN, PAUSED },
	{ "paused_callchain_backward", SAMPLE | PERF_SAMPLE_CALLCHAIN, BACKWARD | PAUSED },
};

static void call_prctl(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "aaaaaaaaaaaaaaa");
}

static void before(void *arg)
{
	consume(arg);
}

static int open_row(const struct row *row, struct buffer *b)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.sample_period = 1,
		.sample_type = row->sample_type,
		.write_backward = !!(row->is & BACKWARD),
		.exclude_callchain_kernel = !!(row->is & USER),
		.disabled = 1,
	};

	if (row->sample_type & PERF_SAMPLE_STACK_USER) {
		attr.sample_regs_user = BP_SP_IP;
		attr.sample_stack_user = 1024;
	}
	if (row->is & COMM) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.comm = 1;
	} else {
		attr.config = tracepoint_id("raw_syscalls/sys_enter");
	}
	if (open_buffer(b, &attr, BUFFER, row->is & WRITABLE))
		return -1;
	return 0;
}

static void run_row(const struct row *row)
{
	void (*op)(void *) = row->is & COMM ? call_prctl : call_close;
	uint64_t without, with, head, events, bytes;
	char name[100];
	struct buffer b;

	snprintf(name, sizeof(name), "bytes.%s", row->name);
	if (open_row(row, &b)) {
		print_none(row->name);
		print_none(name);
		return;
	}
	without = measure(row->name, NULL, op, &b, BATCH);
	if ((row->is & PAUSED) && ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1)) {
		if (errno != ENOTTY)
			die("PERF_EVENT_IOC_PAUSE_OUTPUT: %s", strerror(errno));
		print_none(row->name);
		print_none(name);
		close_buffer(&b);
		return;
	}
	enable(b.fd);
	events = event_count(b.fd);
	head = b.user->data_head;
	with = measure(row->name, before, op, &b, BATCH);

	/* Each call must have been seen, and must have left one record, or none while paused. */
	events = event_count(b.fd) - events;
	if (!(row->is & COMM) && events < (BATCHES + 1) * BATCH)
		die("%s: the event counted %llu of %u calls", row->name, (unsigned long long)events,
		    (BATCHES + 1) * BATCH);
	if (row->is & COMM)
		events = (BATCHES + 1) * BATCH;
	bytes = written(&b, head);
	if (row->is & PAUSED ? bytes : !bytes)
		die("%s: %llu bytes were written", row->name, (unsigned long long)bytes);
	print_figure(row->name, (double)(with - without) / BATCH);
	print_figure(name, (double)bytes / events);
	close_buffer(&b);
}

/*
 * scripts/bench-functions looks for calls of it; what is between the first two was done for the
 * row.
 */
__attribute__((noinline)) void mark(void)
{
	__asm__ volatile("");
}

/* Where the instructions go is for another to see: tell it, wait until it looks, then go. */
static void run_marked(const struct row *row)
{
	void (*op)(void *) = row->is & COMM ? call_prctl : call_close;
	struct buffer b;
	char go;

	if (open_row(row, &b))
		die("this kernel can't do %s: take another row or tree", row->name);
	if ((row->is & PAUSED) && ioctl(b.fd, PERF_EVENT_IOC_PAUSE_OUTPUT, 1))
		die("PERF_EVENT_IOC_PAUSE_OUTPUT: %s", strerror(errno));
	enable(b.fd);
	/* More than a lap, so that nothing happens for the first time later on. */
	for (unsigned int i = 0; i < 2 * BATCH; i++) {
		consume(&b);
		op(&b);
	}
	printf("ready\n");
	if (read(STDIN_FILENO, &go, 1) != 1)
		die("can't read standard input: %s", strerror(errno));
	consume(&b);
	sleep_past_tick();
	mark();
	batch(op, &b, BATCH);
	mark();
	printf("done %u\n", BATCH);
}

int main(int argc, char **argv)
{
	bench_init();
	if (argc > 2)
		die("usage: records [row]");
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		if (argc == 1)
			run_row(&rows[i]);
		else if (!strcmp(argv[1], rows[i].name))
			return run_marked(&rows[i]), 0;
	}
	if (argc > 1)
		die("%s is no row: see the list in bench/records.c", argv[1]);
	return 0;
}
