// SPDX-License-Identifier: GPL-2.0
/*
 * A flight recorder: keeps the latest tracepoint and software event records of
 * every CPU in overwritable buffers, and prints them when asked.
 *
 * While nothing happens it costs what writing records costs: nobody reads, but
 * for the names of tasks, which are few and have buffers of their own. For a
 * snapshot all buffers are paused, walked from the newest record towards the past
 * (see perf_overwrite.h), and resumed. So that nothing is lost meanwhile the events
 * can be directed to other buffers for that time. Where a trigger was given, this
 * stops the buffers, see flight_trigger.h.
 *
 * It runs on any kernel since 4.7. The selftests recorder_*, beside perf_overwrite.h,
 * run it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "flight_command.h"
#include "flight_events.h"
#include "flight_options.h"
#include "flight_recorder.h"
#include "flight_report.h"
#include "flight_targets.h"
#include "flight_trigger.h"

#define NAMES_PAGES		16

#define NO_PERMISSION_TO_OPEN \
	"no permission to record %s: run as root or with CAP_PERFMON, or set " \
	"/proc/sys/kernel/perf_event_paranoid to %s (it is %s)"
#define NO_PERMISSION_TO_LOCK \
	"no permission for %lu pages per CPU: use a smaller -m, or raise " \
	"/proc/sys/kernel/perf_event_mlock_kb or RLIMIT_MEMLOCK (ulimit -l)"
#define BAD_FILTER \
	"'%s' can't be filtered by '%s': see its fields in tracefs, events/*/%s/format"
#define NO_WRITE_BACKWARD \
	"this kernel can't write buffers backward: it needs perf's write_backward, in Linux since 4.7"
#define WENT_OFFLINE \
	"flight_recorder: CPU %d went offline: it isn't recorded any more, even if it comes back\n"

/* Holders write nothing, but share the clock and the direction of the events. */
static void make_holder(struct recorder *recorder)
{
	recorder->holder.name = "dummy";
	recorder->holder.attr = (struct perf_event_attr){
		.type		= PERF_TYPE_SOFTWARE,
		.size		= sizeof(struct perf_event_attr),
		.config		= PERF_COUNT_SW_DUMMY,
		.read_format	= PERF_FORMAT_ID | PERF_FORMAT_LOST,
		.use_clockid	= 1,
		.clockid	= CLOCK_MONOTONIC,
		.write_backward	= 1,
	};
}

static void find_cpus(struct recorder *recorder)
{
	char line[4096], *at = line;
	int room = 0;

	read_line("/sys/devices/system/cpu/online", line, sizeof(line));
	while (*at) {
		long first = strtol(at, &at, 10), last = first;

		if (*at == '-')
			last = strtol(at + 1, &at, 10);
		for (long cpu = first; cpu <= last; cpu++) {
			if (recorder->nr_channels == room) {
				room = room * 2 + 16;
				recorder->channels = resize(recorder->channels,
							    room * sizeof(*recorder->channels));
			}
			recorder->channels[recorder->nr_channels++] =
				(struct channel){ .cpu = cpu };
		}
		if (*at != ',')
			break;
		at++;
	}
	if (!recorder->nr_channels)
		die("can't tell the CPUs from /sys/devices/system/cpu/online: mount sysfs on /sys");
}

static void die_open(struct kind *kind, pid_t pid, int cpu, int error)
{
	bool all = pid < 0;
	struct perf_event_attr attr = kind->attr;
	char paranoid[32];
	int fd;

	if (access("/proc/sys/kernel/perf_event_paranoid", F_OK))
		die("this kernel has no perf events: it needs CONFIG_PERF_EVENTS");
	switch (error) {
	case EACCES:
	case EPERM:
		read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
		die(NO_PERMISSION_TO_OPEN, all ? "every CPU" : "this task",
		    all ? "-1" : "1 for a task of yours",
		    paranoid[0] ? paranoid : "not readable");
	case EMFILE:
		die("too many open files for %s on CPU %d: raise 'ulimit -n'", kind->name, cpu);
	case EINVAL:
		attr.write_backward = 0;
		fd = perf_overwrite_open(&attr, pid, cpu, -1);
		if (fd >= 0)
			die(NO_WRITE_BACKWARD);
		break;
	}
	die("can't open '%s' on CPU %d: %s", kind->name, cpu, strerror(error));
}

/* Returns -1 if the task has gone. */
static int open_event(struct recorder *recorder, struct kind *kind, pid_t pid, int cpu)
{
	int fd;

	if (!recorder->counts_lost)
		kind->attr.read_format &= ~(__u64)PERF_FORMAT_LOST;
	fd = perf_overwrite_open(&kind->attr, pid, cpu, -1);

	/* PERF_FORMAT_LOST is younger than the rest. */
	if (fd < 0 && errno == EINVAL && recorder->counts_lost) {
		kind->attr.read_format &= ~(__u64)PERF_FORMAT_LOST;
		fd = perf_overwrite_open(&kind->attr, pid, cpu, -1);
		if (fd >= 0)
			recorder->counts_lost = false;
		else
			errno = EINVAL;
	}
	if (fd < 0 && errno != ESRCH)
		die_open(kind, pid, cpu, errno);
	return fd;
}

/*
 * An event with a mapping of its own can't be directed elsewhere, and a task may go:
 * what holds a buffer is neither an event that records nor of a task that is watched.
 */
static int open_holder(struct recorder *recorder, struct kind *kind, int cpu)
{
	return open_event(recorder, kind, of_tasks(recorder->options) ? 0 : -1, cpu);
}

static void map_buffer(struct perf_overwrite *ow, int fd, unsigned long pages, bool writable)
{
	if (!perf_overwrite_map(ow, fd, pages, writable))
		return;
	if (errno == EPERM)
		die(NO_PERMISSION_TO_LOCK, pages);
	die("can't map a buffer of %lu pages: %s; use a smaller -m", pages,
	    strerror(errno));
}

static void direct_output(const struct recorder *recorder, const struct channel *channel,
			  int i, int fd)
{
	if (channel->fds[i] >= 0 && ioctl(channel->fds[i], PERF_EVENT_IOC_SET_OUTPUT, fd))
		die("'%s' can't share the buffer of CPU %d: %s",
		    recorder->kinds[i / recorder->nr_targets].name, channel->cpu,
		    strerror(errno));
}

/* What tells of the names: all there is, or that something is missing. */
static void open_names(struct recorder *recorder, struct channel *channel)
{
	struct kind kind = {
		.name = "dummy",
		.attr = {
			.type		= PERF_TYPE_SOFTWARE,
			.size		= sizeof(struct perf_event_attr),
			.config		= PERF_COUNT_SW_DUMMY,
			.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
			.sample_id_all	= 1,
			.use_clockid	= 1,
			.clockid	= CLOCK_MONOTONIC,
		},
	};

	map_buffer(&channel->names, open_holder(recorder, &kind, channel->cpu),
		   NAMES_PAGES, true);
	kind.attr.inherit = of_tasks(recorder->options);
	kind.attr.comm = 1;
	kind.attr.task = 1;
	for (int t = 0; t < recorder->nr_targets; t++) {
		int fd = open_event(recorder, &kind, recorder->targets[t], channel->cpu);

		if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, channel->names.fd))
			die("can't have the names of CPU %d: %s", channel->cpu, strerror(errno));
		if (channel == recorder->channels)
			recorder->task_fds[t] = fd;
	}
}

static bool is_initial_pid_namespace(void)
{
	struct stat stat_of;

	/* PROC_PID_INIT_INO */
	return stat("/proc/self/ns/pid", &stat_of) || stat_of.st_ino == 0xeffffffc;
}

/* Don't record the recorder, if the kernel can tell it apart. */
static void set_filter(const struct recorder *recorder, const struct kind *kind, int fd)
{
	char filter[4096];
	int length = 0;

	if (!kind->tracepoint)
		return;
	if (kind->filter)
		length = snprintf(filter, sizeof(filter), "(%s)", kind->filter);
	if (length >= (int)sizeof(filter) - 32)
		die("the filter of '%s' is too long", kind->name);
	/* Elsewhere it is another task's number: ours has two. */
	if (!recorder->names.in_namespace)
		snprintf(filter + length, sizeof(filter) - length, "%scommon_pid != %d",
			 length ? " && " : "", getpid());
	else if (!length)
		return;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) || !kind->filter)
		return;
	if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, kind->filter))
		die(BAD_FILTER, kind->name, kind->filter, strchr(kind->name, ':') + 1);
}

static void open_kind(struct recorder *recorder, struct channel *channel, int i)
{
	struct kind *kind = &recorder->kinds[i];

	for (int t = 0; t < recorder->nr_targets; t++) {
		int at = i * recorder->nr_targets + t;
		int fd = open_event(recorder, kind, recorder->targets[t], channel->cpu);

		channel->fds[at] = fd;
		if (fd < 0)
			continue;
		if (ioctl(fd, PERF_EVENT_IOC_ID, &channel->ids[at]))
			die("can't tell the id of '%s': %s", kind->name, strerror(errno));
		set_filter(recorder, kind, fd);
		direct_output(recorder, channel, at, channel->ow.fd);
	}
}

static void open_channel(struct recorder *recorder, struct channel *channel)
{
	bool lossless = recorder->options->lossless;
	unsigned long pages = recorder->options->pages;

	channel->fds = allocate(recorder->nr_fds, sizeof(*channel->fds));
	channel->ids = allocate(recorder->nr_fds, sizeof(*channel->ids));
	open_names(recorder, channel);

	map_buffer(&channel->ow, open_holder(recorder, &recorder->holder, channel->cpu), pages,
		   false);
	if (lossless)
		map_buffer(&channel->spare,
			   open_holder(recorder, &recorder->holder, channel->cpu), pages, false);
	for (int i = 0; i < recorder->options->nr_events; i++)
		open_kind(recorder, channel, i);
	recorder->freezes = perf_overwrite_freezes(channel->ow.fd);
	/* Nobody could promise that nothing is lost. */
	if (lossless && !recorder->freezes && perf_overwrite_drain())
		die("--lossless needs membarrier on this kernel: %s", strerror(errno));
	channel->store = allocate(channel->ow.size + PERF_OVERWRITE_RECORD_MAX, 1);
}

/* The set first: whether there is one says how triggers are opened. */
static void open_triggers(struct recorder *recorder)
{
	const struct options *options = recorder->options;

	if (!options->nr_triggers)
		return;
	open_set(recorder);
	for (int c = 0; c < recorder->nr_channels; c++) {
		for (int i = options->nr_events; i < recorder->nr_kinds; i++) {
			open_kind(recorder, &recorder->channels[c], i);
			add_to_set(recorder, &recorder->channels[c], i);
		}
	}
}

/* Begins with the names, before there is a record of a task. */
static void find_names(struct recorder *recorder, const sigset_t *signals)
{
	int nr_tasks = recorder->options->nr_pids ? recorder->nr_targets : 0;
	struct pollfd *polled;

	recorder->nr_polled = 1 + recorder->nr_channels + nr_tasks;
	polled = allocate(recorder->nr_polled + nr_polled_of_set(recorder), sizeof(*polled));
	recorder->polled = polled;
	polled[0].fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (polled[0].fd < 0)
		die("can't wait for signals: %s", strerror(errno));
	for (int c = 0; c < recorder->nr_channels; c++)
		polled[1 + c].fd = recorder->channels[c].names.fd;
	for (int t = 0; t < nr_tasks; t++) {
		polled[1 + recorder->nr_channels + t].fd = recorder->task_fds[t];
		recorder->nr_alive += recorder->task_fds[t] >= 0;
	}
	if (nr_tasks && !recorder->nr_alive)
		die("--pid: all of these tasks have gone: see ps");
	for (unsigned int i = 0; i < recorder->nr_polled; i++)
		polled[i].events = POLLIN;
	if (recorder->options->nr_triggers)
		recorder->nr_polled += perf_overwrite_set_poll(&recorder->set,
							       polled + recorder->nr_polled);
	read_task_names(&recorder->names, 0);
}

static void enable_events(struct recorder *recorder)
{
	for (int c = 0; c < recorder->nr_channels; c++)
		for (int i = 0; i < recorder->nr_fds; i++)
			if (recorder->channels[c].fds[i] >= 0 &&
			    ioctl(recorder->channels[c].fds[i], PERF_EVENT_IOC_ENABLE, 0))
				die("can't enable '%s': %s",
				    recorder->kinds[i / recorder->nr_targets].name,
				    strerror(errno));
}

/*
 * On older kernels only. Without membarrier a moment has to do: writers don't
 * sleep.
 */
static void drain(const struct recorder *recorder)
{
	if (!recorder->freezes && perf_overwrite_drain())
		usleep(10000);
}

static void resume_buffer(const struct channel *channel, const struct perf_overwrite *ow)
{
	if (perf_overwrite_resume(ow->fd))
		die("can't resume CPU %d's buffer: %s", channel->cpu, strerror(errno));
}

/* Directs the events to the spare buffers. */
static void swap_buffers(struct recorder *recorder)
{
	for (int c = 0; c < recorder->nr_channels; c++) {
		struct channel *channel = &recorder->channels[c];

		/* The one that was read last is the spare one from now on. */
		if (recorder->snapshots) {
			struct perf_overwrite read = channel->ow;

			channel->ow = channel->spare;
			channel->spare = read;
		}
		resume_buffer(channel, &channel->spare);
		for (int i = 0; i < recorder->nr_fds; i++)
			direct_output(recorder, channel, i, channel->spare.fd);
	}
	drain(recorder);
}

/* Starts with all, so that none waits for the waiting for another. */
static void pause_buffers(struct recorder *recorder)
{
	for (int c = 0; c < recorder->nr_channels; c++)
		if (perf_overwrite_pause_start(recorder->channels[c].ow.fd))
			die("can't pause CPU %d's buffer: %s",
			    recorder->channels[c].cpu, strerror(errno));
	for (int c = 0; c < recorder->nr_channels; c++)
		if (perf_overwrite_pause(recorder->channels[c].ow.fd))
			die("can't pause CPU %d's buffer: %s",
			    recorder->channels[c].cpu, strerror(errno));
	drain(recorder);
}

/*
 * Reads what was told of the names of tasks, and makes room for more. Of what is
 * missing there the tasks that haven't gone meanwhile are looked up.
 */
static void read_names(struct recorder *recorder)
{
	static __u64 space[PERF_OVERWRITE_RECORD_MAX / sizeof(__u64)];
	bool missing = false;

	for (int c = 0; c < recorder->nr_channels; c++) {
		struct perf_overwrite *ow = &recorder->channels[c].names;
		__u64 head = perf_overwrite_head(ow), time;
		struct perf_overwrite_walk walk;
		struct perf_event_header *record;

		/*
		 * Forward, from where it was read to the last time: less than 4 GiB, and
		 * a 32-bit kernel's head doesn't have more bits.
		 */
		perf_overwrite_begin_at(&walk, ow, ow->seen, (__u32)(head - ow->seen));
		while ((record = perf_overwrite_next(&walk, space))) {
			memcpy(&time, (char *)record + record->size - sizeof(time), sizeof(time));
			note_task_name(&recorder->names, record, time);
			missing |= record->type == PERF_RECORD_LOST;
		}
		ow->seen = head;
		perf_overwrite_set_tail(ow, head);
	}
	if (missing)
		read_task_names(&recorder->names, now());
}

static void stop_buffers(struct recorder *recorder)
{
	if (recorder->options->nr_triggers) {
		stop_set(recorder);
		return;
	}
	if (recorder->options->lossless)
		swap_buffers(recorder);
	pause_buffers(recorder);
}

static void resume_buffers(struct recorder *recorder)
{
	if (recorder->cut_short)
		return;
	if (recorder->options->nr_triggers)
		arm_set(recorder);
	else if (!recorder->options->lossless)
		for (int c = 0; c < recorder->nr_channels; c++)
			resume_buffer(&recorder->channels[c], &recorder->channels[c].ow);
}

static void read_buffer(const struct recorder *recorder, struct channel *channel)
{
	struct perf_overwrite_walk *walk = &channel->walk;
	struct perf_overwrite *ow = &channel->ow;

	if (recorder->snapshots) {
		perf_overwrite_begin_new(walk, ow);
	} else {
		perf_overwrite_begin(walk, ow);
		ow->seen = perf_overwrite_head(ow);
	}
	channel->records = 0;
	while (perf_overwrite_next(walk, channel->store + walk->covered))
		channel->records++;
	channel->lapped = perf_overwrite_lapped(walk);
}

/*
 * Stops all buffers and reads each, so that they show the same stretch of time,
 * then lets them go on, or keeps those that others stand in for. Nothing is printed
 * and no memory allocated meanwhile.
 */
static void take_snapshot(struct recorder *recorder)
{
	stop_buffers(recorder);
	for (int c = 0; c < recorder->nr_channels; c++)
		read_buffer(recorder, &recorder->channels[c]);
	resume_buffers(recorder);
	recorder->snapshots++;
	read_names(recorder);
}

/* What wait_for_signal() returns if a trigger came, and if all tasks have gone. */
#define TRIGGERED	(-1)
#define GONE		(-2)

/* Not too early: what is left of a millisecond is one. */
static int poll_timeout(long long until)
{
	long long left = until - now();

	if (!until)
		return -1;
	return left <= 0 ? 0 : left / 1000000 < INT_MAX ? left / 1000000 + 1 : INT_MAX;
}

/*
 * Waits for a signal, a trigger, the end of all tasks that --pid names, or for the time
 * @until if there is one. Meanwhile the buffers of the names are emptied whenever one of
 * them is half full.
 */
static int wait_for_signal(struct recorder *recorder, long long until)
{
	unsigned int tasks = 1 + recorder->nr_channels;
	unsigned int set = recorder->options->nr_pids ? tasks + recorder->nr_targets : tasks;

	for (;;) {
		int timeout = poll_timeout(until), left = -1;
		struct signalfd_siginfo info;
		bool told = false;

		if (recorder->options->nr_triggers)
			left = perf_overwrite_set_timeout(&recorder->set);
		if (left >= 0 && (timeout < 0 || left < timeout))
			timeout = left;
		if (recorder->gone)
			timeout = 0;
		if (poll(recorder->polled, recorder->nr_polled, timeout) < 0 && errno != EINTR)
			die("can't wait: %s", strerror(errno));
		for (unsigned int i = 1; i < recorder->nr_polled; i++) {
			struct pollfd *polled = &recorder->polled[i];

			told |= i < set && polled->revents;
			if (!(polled->revents & (POLLHUP | POLLERR)))
				continue;
			/* Its CPU went offline, or the task and all that it has started. */
			polled->fd = -1;
			if (i < tasks)
				fprintf(stderr, WENT_OFFLINE, recorder->channels[i - 1].cpu);
			recorder->gone |= i >= tasks && i < set && !--recorder->nr_alive;
		}
		if (told)
			read_names(recorder);
		if (read(recorder->polled[0].fd, &info, sizeof(info)) == sizeof(info)) {
			/* The terminal has told the command, too, which ends or goes on. */
			if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL &&
			    running_command)
				continue;
			return info.ssi_signo;
		}
		if (recorder->options->nr_triggers && perf_overwrite_set_stopped(&recorder->set))
			return TRIGGERED;
		if (recorder->gone) {
			recorder->gone = false;
			return GONE;
		}
		if (until && now() >= until)
			return 0;
	}
}

static int record(struct recorder *recorder, pid_t command, int go, int failed)
{
	const struct options *options = recorder->options;
	long long period = options->after, until = 0;
	bool over = false;

	enable_events(recorder);
	if (options->nr_triggers)
		arm_set(recorder);
	if (command)
		run_command(command, options->command, go, failed);

	if (period)
		until = now() + period;
	else
		fprintf(stderr, "flight_recorder: recording; kill -USR2 %d takes a snapshot\n",
			getpid());

	while (!over) {
		int signal = wait_for_signal(recorder, until);

		if (signal == SIGCHLD) {
			if (!running_command || !waitpid(running_command, NULL, WNOHANG))
				continue;
			running_command = 0;
		}
		if (period && !signal)
			until += period;
		if (signal == SIGCHLD || signal == GONE || is_end_by_user(signal))
			recorder->ending = true;
		if (options->nr_triggers && has_to_run_on(recorder, signal))
			continue;

		take_snapshot(recorder);
		report(recorder);
		over = recorder->ending ||
		       (options->repeat && recorder->snapshots >= options->repeat);
	}
	if (!recorder->samples)
		die("no event happened: nothing was recorded");
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = {
		.repeat = 1,
		.pages = DEFAULT_PAGES,
		.last = DEFAULT_LAST,
	};
	struct recorder recorder = {
		.options = &options,
		.counts_lost = true,
		.names.in_namespace = !is_initial_pid_namespace(),
	};
	struct sigaction hangup;
	int go = -1, failed = -1;
	pid_t command = 0;
	sigset_t signals;

	/* Whoever starts us may not care for the ends of children, but we do. */
	signal(SIGCHLD, SIG_DFL);
	/* From now on, so that an early one is late rather than lost. */
	sigemptyset(&signals);
	/* But under nohup. */
	if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler != SIG_IGN)
		sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR2);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	parse_options(&options, argc, argv);
	find_events(&recorder);
	find_cpus(&recorder);
	make_holder(&recorder);
	/* Waits until it is watched. */
	if (options.command)
		command = start_command(options.command, &go, &failed);
	find_targets(&recorder, command);
	recorder.task_fds = allocate(recorder.nr_targets, sizeof(*recorder.task_fds));
	for (int c = 0; c < recorder.nr_channels; c++)
		open_channel(&recorder, &recorder.channels[c]);
	open_triggers(&recorder);
	find_names(&recorder, &signals);
	return record(&recorder, command, go, failed);
}
