/* SPDX-License-Identifier: GPL-2.0 */
/* From the records of all buffers to those of a snapshot, in the order of time. */
#ifndef _SAMPLES_FLIGHT_ENTRIES_H
#define _SAMPLES_FLIGHT_ENTRIES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "flight_recorder.h"

/* The kind of the event with this id, or NULL. */
static inline const struct kind *find_kind(const struct recorder *recorder,
					   const struct channel *channel, __u64 id)
{
	for (int i = 0; i < recorder->nr_fds; i++)
		if (channel->ids[i] == id)
			return &recorder->kinds[i / recorder->nr_targets];
	return NULL;
}

/*
 * Finds what the record says about itself. In a sample this follows the header,
 * in any other record it is at the end (sample_id_all).
 *
 * Returns false if the record is none that the recorder's events write.
 */
static inline bool decode(const struct recorder *recorder, struct entry *entry)
{
	const struct perf_event_header *header = entry->header;
	const unsigned char *begin = (const unsigned char *)(header + 1), *at = begin;
	const unsigned char *end = (const unsigned char *)header + header->size;

	/* The ids of all events: IDENTIFIER, TID, TIME, CPU. */
	if (end - begin < (ptrdiff_t)(4 * sizeof(__u64)))
		return false;

	if (header->type == PERF_RECORD_SAMPLE) {
		memcpy(&entry->id, at, sizeof(entry->id));
		at += sizeof(entry->id);
		entry->kind = find_kind(recorder, entry->channel, entry->id);
		if (!entry->kind)
			return false;
		if (entry->kind->attr.sample_type & PERF_SAMPLE_IP)
			at += sizeof(__u64);
	} else {
		at = end - 4 * sizeof(__u64);
	}
	memcpy(&entry->pid, at, sizeof(__u32));
	memcpy(&entry->tid, at + sizeof(__u32), sizeof(__u32));
	memcpy(&entry->time, at + sizeof(__u64), sizeof(__u64));
	return true;
}

static inline int compare_entries(const void *one, const void *other)
{
	const struct entry *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* All records of the snapshot in the order of time. */
static inline struct entry *merge(struct recorder *recorder, size_t *nr_entries)
{
	struct entry *entries;
	size_t records = 0, nr = 0;

	for (int c = 0; c < recorder->nr_channels; c++)
		records += recorder->channels[c].records;
	entries = allocate(records + 1, sizeof(*entries));

	for (int c = 0; c < recorder->nr_channels; c++) {
		const struct channel *channel = &recorder->channels[c];
		const unsigned char *at = channel->store;

		/* Newest first, hence the falling order. */
		for (size_t i = channel->records; i--; ) {
			struct entry *entry = &entries[nr];

			entry->header = (const struct perf_event_header *)at;
			entry->channel = channel;
			entry->order = i;
			at += entry->header->size;
			if (decode(recorder, entry))
				nr++;
		}
	}
	qsort(entries, nr, sizeof(*entries), compare_entries);
	*nr_entries = nr;
	return entries;
}

#endif /* _SAMPLES_FLIGHT_ENTRIES_H */
