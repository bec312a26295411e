/* SPDX-License-Identifier: GPL-2.0 */
/* What the flight recorder prints of a snapshot. */
#ifndef _SAMPLES_FLIGHT_REPORT_H
#define _SAMPLES_FLIGHT_REPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flight_entries.h"
#include "flight_fields.h"
#include "flight_json.h"
#include "flight_recorder.h"
#include "flight_summary.h"
#include "flight_trigger.h"

#define HEADING \
	" CPU          TIME  TASK                   EVENT                  ARGUMENTS"

static const struct trace_style trace_text = {
	.between	= " ",
	.name		= "%s=",
	.hex		= "%#llx",
	.byte		= "\\x%02x",
	.begin		= "{",
	.end		= "}",
	.cut		= "<cut>",
	.syscall	= "(%s)",
};

static inline void print_entry(const struct recorder *recorder, const struct entry *entry)
{
	const char *name = find_task_name(&recorder->names, entry->tid, entry->time);
	char task[128];

	printable_name(task, sizeof(task) - 16, name);
	snprintf(task + strlen(task), 16, "-%d", (int)entry->tid);
	printf("%4d %6llu.%06llu  %-22s ", entry->channel->cpu,
	       (unsigned long long)(entry->time / NSEC_PER_SEC),
	       (unsigned long long)(entry->time % NSEC_PER_SEC / 1000), task);

	if (entry->header->type == PERF_RECORD_SAMPLE) {
		printf("%-22s ", entry->kind->name);
		print_sample(entry, &trace_text);
	} else {
		printf("%-22s ", side_band_name(entry->header));
		print_side_band(entry->header);
	}
}

static inline void print_summary(const struct recorder *recorder,
				 const struct entry *entries, size_t nr_entries)
{
	printf("\n CPU   records  whole bytes  of buffer     written      lost   seconds\n");
	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct channel *channel = &recorder->channels[c];
		struct summary summary = summarize(recorder, channel, entries, nr_entries);

		printf("%4d %9zu %12zu %10zu %11llu ", channel->cpu, channel->records,
		       channel->walk.covered, channel->ow.size,
		       (unsigned long long)summary.written);
		if (recorder->counts_lost)
			printf("%9llu", (unsigned long long)summary.lost);
		else
			printf("%9s", "?");
		printf(" %9.6f\n", (double)(summary.newest - summary.oldest) / NSEC_PER_SEC);
	}
	printf("snapshot %lu: %zu records", recorder->snapshots, nr_entries);
	if (nr_entries)
		printf(" in %.6f seconds", (double)(entries[nr_entries - 1].time -
						    entries[0].time) / NSEC_PER_SEC);
	printf(", PERF_RECORD_LOST counts %llu\n",
	       (unsigned long long)count_told(entries, nr_entries));
	printf("(written and lost: since the start%s)\n",
	       recorder->options->lossless ? "" : "; lost: also while reading");
}

static inline void print_trigger(const struct recorder *recorder,
				 const struct entry *entries, size_t nr_entries)
{
	const struct entry *trigger = find_trigger(recorder, entries, nr_entries);

	if (recorder->cut_short)
		printf("\nended before a trigger had stopped the buffers\n");
	else if (!recorder->cut.id)
		printf("\nno trigger came\n");
	else if (trigger)
		printf("\ntrigger: %s%s%s\n", trigger->kind->name,
		       trigger->kind->filter ? " if " : "",
		       trigger->kind->filter ? trigger->kind->filter : "");
	else
		printf("\na trigger came whose record was %s\n",
		       recorder->cut.no_record ? "dropped" : "overwritten since");
	if (trigger) {
		print_entry(recorder, trigger);
		putchar('\n');
	}
	print_cut(recorder);
}

static inline void report(struct recorder *recorder)
{
	bool json = recorder->options->json;
	const struct options *options = recorder->options;
	struct entry *entries;
	size_t nr_entries;

	entries = merge(recorder, &nr_entries);
	for (size_t i = 0; i < nr_entries; i++)
		recorder->samples += entries[i].header->type == PERF_RECORD_SAMPLE;
	if (options->nr_triggers)
		nr_entries = cut_entries(recorder, entries, nr_entries);
	sort_task_names(&recorder->names);

	if (!json)
		printf("%s%s\n", recorder->snapshots > 1 ? "\n" : "", HEADING);
	for (size_t i = 0; i < nr_entries; i++) {
		if (nr_entries - i > options->last)
			continue;
		(json ? json_entry : print_entry)(recorder, &entries[i]);
		putchar('\n');
	}
	(json ? json_summary : print_summary)(recorder, entries, nr_entries);
	if (options->nr_triggers)
		(json ? json_trigger : print_trigger)(recorder, entries, nr_entries);
	free(entries);
	if (fflush(stdout) || ferror(stdout))
		die("can't write what is printed: %s", strerror(errno));
}

#endif /* _SAMPLES_FLIGHT_REPORT_H */
