// SPDX-License-Identifier: GPL-2.0
/*
 * What a record costs on this machine's own processor: the kernels' objects, unchanged, linked into one
 * program, one set for each tree, see scripts/bench-native and bench/native/kernel.c.
 *
 * Batches of records are written by the trees in turn, in a random order, pinned to one CPU. The ratio of two
 * trees is that of the batches of one turn, which met the same frequency and the same neighbours; its median
 * is given with a confidence interval of 95 %. A turn in which the scheduler took the CPU away doesn't count.
 *
 * -c counts instructions instead, by single steps: `rep movsb` is one for each byte there, as in the emulator.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "../bench.h"
#include "native.h"
/* By scripts/bench-native: TREES(X), and FEATURES(X) of the trees' asm/cpufeatures.h. */
#include "generated.h"

#define X(_tree) extern const struct native_ops _tree##_native_ops;
TREES(X)
#undef X

static const struct tree {
	const char *name;
	const struct native_ops *ops;
} trees[] = {
#define X(_tree) { #_tree, &_tree##_native_ops },
	TREES(X)
#undef X
};

#define NR_TREES	ARRAY_SIZE(trees)
#define PAGE		4096ul
#define KB		1024ul
#define MB		(1024 * KB)
#define OBJECTS		(8 * MB)
#define PAGES		(66 * MB)
#define STRUCT_PAGE	64ul

/* What of each sample is measured; a sample's other parts come on top of these 48 bytes. */
#define SAMPLE_FIELDS	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
#define RAW	(SAMPLE_FIELDS | PERF_SAMPLE_RAW)
#define CHAIN	(RAW | PERF_SAMPLE_CALLCHAIN)
#define STACK	(RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

#define BACKWARD	.backward = 1
#define WRITABLE	.writable = 1
#define PAUSED		.paused = 1
#define SMALL		.buffer = 64 * KB
#define LARGE		.buffer = 64 * MB

#define COMM_ROW(_name, ...) \
	{ .name = _name, .kind = NATIVE_COMM, .sample_type = SAMPLE_FIELDS, .bytes = 32, __VA_ARGS__ }
/* Behind it the ids of task, CPU, and the time, as sample_id_all asks for. */
#define COMM_ID_ROW(_name, ...) \
	{ .name = _name, .kind = NATIVE_COMM, .sample_type = SAMPLE_FIELDS, .sample_id_all = 1, \
	  .bytes = 32 + 24, __VA_ARGS__ }
#define SAMPLE_ROW(_name, _bytes, ...) \
	{ .name = _name, .sample_type = RAW, .raw = (_bytes) - 48, .bytes = _bytes, __VA_ARGS__ }
/* The context's mark is an entry, too, and their number comes first. */
#define CHAIN_ROW(_name, _n, ...) \
	{ .name = _name, .sample_type = CHAIN, .raw = 72, .callchain = (_n) - 1, \
	  .bytes = 120 + 8 + 8 * (_n), __VA_ARGS__ }
/* The ABI and three registers; the size, the dump, the size of what there was. */
#define STACK_ROW(_name, ...) \
	{ .name = _name, .sample_type = STACK, .raw = 72, .stack = 1024, \
	  .bytes = 120 + 32 + 1040, __VA_ARGS__ }
#define REST_OF_PAYLOAD	(48 + 8)
#define PAYLOAD_ROW(_name, _n, ...) \
	{ .name = _name, .sample_type = RAW, .raw = (_n) + 8, .bytes = REST_OF_PAYLOAD + (_n), __VA_ARGS__ }

#define EACH_WAY_64K(_row, _name, ...) \
	_row(_name "_forward_readonly_64K", ##__VA_ARGS__, SMALL), \
	_row(_name "_forward_writable_64K", ##__VA_ARGS__, SMALL, WRITABLE), \
	_row(_name "_backward_readonly_64K", ##__VA_ARGS__, SMALL, BACKWARD), \
	_row(_name "_backward_writable_64K", ##__VA_ARGS__, SMALL, BACKWARD, WRITABLE)
#define EACH_WAY_64M(_row, _name, ...) \
	_row(_name "_forward_readonly_64M", ##__VA_ARGS__, LARGE), \
	_row(_name "_forward_writable_64M", ##__VA_ARGS__, LARGE, WRITABLE), \
	_row(_name "_backward_readonly_64M", ##__VA_ARGS__, LARGE, BACKWARD), \
	_row(_name "_backward_writable_64M", ##__VA_ARGS__, LARGE, BACKWARD, WRITABLE)
#define EACH_WAY(...)	EACH_WAY_64K(__VA_ARGS__), EACH_WAY_64M(__VA_ARGS__)

static const struct native_row rows[] = {
	EACH_WAY(COMM_ROW, "comm_32"),
	EACH_WAY(COMM_ID_ROW, "comm_id_56"),
	EACH_WAY(SAMPLE_ROW, "sample_64", 64),
	EACH_WAY(SAMPLE_ROW, "sample_120", 120),
	EACH_WAY(SAMPLE_ROW, "sample_400", 400),
	EACH_WAY(CHAIN_ROW, "callchain_16", 16),
	EACH_WAY(CHAIN_ROW, "callchain_127", 127),
	EACH_WAY(STACK_ROW, "stack_1024"),
	EACH_WAY(PAYLOAD_ROW, "payload_32", 32),
	EACH_WAY(PAYLOAD_ROW, "payload_256", 256),
	EACH_WAY(PAYLOAD_ROW, "payload_1024", 1024),
	EACH_WAY(PAYLOAD_ROW, "payload_4096", 4096),
	EACH_WAY(PAYLOAD_ROW, "payload_16384", 16384),
	EACH_WAY_64M(PAYLOAD_ROW, "payload_61440", 61440),
	SAMPLE_ROW("paused_120_forward_readonly_64K", 120, SMALL, PAUSED),
	SAMPLE_ROW("paused_120_backward_readonly_64K", 120, SMALL, BACKWARD, PAUSED),
	CHAIN_ROW("paused_callchain_127_forward_readonly_64K", 127, SMALL, PAUSED),
	CHAIN_ROW("paused_callchain_127_backward_readonly_64K", 127, SMALL, BACKWARD, PAUSED),
	/* For a comparison with scripts/bench-functions: the buffer of bench/records.c. */
	COMM_ROW("comm_32_forward_readonly_2M", .buffer = 2 * MB),
	COMM_ROW("comm_32_backward_readonly_2M", .buffer = 2 * MB, BACKWARD),
	SAMPLE_ROW("sample_120_forward_readonly_2M", 120, .buffer = 2 * MB),
	SAMPLE_ROW("sample_120_backward_readonly_2M", 120, .buffer = 2 * MB, BACKWARD),
};

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 11) % n;
}

/* Boot: alternatives and jump labels, as they are in a kernel that runs on this processor. */

struct alt_instr {
	int32_t instr, replacement;
	uint16_t feature, flags;
	uint8_t instr_length, replacement_length;
} __attribute__((packed));

struct jump_entry {
	int32_t code, target;
	int64_t key;
};

#define ALT_NOT		1
#define ALT_DIRECT_CALL	2

#define CLI		0xfa
#define STI		0xfb
#define NOP		0x90

extern struct alt_instr __start_altinstructions[], __stop_altinstructions[];
extern struct jump_entry __start___jump_table[] __attribute__((weak));
extern struct jump_entry __stop___jump_table[] __attribute__((weak));

static const struct feature {
	const char *name;
	unsigned int number;
} features[] = {
#define X(_name, _number) { _name, _number },
	FEATURES(X)
#undef X
};

static unsigned char has[65536];

/* What this processor has is what the kernel that runs here found: flags that it shows. */
static void read_features(const char *without)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[8192], *flag, *save;
	unsigned int known = 0;

	if (!f)
		die("can't read /proc/cpuinfo: %s", strerror(errno));
	while (without && known < ARRAY_SIZE(features) && strcmp(without, features[known].name))
		known++;
	if (known == ARRAY_SIZE(features))
		die("%s is no feature of a processor: /proc/cpuinfo has the names in its line flags", without);
	while (fgets(line, sizeof(line), f) && strncmp(line, "flags", 5))
		;
	fclose(f);
	for (flag = strtok_r(line, " \t\n", &save); flag; flag = strtok_r(NULL, " \t\n", &save))
		for (unsigned int i = 0; i < ARRAY_SIZE(features); i++)
			if (!strcmp(flag, features[i].name) && (!without || strcmp(flag, without)))
				has[features[i].number] = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(features); i++) {
		if (!strcmp(features[i].name, "always"))
			has[features[i].number] = 1;
		/* Its instructions are the kernel's alone. */
		if (!strcmp(features[i].name, "smap"))
			has[features[i].number] = 0;
	}
}

static void patch(unsigned char *at, const void *bytes, size_t n)
{
	char *page = (char *)((uintptr_t)at & -PAGE);
	size_t length = (char *)at + n - page;

	if (mprotect(page, length, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("can't patch %p: %s", at, strerror(errno));
	memcpy(at, bytes, n);
	if (mprotect(page, length, PROT_READ | PROT_EXEC))
		die("can't protect %p: %s", at, strerror(errno));
}

/* As few instructions as the kernel makes of it: the longest that do nothing. */
static void fill_nops(unsigned char *at, size_t n)
{
	static const unsigned char nops[][8] = {
		{ 0x90 }, { 0x66, 0x90 }, { 0x0f, 0x1f, 0x00 }, { 0x0f, 0x1f, 0x40, 0x00 },
		{ 0x0f, 0x1f, 0x44, 0x00, 0x00 }, { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
		{ 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
		{ 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
	};

	while (n) {
		size_t part = n < 8 ? n : 8;

		memcpy(at, nops[part - 1], part);
		at += part;
		n -= part;
	}
}

static void apply_alternative(struct alt_instr *a)
{
	unsigned char *instr = (unsigned char *)&a->instr + a->instr;
	unsigned char *from = (unsigned char *)&a->replacement + a->replacement;
	unsigned char code[256];
	size_t n = a->replacement_length;
	int32_t relative;

	if (has[a->feature] == !!(a->flags & ALT_NOT)) {
		/* What it was has room for what it could be. */
		memcpy(code, instr, a->instr_length);
		for (n = a->instr_length; n && code[n - 1] == NOP; n--)
			;
		fill_nops(code + n, a->instr_length - n);
		patch(instr, code, a->instr_length);
		return;
	}
	memcpy(code, from, n);
	if (a->flags & ALT_DIRECT_CALL) {
		const void **pointer;

		memcpy(&relative, instr + 2, 4);
		if (instr[0] != 0xff || (instr[1] != 0x15 && instr[1] != 0x14))
			die("the call at %p isn't one by a pointer", instr);
		pointer = instr[1] == 0x15 ? (void *)(instr + 6 + relative) :
			(void *)(intptr_t)*(int32_t *)(instr + 3);
		relative = (const unsigned char *)*pointer - (instr + 5);
		code[0] = 0xe8;
		memcpy(code + 1, &relative, 4);
		n = 5;
	} else if (n >= 5 && (code[0] == 0xe8 || code[0] == 0xe9)) {
		memcpy(&relative, code + 1, 4);
		relative += from - instr;
		memcpy(code + 1, &relative, 4);
	}
	fill_nops(code + n, a->instr_length - n);
	patch(instr, code, a->instr_length);
}

static void apply_jump_label(struct jump_entry *e)
{
	unsigned char *code = (unsigned char *)&e->code + e->code;
	unsigned char *target = (unsigned char *)&e->target + e->target;
	int *key = (int *)((char *)&e->key + (e->key & ~3l));
	int jump = (*key > 0) ^ (int)(e->key & 1);
	size_t n = code[0] == 0xeb || code[0] == 0x66 ? 2 : 5;
	unsigned char bytes[5];
	int32_t relative = target - (code + n);

	if (jump) {
		bytes[0] = n == 2 ? 0xeb : 0xe9;
		memcpy(bytes + 1, &relative, n - 1);
	} else {
		fill_nops(bytes, n);
	}
	patch(code, bytes, n);
}

/* One for each tree, and the last for another buffer of the last tree. */
static struct native_memory memory[NR_TREES + 1];
/* What is copied to without a kernel. */
static char *copies;

static void boot(const char *without)
{
	for (unsigned int t = 0; t < NR_TREES; t++)
		trees[t].ops->boot(&memory[t]);
	read_features(without);
	for (struct alt_instr *a = __start_altinstructions; a < __stop_altinstructions; a++)
		apply_alternative(a);
	for (struct jump_entry *e = __start___jump_table; e < __stop___jump_table; e++)
		apply_jump_label(e);
}

static void *map(size_t size)
{
	char *p = mmap(NULL, size + 2 * MB, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("no memory: %s", strerror(errno));
	p = (char *)(((uintptr_t)p + 2 * MB - 1) & -(2 * MB));
	/* As the kernel has its own memory. */
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static void map_memory(void)
{
	static char user_stack[2 * PAGE];

	copies = map(64 * MB);
	for (unsigned int t = 0; t < ARRAY_SIZE(memory); t++) {
		memory[t].user_stack = user_stack;
		memory[t].objects = map(OBJECTS);
		memory[t].objects_end = memory[t].objects + OBJECTS;
		memory[t].pages = map(PAGES);
		memory[t].pages_end = memory[t].pages + PAGES;
		memory[t].page_structs = map(PAGES / PAGE * STRUCT_PAGE);
	}
}

/* Where a buffer comes to lie matters: leave it to chance. */
static struct native_event *open_in(unsigned int where, unsigned int t, const struct native_row *row)
{
	struct native_memory m = memory[where];

	m.objects += random_below(64) * 64;
	m.pages += random_below(64) * PAGE;
	m.page_structs += (m.pages - memory[where].pages) / PAGE * STRUCT_PAGE;
	return trees[t].ops->open(row, &m);
}

static struct native_event *open_row(unsigned int t, const struct native_row *row)
{
	return open_in(t, t, row);
}

/* How many of a row are written without a look at them. */
static unsigned int batch_of(const struct native_row *row)
{
	unsigned long n = 512, most = row->writable ? row->buffer / 2 : 256 * KB;

	if (!row->paused && n * row->bytes > most)
		n = most / row->bytes;
	return n;
}

/* Exactly that many bytes are there, or none if paused, and the last record looks as it should. */
static void check(unsigned int t, const struct native_row *row, struct native_event *e, unsigned long head,
		  unsigned int n)
{
	const struct native_ops *ops = trees[t].ops;
	unsigned long now = ops->head(e), bytes = row->backward ? head - now : now - head;
	unsigned long wanted = row->paused ? 0 : (unsigned long)n * row->bytes;
	unsigned long at = row->backward ? now : now - row->bytes;
	struct perf_event_header header;

	if (bytes != wanted)
		die("%s of %s: %lu bytes were written, not %lu, and %lu records lost", row->name,
		    trees[t].name, bytes, wanted, ops->lost(e));
	if (row->paused)
		return;
	memcpy(&header, ops->page(e, at / PAGE) + at % PAGE, sizeof(header));
	if (header.size != row->bytes ||
	    header.type != (row->kind == NATIVE_COMM ? PERF_RECORD_COMM : PERF_RECORD_SAMPLE))
		die("%s of %s: a record of type %u with %u bytes", row->name, trees[t].name, header.type,
		    header.size);
}

/* Bytes of the buffer from one place on: of all trees the same, as time stands still. */
static void check_alike(const struct native_row *row, struct native_event *e[NR_TREES])
{
	unsigned int first = 0;

	while (first < NR_TREES && !e[first])
		first++;
	for (unsigned int t = first + 1; t < NR_TREES; t++) {
		if (!e[t])
			continue;
		for (unsigned long i = 0; i < row->buffer / PAGE; i++)
			if (memcmp(trees[first].ops->page(e[first], i), trees[t].ops->page(e[t], i), PAGE))
				die("%s: %s and %s wrote other bytes", row->name, trees[first].name,
				    trees[t].name);
	}
}

static void open_all(const struct native_row *row, struct native_event *e[NR_TREES])
{
	unsigned int n = batch_of(row);

	for (unsigned int t = 0; t < NR_TREES; t++) {
		unsigned long head;

		e[t] = open_row(t, row);
		if (!e[t])
			continue;
		head = trees[t].ops->head(e[t]);
		trees[t].ops->consume(e[t]);
		trees[t].ops->write(e[t], n);
		check(t, row, e[t], head, n);
	}
	check_alike(row, e);
}

/* Counting by single steps. */

#define TRAP_FLAG	0x100

extern char __executable_start[], etext[];
static uint32_t *counts;
static uint64_t steps;
static int stepping;

static void step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t rip = u->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	if (!stepping) {
		u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		return;
	}
	counts[rip - (uintptr_t)__executable_start]++;
	steps++;
}

static void fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t rip = u->uc_mcontext.gregs[REG_RIP];
	unsigned char *code = (unsigned char *)rip, nop = NOP;

	/* No program may switch interrupts off or on: it does nothing from now on, in each tree. */
	if (sig == SIGSEGV && rip >= (uintptr_t)__executable_start && rip < (uintptr_t)etext &&
	    (*code == CLI || *code == STI)) {
		patch(code, &nop, 1);
		return;
	}
	fprintf(stderr, "error: signal %d at %#lx, address %p: nm of the program says of what\n", sig, rip,
		info->si_addr);
	_exit(1);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (sigaction(sig, &action, NULL))
		die("sigaction: %s", strerror(errno));
}

static void handle_signals(void)
{
	stack_t stack = { .ss_size = 64 * KB, .ss_sp = malloc(64 * KB) };

	if (!stack.ss_sp || sigaltstack(&stack, NULL))
		die("sigaltstack: %s", strerror(errno));
	handle(SIGTRAP, step);
	handle(SIGSEGV, fault);
	handle(SIGILL, fault);
	handle(SIGBUS, fault);
}

/* The instructions of so many records. With `by_address` all of them, where they are. */
static double count_row(unsigned int t, const struct native_row *row, int by_address)
{
	struct native_event *e = open_row(t, row);
	unsigned int n = batch_of(row);
	uint64_t count;

	if (!e)
		return NAN;
	if (!by_address)
		n = row->bytes > 4096 ? 1 : n > 16 ? 16 : n;
	/* More than a lap, as bench/records.c does it. */
	for (int i = 0; i < 3; i++) {
		trees[t].ops->consume(e);
		trees[t].ops->write(e, batch_of(row));
	}
	trees[t].ops->consume(e);
	memset(counts, 0, (etext - __executable_start) * sizeof(*counts));
	steps = 0;
	stepping = 1;
	__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::: "memory", "cc");
	trees[t].ops->write(e, n);
	stepping = 0;
	__asm__ volatile("nop; nop" ::: "memory");
	count = steps;
	if (by_address)
		for (uintptr_t i = 0; i < (uintptr_t)(etext - __executable_start); i++)
			if (counts[i])
				printf("%016lx %.6f\n", (uintptr_t)__executable_start + i, (double)counts[i] / n);
	return (double)count / n;
}

static void count(const char *only_tree, const char *only_row)
{
	counts = calloc(etext - __executable_start, sizeof(*counts));
	if (!counts)
		die("no memory");
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		/* Where the buffer lies and how large it is makes no difference. */
		if (only_row ? !!strcmp(only_row, rows[i].name) :
		    rows[i].writable || (rows[i].buffer != 64 * KB && !strstr(rows[i].name, "payload")))
			continue;
		for (unsigned int t = 0; t < NR_TREES; t++) {
			double c;

			if (only_tree && strcmp(only_tree, trees[t].name))
				continue;
			c = count_row(t, &rows[i], only_tree && only_row);
			if (!isnan(c) && !(only_tree && only_row))
				printf("instructions %s %s %.2f\n", rows[i].name, trees[t].name, c);
		}
	}
}

/* Counting time. */

#define MOST_TURNS	20000
/* For each turn that counts, on a busy machine. */
#define MOST_TRIES	50

static const uint64_t counted[] = {
	PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_BRANCH_MISSES
};
#define NR_COUNTERS	ARRAY_SIZE(counted)

/* One group; this processor may have the first ones only, or none. */
static int counters = -1;
static unsigned int nr_counters;

static void open_counters(void)
{
	for (; nr_counters < NR_COUNTERS; nr_counters++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_HARDWARE,
			.size = sizeof(attr),
			.config = counted[nr_counters],
			.read_format = PERF_FORMAT_GROUP,
			.exclude_kernel = 1,
			.exclude_hv = 1,
		};
		int fd = syscall(__NR_perf_event_open, &attr, 0, -1, counters, 0);

		if (fd < 0)
			return;
		if (!nr_counters)
			counters = fd;
	}
}

static inline uint64_t tsc(void)
{
	uint64_t now;

	__builtin_ia32_lfence();
	now = __builtin_ia32_rdtsc();
	__builtin_ia32_lfence();
	return now;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What two readings of the clock take that have nothing between them. */
static double empty;

static void measure_empty(void)
{
	double x[1001];

	for (unsigned int i = 0; i < ARRAY_SIZE(x); i++) {
		uint64_t start = tsc();

		x[i] = tsc() - start;
	}
	qsort(x, ARRAY_SIZE(x), sizeof(*x), compare);
	empty = x[ARRAY_SIZE(x) / 2];
}

static void read_counters(uint64_t *value)
{
	uint64_t group[1 + NR_COUNTERS];
	ssize_t size = (1 + nr_counters) * sizeof(*group);

	if (!nr_counters)
		return;
	if (read(counters, group, sizeof(group)) != size)
		die("can't read the counters: %s", strerror(errno));
	memcpy(value, group + 1, nr_counters * sizeof(*value));
}

static long switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage))
		die("getrusage: %s", strerror(errno));
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Whatever was in the caches next to the processor: of the first two levels of any that there is now. */
static void evict(void)
{
	static char *other;

	if (!other)
		other = map(8 * MB);
	for (size_t i = 0; i < 8 * MB; i += 64)
		other[i]++;
}

/* Alone and hot; after the caches were evicted; while another processor writes to a buffer of its own. */
enum how { HOT, COLD, BESIDE };

static const char *const how_names[] = { "", "cold_", "beside_" };

/* The tree that the other processor is to write to, and the one that it writes to. */
static struct {
	unsigned int wanted, written;
} *beside;
/* A processor that isn't ours, or -1 if we may use none. */
static int other_cpu = -1;

/*
 * Start a copy of this process on the other processor, to write there until it is killed. Only what the kernel shares
 * is shared with it: the code, and the caches of the machine.
 */
static pid_t write_beside(struct native_event *e[NR_TREES], unsigned int n)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child)
		return child;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	go_to_cpu(other_cpu);
	for (;;) {
		unsigned int t = __atomic_load_n(&beside->wanted, __ATOMIC_RELAXED);

		trees[t].ops->consume(e[t]);
		trees[t].ops->write(e[t], n);
		__atomic_store_n(&beside->written, t, __ATOMIC_RELAXED);
	}
}

/* Have it write to this tree from now on. */
static void wait_for_beside(pid_t child, unsigned int t)
{
	__atomic_store_n(&beside->wanted, t, __ATOMIC_RELAXED);
	while (__atomic_load_n(&beside->written, __ATOMIC_RELAXED) != t) {
		if (waitpid(child, NULL, WNOHANG))
			die("the process on the other processor ended");
	}
}

struct batch {
	double ticks, count[NR_COUNTERS];
};

/* Write n records; 0 if it was interrupted by another task. */
static int run_batch(unsigned int t, struct native_event *e, unsigned int n, int cold, struct batch *b)
{
	const struct native_ops *ops = trees[t].ops;
	uint64_t start, end, first[NR_COUNTERS], last[NR_COUNTERS];
	long before;

	ops->consume(e);
	before = switches();
	if (cold)
		evict();
	read_counters(first);
	start = tsc();
	ops->write(e, n);
	end = tsc();
	read_counters(last);
	b->ticks = (end - start - empty) / n;
	for (unsigned int i = 0; i < nr_counters; i++)
		b->count[i] = (double)(last[i] - first[i]) / n;
	return switches() == before;
}

/* The median, with a confidence interval of 95 % from the ranks. Sorts. */
static void median(double *x, unsigned int n, double *mid, double *low, double *high)
{
	double half = 0.98 * sqrt(n);
	int below = floor(n / 2.0 - half), above = ceil(n / 2.0 + half);

	qsort(x, n, sizeof(*x), compare);
	*mid = n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
	*low = x[below < 0 ? 0 : below];
	*high = x[above >= (int)n ? (int)n - 1 : above];
}

/* The tree that tree t is compared with: stock, or the one before it. */
static unsigned int other_of(unsigned int t, int with_former)
{
	unsigned int other = with_former ? t - !!t : 0;

	if (!with_former)
		while (other < NR_TREES && strcmp(trees[other].name, "stock"))
			other++;
	return other;
}

/* Payloads that are compared with a copy of as many bytes. */
static int is_large_payload(const struct native_row *row)
{
	return !row->callchain && !row->stack && row->raw >= 1024;
}

/*
 * As many bytes as a payload has copied by the last tree's memcpy() to a buffer as large, page by page, to the
 * same places: what else is in a record is left out. 0 if it was interrupted.
 */
static int run_copies(const struct native_row *row, unsigned int n, double *ticks)
{
	static char from[65536] __attribute__((aligned(64)));
	unsigned int size = row->bytes - REST_OF_PAYLOAD;
	static unsigned long head;
	long before = switches();
	uint64_t start = tsc();

	for (unsigned int i = 0; i < n; i++) {
		unsigned long at;

		head -= row->backward ? row->bytes : 0;
		at = (head + REST_OF_PAYLOAD) % row->buffer;
		for (unsigned int done = 0, part; done < size; done += part) {
			part = PAGE - at % PAGE;
			part = part < size - done ? part : size - done;
			trees[NR_TREES - 1].ops->memcpy(copies + at, from + done, part);
			at = (at + part) % row->buffer;
		}
		head += row->backward ? 0 : row->bytes;
	}
	*ticks = (tsc() - start - empty) / n;
	return switches() == before;
}

static void measure_row(const struct native_row *row, unsigned int turns, enum how how, int with_former)
{
	static double ticks[NR_TREES][MOST_TURNS], ratio[MOST_TURNS];
	static double counts_of[NR_TREES][NR_COUNTERS][MOST_TURNS];
	struct native_event *e[NR_TREES];
	unsigned int n = how == COLD ? 1 : batch_of(row), kept = 0, tried = 0;
	unsigned long heads[NR_TREES] = {};
	/* Of the last tree, in the same turns. */
	static double copied[MOST_TURNS];
	const struct native_row small_row = SAMPLE_ROW("sample_64", 64, .buffer = row->buffer,
						       .backward = row->backward, .writable = row->writable);
	const unsigned int last = NR_TREES - 1;
	struct native_event *small = NULL;
	double mid, low, high;
	pid_t child = 0;

	open_all(row, e);
	if (is_large_payload(row) && e[last] && how != COLD)
		small = open_in(NR_TREES, last, &small_row);
	for (unsigned int t = 0; t < NR_TREES; t++) {
		if (e[t])
			heads[t] = trees[t].ops->head(e[t]);
	}
	if (how == BESIDE) {
		beside->wanted = 0;
		while (!e[beside->wanted])
			beside->wanted++;
		beside->written = NR_TREES;
		child = write_beside(e, n);
	}
	for (; kept < turns && tried < MOST_TRIES * turns; tried++) {
		unsigned int order[NR_TREES];
		int good = 1;

		/* A time slice of our own. */
		sched_yield();

		for (unsigned int i = 0; i < NR_TREES; i++) {
			unsigned int j = random_below(i + 1);

			order[i] = order[j];
			order[j] = i;
		}
		for (unsigned int i = 0; i < NR_TREES; i++) {
			unsigned int t = order[i];
			struct batch b;

			if (!e[t])
				continue;
			if (child)
				wait_for_beside(child, t);
			good &= run_batch(t, e[t], n, how == COLD, &b);
			ticks[t][kept] = b.ticks;
			for (unsigned int c = 0; c < nr_counters; c++)
				counts_of[t][c][kept] = b.count[c];
		}
		if (small) {
			struct batch b;

			good &= run_batch(last, small, batch_of(&small_row), 0, &b);
			good &= run_copies(row, n, &copied[kept]);
			copied[kept] += b.ticks;
		}
		kept += good;
	}
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	for (unsigned int t = 0; t < NR_TREES; t++)
		if (e[t])
			check(t, row, e[t], heads[t], n * tried);
	if (kept < 10)
		die("%s: only %u of %u turns weren't interrupted", row->name, kept, tried);
	for (unsigned int t = 0; t < NR_TREES; t++) {
		unsigned int other = other_of(t, with_former);

		if (!e[t])
			continue;
		printf("row %s%s %s %u", how_names[how], row->name, trees[t].name, kept);
		if (other < NR_TREES && e[other]) {
			for (unsigned int i = 0; i < kept; i++)
				ratio[i] = ticks[t][i] / ticks[other][i];
			median(ratio, kept, &mid, &low, &high);
			printf(" %.4f %.4f %.4f", mid, low, high);
		} else {
			printf(" - - -");
		}
		memcpy(ratio, ticks[t], kept * sizeof(*ratio));
		median(ratio, kept, &mid, &low, &high);
		printf(" %.2f", mid);
		for (unsigned int c = 0; c < NR_COUNTERS; c++) {
			if (c < nr_counters) {
				median(counts_of[t][c], kept, &mid, &low, &high);
				printf(" %.2f", mid);
			} else {
				printf(" -");
			}
		}
		printf("\n");
	}
	if (small) {
		for (unsigned int i = 0; i < kept; i++)
			ratio[i] = ticks[last][i] / copied[i];
		median(ratio, kept, &mid, &low, &high);
		printf("copy %s %u %.4f %.4f %.4f", row->name, kept, mid, low, high);
		median(copied, kept, &mid, &low, &high);
		printf(" %.2f\n", mid);
	}
}

static void measure_all(unsigned int turns, const char *only, int with_former, int all_cold)
{
	open_counters();
	measure_empty();
	printf("counters %u\nempty %.0f\n", nr_counters, empty);
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		if (only && !strstr(rows[i].name, only))
			continue;
		int usual = strstr(rows[i].name, "readonly_64K") && rows[i].bytes <= 400;

		measure_row(&rows[i], turns, HOT, with_former);
		if (usual || all_cold)
			measure_row(&rows[i], turns, COLD, with_former);
		if (usual && other_cpu >= 0)
			measure_row(&rows[i], turns, BESIDE, with_former);
	}
}

int main(int argc, char **argv)
{
	const char *without = NULL, *only_tree = NULL, *only_row = NULL;
	unsigned int turns = 1000;
	int counting = 0, with_former = 0, all_cold = 0, opt, cpu;
	cpu_set_t cpus;

	while ((opt = getopt(argc, argv, "acn:pr:s:t:w:")) != -1) {
		switch (opt) {
		case 'a':
			all_cold = 1;
			break;
		case 'c':
			counting = 1;
			break;
		case 'n':
			turns = atoi(optarg);
			break;
		case 'p':
			with_former = 1;
			break;
		case 'r':
			only_row = optarg;
			break;
		case 's':
			random_state ^= strtoull(optarg, NULL, 0) * 0x9e3779b97f4a7c15ull;
			break;
		case 't':
			only_tree = optarg;
			break;
		case 'w':
			without = optarg;
			break;
		default:
			die("usage: native [-a] [-c] [-n turns] [-p] [-r row] [-s seed] [-t tree] [-w feature]");
		}
	}
	if (turns < 10 || turns > MOST_TURNS)
		die("turns are from 10 to %u", MOST_TURNS);
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		die("sched_getaffinity: %s", strerror(errno));
	cpu = sched_getcpu();
	CPU_CLR(cpu, &cpus);
	for (int i = 0; i < CPU_SETSIZE && other_cpu < 0; i++) {
		if (CPU_ISSET(i, &cpus))
			other_cpu = i;
	}
	go_to_cpu(cpu);
	beside = mmap(NULL, sizeof(*beside), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (beside == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	setvbuf(stdout, NULL, _IOLBF, 0);
	handle_signals();
	map_memory();
	boot(without);
	if (counting)
		count(only_tree, only_row);
	else
		measure_all(turns, only_row, with_former, all_cold);
	return 0;
}
