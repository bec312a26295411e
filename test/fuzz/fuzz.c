// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls to all that has to do with perf's ring buffers, by processes of three users.
 *
 *	fuzz [-s seed] [-t seconds] [-e epoch]
 *
 * Each worker has two threads that share events, mappings and trigger sets. It forks, executes
 * itself now and then, and ends after some hundred steps. That is an epoch; then another worker
 * takes its place. A step's random numbers follow from the seed, the worker, the epoch, the image
 * (how often the worker has executed itself), the thread and the number of the step, and from
 * nothing else. -e begins with another epoch than 0.
 *
 * What must hold of buffers is in checks.h. Beside that no call takes longer than two minutes, processes
 * leave no page pinned, users can lock as much memory in the end as they could before, and each call has
 * succeeded now and then, or the run has shown nothing.
 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "checks.h"

#define STEPS		400
#define CHILD_STEPS	30
#define HANG_NS		120000000000ULL
/* Of each CPU, for each user: a tenth of perf's usual allowance. */
#define MLOCK_KB	"64"
/* The status of a program that exec() has started. */
#define EXECUTED	17
/* The descriptor of what is shared, for the next image. any_fd() has smaller ones. */
#define SHARED_FD	100
/* The workers' users, in turn. */
static const uid_t users[] = { 0, 1001, 1002 };

struct shared *shared;
struct slot slots[SLOTS];
int worker_nr;
__thread int thread_nr;
__thread uint64_t at_step;
__thread bool in_child;
/* The first thread of a worker: the task of many events. */
static pid_t home_task;
static pthread_barrier_t home_known;

/* Its children map buffers, too. */
static bool children_map;

static struct wild wilds[8];
static bool wild_busy[ARRAY_SIZE(wilds)];
static struct fuzz_set sets[SETS];
static uint64_t seed, epoch;
static unsigned int image;
static int nr_cpus;
static size_t page_size;
/*
 * What breakpoints are for. Not in the page in which the data end: exec() itself clears the rest of
 * that one, and a SIGTRAP would find no handler yet.
 */
static volatile long watched[4] __attribute__((aligned(4096)));
static unsigned char *memory;
#define MEMORY_PAGES	64

__attribute__((noinline)) static void target(void)
{
	watched[3]++;
}

static void ignore(int signal)
{
	(void)signal;
}

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "error: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, ": %s\n", strerror(errno));
	va_end(args);
	exit(2);
}

/* The events that this worker has opened. */
bool identified;
static struct {
	uint64_t		id;
	struct perf_event_attr	attr;
} opened[THREADS * STEPS];
static unsigned int nr_opened;

const struct perf_event_attr *attr_of(uint64_t id)
{
	for (unsigned int i = 0; id && i < ARRAY_SIZE(opened); i++)
		if (__atomic_load_n(&opened[i].id, __ATOMIC_ACQUIRE) == id)
			return &opened[i].attr;
	return NULL;
}

static void remember(uint64_t id, const struct perf_event_attr *attr)
{
	unsigned int i = __atomic_fetch_add(&nr_opened, 1, __ATOMIC_RELAXED);

	/* A child that forks on has more of them than its worker may. */
	if (!id || i >= ARRAY_SIZE(opened))
		return;
	opened[i].attr = *attr;
	__atomic_store_n(&opened[i].id, id, __ATOMIC_RELEASE);
}

static struct slot *any_slot(struct random *r)
{
	return &slots[below(r, SLOTS)];
}

/*
 * Events can have a buffer in common, be in a group or in a set if CPU, task and clock are the same: a
 * third of the slots is for events of a CPU, one for those of a task, one for those of a task on a CPU.
 */
#define HOMES	3

static struct slot *neighbour(struct random *r, struct slot *s)
{
	unsigned int home = (s - slots) / (SLOTS / HOMES), other = below(r, SLOTS / HOMES);

	return one_in(r, 8) ? any_slot(r) : &slots[home * (SLOTS / HOMES) + other];
}

/* The descriptor of an event most of the time. */
static int any_fd(struct random *r)
{
	struct slot *s = any_slot(r);

	return one_in(r, 40) ? (int)below(r, 64) - 1 : s->fd;
}

/* One that is mapped, if there is any. */
static struct slot *mapped_slot(struct random *r)
{
	struct slot *s = any_slot(r);

	for (int i = 0; i < SLOTS && !s->mapped; i++)
		s = &slots[(s - slots + 1) % SLOTS];
	return s;
}

static pid_t any_pid(struct random *r)
{
	unsigned int worker = below(r, WORKERS), kind = below(r, 10);

	if (kind < 6)
		return 0;
	if (kind < 8)
		return -1;
	return shared->progress[worker][0].pid;
}

/*
 * Attributes
 */

static void random_event(struct random *r, struct perf_event_attr *attr)
{
	static const unsigned int software[] = {
		PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
		PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_CONTEXT_SWITCHES,
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
		PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_DUMMY, PERF_COUNT_SW_DUMMY,
		PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CGROUP_SWITCHES,
	};
	unsigned int kind = below(r, 10), which = below(r, 16);
	uint64_t period = !one_in(r, 3) ? 1 : 1 + below(r, one_in(r, 2) ? 20 : 2000);
	bool frequency = one_in(r, 12);

	attr->sample_period = period;
	if (kind < 6) {
		attr->type = PERF_TYPE_SOFTWARE;
		attr->config = software[which % ARRAY_SIZE(software)];
		/* Ten microseconds would leave a slow machine nothing else to do. */
		if (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK)
			attr->sample_period = 500000 + period * 10000;
	} else if (kind < 8 && shared->nr_tracepoints) {
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = shared->tracepoints[which % shared->nr_tracepoints];
	} else {
		attr->type = PERF_TYPE_BREAKPOINT;
		attr->bp_addr = (unsigned long)&watched[which % 3];
		attr->bp_type = which % 2 ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
		attr->bp_len = HW_BREAKPOINT_LEN_8;
		if (one_in(r, 4)) {
			attr->bp_addr = (unsigned long)target;
			attr->bp_type = HW_BREAKPOINT_X;
			attr->bp_len = sizeof(long);
		}
	}
	if (frequency) {
		attr->freq = 1;
		attr->sample_freq = 1 + period % 500;
	}
	if (one_in(r, 15))
		attr->sample_period = 0;
}

static void random_sample_type(struct random *r, struct perf_event_attr *attr)
{
	static const uint64_t often = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
		PERF_SAMPLE_ADDR | PERF_SAMPLE_READ | PERF_SAMPLE_ID | PERF_SAMPLE_CPU |
		PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW |
		PERF_SAMPLE_IDENTIFIER;
	static const uint64_t rare = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
		PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
		PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR |
		PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	/* Without DS, ES, FS and GS, which this kernel refuses. */
	static const uint64_t registers = 0xff0fff;

	attr->sample_type = next(r) & often;
	attr->sample_type |= next(r) & next(r) & rare;
	if (one_in(r, 3))
		attr->sample_type &= often;
	if (one_in(r, 100))
		attr->sample_type = next(r);
	if (identified)
		attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
	attr->sample_regs_user = next(r) & registers;
	attr->sample_regs_intr = next(r) & registers;
	attr->sample_stack_user = below(r, one_in(r, 3) ? 65536 : 1024) & ~7U;
	attr->sample_max_stack = below(r, 3) ? 0 : below(r, 128);
	/* Callchains without it come as well. */
	attr->exclude_callchain_kernel = one_in(r, 4);
	attr->exclude_callchain_user = one_in(r, 4);
}

static void random_attr(struct random *r, struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->size = sizeof(*attr);
	random_event(r, attr);
	random_sample_type(r, attr);
	attr->read_format = next(r) & 31;
	if (one_in(r, 2))
		attr->read_format &= ~PERF_FORMAT_GROUP;
	attr->disabled = one_in(r, 4);
	attr->inherit = one_in(r, 3);
	attr->pinned = one_in(r, 20);
	attr->exclude_user = one_in(r, 20);
	attr->exclude_kernel = one_in(r, 2);
	attr->mmap = one_in(r, 4);
	attr->comm = one_in(r, 4);
	attr->inherit_stat = one_in(r, 4);
	attr->enable_on_exec = one_in(r, 8);
	attr->task = one_in(r, 3);
	attr->watermark = one_in(r, 2);
	attr->mmap_data = one_in(r, 8);
	attr->sample_id_all = one_in(r, 2);
	attr->mmap2 = one_in(r, 6);
	attr->comm_exec = one_in(r, 6);
	attr->use_clockid = one_in(r, 3);
	attr->clockid = one_in(r, 2) ? CLOCK_MONOTONIC : CLOCK_REALTIME;
	attr->context_switch = one_in(r, 4);
	attr->write_backward = one_in(r, 8) ? 0 : below(r, 4) > 0;
	attr->namespaces = one_in(r, 10);
	attr->ksymbol = one_in(r, 10);
	attr->bpf_event = one_in(r, 10);
	attr->cgroup = one_in(r, 10);
	attr->text_poke = one_in(r, 20);
	attr->build_id = one_in(r, 10);
	attr->inherit_thread = one_in(r, 10);
	/* What many kernels refuse is left out of most. */
	if (!one_in(r, 5)) {
		attr->namespaces = attr->ksymbol = attr->bpf_event = attr->text_poke = 0;
		attr->inherit_thread &= attr->inherit;
		if (attr->inherit) {
			attr->read_format &= ~PERF_FORMAT_GROUP;
			attr->sample_type |= PERF_SAMPLE_TID;
		}
		if (attr->mmap2 || attr->build_id)
			attr->mmap = 1;
	}
	attr->remove_on_exec = one_in(r, 6) && !attr->enable_on_exec;
	attr->wakeup_watermark = one_in(r, 3) ? ~0U : below(r, 20000);
	/*
	 * The handler of SIGTRAP would make more of what a tracepoint or an instruction traps, for
	 * ever. A watchpoint is out of its way.
	 */
	if (attr->type == PERF_TYPE_BREAKPOINT && attr->bp_type != HW_BREAKPOINT_X && one_in(r, 4)) {
		attr->remove_on_exec = 1;
		attr->enable_on_exec = 0;
		attr->sigtrap = 1;
		attr->sig_data = next(r);
	}
}

/*
 * Steps
 */

static size_t random_pages(struct random *r)
{
	unsigned int order = below(r, 6), other = below(r, 6);

	return one_in(r, 20) ? below(r, 9) : 1UL << (order < other ? order : other);
}

/* Takes what the slot is for. Backward or not is the same for most of it in an epoch. */
static void at_home(struct slot *s, struct perf_event_attr *attr, pid_t *pid, int *cpu)
{
	unsigned int home = (s - slots) / (SLOTS / HOMES);
	struct random r = random_of(seed, worker_nr, epoch, 2000 + home);

	attr->write_backward = !one_in(&r, 4);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	*cpu = below(&r, nr_cpus);
	*pid = home_task;
	if (home == 0)
		*pid = -1;
	else if (home == 1)
		*cpu = -1;
}

static bool may_map(void)
{
	return !in_child || children_map;
}

static bool map_slot(struct slot *s, size_t pages, bool writable)
{
	if (!may_map() || perf_overwrite_map(&s->ow, s->fd, pages, writable))
		return false;
	s->mapped = true;
	s->writable = writable;
	s->head = perf_overwrite_head(&s->ow);
	return true;
}

static bool step_open(struct random *r)
{
	unsigned long flags = PERF_FLAG_FD_CLOEXEC;
	struct slot *s = any_slot(r);
	struct perf_event_attr attr;
	int fd, group = -1, cpu = one_in(r, 3) ? (int)below(r, nr_cpus + 1) : -1;
	pid_t pid = any_pid(r);
	bool scribble = one_in(r, 6), fresh = one_in(r, 3), map = one_in(r, 2);
	bool writable = one_in(r, 3);
	size_t pages = random_pages(r);

	random_attr(r, &attr);
	if (!one_in(r, 6))
		at_home(s, &attr, &pid, &cpu);
	if (one_in(r, 6))
		group = neighbour(r, s)->fd;
	if (one_in(r, 5)) {
		flags |= PERF_FLAG_FD_OUTPUT;
		group = neighbour(r, s)->fd;
	}
	if (one_in(r, 5))
		flags |= PERF_FLAG_FD_NO_GROUP;
	if (one_in(r, 3))
		flags &= ~PERF_FLAG_FD_CLOEXEC;
	if (pid == -1 && cpu == -1)
		cpu = below(r, nr_cpus);
	if (!attr.use_clockid)
		attr.clockid = 0;
	/*
	 * Kernels without a mend have events use the memory of a leader that is gone if its CPU had been
	 * offline before they came. An event that only writes to another one's buffer joins no group.
	 */
	if (pid == -1)
		flags |= PERF_FLAG_FD_NO_GROUP;
	/* Not all at once, and not much at a time of what users may not. */
	if (getuid() && !one_in(r, 8))
		attr.exclude_kernel = 1;
	if (!slot_take(s))
		return false;
	if (s->fd >= 0 && !fresh)
		goto busy;
	if (s->fd >= 0 && s->mapped)
		goto busy;
	fd = syscall(__NR_perf_event_open, &attr, pid, cpu, group, flags);
	if (fd < 0)
		goto busy;
	if (s->fd >= 0)
		close(s->fd);
	if (s->mapped) {
		perf_overwrite_unmap(&s->ow);
		s->mapped = false;
	}
	s->fd = fd;
	s->attr = attr;
	s->foreign = false;
	s->of_cpu = pid == -1;
	s->scribble = scribble;
	s->id = 0;
	ioctl(fd, PERF_EVENT_IOC_ID, &s->id);
	remember(s->id, &attr);
	if (group >= 0 && (flags & PERF_FLAG_FD_OUTPUT))
		count(COUNT_DIRECTED, 1);
	if (map)
		map_slot(s, pages, writable);
	slot_give(s);
	return true;
busy:
	slot_give(s);
	return false;
}

static bool step_close(struct random *r)
{
	struct slot *s = any_slot(r);
	bool done;

	if (!slot_take(s))
		return false;
	done = s->fd >= 0 && !close(s->fd);
	s->fd = -1;
	slot_give(s);
	return done;
}

static bool step_map(struct random *r)
{
	size_t pages = random_pages(r);
	bool writable = one_in(r, 4), done = false;
	struct slot *s = any_slot(r);
	struct perf_overwrite ow;

	if (!slot_take(s))
		return false;
	if (s->fd >= 0 && !s->mapped) {
		done = map_slot(s, pages, writable);
	} else if (s->fd >= 0 && s->mapped && !perf_overwrite_map(&ow, s->fd, pages, writable)) {
		done = true;
		if (ow.size != s->ow.size)
			violation("a buffer of %zu bytes was mapped with %zu", s->ow.size, ow.size);
		if (ow.size && writable && fdinfo(s->fd, "output-overwrite:") == 1)
			violation("an overwritable buffer got a writable mapping");
		perf_overwrite_unmap(&ow);
	}
	slot_give(s);
	return done;
}

static bool step_unmap(struct random *r)
{
	struct slot *s = any_slot(r);
	bool done = false;

	if (!slot_take(s))
		return false;
	if (s->mapped) {
		done = !perf_overwrite_unmap(&s->ow);
		s->mapped = false;
	}
	slot_give(s);
	return done;
}

/* Mappings that nobody reads come and go while others do something with the event. */
static bool step_wild_map(struct random *r)
{
	unsigned int i = below(r, ARRAY_SIZE(wilds));
	struct wild *w = &wilds[i];
	size_t size = (1 + random_pages(r)) * page_size;
	int prot = one_in(r, 3) ? PROT_READ | PROT_WRITE : PROT_READ, fd = any_fd(r);
	struct slot *s = mapped_slot(r);
	int type = one_in(r, 20) ? MAP_PRIVATE : MAP_SHARED;
	off_t offset = one_in(r, 20) ? (off_t)below(r, 20) * page_size : 0;
	bool done = false;

	if (!may_map() || __atomic_exchange_n(&wild_busy[i], true, __ATOMIC_ACQUIRE))
		return false;
	/* Another mapping of what is mapped, often. */
	if (one_in(r, 2) && s->mapped) {
		fd = s->fd;
		size = s->ow.size + page_size;
	}
	if (!w->area) {
		void *area = mmap(NULL, size, prot, type, fd, offset);

		if (area != MAP_FAILED) {
			w->area = area;
			w->size = size;
			done = true;
		}
	}
	__atomic_store_n(&wild_busy[i], false, __ATOMIC_RELEASE);
	return done;
}

/*
 * A mapping of perf's keeps its size and stays in one piece, as perf_mmap_close() gives back what
 * its VMA is long: all bases forbid to split it (may_split) and to let it grow (VM_DONTEXPAND).
 * One of several pages can be read: else mprotect() would have nothing to do, and succeed.
 */
static void change_mapping(struct random *r, void *area, size_t size)
{
	static const char *const kinds[] = {
		"munmap() of a page", "munmap() of the beginning", "mprotect() of the beginning",
		"a smaller size", "a move of the beginning", "a larger size", "a second mapping",
		"a move that leaves the mapping",
	};
	size_t pages = size / page_size, larger = size + (1 + below(r, 8)) * page_size;
	size_t part = pages > 1 ? (1 + below(r, pages - 1)) * page_size : 0;
	unsigned int kind = part ? below(r, 8) : 5 + below(r, 3);
	int flags = one_in(r, 2) ? MREMAP_MAYMOVE : 0, expected = EINVAL;
	bool refused = false;
	void *to;

	switch (kind) {
	case 0:
		refused = munmap((char *)area + part, page_size);
		break;
	case 1:
		refused = munmap(area, part);
		break;
	case 2:
		refused = mprotect(area, part, PROT_NONE);
		break;
	case 3:
		refused = mremap(area, size, part, flags) == MAP_FAILED;
		break;
	case 4:
		/* Unmapped before the move is refused: another thread may map something there. */
		to = mmap(NULL, part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (to == MAP_FAILED)
			return;
		refused = mremap(area, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED;
		break;
	case 5:
		expected = EFAULT;
		refused = mremap(area, size, larger, flags) == MAP_FAILED;
		break;
	case 6:
		expected = EFAULT;
		refused = mremap(area, 0, size, MREMAP_MAYMOVE) == MAP_FAILED;
		break;
	default:
		refused = mremap(area, size, size, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == MAP_FAILED;
	}
	if (!refused)
		violation("%s was possible, at %zu in a mapping of %zu bytes", kinds[kind], part,
			  size);
	else if (errno != expected && errno != ENOMEM)
		violation("%s, at %zu in a mapping of %zu bytes: %s", kinds[kind], part, size,
			  strerror(errno));
	else
		count(COUNT_REFUSED, 1);
}

static bool step_wild_unmap(struct random *r)
{
	unsigned int i = below(r, ARRAY_SIZE(wilds)), kind = below(r, 6);
	struct wild *w = &wilds[i];
	bool done = false;

	if (__atomic_exchange_n(&wild_busy[i], true, __ATOMIC_ACQUIRE))
		return false;
	if (!w->area)
		goto out;
	switch (kind) {
	case 0:
	case 1:
		change_mapping(r, w->area, w->size);
		break;
	case 2:
		done = !mprotect(w->area, page_size, PROT_NONE);
		break;
	case 3:
		done = !madvise(w->area, w->size, below(r, 30));
		break;
	default:
		done = !munmap(w->area, w->size);
		w->area = NULL;
	}
out:
	__atomic_store_n(&wild_busy[i], false, __ATOMIC_RELEASE);
	return done;
}

static bool step_mprotect(struct random *r)
{
	struct slot *s = any_slot(r);
	unsigned int kind = below(r, 3);
	bool done = false;
	size_t size;

	if (!slot_take(s))
		return false;
	if (!s->mapped)
		goto out;
	size = s->ow.size + page_size;
	if (kind == 0) {
		done = !mprotect(s->ow.meta, size, PROT_NONE);
		if (mprotect(s->ow.meta, size, PROT_READ))
			violation("a mapping can't be made readable again: %s", strerror(errno));
		s->writable = false;
	} else if (kind == 1) {
		done = !mprotect(s->ow.meta, size, PROT_READ);
		s->writable = false;
	} else if (!mprotect(s->ow.meta, size, PROT_READ | PROT_WRITE)) {
		done = true;
		/* Without data there is nothing to protect. */
		if (s->ow.size && s->fd >= 0 && fdinfo(s->fd, "output-overwrite:") == 1)
			violation("the mapping of an overwritable buffer was made writable");
		s->writable = true;
		count(COUNT_WRITABLE, 1);
	}
out:
	slot_give(s);
	return done;
}

static bool step_mremap(struct random *r)
{
	struct slot *s = any_slot(r);
	bool done = false, change = one_in(r, 3), elsewhere = one_in(r, 2);
	size_t size;
	void *area, *to;

	if (!slot_take(s))
		return false;
	if (!s->mapped)
		goto out;
	size = s->ow.size + page_size;
	if (change) {
		change_mapping(r, s->ow.meta, size);
		goto out;
	}
	if (elsewhere) {
		to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (to == MAP_FAILED)
			goto out;
		area = mremap(s->ow.meta, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
		if (area == MAP_FAILED)
			munmap(to, size);
	} else {
		area = mremap(s->ow.meta, size, size, MREMAP_MAYMOVE);
	}
	if (area != MAP_FAILED) {
		done = true;
		s->ow.meta = area;
		s->ow.data = (unsigned char *)area + page_size;
	}
out:
	slot_give(s);
	return done;
}

static bool step_pause(struct random *r)
{
	static const unsigned long arguments[] = { 0, 0, 0, 1, 1, 2, 2, 3, ~0UL, 1UL << 32, 1UL << 31 };
	unsigned long argument = arguments[below(r, ARRAY_SIZE(arguments))];

	if (one_in(r, 20))
		argument = next(r);
	return !pause_output(any_fd(r), argument);
}

static bool step_check(struct random *r)
{
	struct slot *s = mapped_slot(r);

	if (!slot_take(s))
		return false;
	check_frozen(s, r);
	slot_give(s);
	return true;
}

/* What is read of a running buffer may be anything, but ends and stays in the buffer. */
static bool step_walk(struct random *r)
{
	static __thread __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
	static __thread unsigned char *copy;
	struct perf_overwrite_walk walk;
	struct slot *s = any_slot(r);
	bool done = false, scribble = one_in(r, 2);

	if (!copy)
		copy = malloc(MAX_PAGES * page_size);
	if (!slot_take(s))
		return false;
	if (s->mapped && s->ow.size) {
		check_head(s);
		perf_overwrite_begin(&walk, &s->ow);
		while (perf_overwrite_next(&walk, space))
			;
		if (perf_overwrite_begin_running(&walk, &s->ow, copy, s->ow.size / 2))
			while (perf_overwrite_next(&walk, space))
				;
		if (s->scribble && s->writable && scribble) {
			/* For the mappings of events that were directed here: see scribbled(). */
			s->ow.meta->__reserved[0] = 1;
			__atomic_thread_fence(__ATOMIC_RELEASE);
			s->ow.meta->data_tail = next(r);
			s->ow.meta->data_head = next(r);
		}
		done = true;
	}
	slot_give(s);
	return done;
}

static bool step_set_output(struct random *r)
{
	struct slot *to = one_in(r, 4) ? any_slot(r) : mapped_slot(r), *s = neighbour(r, to);
	int fd;

	/* One that is mapped stays where it is. */
	for (int i = 0; i < SLOTS / HOMES && s->mapped; i++)
		s = neighbour(r, to);
	fd = one_in(r, 20) ? any_fd(r) : s->fd;

	return !ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, one_in(r, 5) ? -1 : to->fd);
}

static unsigned long group_flag(struct random *r)
{
	return one_in(r, 4) ? PERF_IOC_FLAG_GROUP : 0;
}

static bool step_reset(struct random *r)
{
	return !ioctl(any_fd(r), PERF_EVENT_IOC_RESET, group_flag(r));
}

static bool step_enable(struct random *r)
{
	return !ioctl(any_fd(r), PERF_EVENT_IOC_ENABLE, group_flag(r));
}

static bool step_disable(struct random *r)
{
	return !ioctl(any_fd(r), PERF_EVENT_IOC_DISABLE, group_flag(r));
}

static bool step_refresh(struct random *r)
{
	return !ioctl(any_fd(r), PERF_EVENT_IOC_REFRESH, below(r, 100));
}

static bool step_period(struct random *r)
{
	__u64 period = 1 + below(r, 5000);
	struct slot *s = any_slot(r);

	if (s->attr.config <= PERF_COUNT_SW_TASK_CLOCK && s->attr.type == PERF_TYPE_SOFTWARE)
		period = 500000 + period * 1000;
	return !ioctl(s->fd, PERF_EVENT_IOC_PERIOD, &period);
}

static bool step_filter(struct random *r)
{
	static const char *const filters[] = {
		"common_pid > 1", "common_pid != 0 && common_flags == 0", "id == 39", "prev_pid == 1",
		"common_pid == 0", "0", "nonsense", "",
	};

	return !ioctl(any_fd(r), PERF_EVENT_IOC_SET_FILTER, filters[below(r, ARRAY_SIZE(filters))]);
}

/* The one of shared->programs[] that is for tracepoints. */
#define TRACEPOINT_PROGRAM	2

/*
 * An event of a CPU gets no program for tracepoints, as 6.12 and 6.1 may deadlock then. Another event
 * that ends waits for RCU Tasks Trace, and holds bpf_event_mutex. The call here waits for that mutex,
 * and holds the one of the CPU's context. If the CPU goes offline it waits for the latter, and RCU
 * Tasks Trace for the CPU.
 */
static bool step_bpf(struct random *r)
{
	unsigned int program = below(r, ARRAY_SIZE(shared->programs));
	struct slot *s = any_slot(r);
	bool done;

	if (!slot_take(s))
		return false;
	done = !(s->of_cpu && program == TRACEPOINT_PROGRAM) &&
	       !ioctl(s->fd, PERF_EVENT_IOC_SET_BPF, shared->programs[program]);
	slot_give(s);
	return done;
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(__NR_bpf, cmd, attr, sizeof(*attr));
}

static bool step_bpf_map(struct random *r)
{
	__u32 key = below(r, nr_cpus), fd = any_fd(r);
	union bpf_attr attr = {};

	attr.map_fd = shared->output_map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&fd;
	return !bpf(one_in(r, 4) ? BPF_MAP_DELETE_ELEM : BPF_MAP_UPDATE_ELEM, &attr);
}

static bool step_modify(struct random *r)
{
	struct perf_event_attr attr;
	struct slot *s = any_slot(r);

	attr = s->attr;
	attr.size = sizeof(attr);
	attr.bp_addr = (unsigned long)&watched[below(r, 3)];
	attr.disabled = one_in(r, 3);
	return !ioctl(s->fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
}

static bool step_read(struct random *r)
{
	struct slot *s = any_slot(r);
	__u64 values[256];
	ssize_t length;
	size_t size = one_in(r, 8) ? below(r, 64) : sizeof(values);
	bool done = false;

	if (!slot_take(s))
		return false;
	if (s->fd >= 0) {
		length = read(s->fd, values, size);
		done = length >= 0;
		if (done)
			check_values(s, values, length);
	}
	slot_give(s);
	return done;
}

static bool step_poll(struct random *r)
{
	struct pollfd polls[3];

	for (unsigned int i = 0; i < ARRAY_SIZE(polls); i++) {
		polls[i].fd = i < 2 ? any_fd(r) : sets[below(r, SETS)].fd;
		polls[i].events = POLLIN | POLLHUP;
	}
	return poll(polls, ARRAY_SIZE(polls), below(r, 4)) > 0;
}

static bool step_signals(struct random *r)
{
	int fd = any_slot(r)->fd;

	fcntl(fd, F_SETOWN, getpid());
	/* It may be the number of a set by now, which must go on not to block. */
	return !fcntl(fd, F_SETFL, O_NONBLOCK | (one_in(r, 2) ? O_ASYNC : 0));
}

static bool step_fdinfo(struct random *r)
{
	int fd = any_fd(r);

	return fd >= 0 && fdinfo(fd, "output-pages:") >= 0;
}

static bool step_query(struct random *r)
{
	struct { __u32 ids_len, prog_cnt, ids[4]; } query = { .ids_len = 4 };
	__u64 id;
	int fd = any_fd(r);

	ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, &query);
	return !ioctl(fd, PERF_EVENT_IOC_ID, &id);
}

static bool step_affinity(struct random *r)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(below(r, nr_cpus), &cpus);
	if (one_in(r, 4))
		memset(&cpus, 0xff, sizeof(cpus));
	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

static bool step_prctl(struct random *r)
{
	return !prctl(one_in(r, 3) ? PR_TASK_PERF_EVENTS_DISABLE : PR_TASK_PERF_EVENTS_ENABLE);
}

/* What events count. */
static void work(struct random *r)
{
	unsigned int kind = below(r, 6), times = 1 + below(r, 200);
	char name[16];

	for (unsigned int i = 0; i < times; i++) {
		switch (kind) {
		case 0:
			*(volatile unsigned char *)(memory + below(r, MEMORY_PAGES) * page_size) = i;
			break;
		case 1:
			syscall(__NR_getppid);
			break;
		case 2:
			sched_yield();
			break;
		case 3:
			watched[i % 3] += i;
			target();
			break;
		case 4:
			madvise(memory, MEMORY_PAGES * page_size, MADV_DONTNEED);
			memory[0] = 1;
			break;
		default:
			snprintf(name, sizeof(name), "fuzz-%u", i % 100);
			prctl(PR_SET_NAME, name);
			if (!(i % 16))
				usleep(50);
		}
	}
}

static bool step_work(struct random *r)
{
	work(r);
	return true;
}

/*
 * Trigger sets
 */

static bool step_set(struct random *r)
{
	struct perf_trigger_attr attr = {
		.flags = one_in(r, 2) ? PERF_TRIGGER_AT_ONCE : 0,
	};
	struct fuzz_set *set = &sets[below(r, SETS)];
	unsigned int complete = one_in(r, 2) ? 0 : 1 + below(r, 5);
	int fd = one_in(r, 4) ? any_fd(r) : mapped_slot(r)->fd, new;

	if (!attr.flags) {
		attr.depth_ns = 1 + below(r, 20000000);
		attr.depth_bytes = one_in(r, 2) ? below(r, 20000) : 0;
	}
	if (one_in(r, 3))
		attr.holdoff_ns = below(r, 3000000);
	if (one_in(r, 4))
		attr.holdoff_bytes = below(r, 10000);
	if (one_in(r, 20))
		attr.depth_ns = next(r);
	if (one_in(r, 20))
		attr.flags = below(r, 8);
	if (set->fd >= 0 && !one_in(r, 4))
		return false;
	new = perf_trigger_set(fd, &attr);
	if (new < 0)
		return false;
	fcntl(new, F_SETFL, O_NONBLOCK);
	fd = __atomic_exchange_n(&set->fd, new, __ATOMIC_SEQ_CST);
	set->generation = 0;
	if (fd >= 0)
		close(fd);
	for (unsigned int i = 0; i < complete; i++)
		perf_trigger_join(new, mapped_slot(r)->fd);
	if (complete) {
		perf_trigger_add(new, any_fd(r));
		perf_trigger_add(new, any_fd(r));
		perf_trigger_arm(new, &set->generation);
	}
	return true;
}

static bool step_join(struct random *r)
{
	int set = sets[below(r, SETS)].fd;

	return !perf_trigger_join(set, one_in(r, 4) ? any_fd(r) : mapped_slot(r)->fd);
}

static bool step_add(struct random *r)
{
	int set = sets[below(r, SETS)].fd;

	return !perf_trigger_add(set, any_fd(r));
}

static bool step_arm(struct random *r)
{
	struct fuzz_set *set = &sets[below(r, SETS)];
	__u64 generation = one_in(r, 10) ? below(r, 4) : set->generation;

	if (perf_trigger_arm(set->fd, &generation))
		return false;
	set->generation = generation;
	return true;
}

static bool step_fire(struct random *r)
{
	return !perf_trigger_fire(sets[below(r, SETS)].fd);
}

static bool step_set_read(struct random *r)
{
	struct fuzz_set *set = &sets[below(r, SETS)];
	char buffer[512];
	int fd = set->fd;

	if (fd < 0)
		return false;
	if (one_in(r, 4))
		return read(fd, buffer, below(r, sizeof(buffer))) > 0;
	if (one_in(r, 3))
		perf_trigger_fire(fd);
	poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, below(r, 20));
	if (fcntl(fd, F_GETFL) & O_NONBLOCK)
		check_report(fd);
	return true;
}

static bool step_set_close(struct random *r)
{
	int fd = __atomic_exchange_n(&sets[below(r, SETS)].fd, -1, __ATOMIC_SEQ_CST);

	return fd >= 0 && !close(fd);
}

/*
 * Processes
 */

static void run_steps(struct random *r, unsigned int steps);

/* A set that may never fire: the descriptor is of this process alone, as whether it blocks is of all. */
static void wait_for_set(struct random *r)
{
	struct perf_trigger_attr attr = { .flags = PERF_TRIGGER_AT_ONCE };
	int event = any_fd(r), set = perf_trigger_set(event, &attr);
	char buffer[512];
	__u64 generation = 0;

	if (set < 0)
		return;
	for (int i = 0; i < 4; i++)
		perf_trigger_join(set, any_fd(r));
	perf_trigger_add(set, event);
	if (!perf_trigger_arm(set, &generation) && read(set, buffer, sizeof(buffer)) < 0)
		violation("a read() of a set that is armed: %s", strerror(errno));
	close(set);
}

/* Which events a child or the next image has. Neither has mappings. */
static void find_slots(void)
{
	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		__u64 id = 0;

		/*
		 * The other thread was changing it: leave it alone. Or it did between the copy of
		 * the descriptors and that of the memory.
		 */
		if (s->busy || ioctl(s->fd, PERF_EVENT_IOC_ID, &id) || id != s->id)
			s->fd = -1;
		s->busy = false;
		s->mapped = false;
	}
}

/* A descriptor's owner needn't be its opener. */
static void child(struct random *r, pid_t parent)
{
	unsigned int user = below(r, ARRAY_SIZE(users));

	in_child = true;
	find_slots();
	for (struct slot *s = slots; s < slots + SLOTS; s++)
		s->foreign = true;
	for (int i = 0; i < SETS; i++)
		if (fcntl(sets[i].fd, F_GETFD) < 0)
			sets[i].fd = -1;
	memset(wild_busy, 0, sizeof(wild_busy));
	memset(wilds, 0, sizeof(wilds));
	if (one_in(r, 2) && setuid(users[user]))
		user = 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have ended before the signal was asked for. */
	if (getppid() != parent)
		_exit(0);
	if (one_in(r, 6)) {
		char *const arguments[] = { "fuzz", "-x", NULL };

		execv("/proc/self/exe", arguments);
		_exit(1);
	}
	/* Nobody but the parent ends this one. */
	if (one_in(r, 6))
		wait_for_set(r);
	run_steps(r, 1 + below(r, CHILD_STEPS));
	_exit(0);
}

static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
	       signal == SIGABRT;
}

static bool run_child(struct random *r)
{
	bool kills = one_in(r, 3);
	unsigned int delay = below(r, 20000);
	struct random of_child = { next(r) };
	pid_t pid, parent = getpid();
	int status;

	pid = fork();
	if (pid < 0)
		return false;
	if (!pid)
		child(&of_child, parent);
	if (!kills) {
		/* Unless it waits for a set that nobody fires. */
		for (int i = 0; i < 400; i++) {
			if (waitpid(pid, &status, WNOHANG) == pid) {
				if (WIFEXITED(status) && WEXITSTATUS(status) == EXECUTED)
					count(COUNT_EXECUTED, 1);
				if (WIFSIGNALED(status) && is_fault(WTERMSIG(status)))
					violation("a child ended by signal %d", WTERMSIG(status));
				return true;
			}
			usleep(5000);
		}
	} else {
		usleep(delay);
	}
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		return false;
	__atomic_store_n(&shared->resuming[worker_nr][thread_nr][1], false, __ATOMIC_SEQ_CST);
	return true;
}

/* Read while there is a child, written by step_exec(). */
static pthread_rwlock_t children = PTHREAD_RWLOCK_INITIALIZER;

static bool step_fork(struct random *r)
{
	bool done;

	if (in_child || pthread_rwlock_tryrdlock(&children))
		return false;
	done = run_child(r);
	pthread_rwlock_unlock(&children);
	return done;
}

/*
 * The other thread ends wherever it is, all mappings go, and many events. Not while there is a
 * child: it might resume a buffer, and the next image, which clears shared->resuming, wouldn't
 * know.
 */
static bool step_exec(struct random *r)
{
	char worker[16], name[32], number[16];
	char *const arguments[] = { "fuzz", "-w", worker, "-e", name, "-i", number, NULL };

	if (in_child || !one_in(r, 2) || pthread_rwlock_trywrlock(&children))
		return false;
	for (int i = 0; i < SLOTS; i++) {
		struct slot *kept = &shared->slots[worker_nr][i];

		*kept = (struct slot){ .fd = -1 };
		if (!slot_take(&slots[i]))
			continue;
		*kept = slots[i];
		kept->busy = false;
		slot_give(&slots[i]);
	}
	snprintf(worker, sizeof(worker), "%d", worker_nr);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)epoch);
	snprintf(number, sizeof(number), "%u", image + 1);
	/* The next image inherits no handler, and SIGIO would kill it; what is ignored stays ignored. */
	signal(SIGIO, SIG_IGN);
	execv("/proc/self/exe", arguments);
	signal(SIGIO, ignore);
	pthread_rwlock_unlock(&children);
	return false;
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) > 0;
	close(fd);
	return done;
}

static bool set_paranoid(const char *level)
{
	return write_file("/proc/sys/kernel/perf_event_paranoid", level);
}

/* Nothing that is checked in a run depends on what users may. */
static bool step_paranoid(struct random *r)
{
	static const char *const levels[] = { "-1", "-1", "-1", "-1", "0", "1", "2" };

	return set_paranoid(levels[below(r, ARRAY_SIZE(levels))]);
}

static const struct step {
	const char	*name;
	bool		(*run)(struct random *r);
	unsigned int	weight;
} all_steps[] = {
	{ "perf_event_open",	step_open,	40 },
	{ "mmap",		step_map,	24 },
	{ "check",		step_check,	20 },
	{ "work",		step_work,	24 },
	{ "pause",		step_pause,	12 },
	{ "set_output",		step_set_output, 14 },
	{ "close",		step_close,	6 },
	{ "munmap",		step_unmap,	6 },
	{ "wild mmap",		step_wild_map,	8 },
	{ "wild munmap",	step_wild_unmap, 8 },
	{ "mprotect",		step_mprotect,	4 },
	{ "mremap",		step_mremap,	4 },
	{ "walk",		step_walk,	6 },
	{ "reset",		step_reset,	2 },
	{ "enable",		step_enable,	6 },
	{ "disable",		step_disable,	3 },
	{ "refresh",		step_refresh,	3 },
	{ "period",		step_period,	3 },
	{ "set_filter",		step_filter,	4 },
	{ "set_bpf",		step_bpf,	6 },
	{ "bpf map",		step_bpf_map,	3 },
	{ "modify_attributes",	step_modify,	3 },
	{ "read",		step_read,	8 },
	{ "poll",		step_poll,	4 },
	{ "fasync",		step_signals,	2 },
	{ "fdinfo",		step_fdinfo,	3 },
	{ "query",		step_query,	2 },
	{ "affinity",		step_affinity,	4 },
	{ "prctl",		step_prctl,	2 },
	{ "trigger_set",	step_set,	8 },
	{ "join",		step_join,	14 },
	{ "add",		step_add,	12 },
	{ "arm",		step_arm,	8 },
	{ "fire",		step_fire,	3 },
	{ "read a set",		step_set_read,	8 },
	{ "close a set",	step_set_close,	2 },
	{ "fork",		step_fork,	4 },
	{ "exec",		step_exec,	1 },
	{ "perf_event_paranoid", step_paranoid,	1 },
};

static void run_step(const struct step *step, struct random *r)
{
	struct progress *p = &shared->progress[worker_nr][thread_nr];
	bool done;

	if (!in_child) {
		p->op = step->name;
		p->step = at_step;
		__atomic_store_n(&p->since, now_ns(), __ATOMIC_RELEASE);
	}
	__atomic_fetch_add(&shared->calls[step - all_steps], 1, __ATOMIC_RELAXED);
	done = step->run(r);
	if (done)
		__atomic_fetch_add(&shared->done[step - all_steps], 1, __ATOMIC_RELAXED);
	if (!in_child)
		__atomic_store_n(&p->since, 0, __ATOMIC_RELEASE);
}

static void run_steps(struct random *r, unsigned int steps)
{
	unsigned int all = 0, draw, i;

	for (i = 0; i < ARRAY_SIZE(all_steps); i++)
		all += all_steps[i].weight;
	for (unsigned int n = 0; n < steps && !shared->stop && !shared->failed; n++) {
		struct random this = { next(r) };

		if (!in_child)
			at_step = n;
		draw = below(&this, all);
		for (i = 0; draw >= all_steps[i].weight; i++)
			draw -= all_steps[i].weight;
		run_step(&all_steps[i], &this);
	}
}

static void *thread(void *argument)
{
	struct random r;

	thread_nr = (long)argument;
	shared->progress[worker_nr][thread_nr].epoch = epoch;
	shared->progress[worker_nr][thread_nr].image = image;
	if (!thread_nr)
		home_task = gettid();
	pthread_barrier_wait(&home_known);
	r = random_of(seed, worker_nr, epoch, thread_nr + THREADS * image);
	run_steps(&r, image ? STEPS / 2 : STEPS);
	return NULL;
}

static unsigned long pinned_kb(void)
{
	unsigned long pinned = ~0UL;
	char line[256];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "VmPin: %lu", &pinned);
	if (file)
		fclose(file);
	return pinned;
}

/* Goes on with what step_exec() has left. */
static void after_exec(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(all_steps); i++)
		if (all_steps[i].run == step_exec)
			__atomic_fetch_add(&shared->done[i], 1, __ATOMIC_RELAXED);
	/* Nobody else of this worker is left. */
	memset(shared->resuming[worker_nr], 0, sizeof(shared->resuming[worker_nr]));
	for (int t = 0; t < THREADS; t++)
		__atomic_store_n(&shared->progress[worker_nr][t].since, 0, __ATOMIC_RELEASE);
	memcpy(slots, shared->slots[worker_nr], sizeof(slots));
	for (struct slot *s = slots; s < slots + SLOTS; s++)
		count(COUNT_TORN, s->mapped);
	find_slots();
	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		if (s->fd < 0)
			continue;
		count(COUNT_KEPT, 1);
		remember(s->id, &s->attr);
	}
}

static void worker(uid_t user)
{
	pthread_t threads[THREADS];
	struct random r = random_of(seed, worker_nr, epoch, 1000);
	bool orderly = !one_in(&r, 4);
	unsigned long pinned;

	identified = one_in(&r, 2);
	children_map = one_in(&r, 2);
	signal(SIGTRAP, ignore);
	signal(SIGIO, ignore);
	memory = mmap(NULL, MEMORY_PAGES * page_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < SLOTS; i++)
		slots[i].fd = -1;
	for (int i = 0; i < SETS; i++)
		sets[i].fd = -1;
	if (image)
		after_exec();
	/* Half of the users' processes have nothing but perf's own allowance. */
	if (one_in(&r, 2))
		setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 });
	if (user && setuid(user))
		die("setuid");
	/* Another user would have it forgotten. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_barrier_init(&home_known, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i))
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* Or else all goes at once. */
	if (!orderly)
		_exit(0);
	/* All that is pinned is so by mappings, and these go now. */
	pinned = pinned_kb();
	for (struct slot *s = slots; s < slots + SLOTS; s++) {
		if (s->mapped)
			perf_overwrite_unmap(&s->ow);
		if (s->fd >= 0)
			close(s->fd);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(wilds); i++)
		if (wilds[i].area)
			munmap(wilds[i].area, wilds[i].size);
	/*
	 * What the first process that maps a buffer has pinned is given back to the one that
	 * unmaps it last, on stock, too.
	 */
	if (!children_map) {
		unsigned long left = pinned_kb();

		if (left)
			violation("%lu kB stay pinned after all mappings are gone", left);
		count(COUNT_PINNED, !!pinned);
	}
	_exit(0);
}

/* Has CPUs but the first go and come, until it is killed. */
static void hotplug(void)
{
	struct random r = random_of(seed, WORKERS, 0, 0);
	char path[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (nr_cpus > 1) {
		int cpu = 1 + below(&r, nr_cpus - 1);

		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
		for (const char *state = "0"; state; state = *state == '0' ? "1" : NULL) {
			int fd = open(path, O_WRONLY | O_CLOEXEC);

			if (fd < 0)
				_exit(0);
			if (write(fd, state, 1) == 1)
				count(COUNT_HOTPLUGS, 1);
			close(fd);
			usleep(200000 + below(&r, 3000000));
		}
	}
	_exit(0);
}

static void online_all(void)
{
	char path[64];
	int fd;

	for (int cpu = 1; cpu < nr_cpus; cpu++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			if (write(fd, "1", 1) != 1 && errno != EINVAL)
				fprintf(stderr, "CPU %d doesn't come back: %s\n", cpu, strerror(errno));
			close(fd);
		}
	}
}

/*
 * A process of each user lasts for the whole run, as the count of the memory that a user has locked goes
 * with the last of the user's processes. It says how many pages can be locked beyond RLIMIT_MEMLOCK.
 */
struct keeper {
	pid_t	pid;
	int	ask, answer;
	long	before;
};

static long lockable(void)
{
	static const size_t sizes[] = { 9, 2, 1 };	/* pages, one of them of control */
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .size = sizeof(attr),
		.exclude_kernel = 1,
	};
	static struct {
		void	*area;
		size_t	pages;
		int	fd;
	} maps[1000];
	unsigned int n = 0, size = 0;
	long pages = 0;

	/* Until there isn't room for a single page. */
	while (n < ARRAY_SIZE(maps) && size < ARRAY_SIZE(sizes)) {
		maps[n].pages = sizes[size];
		maps[n].fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (maps[n].fd < 0)
			break;
		maps[n].area = mmap(NULL, sizes[size] * page_size, PROT_READ, MAP_SHARED, maps[n].fd, 0);
		if (maps[n].area == MAP_FAILED) {
			close(maps[n].fd);
			size++;
			continue;
		}
		pages += sizes[size];
		n++;
	}
	while (n--) {
		munmap(maps[n].area, maps[n].pages * page_size);
		close(maps[n].fd);
	}
	return pages;
}

static void keep(struct keeper *k, uid_t user)
{
	struct __user_cap_header_struct no_rights_header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct no_rights[_LINUX_CAPABILITY_U32S_3] = {};
	int ask[2], answer[2];
	long pages;
	char c;

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		die("pipe");
	k->pid = fork();
	if (k->pid < 0)
		die("fork");
	if (!k->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 });
		/* Root, too, is asked without what lets it lock more. */
		if (setuid(user) || syscall(__NR_capset, &no_rights_header, no_rights))
			_exit(1);
		while (read(ask[0], &c, 1) == 1) {
			pages = lockable();
			if (write(answer[1], &pages, sizeof(pages)) < 0)
				break;
		}
		_exit(0);
	}
	k->ask = ask[1];
	k->answer = answer[0];
}

static long ask(struct keeper *k)
{
	long pages = -1;

	/* With -1 all may lock all. */
	if (!set_paranoid("2"))
		die("perf_event_paranoid isn't there");
	if (write(k->ask, "", 1) != 1 || read(k->answer, &pages, sizeof(pages)) != sizeof(pages))
		return -1;
	return pages;
}

/*
 * What is prepared by root
 */

static unsigned int number_of(const char *path)
{
	unsigned int number = 0;
	FILE *file = fopen(path, "re");

	if (file && fscanf(file, "%u", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

static void find_tracepoints(void)
{
	static const char *const names[] = {
		"raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_switch",
		"sched/sched_process_exec", "sched/sched_process_exit", "sched/sched_process_fork",
		"sched/sched_wakeup", "signal/signal_generate", "task/task_newtask",
		"exceptions/page_fault_user", "syscalls/sys_enter_getppid", "timer/hrtimer_start",
		"irq_vectors/reschedule_entry",
	};
	char path[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", names[i]);
		shared->tracepoints[shared->nr_tracepoints] = number_of(path);
		if (shared->tracepoints[shared->nr_tracepoints])
			shared->nr_tracepoints++;
	}
}

/*
 * The first event of a tracepoint and the end of the last one have the kernel change a call in its
 * text. Where QEMU emulates several processors, one of them may run into the breakpoint of such a
 * change after it was removed: config/kernel.config has no jump labels for that. With an event of
 * each tracepoint for the whole run, none of those that come and go is the first or the last.
 */
static void hold_tracepoints(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1,
	};

	for (unsigned int i = 0; i < shared->nr_tracepoints; i++) {
		int fd;

		attr.config = shared->tracepoints[i];
		fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		/* Out of any_fd()'s reach. */
		if (fd < 0 || fcntl(fd, F_DUPFD_CLOEXEC, SHARED_FD + 1) < 0)
			die("tracepoint %u can't be held", shared->tracepoints[i]);
		close(fd);
	}
}

#define INSN(_code, _dst, _src, _off, _imm) ((struct bpf_insn) {	\
	.code = (_code), .dst_reg = (_dst), .src_reg = (_src), .off = (_off), .imm = (_imm) })

static int load(enum bpf_prog_type type, const struct bpf_insn *insns, unsigned int nr)
{
	static char log[4096];
	union bpf_attr attr = {};
	int fd;

	attr.prog_type = type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = nr;
	attr.license = (uintptr_t)"GPL";
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		die("can't load a BPF program: %s", log);
	/* For the next image. */
	fcntl(fd, F_SETFD, 0);
	return fd;
}

/* Two say whether there is a sample, two write records of their own to the events of a map. */
static void load_programs(void)
{
	struct bpf_insn drop[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	}, sometimes[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
		INSN(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	}, output[] = {
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -8, 0x12345678),
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -16, 0x12345678),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, BPF_PSEUDO_MAP_FD, 0, 0),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -16),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 16),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_perf_event_output),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr = {};

	attr.map_type = BPF_MAP_TYPE_PERF_EVENT_ARRAY;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 64;
	shared->output_map = bpf(BPF_MAP_CREATE, &attr);
	if (shared->output_map < 0)
		die("can't make a BPF map");
	fcntl(shared->output_map, F_SETFD, 0);
	output[2].imm = shared->output_map;
	shared->programs[0] = load(BPF_PROG_TYPE_PERF_EVENT, drop, ARRAY_SIZE(drop));
	shared->programs[1] = load(BPF_PROG_TYPE_PERF_EVENT, sometimes, ARRAY_SIZE(sometimes));
	shared->programs[TRACEPOINT_PROGRAM] =
		load(BPF_PROG_TYPE_TRACEPOINT, output, ARRAY_SIZE(output));
	shared->programs[3] = load(BPF_PROG_TYPE_PERF_EVENT, output, ARRAY_SIZE(output));
}

/* What a thread that hangs is at, in the kernel. */
static void show_stacks(pid_t pid)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "for t in /proc/%d/task/*; do echo $t; cat $t/wchan $t/stack $t/syscall; done 2>&1", pid);
	if (system(command))
		printf("no stacks of %d\n", pid);
	fflush(stdout);
}

static bool watch(void)
{
	uint64_t now = now_ns();

	for (int w = 0; w < WORKERS; w++) {
		for (int t = 0; t < THREADS; t++) {
			struct progress *p = &shared->progress[w][t];
			uint64_t since = __atomic_load_n(&p->since, __ATOMIC_ACQUIRE);

			if (!since || since > now || now - since < HANG_NS)
				continue;
			printf("FAIL seed %llu, worker %d, thread %d, epoch %llu, image %u, step %llu: "
			       "%s doesn't return for %llu s\n",
			       (unsigned long long)seed, w, t, (unsigned long long)p->epoch,
			       p->image, (unsigned long long)p->step, p->op,
			       (unsigned long long)((now - since) / 1000000000));
			show_stacks(p->pid);
			shared->failed = true;
			return false;
		}
	}
	return true;
}

static void start_worker(pid_t pids[], uint64_t epochs[], int nr)
{
	memset(shared->progress[nr], 0, sizeof(shared->progress[nr]));
	memset(shared->resuming[nr], 0, sizeof(shared->resuming[nr]));
	fflush(NULL);
	pids[nr] = fork();
	if (pids[nr] < 0)
		die("fork");
	if (!pids[nr]) {
		worker_nr = nr;
		epoch = epochs[nr];
		for (int t = 0; t < THREADS; t++)
			shared->progress[nr][t].pid = getpid();
		worker(users[nr % ARRAY_SIZE(users)]);
	}
}

/* In a process of its own, so that what is left in the end is below it. */
static void run(unsigned int seconds, uint64_t first_epoch)
{
	uint64_t epochs[WORKERS], end = now_ns() + seconds * 1000000000ULL;
	struct random r = random_of(seed, WORKERS, 1, 0);
	pid_t pids[WORKERS], other;

	other = fork();
	if (other < 0)
		die("fork");
	if (!other)
		hotplug();
	for (int i = 0; i < WORKERS; i++) {
		epochs[i] = first_epoch;
		start_worker(pids, epochs, i);
	}
	while (now_ns() < end && !shared->failed && watch()) {
		usleep(20000);
		/* Some workers are killed amidst a step. */
		if (one_in(&r, 200))
			kill(pids[below(&r, WORKERS)], SIGKILL);
		for (int i = 0; i < WORKERS; i++) {
			int status;

			if (waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			if (status && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) &&
			    !shared->failed) {
				printf("FAIL seed %llu, worker %d, epoch %llu: ended with status %#x\n",
				       (unsigned long long)seed, i, (unsigned long long)epochs[i],
				       status);
				shared->failed = true;
			}
			epochs[i]++;
			start_worker(pids, epochs, i);
		}
	}
	shared->stop = true;
	kill(other, SIGKILL);
	for (int i = 0; i < WORKERS; i++)
		kill(pids[i], SIGKILL);
	/* What killed workers have left is ours, and gets the signal with their end. */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	printf("epochs:");
	for (int i = 0; i < WORKERS; i++)
		printf(" %llu", (unsigned long long)(epochs[i] - first_epoch));
	printf("\n");
}

/* Kernels without triggers are tried, too: there it says ENOTTY. */
static bool has_triggers(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
	};
	struct perf_trigger_attr set = { .flags = PERF_TRIGGER_AT_ONCE };
	int fd = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0), ret;
	bool has;

	if (fd < 0)
		die("perf_event_open");
	ret = perf_trigger_set(fd, &set);
	has = ret >= 0 || errno != ENOTTY;
	if (ret >= 0)
		close(ret);
	close(fd);
	return has;
}

/* Steps from trigger_set to the closing of a set. */
static bool is_of_sets(const struct step *step)
{
	return step->run == step_set || step->run == step_join || step->run == step_add ||
	       step->run == step_arm || step->run == step_fire || step->run == step_set_read ||
	       step->run == step_set_close;
}

/* Whether the run was worth something. */
static bool summary(bool full)
{
	bool triggers = has_triggers();

	static const char *const texts[] = {
#define COUNTER_TEXT(_name, _text)	_text,
		COUNTERS(COUNTER_TEXT)
	};
	bool good = true;

	for (unsigned int i = 0; i < ARRAY_SIZE(all_steps); i++) {
		printf("%-20s %8lu calls, %8lu done\n", all_steps[i].name, shared->calls[i],
		       shared->done[i]);
		if (full && !shared->done[i] && (triggers || !is_of_sets(&all_steps[i]))) {
			printf("FAIL %s: never done\n", all_steps[i].name);
			good = false;
		}
	}
	for (int i = 0; i < NR_COUNTERS; i++) {
		printf("%8lu %s\n", shared->counts[i], texts[i]);
		if (full && !shared->counts[i] && (triggers || i != COUNT_REPORTS) &&
		    (nr_cpus > 1 || i != COUNT_HOTPLUGS)) {
			printf("FAIL no %s\n", texts[i]);
			good = false;
		}
	}
	return good;
}

/* The program after exec: for some time nothing but what events may count. */
static int executed(void)
{
	struct random r = { getpid() };

	memory = mmap(NULL, MEMORY_PAGES * page_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	signal(SIGTRAP, ignore);
	signal(SIGIO, ignore);
	work(&r);
	return EXECUTED;
}

/* A file, as an image doesn't keep mappings of its predecessor's. */
static void make_shared(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)) || dup2(fd, SHARED_FD) < 0)
		die("there is no file to share");
	close(fd);
}

static void map_shared(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (shared == MAP_FAILED)
		die("mmap");
}

int main(int argc, char **argv)
{
	struct keeper keepers[ARRAY_SIZE(users)] = {};
	unsigned int seconds = 60;
	uint64_t first_epoch = 0;
	pid_t runner;
	int option;
	bool good;

	page_size = sysconf(_SC_PAGESIZE);
	nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	seed = now_ns() ^ getpid();
	while ((option = getopt(argc, argv, "s:t:e:xw:i:")) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			seconds = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			first_epoch = strtoull(optarg, NULL, 0);
			break;
		case 'x':
			return executed();
		case 'w':
			worker_nr = strtoul(optarg, NULL, 0);
			break;
		case 'i':
			image = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	if (image) {
		map_shared();
		seed = shared->seed;
		epoch = first_epoch;
		worker(getuid());
	}
	make_shared();
	map_shared();
	shared->seed = seed;
	printf("seed %llu, %u seconds, %d CPUs\n", (unsigned long long)seed, seconds, nr_cpus);
	fflush(stdout);
	find_tracepoints();
	hold_tracepoints();
	load_programs();
	/* By perf's usual allowance hardly a process would have any page pinned. */
	if (!write_file("/proc/sys/kernel/perf_event_mlock_kb", MLOCK_KB))
		die("perf_event_mlock_kb isn't there");
	for (unsigned int i = 0; i < ARRAY_SIZE(users); i++) {
		keep(&keepers[i], users[i]);
		keepers[i].before = ask(&keepers[i]);
		if (keepers[i].before <= 0)
			die("user %u can lock no memory", users[i]);
	}
	set_paranoid("-1");

	fflush(NULL);
	runner = fork();
	if (runner < 0)
		die("fork");
	if (!runner) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		run(seconds, first_epoch);
		fflush(NULL);
		_exit(0);
	}
	if (waitpid(runner, &option, 0) != runner || option)
		die("the run ended with status %#x", option);

	good = !shared->failed;
	online_all();
	for (unsigned int i = 0; i < ARRAY_SIZE(users) && good; i++) {
		long after = ask(&keepers[i]);

		printf("user %u can lock %ld pages, could %ld\n", users[i], after, keepers[i].before);
		if (after != keepers[i].before) {
			printf("FAIL memory of user %u stays locked\n", users[i]);
			good = false;
		}
	}
	if (!summary(good && seconds >= 60))
		good = false;
	printf("%s seed %llu\n", good ? "PASS" : "FAIL", (unsigned long long)seed);
	return !good;
}
