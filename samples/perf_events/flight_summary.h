/* SPDX-License-Identifier: GPL-2.0 */
/* What a snapshot amounts to, for each CPU. */
#ifndef _SAMPLES_FLIGHT_SUMMARY_H
#define _SAMPLES_FLIGHT_SUMMARY_H

#include <unistd.h>

#include "flight_recorder.h"

/* Times are 0 where there is no record. */
struct summary {
	__u64	oldest, newest;
	__u64	written;	/* bytes since the recording began */
	__u64	lost;		/* records since then, if the kernel counts them */
};

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

static inline struct summary summarize(const struct recorder *recorder,
				       const struct channel *channel,
				       const struct entry *entries, size_t nr_entries)
{
	struct summary summary = {
		.written = perf_overwrite_written(0, channel->ow.seen) +
			   perf_overwrite_written(0, channel->spare.seen),
		.lost = count_lost(recorder, channel),
	};

	for (size_t i = 0; i < nr_entries; i++) {
		if (entries[i].channel != channel)
			continue;
		if (!summary.oldest)
			summary.oldest = entries[i].time;
		summary.newest = entries[i].time;
	}
	return summary;
}

/* What records tell of others that were lost. */
static inline __u64 count_told(const struct entry *entries, size_t nr_entries)
{
	__u64 told = 0;

	for (size_t i = 0; i < nr_entries; i++)
		if (entries[i].header->type == PERF_RECORD_LOST)
			told += lost_records(entries[i].header);
	return told;
}

#endif /* _SAMPLES_FLIGHT_SUMMARY_H */
