/* SPDX-License-Identifier: GPL-2.0 */
/* The fields of a sample, as text or as members of a JSON object. */
#ifndef _SAMPLES_FLIGHT_FIELDS_H
#define _SAMPLES_FLIGHT_FIELDS_H

#include "flight_recorder.h"
#include "syscall_names.h"

static inline void print_address(const char *name, const unsigned char *at, bool first,
				 const struct trace_style *style)
{
	static const struct trace_field address = { .width = sizeof(__u64), .hex = true };

	trace_print_name(name, first, style);
	trace_print_integer(&address, at, style);
}

static inline void print_sample(const struct entry *entry, const struct trace_style *style)
{
	const struct kind *kind = entry->kind;
	const unsigned char *at = (const unsigned char *)(entry->header + 1);
	const unsigned char *end = (const unsigned char *)entry->header +
				   entry->header->size;
	__u32 size;

	if (!kind->tracepoint) {
		/* IDENTIFIER, IP, TID, TIME, ADDR, CPU */
		if (at + 6 * sizeof(__u64) > end)
			return;
		print_address("ip", at + sizeof(__u64), true, style);
		print_address("addr", at + 4 * sizeof(__u64), false, style);
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
		const char *name = NULL;

		trace_print_name(field->name, !i, style);
		trace_print_field(field, at, size, style);
		if (kind->syscall_id && !strcmp(field->name, "id") &&
		    field->offset + field->width <= size)
			name = syscall_name(trace_integer(at + field->offset, field->width, true));
		if (name)
			printf(style->syscall, name);
	}
}

#endif /* _SAMPLES_FLIGHT_FIELDS_H */
