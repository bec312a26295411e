// SPDX-License-Identifier: GPL-2.0
/*
 * What the size of a record costs: bpf_perf_event_output() of records of 32 bytes to 60 KB, above
 * the same BPF program without that call, and a plain copy of as many bytes.
 *
 * The sizes are those of the whole record, 12 bytes of which aren't payload, and divide a page or
 * are multiples of one, so that all records of a size meet page boundaries alike.
 */
#include "bpf.h"

/* So large that hardly a batch crosses its watermark. */
#define BUFFER	(8192ul * 4096)
#define HEAD	(sizeof(struct perf_event_header) + sizeof(uint32_t))

static const unsigned int sizes[] = { 32, 64, 256, 1024, 4096, 16384, 61440 };

static uint64_t from[65536 / 8], to[65536 / 8];

/* As the kernel's memcpy() does it on this CPU: words, four in a round. */
static void plain_copy(void *arg)
{
	unsigned int words = *(unsigned int *)arg / 8;
	const volatile uint64_t *f = from;
	volatile uint64_t *t = to;

	for (; words >= 4; words -= 4, f += 4, t += 4) {
		t[0] = f[0];
		t[1] = f[1];
		t[2] = f[2];
		t[3] = f[3];
	}
}

static void nothing(void *arg)
{
	(void)arg;
	__asm__ volatile("");
}

/* Batches that fit between two ticks, and whole pages. */
static unsigned int batch_of(unsigned int size)
{
	return size > 1024 ? 64 : BATCH;
}

static double without_output(int events, int array)
{
	int link = AT_SYS_ENTER(LOAD_MAP(BPF_REG_2, events),
				MOV32_IMM(BPF_REG_3, (int)BPF_F_CURRENT_CPU),
				LOAD_VALUE(BPF_REG_4, array),
				MOV_IMM(BPF_REG_5, 16),
				MOV_IMM(BPF_REG_0, 0),
				EXIT());
	double each = (double)measure("without output", NULL, call_close, NULL, BATCH) / BATCH;

	close(link);
	return each;
}

static void output(unsigned int size, int backward, int array)
{
	unsigned int n = batch_of(size);
	double with, without;
	uint64_t head, bytes;
	struct buffer b;
	int events, link;
	char name[64];

	snprintf(name, sizeof(name), "output_%s_%u", backward ? "backward" : "forward", size);
	events = open_bpf_output(&b, BUFFER, backward, 0);
	if (events < 0) {
		print_none(name);
		return;
	}
	without = without_output(events, array);
	link = bpf_output_at_sys_enter(events, array, size - HEAD);
	head = b.user->data_head;
	with = (double)measure(name, NULL, call_close, NULL, n) / n;
	bytes = written(&b, head);
	if (bytes != (uint64_t)(BATCHES + 1) * n * size)
		die("%s: %llu bytes were written, not %llu", name, (unsigned long long)bytes,
		    (unsigned long long)(BATCHES + 1) * n * size);
	print_figure(name, with - without);
	close(link);
	close(events);
	close_buffer(&b);
}

int main(void)
{
	double loop;
	int array;

	bench_init();
	memset(from, 1, sizeof(from));
	memset(to, 1, sizeof(to));
	array = bpf_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(from), 1, 0);
	if (array < 0)
		die("no BPF array: %s", strerror(errno));
	bpf_map_set(array, 0, from);
	loop = (double)measure("nothing", NULL, nothing, NULL, BATCH) / BATCH;

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned int size = sizes[i], n = batch_of(size);
		char name[64];

		output(size, 0, array);
		output(size, 1, array);
		snprintf(name, sizeof(name), "copy_%u", size);
		print_figure(name, (double)measure(name, NULL, plain_copy, &size, n) / n - loop);
	}
	return 0;
}
