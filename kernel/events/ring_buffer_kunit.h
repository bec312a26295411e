/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the KUnit tests of the perf ring buffer share: an event without a PMU, its
 * buffer, the mirror of that, and writers. See ring_buffer_kunit.c.
 */
#ifndef _KERNEL_EVENTS_RING_BUFFER_KUNIT_H
#define _KERNEL_EVENTS_RING_BUFFER_KUNIT_H

#include <kunit/test.h>
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/perf_event.h>

#include "internal.h"

/* A record type of no kernel, so that nothing takes these for its own. */
#define RB_TEST_RECORD		4242
#define RB_TEST_ID		0x1122334455667788ULL
#define RB_TEST_MAX_RECORD	0xfff8U

/*
 * While a held writer has its CPU, somebody may want to stop all of them, and the
 * one that is to release it waits for that. Then the test begins anew.
 */
#define RB_TEST_TRIES		5

/* Positions are modulo the word, so are the names for those below 0. */
#define MINUS(x)		(0UL - (x))

#define RB_PARAM_DESC(type)						\
static void type##_desc(const struct type *param, char *desc)		\
{									\
	strscpy(desc, param->name, KUNIT_PARAM_DESC_SIZE);		\
}

struct rb_test {
	struct perf_event	event;
	struct perf_buffer	*rb;
	unsigned long		data_size;

	/* What the buffer should look like, kept one byte at a time. */
	u8			*mirror;
	unsigned int		at;
	unsigned long		head;

	u8			*record;
	u8			*nested;
	atomic_t		wakeups;

	/* What a breakpoint does at one of its hits: by default, a nested writer. */
	void			(*fire)(struct rb_test *t);
	unsigned int		fire_at;
	unsigned int		hits;
	u64			word;		/* as the last hit left it */
	bool			fired;
	unsigned int		nested_size;
	int			nested_ret;

	/* A writer that is held on another CPU. */
	bool			opened;
	bool			release;
	bool			ended;
	bool			gave_up;
	int			writer_ret;
	struct completion	writer_done;

	/* A call that waits for it. */
	bool			returned;
	bool			returned_after_end;
	struct completion	waiter_done;
};

struct rb_test_record {
	struct perf_event_header	header;
	u64				seq;
	u8				payload[];
};

struct rb_test_lost {
	struct perf_event_header	header;
	u64				id;
	u64				lost;
	u64				sample_id;
};

int rb_test_init(struct kunit *test);
void rb_test_exit(struct kunit *test);
void rb_test_start(struct rb_test *t, unsigned long start);
struct rb_test *rb_test_attach(struct kunit *test, int nr_pages, u32 watermark,
			       bool backward, bool writable, unsigned long start);

void rb_test_fill(u8 *buf, u64 seq, unsigned int size);
void rb_test_copy(struct perf_output_handle *handle, const u8 *buf, unsigned int size);
int rb_test_write(struct rb_test *t, u8 *buf, u64 seq, unsigned int size);

void rb_test_mirror(struct rb_test *t, const void *buf, unsigned int size);
u8 *rb_test_byte(struct rb_test *t, unsigned long at);
void rb_test_read(struct rb_test *t, unsigned long pos, void *buf, unsigned int size);
void rb_test_compare(struct kunit *test, struct rb_test *t);
void rb_test_walk(struct kunit *test, struct rb_test *t, const unsigned int *sizes,
		  unsigned int count);

#ifdef CONFIG_HAVE_HW_BREAKPOINT
void rb_test_fire_write(struct rb_test *t);
struct perf_event *rb_test_watch(struct kunit *test, struct rb_test *t, void *addr,
				 unsigned int size, bool on_read);
int rb_test_write_watched(struct kunit *test, struct rb_test *t, void *addr,
			  unsigned int size, bool on_read);
#endif

unsigned int rb_test_other_cpu(struct kunit *test);
bool rb_test_hold(struct kunit *test, struct rb_test *t, unsigned int cpu);
bool rb_test_release(struct rb_test *t);

struct perf_event *rb_test_event(u32 type, u64 config, bool inherit, int cpu,
				 struct task_struct *task);
void rb_test_own(struct perf_event *event, struct perf_buffer *rb);
void rb_test_release_event(struct kunit *test, struct perf_event *event);
struct pmu *rb_test_register_pmu(struct kunit *test, int task_ctx_nr);

#endif /* _KERNEL_EVENTS_RING_BUFFER_KUNIT_H */
