/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the flight recorder prints of a snapshot with --json: a line for each record, one
 * for the snapshot, and one for the trigger if there is any. Each is an object.
 *
 * Times are in seconds. Addresses and sets of bits are strings, as 0x10: a reader may
 * have no integers of 64 bits. A name or a text of the kernel is any bytes: those that
 * aren't plain ASCII are escaped as the characters with these numbers, so that a reader
 * gets the bytes back if it encodes the string as Latin-1.
 */
#ifndef _SAMPLES_FLIGHT_JSON_H
#define _SAMPLES_FLIGHT_JSON_H

#include "flight_entries.h"
#include "flight_fields.h"
#include "flight_recorder.h"
#include "flight_summary.h"
#include "flight_trigger.h"

static const struct trace_style trace_json = {
	.between	= ",",
	.name		= "\"%s\":",
	.hex		= "\"%#llx\"",
	.byte		= "\\u%04x",
	.begin		= "[",
	.end		= "]",
	.cut		= "null",
	.syscall	= ",\"syscall\":\"%s\"",
};

static inline void json_text(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	if (text)
		trace_print_text((const unsigned char *)text, strlen(text), &trace_json);
	else
		printf("null");
}

static inline void json_number(const char *name, unsigned long long number)
{
	printf(",\"%s\":%llu", name, number);
}

static inline void json_time(const char *name, __u64 time)
{
	printf(",\"%s\":%llu.%09llu", name, (unsigned long long)(time / NSEC_PER_SEC),
	       (unsigned long long)(time % NSEC_PER_SEC));
}

static inline void json_time_if(const char *name, __u64 time, bool known)
{
	if (known)
		json_time(name, time);
	else
		json_text(name, NULL);
}

static inline void json_side_band(const struct perf_event_header *header)
{
	union side_band record = side_band(header);

	printf("\"type\":%u", header->type);
	switch (header->type) {
	case PERF_RECORD_COMM:
		json_number("tid", record.comm.tid);
		json_text("name", record.comm.name);
		break;
	case PERF_RECORD_FORK:
		json_number("tid", record.task.tid);
		json_number("parent", record.task.ptid);
		break;
	case PERF_RECORD_EXIT:
		json_number("tid", record.task.tid);
		break;
	case PERF_RECORD_LOST:
		json_number("records", record.lost.lost);
		break;
	}
}

static inline void json_entry(const struct recorder *recorder, const struct entry *entry)
{
	bool sample = entry->header->type == PERF_RECORD_SAMPLE;

	printf("{\"type\":\"record\"");
	json_time("time", entry->time);
	printf(",\"cpu\":%d,\"pid\":%d,\"tid\":%d", entry->channel->cpu, (int)entry->pid,
	       (int)entry->tid);
	json_text("comm", find_task_name(&recorder->names, entry->tid, entry->time));
	json_text("event", sample ? entry->kind->name : side_band_name(entry->header));
	printf(",\"fields\":{");
	if (sample)
		print_sample(entry, &trace_json);
	else
		json_side_band(entry->header);
	printf("}}");
}

static inline void json_summary(const struct recorder *recorder,
				const struct entry *entries, size_t nr_entries)
{
	__u64 time = nr_entries ? entries[nr_entries - 1].time - entries[0].time : 0;

	printf("{\"type\":\"snapshot\",\"number\":%lu", recorder->snapshots);
	json_number("records", nr_entries);
	json_time("seconds", time);
	json_number("told_lost", count_told(entries, nr_entries));
	printf(",\"cpus\":[");
	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct channel *channel = &recorder->channels[c];
		struct summary summary = summarize(recorder, channel, entries, nr_entries);

		printf("%s{\"cpu\":%d", c ? "," : "", channel->cpu);
		json_number("records", channel->records);
		json_number("bytes", channel->walk.covered);
		json_number("size", channel->ow.size);
		json_number("written", summary.written);
		if (recorder->counts_lost)
			json_number("lost", summary.lost);
		else
			json_text("lost", NULL);
		json_time("seconds", summary.newest - summary.oldest);
		putchar('}');
	}
	printf("]}\n");
}

static inline void json_cpus(const struct recorder *recorder)
{
	printf(",\"cpus\":[");
	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct perf_overwrite_span *span = &recorder->channels[c].span;

		printf("%s{\"cpu\":%d", c ? "," : "", recorder->channels[c].cpu);
		json_time_if("oldest", span->oldest, span->oldest);
		json_time_if("newest", span->newest, span->newest);
		json_time("late", perf_overwrite_span_late_by(span, &recorder->cut));
		json_number("after", span->after);
		json_number("dropped", span->late);
		putchar('}');
	}
	putchar(']');
}

static inline void json_trigger(const struct recorder *recorder,
				const struct entry *entries, size_t nr_entries)
{
	const struct entry *trigger = find_trigger(recorder, entries, nr_entries);
	const struct perf_overwrite_cut *cut = &recorder->cut;
	struct perf_overwrite_window window = covered_window(recorder);

	printf("{\"type\":\"trigger\",\"came\":%s", cut->id ? "true" : "false");
	json_text("filter", trigger ? trigger->kind->filter : NULL);
	printf(",\"record\":");
	if (trigger)
		json_entry(recorder, trigger);
	else
		printf("null");
	json_text("no_record", trigger || !cut->id ? NULL :
		  cut->no_record ? "dropped" : "overwritten");
	json_text("stopped_by", cut->by_reader ? "recorder" : "kernel");
	json_time("cut", cut->time);
	json_time("until", cut->until);
	/* The time that all CPUs cover, if there is any. */
	json_time_if("covered_from", window.from, !perf_overwrite_window_is_empty(&window));
	json_number("suppressed", cut->suppressed);
	json_number("held_off", cut->held_off);
	json_cpus(recorder);
	printf("}\n");
}

#endif /* _SAMPLES_FLIGHT_JSON_H */
