// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's side of bench-native: events with a buffer, and the two calls that leave records, as a
 * tracepoint and prctl(PR_SET_NAME) do them. Compiled as if it were kernel/events/core.c, with that file's
 * flags and headers, once for each tree.
 *
 * Below that is all which the kernel's objects call outside of themselves; what isn't here either isn't
 * called, or the program ends and names it. Of it a record
 * calls irq_work_queue(), once for each lap, perf_callchain_kernel(), which stands for the unwinder, and
 * copy_from_user_nmi().
 */
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/trace_events.h>
#include "internal.h"
#include "native.h"

struct native_event {
	struct perf_event event;
	struct perf_event_context ctx;
	struct hlist_head head;
	struct pt_regs regs;
	enum native_kind kind;
	int entry_size;
};

/* What the kernel's objects keep to themselves: scripts/bench-native makes it global. */
struct native_pmu_events {
	raw_spinlock_t lock;
	struct list_head list;
};

extern struct native_pmu_events pmu_sb_events;
extern atomic_t nr_comm_events;
extern struct static_key __sched_clock_stable, sched_clock_running, __use_tsc;
void perf_event__header_size(struct perf_event *event);
void perf_event__id_header_size(struct perf_event *event);

typedef void native_output_t(struct perf_event *, struct perf_sample_data *, struct pt_regs *);
extern native_output_t native_forward __asm__("perf_event_output_forward") __weak;
extern native_output_t native_backward __asm__("perf_event_output_backward") __weak;
extern native_output_t native_only __asm__("perf_event_output") __weak;

static struct task_struct task;
static struct signal_struct task_signal;
static struct pid writers_pid;
static struct native_memory memory;
static unsigned int callchain_depth;
static char record[65536] __aligned(64);
static char stack[THREAD_SIZE] __aligned(16);

/* As head.S and setup_per_cpu_areas() leave it for the first CPU. %gs has the base 0. */
DEFINE_PER_CPU_ALIGNED(struct pcpu_hot, pcpu_hot) = {
	.current_task = &task,
};

struct cpumask __cpu_possible_mask = { .bits = { 1 } };
unsigned int nr_cpu_ids = 1;

static struct mem_section section[SECTIONS_PER_ROOT];
static struct mem_section *section_root = section;
struct mem_section **mem_section = &section_root;

static unsigned long first_pfn(void)
{
	return ((unsigned long)memory.pages - PAGE_OFFSET) >> PAGE_SHIFT;
}

static void native_boot(struct native_memory *m)
{
	memory = *m;
	/* For good: the other memory is taken anew for each row. */
	if (get_callchain_buffers(sysctl_perf_event_max_stack))
		BUG();
	*m = memory;
	strscpy(task.comm, "aaaaaaaaaaaaaaa", sizeof(task.comm));
	writers_pid.numbers[0].nr = 4242;
	writers_pid.numbers[0].ns = &init_pid_ns;
	task.pid = task.tgid = 4242;
	task.thread_pid = &writers_pid;
	task.signal = &task_signal;
	task.group_leader = &task;
	task.mm = (void *)&task;
	/* The registers that user space had, and its stack to be dumped. */
	task.stack = stack;
	task_pt_regs(&task)->cs = __USER_CS;
	task_pt_regs(&task)->sp = (unsigned long)m->user_stack;
	task_signal.pids[PIDTYPE_TGID] = &writers_pid;
	INIT_LIST_HEAD(&pmu_sb_events.list);
	atomic_set(&nr_comm_events, 1);
	/* Of a booted kernel with a good TSC. */
	atomic_set(&__sched_clock_stable.enabled, 1);
	atomic_set(&sched_clock_running.enabled, 1);
	atomic_set(&__use_tsc.enabled, 1);
}

static struct native_event *native_open(const struct native_row *row, const struct native_memory *m)
{
	struct native_event *e;
	struct perf_event_attr *attr;
	struct perf_event *event;
	struct perf_buffer *rb;

	memory = *m;
	/* The struct pages are all of the first section, so that their addresses say which pages they are of. */
	section[0].section_mem_map = (unsigned long)memory.page_structs - first_pfn() * sizeof(struct page);

	e = kzalloc(sizeof(*e), GFP_KERNEL);
	event = &e->event;
	attr = &event->attr;
	attr->sample_period = 1;
	attr->sample_type = row->sample_type;
	attr->sample_id_all = row->sample_id_all;
	attr->comm = row->kind == NATIVE_COMM;
	attr->watermark = 1;
	attr->wakeup_watermark = row->buffer;
	attr->sample_max_stack = 127;
	attr->exclude_callchain_user = 1;
	attr->sample_regs_user = 7ul << 6;
	attr->sample_stack_user = row->stack;
	event->overflow_handler = native_forward ?: native_only;
	if (row->backward) {
#ifdef HAVE_BACKWARD
		attr->write_backward = 1;
		event->overflow_handler = native_backward;
#else
		return NULL;
#endif
	}

	event->group_leader = event;
	INIT_LIST_HEAD(&event->sibling_list);
	event->cpu = -1;
	event->state = PERF_EVENT_STATE_ACTIVE;
	event->attach_state = PERF_ATTACH_CONTEXT | PERF_ATTACH_TASK;
	event->ns = &init_pid_ns;
	event->clock = &local_clock;
	event->id = 1;
	event->hw.sample_period = 1;
	event->hw.last_period = 1;
	event->ctx = &e->ctx;
	e->ctx.task = &task;
	INIT_LIST_HEAD(&e->ctx.event_list);
	list_add_rcu(&event->event_entry, &e->ctx.event_list);
	hlist_add_head_rcu(&event->hlist_entry, &e->head);
	task.perf_event_ctxp = &e->ctx;
	perf_event__header_size(event);
	perf_event__id_header_size(event);

	rb = rb_alloc(row->buffer >> PAGE_SHIFT, row->buffer, -1, row->writable ? RING_BUFFER_WRITABLE : 0);
	if (!rb)
		return NULL;
	rcu_assign_pointer(event->rb, rb);
	if (row->paused) {
#ifdef HAVE_PAUSE
		rb_toggle_paused(rb, true);
#else
		return NULL;
#endif
	}

	e->kind = row->kind;
	e->entry_size = row->raw - sizeof(u32);
	callchain_depth = row->callchain;
	memset(record, 0x5a, sizeof(record));
	e->regs.cs = __KERNEL_CS;
	e->regs.ip = 0x123456;
	e->regs.flags = X86_EFLAGS_FIXED;

	return e;
}

static void native_write(struct native_event *e, unsigned int n)
{
	int rctx;

	if (e->kind == NATIVE_COMM) {
		while (n--)
			perf_event_comm(&task, false);
		return;
	}
	while (n--) {
		rctx = perf_swevent_get_recursion_context();
		perf_tp_event(42, 1, record, e->entry_size, &e->regs, &e->head, rctx, NULL);
	}
}

static void native_consume(struct native_event *e)
{
	struct perf_event_mmap_page *user = e->event.rb->user_page;

	WRITE_ONCE(user->data_tail, user->data_head);
}

static unsigned long native_head(struct native_event *e)
{
	return e->event.rb->user_page->data_head;
}

static unsigned long native_lost(struct native_event *e)
{
	return local_read(&e->event.rb->lost) + atomic64_read(&e->event.lost_samples);
}

static const char *native_page(struct native_event *e, unsigned long n)
{
	struct perf_buffer *rb = e->event.rb;

	return rb->data_pages[n % rb->nr_pages];
}

static void *native_memcpy(void *to, const void *from, unsigned long n)
{
	return memcpy(to, from, n);
}

const struct native_ops native_ops = {
	.boot		= native_boot,
	.open		= native_open,
	.write		= native_write,
	.consume	= native_consume,
	.head		= native_head,
	.lost		= native_lost,
	.page		= native_page,
	.memcpy		= native_memcpy,
};

/* What lies outside. */

static void *take(size_t size)
{
	char *p = memory.objects;

	memory.objects += ALIGN(size, 64);
	if (memory.objects > memory.objects_end)
		return NULL;
	return memset(p, 0, size);
}

#undef kfree
void kfree(const void *p) { }
void *__kmalloc_noprof(size_t size, gfp_t flags) { return take(size); }
void *__kmalloc_large_noprof(size_t size, gfp_t flags) { return take(size); }
void *__kmalloc_large_node_noprof(size_t size, gfp_t flags, int node) { return take(size); }
void *__kmalloc_cache_noprof(struct kmem_cache *s, gfp_t flags, size_t size) { return take(size); }
void *__kmalloc_node_noprof(DECL_BUCKET_PARAMS(size, b), gfp_t flags, int node) { return take(size); }

void *__kmalloc_cache_node_noprof(struct kmem_cache *s, gfp_t flags, int node, size_t size)
{
	return take(size);
}

struct page *__alloc_pages_noprof(gfp_t gfp, unsigned int order, int nid, nodemask_t *nodemask)
{
	char *p = memory.pages;

	memory.pages += PAGE_SIZE << order;
	if (memory.pages > memory.pages_end)
		return NULL;
	memset(p, 0, PAGE_SIZE << order);
	return (struct page *)(section[0].section_mem_map +
			       (((unsigned long)p - PAGE_OFFSET) >> PAGE_SHIFT) * sizeof(struct page));
}

bool irq_work_queue(struct irq_work *work) { return true; }
void __mutex_init(struct mutex *lock, const char *name, struct lock_class_key *key) { }
void mutex_lock(struct mutex *lock) { }
void mutex_unlock(struct mutex *lock) { }

/* Without the question whose address space it is. */
unsigned long copy_from_user_nmi(void *to, const void __user *from, unsigned long n)
{
	unsigned long left;

	pagefault_disable();
	left = raw_copy_from_user(to, from, n);
	pagefault_enable();

	return left;
}

/*
 * Most of what a record with a callchain takes here is this. It lies alike in all trees and programs, in a section of
 * its own: in .text it would have all of the tree's code lie alike in all programs, too.
 */
__section(".native_stub") __aligned(64)
void perf_callchain_kernel(struct perf_callchain_entry_ctx *entry, struct pt_regs *regs)
{
	for (unsigned int i = 0; i < callchain_depth; i++)
		if (perf_callchain_store(entry, regs->ip + i))
			return;
}
