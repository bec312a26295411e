/* SPDX-License-Identifier: GPL-2.0 */
/* From the names of events to what perf_event_open() wants of them. */
#ifndef _SAMPLES_FLIGHT_EVENTS_H
#define _SAMPLES_FLIGHT_EVENTS_H

#include <errno.h>
#include <time.h>

#include "flight_recorder.h"
#include "flight_trigger.h"

static const struct {
	const char	*name;
	__u64		config;
	__u64		period;
} software_events[] = {
	{ "cpu-clock",		PERF_COUNT_SW_CPU_CLOCK,	1000000 },
	{ "task-clock",		PERF_COUNT_SW_TASK_CLOCK,	1000000 },
	{ "page-faults",	PERF_COUNT_SW_PAGE_FAULTS,	1 },
	{ "minor-faults",	PERF_COUNT_SW_PAGE_FAULTS_MIN,	1 },
	{ "major-faults",	PERF_COUNT_SW_PAGE_FAULTS_MAJ,	1 },
	{ "context-switches",	PERF_COUNT_SW_CONTEXT_SWITCHES,	1 },
	{ "cpu-migrations",	PERF_COUNT_SW_CPU_MIGRATIONS,	1 },
};

static inline void find_tracepoint(struct kind *kind, const char *root)
{
	char group[128];
	const char *name = strchr(kind->name, ':') + 1;

	snprintf(group, sizeof(group), "%.*s", (int)(name - kind->name - 1),
		 kind->name);
	if (!root && errno == ENOENT)
		die("no tracefs: mount -t tracefs nodev /sys/kernel/tracing");
	if (!root)
		die("can't read tracefs: %s; run as root", strerror(errno));
	if (strchr(kind->name, '/') ||
	    trace_read_format(&kind->format, root, group, name)) {
		if (errno == EACCES || errno == EPERM)
			die("can't read the format of '%s': %s; run as root",
			    kind->name, strerror(errno));
		die("unknown event '%s': see %s/available_events", kind->name, root);
	}

	kind->tracepoint = true;
	kind->syscall_id = !strcmp(group, "raw_syscalls");
	kind->attr.type = PERF_TYPE_TRACEPOINT;
	kind->attr.config = kind->format.id;
	kind->attr.sample_period = 1;
	kind->attr.sample_type = SAMPLE_TYPE | PERF_SAMPLE_RAW;
}

static inline void find_software_event(struct kind *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(software_events); i++) {
		if (strcmp(kind->name, software_events[i].name))
			continue;
		kind->attr.type = PERF_TYPE_SOFTWARE;
		kind->attr.config = software_events[i].config;
		kind->attr.sample_period = software_events[i].period;
		kind->attr.sample_type = SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
		return;
	}
	die("unknown event '%s': give group:name of a tracepoint, or see --help",
	    kind->name);
}

static inline void find_event(struct recorder *recorder, struct kind *kind, const char *root)
{
	if (strchr(kind->name, ':'))
		find_tracepoint(kind, root);
	else
		find_software_event(kind);

	kind->attr.size = sizeof(kind->attr);
	kind->attr.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	kind->attr.disabled = 1;
	kind->attr.sample_id_all = 1;
	kind->attr.use_clockid = 1;
	kind->attr.clockid = CLOCK_MONOTONIC;
	kind->attr.write_backward = 1;
	kind->attr.inherit = of_tasks(recorder->options);
	/* One event of each target reports what tasks are called. */
	kind->attr.comm = kind == recorder->kinds;
	kind->attr.task = kind == recorder->kinds;
}

static inline void find_events(struct recorder *recorder)
{
	const struct options *options = recorder->options;
	const char *root = trace_root();
	int error = errno;

	recorder->nr_kinds = options->nr_events + options->nr_triggers;
	recorder->kinds = allocate(recorder->nr_kinds, sizeof(*recorder->kinds));
	for (int i = 0; i < recorder->nr_kinds; i++) {
		struct kind *kind = &recorder->kinds[i];

		if (i < options->nr_events)
			kind->name = options->events[i];
		else
			split_trigger(kind, options->triggers[i - options->nr_events]);
		errno = error;
		find_event(recorder, kind, root);
	}
}

#endif /* _SAMPLES_FLIGHT_EVENTS_H */
