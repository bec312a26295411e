/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts how often each CPU is interrupted to call one function of the kernel. What
 * else interrupts it, on a busy machine, isn't counted.
 */
#ifndef _SELFTESTS_FUNCTION_CALLS_H
#define _SELFTESTS_FUNCTION_CALLS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf_overwrite.h"

/* The address of a function, 0 if there is none or if it isn't shown. */
static inline unsigned long long kernel_function(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address, found = 0;
	char type, symbol[256];

	while (file && !found && fscanf(file, "%llx %c %255s%*[^\n]", &address, &type, symbol) == 3)
		if ((type == 't' || type == 'T') && !strcmp(symbol, name))
			found = address;
	if (file)
		fclose(file);
	return found;
}

/*
 * Opens a counter of the interrupts of @cpu that call the function @name: a read() of
 * it returns a __u64. @id is that of the tracepoint csd:csd_function_entry, or -1.
 * Returns -1 with errno set, ENOENT on kernels that lack the tracepoint, the function,
 * or a name for it that may be seen.
 *
 * A CPU that calls the function for itself does so with no descriptor of a call.
 */
static inline int open_function_calls(long long id, const char *name, int cpu)
{
	/* Without its filter it would count any call. */
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .disabled = 1 };
	unsigned long long address = kernel_function(name);
	char filter[64];
	int fd, error;

	if (id < 0 || !address) {
		errno = ENOENT;
		return -1;
	}
	attr.config = id;
	snprintf(filter, sizeof(filter), "func == 0x%llx && csd != 0", address);
	fd = perf_overwrite_open(&attr, -1, cpu, -1);
	if (fd >= 0 && (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) ||
			ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))) {
		error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

/* Counts the function call interrupts of these CPUs. False if nobody does. */
static inline bool count_call_interrupts(const int *cpus, int nr_cpus, long *counts)
{
	FILE *file = fopen("/proc/interrupts", "re");
	char *line = NULL, *heading = NULL, *at, *column;
	size_t size = 0, heading_size = 0;
	int found = 0;

	if (!file)
		return false;
	/* The columns are those of the CPUs that are online. */
	column = getline(&heading, &heading_size, file) > 0 ? heading : NULL;
	while (column && getline(&line, &size, file) > 0) {
		if (!strstr(line, "Function call interrupts"))
			continue;
		at = strchr(line, ':') + 1;
		while ((column = strstr(column, "CPU"))) {
			int cpu = strtol(column + 3, &column, 10);
			long count = strtol(at, &at, 10);

			for (int c = 0; c < nr_cpus; c++) {
				if (cpus[c] == cpu) {
					counts[c] = count;
					found++;
				}
			}
		}
	}
	free(heading);
	free(line);
	fclose(file);
	return found == nr_cpus;
}

#endif /* _SELFTESTS_FUNCTION_CALLS_H */
