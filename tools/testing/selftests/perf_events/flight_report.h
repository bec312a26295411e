/* SPDX-License-Identifier: GPL-2.0 */
/* What the flight recorder prints of a snapshot. */
#ifndef _SELFTESTS_FLIGHT_REPORT_H
#define _SELFTESTS_FLIGHT_REPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flight_entries.h"
#include "flight_recorder.h"
#include "flight_trigger.h"
#include "syscall_names.h"

static inline void print_sample(const struct entry *entry)
{
	const struct kind *kind = entry->kind;
	const unsigned char *at = (const unsigned char *)(entry->header + 1);
	const unsigned char *end = (const unsigned char *)entry->header +
				   entry->header->size;
	__u64 ip, addr;
	__u32 size;

	if (!kind->tracepoint) {
		/* IDENTIFIER, IP, TID, TIME, ADDR, CPU */
		if (at + 6 * sizeof(__u64) > end)
			return;
		memcpy(&ip, at + sizeof(__u64), sizeof(ip));
		memcpy(&addr, at + 4 * sizeof(__u64), sizeof(addr));
		printf("ip=%#llx addr=%#llx", (unsigned long long)ip,
		       (unsigned long long)addr);
		return;
	}

	/* IDENTIFIER, TID, TIME, CPU, and the raw data after its size */
	at += 4 * sizeof(__u64);
	if (at + sizeof(size) > end)
		return;
	memcpy(&size, at, sizeof(size));
	at += sizeof(size);
	if (size > (size_t)(end - at))
		return;
	for (unsigned int i = 0; i < kind->format.nr_fields; i++) {
		const struct trace_field *field = &kind->format.fields[i];

		printf("%s%s=", i ? " " : "", field->name);
		trace_print_field(field, at, size);
		if (kind->syscall_id && !strcmp(field->name, "id") &&
		    field->offset + field->width <= size)
			print_syscall_name(trace_integer(at + field->offset,
							 field->width, true));
	}
}

static inline void print_entry(const struct recorder *recorder, const struct entry *entry)
{
	const char *name = find_task_name(&recorder->names, entry->tid, entry->time);
	char task[64];

	snprintf(task, sizeof(task), "%s-%d", name, (int)entry->tid);
	printf("%4d %6llu.%06llu  %-22s ", entry->channel->cpu,
	       (unsigned long long)(entry->time / NSEC_PER_SEC),
	       (unsigned long long)(entry->time % NSEC_PER_SEC / 1000), task);

	if (entry->header->type == PERF_RECORD_SAMPLE) {
		printf("%-22s ", entry->kind->name);
		print_sample(entry);
	} else {
		print_side_band(entry->header);
	}
	putchar('\n');
}

/* What the kernel counted as lost for this CPU since the recording began. */
static inline __u64 count_lost(const struct recorder *recorder, const struct channel *channel)
{
	struct {
		__u64 value, id, lost;
	} counts;
	__u64 lost = 0;

	for (int i = 0; i < recorder->nr_fds; i++)
		if (read(channel->fds[i], &counts, sizeof(counts)) == sizeof(counts))
			lost += counts.lost;
	return lost;
}

static inline void print_summary(const struct recorder *recorder,
				 const struct entry *entries, size_t nr_entries)
{
	__u64 told = 0;

	printf("\n CPU   records  whole bytes  of buffer     written      lost   seconds\n");
	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct channel *channel = &recorder->channels[c];
		__u64 oldest = 0, newest = 0, written;

		written = perf_overwrite_written(0, channel->ow.seen) +
			  perf_overwrite_written(0, channel->spare.seen);
		for (size_t i = 0; i < nr_entries; i++) {
			if (entries[i].channel != channel)
				continue;
			if (!oldest)
				oldest = entries[i].time;
			newest = entries[i].time;
			if (entries[i].header->type == PERF_RECORD_LOST)
				told += lost_records(entries[i].header);
		}
		printf("%4d %9zu %12zu %10zu %11llu ", channel->cpu, channel->records,
		       channel->walk.covered, channel->ow.size,
		       (unsigned long long)written);
		if (recorder->counts_lost)
			printf("%9llu", (unsigned long long)count_lost(recorder, channel));
		else
			printf("%9s", "?");
		printf(" %9.6f\n", (double)(newest - oldest) / NSEC_PER_SEC);
	}
	printf("snapshot %lu: %zu records", recorder->snapshots, nr_entries);
	if (nr_entries)
		printf(" in %.6f seconds", (double)(entries[nr_entries - 1].time -
						    entries[0].time) / NSEC_PER_SEC);
	printf(", %llu told lost by records\n", (unsigned long long)told);
	printf("(written and lost: since the start%s)\n",
	       recorder->options->lossless ? "" : "; lost: also while reading");
}

static inline void print_trigger(const struct recorder *recorder,
				 const struct entry *entries, size_t nr_entries)
{
	const struct entry *trigger = find_trigger(recorder, entries, nr_entries);

	if (!recorder->cut.id)
		printf("\nno trigger came\n");
	else if (trigger)
		printf("\ntrigger: %s%s%s\n", trigger->kind->name,
		       trigger->kind->filter ? " if " : "",
		       trigger->kind->filter ? trigger->kind->filter : "");
	else
		printf("\na trigger came whose record was %s\n",
		       recorder->cut.no_record ? "dropped" : "overwritten since");
	if (trigger)
		print_entry(recorder, trigger);
	print_cut(recorder);
}

static inline void report(struct recorder *recorder)
{
	const struct options *options = recorder->options;
	struct entry *entries;
	size_t nr_entries;

	entries = merge(recorder, &nr_entries);
	if (options->nr_triggers)
		nr_entries = cut_entries(recorder, entries, nr_entries);
	sort_task_names(&recorder->names);

	printf("%s CPU          TIME  TASK                   EVENT                  ARGUMENTS\n",
	       recorder->snapshots > 1 ? "\n" : "");
	for (size_t i = 0; i < nr_entries; i++) {
		if (entries[i].header->type == PERF_RECORD_SAMPLE)
			recorder->samples++;
		if (nr_entries - i <= options->last)
			print_entry(recorder, &entries[i]);
	}
	print_summary(recorder, entries, nr_entries);
	if (options->nr_triggers)
		print_trigger(recorder, entries, nr_entries);
	fflush(stdout);
	free(entries);
}

#endif /* _SELFTESTS_FLIGHT_REPORT_H */
