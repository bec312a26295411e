/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flight recorder's triggers: a set of all its buffers that samples of some events
 * stop (see perf_overwrite_set.h), and what the report says of that.
 *
 * The cut is a time. Which records come late and are dropped, and which time all CPUs
 * cover, perf_overwrite_set.h says.
 */
#ifndef _SAMPLES_FLIGHT_TRIGGER_H
#define _SAMPLES_FLIGHT_TRIGGER_H

#include <errno.h>
#include <signal.h>

#include "flight_recorder.h"

static inline void print_time(const char *before, __u64 time)
{
	printf("%s%llu.%06llu", before, (unsigned long long)(time / NSEC_PER_SEC),
	       (unsigned long long)(time % NSEC_PER_SEC / 1000));
}

/* "event if filter", or the event alone. */
static inline void split_trigger(struct kind *kind, const char *text)
{
	static const char separator[] = " if ";
	const char *filter = strstr(text, separator);
	char *name = strdup(text);

	if (!name)
		die("out of memory");
	if (filter) {
		name[filter - text] = '\0';
		filter += strlen(separator);
		filter += strspn(filter, " ");
		if (!*filter)
			die("--trigger: '%s' has no filter behind 'if': leave that out", text);
	}
	kind->name = name;
	kind->filter = filter;
	if (filter && !strchr(name, ':'))
		die("--trigger: '%s' has no fields: filter a tracepoint, as group:name", name);
}

static inline void open_set(struct recorder *recorder)
{
	const struct options *options = recorder->options;
	struct perf_overwrite_set_attr attr = {
		.clock		= CLOCK_MONOTONIC,
		.depth_ns	= options->depth.ns,
		.depth_bytes	= options->depth.bytes,
		.holdoff_ns	= options->holdoff.ns,
		.holdoff_bytes	= options->holdoff.bytes,
	};

	if (perf_overwrite_set_open(&recorder->set, recorder->channels[0].ow.fd, &attr))
		die("the kernel makes no set of buffers: %s", strerror(errno));
	for (int c = 0; c < recorder->nr_channels; c++)
		if (perf_overwrite_set_join(&recorder->set, &recorder->channels[c].ow))
			die("the buffer of CPU %d can't be stopped by a trigger: %s",
			    recorder->channels[c].cpu, strerror(errno));
	/* Where we stop the buffers, each of their samples has to wake us up. */
	for (int i = options->nr_events; i < recorder->nr_kinds; i++)
		recorder->kinds[i].attr.wakeup_events =
			!perf_overwrite_set_in_kernel(&recorder->set);
}

static inline void add_to_set(struct recorder *recorder, struct channel *channel, int i)
{
	for (int t = 0; t < recorder->nr_targets; t++) {
		int fd = channel->fds[i * recorder->nr_targets + t];

		if (fd < 0 || !perf_overwrite_set_add(&recorder->set, fd, &channel->ow,
						      recorder->kinds[i].attr.sample_period))
			continue;
		if (errno == ENOSPC)
			die("too many triggers of tasks and CPUs: record fewer tasks");
		else
			die("'%s' can't be a trigger on CPU %d: %s", recorder->kinds[i].name,
			    channel->cpu, strerror(errno));
	}
}

static inline unsigned int nr_polled_of_set(const struct recorder *recorder)
{
	return recorder->options->nr_triggers ?
	       perf_overwrite_set_nr_polled(&recorder->set) : 0;
}

static inline void arm_set(struct recorder *recorder)
{
	if (perf_overwrite_set_arm(&recorder->set))
		die("can't arm the trigger: %s", strerror(errno));
	recorder->armed_at = now();
}

/* Whoever sends one of these doesn't want to wait for a depth. */
static inline bool is_end_by_user(int signal)
{
	return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

/*
 * Whether the snapshot that is due has to wait, as the buffers have to run on for a depth
 * after a trigger, or after the signal or time that stands for one. Where the end of what
 * is recorded makes it due, and no trigger came before, there is nothing to wait for.
 */
static inline bool has_to_run_on(struct recorder *recorder, int signal)
{
	int fired;

	if (!recorder->options->depth.ns || is_end_by_user(signal) ||
	    perf_overwrite_set_stopped(&recorder->set))
		return false;
	fired = perf_overwrite_set_fire(&recorder->set);
	if (fired < 0)
		die("can't stop the buffers: %s", strerror(errno));
	return fired || !recorder->ending;
}

/*
 * Whether or not a trigger came. If the depth has been cut short, the buffers are paused,
 * and the set isn't armed any more.
 */
static inline void stop_set(struct recorder *recorder)
{
	if (recorder->ending && recorder->options->depth.ns &&
	    !perf_overwrite_set_stopped(&recorder->set)) {
		if (perf_overwrite_set_pause(&recorder->set))
			die("can't pause the buffers: %s", strerror(errno));
		recorder->cut = (struct perf_overwrite_cut) { .time = now(), .by_reader = true };
		recorder->cut.until = recorder->cut.time;
		recorder->cut_short = true;
	} else if (perf_overwrite_set_fire(&recorder->set) < 0 ||
		   perf_overwrite_set_read(&recorder->set, &recorder->cut)) {
		die("can't stop the buffers: %s", strerror(errno));
	}
	recorder->since = recorder->armed_at;
}

static inline bool is_of_trigger(const struct recorder *recorder, const struct entry *entry)
{
	return entry->header->type == PERF_RECORD_SAMPLE &&
	       entry->id == recorder->cut.id;
}

/* The trigger's record, if the snapshot has it: the last one before the cut. */
static inline const struct entry *find_trigger(const struct recorder *recorder,
					       const struct entry *entries, size_t nr_entries)
{
	while (nr_entries--)
		if (entries[nr_entries].time <= recorder->cut.time &&
		    is_of_trigger(recorder, &entries[nr_entries]))
			return &entries[nr_entries];
	return NULL;
}

/*
 * We got to know of the trigger late, and its record knows better: the first one that
 * wasn't held off.
 */
static inline void correct_cut(struct recorder *recorder, const struct entry *entries,
			       size_t nr_entries)
{
	const struct depth *holdoff = &recorder->options->holdoff;

	if (!recorder->cut.by_reader || !recorder->cut.id || holdoff->bytes)
		return;
	for (size_t i = 0; i < nr_entries; i++) {
		if (entries[i].time < recorder->since + holdoff->ns ||
		    !is_of_trigger(recorder, &entries[i]))
			continue;
		/* Its record was overwritten: this is a later one. */
		if (entries[i].time > recorder->cut.time)
			return;
		perf_overwrite_cut_at(&recorder->cut, entries[i].time);
		return;
	}
}

/*
 * Adds each record to the span of its CPU's buffer, and drops what is later than the
 * depth. The entries are in the order of time. Returns how many are left.
 */
static inline size_t cut_entries(struct recorder *recorder, const struct entry *entries,
				 size_t nr_entries)
{
	size_t kept = 0;

	correct_cut(recorder, entries, nr_entries);
	for (int c = 0; c < recorder->nr_channels; c++)
		memset(&recorder->channels[c].span, 0, sizeof(recorder->channels[c].span));
	for (size_t i = 0; i < nr_entries; i++) {
		struct channel *channel = recorder->channels +
					  (entries[i].channel - recorder->channels);

		kept += perf_overwrite_span_add(&channel->span, &recorder->cut, entries[i].time);
	}
	return kept;
}

/* A buffer that wasn't filled since it was armed shows all from then on. */
static inline struct perf_overwrite_window covered_window(const struct recorder *recorder)
{
	struct perf_overwrite_window window;

	perf_overwrite_window_begin(&window, &recorder->cut, recorder->since);
	for (int c = 0; c < recorder->nr_channels; c++)
		if (recorder->channels[c].lapped)
			perf_overwrite_window_narrow(&window, &recorder->channels[c].span);
	return window;
}

static inline void print_window(const struct recorder *recorder)
{
	struct perf_overwrite_window window = covered_window(recorder);

	if (perf_overwrite_window_is_empty(&window)) {
		printf("no time is covered by all CPUs: use a larger -m\n");
		return;
	}
	print_time("all CPUs cover ", window.from);
	print_time(" to ", window.until);
	print_time(", ", window.until - window.from);
	printf(" seconds\n");
}

static inline void print_cpus(const struct recorder *recorder)
{
	printf(" CPU        oldest        newest   late by us  after the cut  dropped\n");
	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct perf_overwrite_span *span = &recorder->channels[c].span;

		printf("%4d %13.6f %13.6f %12.1f %14zu %8zu\n", recorder->channels[c].cpu,
		       span->oldest / 1000 / 1e6, span->newest / 1000 / 1e6,
		       perf_overwrite_span_late_by(span, &recorder->cut) / 1000.0, span->after,
		       span->late);
	}
}

/* How the buffers were stopped, and what of their records counts. */
static inline void print_cut(const struct recorder *recorder)
{
	const struct perf_overwrite_cut *cut = &recorder->cut;
	const struct depth *depth = &recorder->options->depth;

	print_time("cut at ", cut->time);
	if (recorder->cut_short)
		printf(", buffers stopped at once by the recorder, as it was ended\n");
	else
		printf(", buffers stopped %s%s by %s\n", depth->ns ? depth->text : "at once",
		       depth->ns ? " later" : "", cut->by_reader ?
		       "the recorder, as this kernel has no triggers" : "the kernel");
	print_cpus(recorder);
	print_window(recorder);
	printf("samples of triggers: %llu suppressed later, %llu held off before\n",
	       (unsigned long long)cut->suppressed, (unsigned long long)cut->held_off);
}

#endif /* _SAMPLES_FLIGHT_TRIGGER_H */
