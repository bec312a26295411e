// SPDX-License-Identifier: GPL-2.0
/*
 * What others take to record the same event, each above the untraced system call: ftrace's
 * buffer, BPF's two ways to hand data to user space, and a reader that keeps its own ring of what
 * it copies out of a buffer written forward.
 */
#include "bpf.h"

#define BUFFER	(512ul * 4096)

/*
 * What the tracepoint raw_syscalls:sys_enter records: eight bytes common to all, a number, six
 * words.
 */
#define EVENT	(8 + 8 + 6 * 8)

static double untraced;

static uint64_t read_number(const char *path, const char *name)
{
	unsigned long long value;
	char line[200];
	FILE *f = fopen(path, "r");

	if (!f)
		die("can't read %s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)) &&
		    sscanf(line + strlen(name), ": %llu", &value) == 1) {
			fclose(f);
			return value;
		}
	}
	die("%s has no number %s", path, name);
}

#define TRACING	"/sys/kernel/tracing/"

static void ftrace(void)
{
	const char *stats = TRACING "per_cpu/cpu0/stats";
	uint64_t before, after;
	double with;

	write_file(TRACING "buffer_size_kb", "2048");
	write_file(TRACING "options/overwrite", "1");
	write_file(TRACING "trace_clock", "local");
	write_file(TRACING "events/raw_syscalls/sys_enter/enable", "1");
	/* More than a lap, to measure what overwriting costs. */
	for (int i = 0; i < 40000; i++)
		call_close(NULL);
	before = read_number(stats, "overrun");
	with = measure_mean(NULL, call_close, NULL, BATCH) / BATCH;
	after = read_number(stats, "overrun");
	write_file(TRACING "events/raw_syscalls/sys_enter/enable", "0");
	if (after - before < BATCHES * BATCH / 2)
		die("ftrace overwrote only %llu records", (unsigned long long)(after - before));
	print_figure("ftrace_overwrite", with - untraced);
}

static int event_array(void)
{
	char value[EVENT] = { 1 };
	int array = bpf_map(BPF_MAP_TYPE_ARRAY, 4, EVENT, 1, 0);

	if (array < 0)
		die("no BPF array: %s", strerror(errno));
	bpf_map_set(array, 0, value);
	return array;
}

static void bpf_output(int array, int backward)
{
	const char *name = backward ? "bpf_output_backward" : "bpf_output_forward";
	struct buffer b;
	uint64_t head;
	double with;
	int map, link;

	map = open_bpf_output(&b, BUFFER, backward, 0);
	if (map < 0) {
		print_none(name);
		return;
	}
	link = bpf_output_at_sys_enter(map, array, EVENT);
	head = b.user->data_head;
	with = measure_mean(NULL, call_close, NULL, BATCH) / BATCH;
	if (written(&b, head) < (BATCHES + 1) * BATCH * EVENT)
		die("%s: no records were written", name);
	print_figure(name, with - untraced);
	close(link);
	close(map);
	close_buffer(&b);
}

struct ringbuf {
	unsigned long *consumer, *producer;
};

static void ringbuf_consume(void *arg)
{
	struct ringbuf *r = arg;

	if (r->consumer)
		__atomic_store_n(r->consumer, __atomic_load_n(r->producer, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
}

/* The reader keeps up in no time, or there is none where the kernel can overwrite. */
static void bpf_ringbuf(int array, const char *name, unsigned int flags)
{
	long page = sysconf(_SC_PAGESIZE);
	struct ringbuf r = { NULL, NULL };
	unsigned long before;
	double with;
	int map, link;

	map = bpf_map(BPF_MAP_TYPE_RINGBUF, 0, 0, BUFFER, flags);
	if (map < 0 && flags && errno == EINVAL) {
		print_none(name);
		return;
	}
	if (map < 0)
		die("%s: no BPF ring buffer: %s", name, strerror(errno));
	r.producer = mmap(NULL, page, PROT_READ, MAP_SHARED, map, page);
	if (!flags)
		r.consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
	if (r.producer == MAP_FAILED || r.consumer == MAP_FAILED)
		die("%s: mmap: %s", name, strerror(errno));

	link = AT_SYS_ENTER(LOAD_MAP(BPF_REG_1, map),
			    LOAD_VALUE(BPF_REG_2, array),
			    MOV_IMM(BPF_REG_3, EVENT),
			    MOV_IMM(BPF_REG_4, BPF_RB_NO_WAKEUP),
			    CALL(BPF_FUNC_ringbuf_output),
			    MOV_IMM(BPF_REG_0, 0),
			    EXIT());
	before = *r.producer;
	with = measure_mean(ringbuf_consume, call_close, &r, BATCH) / BATCH;
	if (*(volatile unsigned long *)r.producer - before < (BATCHES + 1) * BATCH * EVENT)
		die("%s: no records were written", name);
	print_figure(name, with - untraced);
	close(link);
	munmap(r.producer, page);
	if (r.consumer)
		munmap(r.consumer, page);
	close(map);
}

/*
 * A batch of records, and the reader that copies them, as user space did without overwritable
 * buffers.
 */
static unsigned char own[BUFFER];
static uint64_t own_head;

static void calls_and_copies(void *arg)
{
	struct buffer *b = arg;
	const unsigned char *data = (unsigned char *)b->user + sysconf(_SC_PAGESIZE);
	uint64_t tail = b->user->data_tail, head;

	for (int i = 0; i < BATCH; i++)
		call_close(NULL);
	head = __atomic_load_n(&b->user->data_head, __ATOMIC_ACQUIRE);
	while (tail != head) {
		const struct perf_event_header *h = (void *)(data + tail % BUFFER);
		unsigned int left = h->size;

		/* What crosses the end of the one ring or the other is copied in parts. */
		while (left) {
			unsigned int from = tail % BUFFER, to = own_head % BUFFER, n = left;

			n = n < BUFFER - from ? n : BUFFER - from;
			n = n < BUFFER - to ? n : BUFFER - to;
			memcpy(own + to, data + from, n);
			tail += n;
			own_head += n;
			left -= n;
		}
	}
	__atomic_store_n(&b->user->data_tail, tail, __ATOMIC_RELEASE);
}

static void user_ring(void)
{
	struct perf_event_attr attr = tracepoint_event("raw_syscalls/sys_enter", SAMPLE);
	struct buffer b;
	double with;

	memset(own, 0, sizeof(own));
	open_buffer(&b, &attr, BUFFER, 1);
	with = measure_mean(NULL, calls_and_copies, &b, 1) / BATCH;
	if (own_head < (BATCHES + 1) * BATCH * EVENT)
		die("no records were copied");
	print_figure("user_ring", with - untraced);
	close_buffer(&b);
}

int main(void)
{
	int array;

	bench_init();
	untraced = (double)measure("untraced", NULL, call_close, NULL, BATCH) / BATCH;
	array = event_array();
	user_ring();
	ftrace();
	bpf_output(array, 0);
	bpf_output(array, 1);
	bpf_ringbuf(array, "bpf_ringbuf_emptied", 0);
	bpf_ringbuf(array, "bpf_ringbuf_overwrite", RINGBUF_OVERWRITE);
	return 0;
}
