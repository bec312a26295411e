// SPDX-License-Identifier: GPL-2.0
/*
 * What happens to a trigger beside its samples: a BPF program drops them, the kernel
 * throttles the event or the leader of its group, its task execs or exits. The set is
 * frozen if a sample came through, and stays armed if not. It can be armed again, and
 * its other triggers fire it as before.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "kept_file.h"
#include "fault_filter.h"
#include "overwrite_test.h"
#include "trigger.h"
#include "trigger_test.h"

#define AREA_PAGES	64
#define ROUNDS		20
/* Firings while the event is throttled, or with a throttled leader. */
#define THROTTLED_MIN	5

static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];

/* A BPF program decides about each of the trigger's samples. */
FIXTURE(trigger_filtered)
{
	struct recorded		mine;
	struct fault_area	area;
	int			program;
	int			set;
	__u64			generation;
};

FIXTURE_VARIANT(trigger_filtered)
{
	bool	program_first;
};

FIXTURE_VARIANT_ADD(trigger_filtered, program_first)
{
	.program_first = true,
};

FIXTURE_VARIANT_ADD(trigger_filtered, trigger_first)
{
	.program_first = false,
};

FIXTURE_SETUP(trigger_filtered)
{
	self->set = -1;
	self->mine = NOT_RECORDED;
	self->program = open_fault_filter(_metadata);
	if (self->program < 0)
		return;
	if (open_recorded(_metadata, &self->mine, 0, FAULT_EVENT(PERF_SAMPLE_ADDR)))
		return;
	ASSERT_EQ(0, map_filtered_area(&self->area, AREA_PAGES));
	self->set = open_set(_metadata, self->mine.names, at_once());
}

FIXTURE_TEARDOWN(trigger_filtered)
{
	close(self->set);
	close_recorded(&self->mine);
	close(self->program);
}

TEST_F(trigger_filtered, dropped_sample_fires_nothing)
{
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;
	unsigned int seq = 0;

	if (variant->program_first)
		ASSERT_EQ(0, ioctl(self->mine.faults, PERF_EVENT_IOC_SET_BPF, self->program));
	ASSERT_EQ(0, perf_trigger_join(self->set, self->mine.names));
	ASSERT_EQ(0, perf_trigger_add(self->set, self->mine.faults));
	if (!variant->program_first)
		ASSERT_EQ(0, ioctl(self->mine.faults, PERF_EVENT_IOC_SET_BPF, self->program));

	for (unsigned int round = 0; round < ROUNDS; round++) {
		__u64 head;

		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		write_names(0, 3, 0);
		head = perf_overwrite_head(&self->mine.ow);
		for (; !passes_filter(seq); seq++)
			sample_fault(self->mine.faults, &self->area, seq);
		EXPECT_EQ(head, perf_overwrite_head(&self->mine.ow));
		EXPECT_TRUE(has_state(self->set, "armed"));
		EXPECT_FALSE(is_readable(self->set, 0));
		EXPECT_EQ(0, fd_info_number(self->set, "trigger-suppressed"));
		EXPECT_EQ(0, fd_info_number(self->set, "trigger-held-off"));

		sample_fault(self->mine.faults, &self->area, seq);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(self->mine.id, report.id);
		EXPECT_EQ(0, report.flags);
		EXPECT_EQ(0, report.suppressed);
		EXPECT_EQ(0, report.held_off);
		EXPECT_EQ(perf_overwrite_head(&self->mine.ow), buffer.head);
		EXPECT_EQ(fault_address(&self->area, seq), newest_sample(&self->mine.ow));
		seq++;

		/* What is dropped isn't suppressed either. */
		for (; !passes_filter(seq); seq++)
			sample_fault(self->mine.faults, &self->area, seq);
		EXPECT_EQ(0, fd_info_number(self->set, "trigger-suppressed"));
		sample_fault(self->mine.faults, &self->area, seq++);
		EXPECT_EQ(1, fd_info_number(self->set, "trigger-suppressed"));
		EXPECT_EQ(buffer.head, perf_overwrite_head(&self->mine.ow));
	}
	/* The suppressed ones met a frozen buffer, and no other was lost. */
	EXPECT_EQ(ROUNDS, lost_count(self->mine.faults));
}

/*
 * An event that exceeds the limit of samples is throttled up to the next tick. What
 * is throttled is the trigger, alone or as the leader of a group, or the leader of the
 * trigger's group.
 */
#define LIMIT_PATH	"/proc/sys/kernel/perf_event_max_sample_rate"
/* The limit can't be changed where this is 0 or 100. */
#define PERCENT_PATH	"/proc/sys/kernel/perf_cpu_time_max_percent"
#define PERIOD_NS	20000

FIXTURE(trigger_throttled)
{
	struct perf_overwrite	ow;
	struct fault_area	area;
	struct kept_file	limit, percent;
	int			names;
	int			clock;
	int			faults;
	int			trigger;
	__u64			clock_id;
	__u64			id;
	int			set;
	__u64			generation;
};

FIXTURE_VARIANT(trigger_throttled)
{
	bool	group;
	bool	by_sibling;
};

FIXTURE_VARIANT_ADD(trigger_throttled, alone)
{
	.group = false,
};

FIXTURE_VARIANT_ADD(trigger_throttled, leader)
{
	.group = true,
};

FIXTURE_VARIANT_ADD(trigger_throttled, sibling)
{
	.group = true, .by_sibling = true,
};

FIXTURE_SETUP(trigger_throttled)
{
	struct perf_event_attr names = NAME_EVENT(1);
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_event_attr clock = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_trigger_attr attr = at_once();
	struct timespec resolution;

	self->set = -1;
	self->faults = -1;
	if (geteuid())
		SKIP(return, "not root, who may lower the limit of samples");
	ASSERT_EQ(0, clock_getres(CLOCK_MONOTONIC, &resolution));
	if (resolution.tv_sec || resolution.tv_nsec > PERIOD_NS)
		SKIP(return, "timers don't go off more than once in a tick");
	if (keep_file(&self->percent, PERCENT_PATH) || keep_file(&self->limit, LIMIT_PATH))
		SKIP(return, "no limit of samples to be lowered: %s", strerror(errno));
	clock.config = PERF_COUNT_SW_CPU_CLOCK;
	clock.sample_period = PERIOD_NS;
	clock.exclude_kernel = 0;
	faults.size = sizeof(faults);
	faults.disabled = 0;

	self->names = open_event(_metadata, &names, 0, -1);
	if (self->names < 0)
		return;
	if (map_event(_metadata, &self->ow, self->names, TRIGGER_PAGES, false))
		return;
	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));
	self->clock = open_event(_metadata, &clock, 0, -1);
	if (self->clock < 0)
		return;
	ASSERT_EQ(0, ioctl(self->clock, PERF_EVENT_IOC_SET_OUTPUT, self->names));
	if (variant->group) {
		self->faults = syscall(__NR_perf_event_open, &faults, 0, -1, self->clock,
				       PERF_FLAG_FD_CLOEXEC);
		ASSERT_LE(0, self->faults);
		ASSERT_EQ(0, ioctl(self->faults, PERF_EVENT_IOC_SET_OUTPUT, self->names));
	}
	self->trigger = variant->by_sibling ? self->faults : self->clock;
	self->clock_id = event_id(self->clock);
	self->id = event_id(self->trigger);

	/* History that shows whether the event was throttled. */
	attr.holdoff_bytes = 1024;
	self->set = open_set(_metadata, self->names, attr);
	if (self->set < 0)
		return;
	ASSERT_EQ(0, perf_trigger_join(self->set, self->names));
	ASSERT_EQ(0, perf_trigger_add(self->set, self->trigger));

	/* Two samples between two ticks are too many then. */
	if (write_number(PERCENT_PATH, 50) || write_number(LIMIT_PATH, 1)) {
		ASSERT_NE(EINVAL, errno);
		SKIP(return, "no permission to lower the limit of samples");
	}
}

FIXTURE_TEARDOWN(trigger_throttled)
{
	EXPECT_EQ(0, restore_file(&self->limit));
	EXPECT_EQ(0, restore_file(&self->percent));
	close(self->set);
	close(self->faults);
	close(self->clock);
	close(self->names);
}

/* Until the set is frozen. */
static void use_time(FIXTURE_DATA(trigger_throttled) *self, bool by_faults)
{
	for (unsigned int seq = 0; !is_readable(self->set, 0); seq++)
		if (by_faults)
			make_fault(&self->area, seq);
}

/*
 * How often the clock was throttled since the head was @older, as its records tell. The
 * newest of these tells whether it still was when the buffer was frozen.
 */
static unsigned int count_throttled(FIXTURE_DATA(trigger_throttled) *self, __u64 older,
				    bool *still)
{
	struct throttle_record *record = (struct throttle_record *)space;
	struct perf_overwrite_walk walk;
	unsigned int count = 0;
	bool newest = true;

	*still = false;
	begin_since(&walk, &self->ow, older, true);
	while (perf_overwrite_next(&walk, space)) {
		bool throttled = record->header.type == PERF_RECORD_THROTTLE;

		if (!is_of_throttling(&record->header) || record->id != self->clock_id)
			continue;
		if (newest)
			*still = throttled;
		newest = false;
		count += throttled;
	}
	return count;
}

TEST_F(trigger_throttled, fires_again)
{
	unsigned int fired = 0, by_throttled = 0, throttled = 0;
	struct perf_trigger_report report;
	struct perf_trigger_buffer buffer;

	ASSERT_EQ(0, ioctl(self->clock, PERF_EVENT_IOC_ENABLE, 0));
	/* A machine that is too busy for two samples in a tick gets more time. */
	while (fired < ROUNDS || throttled < THROTTLED_MIN ||
	       (!variant->by_sibling && by_throttled < THROTTLED_MIN)) {
		__u64 before = perf_overwrite_head(&self->ow), lost;
		unsigned int count;
		bool still;

		ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
		use_time(self, variant->by_sibling);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, &buffer, 1));
		EXPECT_EQ(self->id, report.id);
		EXPECT_EQ(self->id, newest_sample(&self->ow));
		EXPECT_EQ(0, report.flags);
		EXPECT_EQ(self->generation, report.generation);
		EXPECT_EQ(perf_overwrite_head(&self->ow), buffer.head);
		EXPECT_EQ(0, buffer.records);
		count = count_throttled(self, before, &still);
		throttled += !!count;
		by_throttled += still;
		fired++;

		/* The event goes on, to no avail: it is unthrottled, and throttled again. */
		lost = lost_count(self->clock);
		while (lost_count(self->clock) < lost + 4)
			;
		EXPECT_EQ(buffer.head, perf_overwrite_head(&self->ow));
		EXPECT_TRUE(has_state(self->set, "frozen"));
	}
	TH_LOG("%u firings, %u after it was throttled, %u while it was", fired, throttled,
	       by_throttled);
}

/*
 * A task with a trigger and a buffer of its own, and this one, which has made the set
 * of both. The task does as it is told: it makes faults, execs, forks, exits.
 */
#define TASK_ENV	"TRIGGER_TASK"

struct task_side {
	int	orders;
	int	answers;
	int	faults;		/* an event that it has opened itself, or -1 */
};

static void task_answers(const struct task_side *task, __u64 answer)
{
	if (write(task->answers, &answer, sizeof(answer)) != sizeof(answer))
		_exit(1);
}

/* Goes on as another program, and says so. */
static void task_execs(const struct task_side *task)
{
	static char *const argv[] = { "trigger_life", NULL };
	char env[64];
	char *const envp[] = { env, NULL };

	snprintf(env, sizeof(env), TASK_ENV "=%d,%d,%d", task->orders, task->answers,
		 task->faults);
	execve("/proc/self/exe", argv, envp);
	_exit(2);
}

/* Its child goes on, and says so. */
static void task_forks(void)
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(3);
	if (pid)
		_exit(0);
}

static void task_obeys(const struct task_side *task)
{
	struct fault_area area;
	unsigned int seq = 0;
	char order;

	if (map_fault_area(&area, AREA_PAGES))
		_exit(4);
	while (read(task->orders, &order, 1) == 1) {
		switch (order) {
		case 'f':
			sample_fault(task->faults, &area, seq++);
			break;
		case 'x':
			task_execs(task);
			break;
		case 'k':
			task_forks();
			break;
		default:
			_exit(0);
		}
		task_answers(task, order);
	}
	_exit(0);
}

__attribute__((constructor))
static void obey_if_execed(void)
{
	const char *env = getenv(TASK_ENV);
	struct task_side task;

	if (!env)
		return;
	if (sscanf(env, "%d,%d,%d", &task.orders, &task.answers, &task.faults) != 3)
		_exit(5);
	task_answers(&task, 'x');
	task_obeys(&task);
}

FIXTURE(trigger_task)
{
	struct fault_area	area;
	unsigned int		seq;
	struct recorded		mine;
	struct recorded		task;
	pid_t			pid;
	int			orders;
	int			answers;
	struct task_side	side;
	int			set;
	__u64			generation;
};

FIXTURE_VARIANT(trigger_task)
{
	bool	enable_on_exec;
	bool	remove_on_exec;
};

FIXTURE_VARIANT_ADD(trigger_task, plain)
{
	.enable_on_exec = false,
};

FIXTURE_VARIANT_ADD(trigger_task, enable_on_exec)
{
	.enable_on_exec = true,
};

FIXTURE_VARIANT_ADD(trigger_task, remove_on_exec)
{
	.remove_on_exec = true,
};

FIXTURE_SETUP(trigger_task)
{
	self->set = -1;
	self->mine = NOT_RECORDED;
	self->task = NOT_RECORDED;
	self->side.faults = -1;
	self->orders = -1;
	self->answers = -1;
	ASSERT_EQ(0, map_fault_area(&self->area, AREA_PAGES));
	if (open_recorded(_metadata, &self->mine, 0, FAULT_EVENT(PERF_SAMPLE_IDENTIFIER)))
		return;
	self->set = open_set(_metadata, self->mine.names, at_once());
}

FIXTURE_TEARDOWN(trigger_task)
{
	/* Whatever is left of the task finds that there is nobody to obey. */
	close(self->orders);
	close(self->answers);
	if (self->pid > 0)
		waitpid(self->pid, NULL, 0);
	close(self->set);
	close_recorded(&self->task);
	close_recorded(&self->mine);
}

/* Starts the task, which does @prepare first. */
static void start_task(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self,
		       void (*prepare)(FIXTURE_DATA(trigger_task) *self))
{
	int orders[2], answers[2];

	ASSERT_EQ(0, pipe(orders));
	ASSERT_EQ(0, pipe(answers));
	self->pid = fork();
	if (!self->pid) {
		close(orders[1]);
		close(answers[0]);
		self->side.orders = orders[0];
		self->side.answers = answers[1];
		if (prepare)
			prepare(self);
		task_obeys(&self->side);
	}
	ASSERT_LT(0, self->pid);
	close(orders[0]);
	close(answers[1]);
	self->orders = orders[1];
	self->answers = answers[0];
}

static __u64 task_answer(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	__u64 answer;

	ASSERT_EQ(sizeof(answer), read(self->answers, &answer, sizeof(answer)));
	return answer;
}

static void order_task(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self,
		       char order)
{
	ASSERT_EQ(1, write(self->orders, &order, 1));
	ASSERT_EQ(order, task_answer(_metadata, self));
}

/* Has the task make a fault that is sampled, if its event is still there. */
static void fault_of_task(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	EXPECT_EQ(0, ioctl(self->task.faults, PERF_EVENT_IOC_ENABLE, 0));
	order_task(_metadata, self, 'f');
	EXPECT_EQ(0, ioctl(self->task.faults, PERF_EVENT_IOC_DISABLE, 0));
}

static void end_task(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	int status;

	ASSERT_EQ(1, write(self->orders, "q", 1));
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, 0));
	self->pid = 0;
	ASSERT_TRUE(WIFEXITED(status));
	ASSERT_EQ(0, WEXITSTATUS(status));
}

static void add_recorded(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self,
			 struct recorded *recorded)
{
	ASSERT_EQ(0, perf_trigger_join(self->set, recorded->names));
	ASSERT_EQ(0, perf_trigger_add(self->set, recorded->faults));
}

/* The set waits for a trigger: nothing has come yet. */
static void check_armed(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	EXPECT_TRUE(has_state(self->set, "armed"));
	EXPECT_FALSE(is_readable(self->set, 0));
	EXPECT_EQ(0, fd_info_number(self->set, "trigger-suppressed"));
}

/* The trigger of @recorded has fired the set: all of it is frozen, the report is true. */
static void check_fired_by(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self,
			   const struct recorded *recorded, __u32 flags)
{
	struct perf_trigger_buffer buffers[2];
	struct perf_trigger_report report;

	ASSERT_EQ(0, perf_trigger_read(self->set, &report, buffers, 2));
	EXPECT_EQ(recorded->id, report.id);
	EXPECT_EQ(flags, report.flags);
	EXPECT_EQ(self->generation, report.generation);
	EXPECT_EQ(2, report.nr);
	EXPECT_EQ(perf_overwrite_head(&self->mine.ow), buffers[0].head);
	EXPECT_EQ(0, buffers[0].flags);
	if (self->task.ow.meta) {
		EXPECT_EQ(perf_overwrite_head(&self->task.ow), buffers[1].head);
		EXPECT_EQ(0, buffers[1].flags);
	} else {
		/* It went with the task's mapping. */
		EXPECT_EQ(PERF_TRIGGER_GONE, buffers[1].flags);
	}
	if (!flags)
		EXPECT_EQ(recorded->id, newest_sample(&recorded->ow));
	/* Nothing moves any more. */
	write_names(0, 3, 0);
	EXPECT_EQ(buffers[0].head, perf_overwrite_head(&self->mine.ow));
	EXPECT_TRUE(has_state(self->set, "frozen"));
}

static void arm(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	ASSERT_EQ(0, perf_trigger_arm(self->set, &self->generation));
}

/* The other trigger works, whatever has become of the task. */
static void check_mine(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self)
{
	for (int i = 0; i < 2; i++) {
		arm(_metadata, self);
		write_names(0, 3, 0);
		check_armed(_metadata, self);
		sample_fault(self->mine.faults, &self->area, self->seq++);
		check_fired_by(_metadata, self, &self->mine, 0);
	}
}

/* Returns 0, or -1 and the test skipped. */
static int add_task(struct __test_metadata *_metadata, FIXTURE_DATA(trigger_task) *self,
		    const FIXTURE_VARIANT(trigger_task) *variant, bool inherit)
{
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);

	if (self->set < 0)
		return -1;
	faults.enable_on_exec = variant->enable_on_exec;
	faults.remove_on_exec = variant->remove_on_exec;
	faults.inherit = inherit;
	start_task(_metadata, self, NULL);
	if (open_recorded(_metadata, &self->task, self->pid, faults))
		return -1;
	add_recorded(_metadata, self, &self->mine);
	add_recorded(_metadata, self, &self->task);
	return 0;
}

/* The event belongs to this task, and stays unless it was to be removed. */
TEST_F(trigger_task, execs)
{
	if (add_task(_metadata, self, variant, false))
		return;
	arm(_metadata, self);
	order_task(_metadata, self, 'f');
	check_armed(_metadata, self);
	order_task(_metadata, self, 'x');
	if (!variant->enable_on_exec) {
		check_armed(_metadata, self);
		fault_of_task(_metadata, self);
	}
	if (variant->remove_on_exec) {
		check_armed(_metadata, self);
		sample_fault(self->mine.faults, &self->area, self->seq++);
		check_fired_by(_metadata, self, &self->mine, 0);
		EXPECT_EQ(2, fd_info_number(self->set, "trigger-events"));
		check_mine(_metadata, self);
		return;
	}
	/* With enable_on_exec the new program's first fault has done it. */
	check_fired_by(_metadata, self, &self->task, 0);
	EXPECT_EQ(0, ioctl(self->task.faults, PERF_EVENT_IOC_DISABLE, 0));

	arm(_metadata, self);
	check_armed(_metadata, self);
	fault_of_task(_metadata, self);
	check_fired_by(_metadata, self, &self->task, 0);
	check_mine(_metadata, self);
}

/* While the set is frozen. */
TEST_F(trigger_task, execs_frozen)
{
	if (add_task(_metadata, self, variant, false))
		return;
	arm(_metadata, self);
	fault_of_task(_metadata, self);
	check_fired_by(_metadata, self, &self->task, 0);
	order_task(_metadata, self, 'x');
	check_fired_by(_metadata, self, &self->task, 0);
	EXPECT_EQ(0, ioctl(self->task.faults, PERF_EVENT_IOC_DISABLE, 0));
	arm(_metadata, self);
	check_armed(_metadata, self);
	fault_of_task(_metadata, self);
	if (variant->remove_on_exec) {
		check_armed(_metadata, self);
		sample_fault(self->mine.faults, &self->area, self->seq++);
		check_fired_by(_metadata, self, &self->mine, 0);
	} else {
		check_fired_by(_metadata, self, &self->task, 0);
	}
	check_mine(_metadata, self);
}

TEST_F(trigger_task, exits_armed)
{
	if (add_task(_metadata, self, variant, false))
		return;
	arm(_metadata, self);
	end_task(_metadata, self);
	check_armed(_metadata, self);
	EXPECT_EQ(2, fd_info_number(self->set, "trigger-events"));
	sample_fault(self->mine.faults, &self->area, self->seq++);
	check_fired_by(_metadata, self, &self->mine, 0);
	check_mine(_metadata, self);

	/* The event goes with its descriptor, the buffer with its mapping. */
	arm(_metadata, self);
	ASSERT_EQ(0, close(self->task.faults));
	self->task.faults = -1;
	check_armed(_metadata, self);
	EXPECT_EQ(1, fd_info_number(self->set, "trigger-events"));
	ASSERT_EQ(0, perf_overwrite_unmap(&self->task.ow));
	self->task.ow.meta = NULL;
	check_armed(_metadata, self);
	sample_fault(self->mine.faults, &self->area, self->seq++);
	check_fired_by(_metadata, self, &self->mine, 0);
	check_mine(_metadata, self);
}

TEST_F(trigger_task, exits_frozen)
{
	if (add_task(_metadata, self, variant, false))
		return;
	arm(_metadata, self);
	fault_of_task(_metadata, self);
	check_fired_by(_metadata, self, &self->task, 0);
	end_task(_metadata, self);
	check_fired_by(_metadata, self, &self->task, 0);
	check_mine(_metadata, self);
}

/* Before the depth is over. A task that came too late for that gets more time. */
TEST_F(trigger_task, exits_fired)
{
	struct perf_trigger_attr attr = { .depth_ns = 50 * 1000000 };
	struct perf_trigger_buffer buffers[2];
	struct perf_trigger_report report;
	bool in_time;

	do {
		attr.depth_ns *= 2;
		close(self->set);
		close_recorded(&self->task);
		close(self->orders);
		close(self->answers);
		self->set = open_set(_metadata, self->mine.names, attr);
		self->generation = 0;
		if (add_task(_metadata, self, variant, false))
			return;
		arm(_metadata, self);
		fault_of_task(_metadata, self);
		end_task(_metadata, self);
		in_time = has_state(self->set, "fired");
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, buffers, 2));
	} while (!in_time);

	EXPECT_EQ(self->task.id, report.id);
	EXPECT_EQ(0, report.flags);
	EXPECT_EQ(attr.depth_ns, report.until - report.time);
	EXPECT_EQ(perf_overwrite_head(&self->task.ow), buffers[1].head);
	EXPECT_EQ(0, buffers[1].flags);
	/* A record of the exit is behind it. */
	EXPECT_EQ(self->task.id, latest_sample(&self->task.ow));

	for (int i = 0; i < 2; i++) {
		arm(_metadata, self);
		check_armed(_metadata, self);
		sample_fault(self->mine.faults, &self->area, self->seq++);
		ASSERT_EQ(0, perf_trigger_read(self->set, &report, buffers, 2));
		EXPECT_EQ(self->mine.id, report.id);
		EXPECT_EQ(self->generation, report.generation);
	}
}

/* The event is inherited, and goes on in the child of a task that is gone. */
TEST_F(trigger_task, exits_after_fork)
{
	int status;

	if (add_task(_metadata, self, variant, true))
		return;
	arm(_metadata, self);
	order_task(_metadata, self, 'k');
	ASSERT_EQ(self->pid, waitpid(self->pid, &status, 0));
	self->pid = 0;
	check_armed(_metadata, self);
	for (int i = 0; i < 2; i++) {
		fault_of_task(_metadata, self);
		check_fired_by(_metadata, self, &self->task, 0);
		arm(_metadata, self);
		check_armed(_metadata, self);
	}
	ASSERT_EQ(0, perf_trigger_fire(self->set));
	ASSERT_TRUE(is_readable(self->set, -1));
	check_mine(_metadata, self);
}

/* The task has opened the events itself: what it closes in exec is gone. */
FIXTURE(trigger_exec)
{
	FIXTURE_DATA(trigger_task)	both;
};

FIXTURE_VARIANT(trigger_exec)
{
	bool	kept;
};

FIXTURE_VARIANT_ADD(trigger_exec, closed)
{
	.kept = false,
};

FIXTURE_VARIANT_ADD(trigger_exec, kept)
{
	.kept = true,
};

FIXTURE_SETUP(trigger_exec)
{
	FIXTURE_DATA(trigger_task) *both = &self->both;

	both->set = -1;
	both->mine = NOT_RECORDED;
	both->side.faults = -1;
	both->orders = -1;
	both->answers = -1;
	ASSERT_EQ(0, map_fault_area(&both->area, AREA_PAGES));
	if (open_recorded(_metadata, &both->mine, 0, FAULT_EVENT(PERF_SAMPLE_IDENTIFIER)))
		return;
	both->set = open_set(_metadata, both->mine.names, at_once());
}

FIXTURE_TEARDOWN(trigger_exec)
{
	FIXTURE_DATA(trigger_task) *both = &self->both;

	close(both->orders);
	close(both->answers);
	if (both->pid > 0)
		waitpid(both->pid, NULL, 0);
	close(both->set);
	close_recorded(&both->mine);
}

/* In the task: adds to the set that was made for it, and tells the event's id. */
static void join_by_task(FIXTURE_DATA(trigger_task) *both)
{
	struct perf_event_attr names = NAME_EVENT(1);
	struct perf_event_attr faults = FAULT_EVENT(PERF_SAMPLE_IDENTIFIER);
	struct perf_overwrite ow;
	int fd;

	fd = perf_overwrite_open(&names, 0, -1, -1);
	if (fd < 0 || perf_overwrite_map(&ow, fd, 1, false))
		_exit(10);
	both->side.faults = perf_overwrite_open(&faults, 0, -1, -1);
	if (both->side.faults < 0 || ioctl(both->side.faults, PERF_EVENT_IOC_SET_OUTPUT, fd))
		_exit(11);
	if (perf_trigger_join(both->set, fd) || perf_trigger_add(both->set, both->side.faults))
		_exit(12);
	task_answers(&both->side, event_id(both->side.faults));
}

static void join_and_keep(FIXTURE_DATA(trigger_task) *both)
{
	join_by_task(both);
	if (fcntl(both->side.faults, F_SETFD, 0))
		_exit(13);
}

TEST_F(trigger_exec, descriptors)
{
	FIXTURE_DATA(trigger_task) *both = &self->both;

	if (both->set < 0)
		return;
	add_recorded(_metadata, both, &both->mine);
	start_task(_metadata, both, variant->kept ? join_and_keep : join_by_task);
	both->task.id = task_answer(_metadata, both);
	EXPECT_EQ(2, fd_info_number(both->set, "trigger-events"));
	EXPECT_EQ(2, fd_info_number(both->set, "trigger-buffers"));

	arm(_metadata, both);
	order_task(_metadata, both, 'x');
	check_armed(_metadata, both);
	EXPECT_EQ(variant->kept ? 2 : 1, fd_info_number(both->set, "trigger-events"));
	/* The buffer isn't mapped any more, either way: no record can be in it. */
	for (int i = 0; i < 2; i++) {
		order_task(_metadata, both, 'f');
		if (variant->kept) {
			check_fired_by(_metadata, both, &both->task, PERF_TRIGGER_NO_RECORD);
			arm(_metadata, both);
		}
		check_armed(_metadata, both);
	}
	sample_fault(both->mine.faults, &both->area, both->seq++);
	check_fired_by(_metadata, both, &both->mine, 0);
	check_mine(_metadata, both);

	arm(_metadata, both);
	end_task(_metadata, both);
	check_armed(_metadata, both);
	/* What it kept open has gone with it. */
	EXPECT_EQ(1, fd_info_number(both->set, "trigger-events"));
	sample_fault(both->mine.faults, &both->area, both->seq++);
	check_fired_by(_metadata, both, &both->mine, 0);
}

TEST_HARNESS_MAIN
