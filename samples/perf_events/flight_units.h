/* SPDX-License-Identifier: GPL-2.0 */
/* Times and sizes as one types them: 5ms, 1.5s, 64K. */
#ifndef _SAMPLES_FLIGHT_UNITS_H
#define _SAMPLES_FLIGHT_UNITS_H

#include <errno.h>
#include <limits.h>

#include "flight_recorder.h"

/* No time and no size is larger. */
#define AMOUNT_MAX	1e18

static inline unsigned long parse_number(const char *text, const char *what)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || end == text || *end || *text < '0' || *text > '9')
		die("%s: '%s' is no count: give a plain number", what, text);
	return value;
}

/* Plain digits with at most one point, as strtod() takes more. Moves behind it. */
static inline bool parse_decimal(const char **text, double *number)
{
	size_t length = strspn(*text, "0123456789.");
	char digits[32], *end;

	if (!length || length >= sizeof(digits))
		return false;
	memcpy(digits, *text, length);
	digits[length] = '\0';
	*number = strtod(digits, &end);
	*text += length;
	return end > digits && !*end;
}

/* A number with a unit, and what is behind it. Returns false if it is none. */
static inline bool parse_amount(const char **text, struct depth *depth)
{
	static const struct {
		const char	*unit;
		__u64		ns, bytes;
	} units[] = {
		{ .unit = "ns", .ns = 1 },
		{ .unit = "us", .ns = 1000 },
		{ .unit = "ms", .ns = 1000000 },
		{ .unit = "s", .ns = NSEC_PER_SEC },
		{ .unit = "B", .bytes = 1 },
		{ .unit = "K", .bytes = 1 << 10 },
		{ .unit = "M", .bytes = 1 << 20 },
		{ .unit = "G", .bytes = 1 << 30 },
	};
	double number;

	if (!parse_decimal(text, &number))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		__u64 *amount = units[i].ns ? &depth->ns : &depth->bytes;
		size_t length = strlen(units[i].unit);

		if (strncmp(*text, units[i].unit, length))
			continue;
		*text += length;
		number *= units[i].ns ? units[i].ns : units[i].bytes;
		/* Twice the same is no depth. */
		if (*amount || number > AMOUNT_MAX)
			return false;
		*amount = number;
		return true;
	}
	return !number;
}

/* A time, bytes, both, or 0. */
static inline struct depth parse_depth(const char *text, const char *what)
{
	struct depth depth = { .text = text };
	const char *at = text;
	bool good = parse_amount(&at, &depth);

	if (good && *at == ',') {
		at++;
		good = parse_amount(&at, &depth);
	}
	if (!good || *at)
		die("%s: '%s' is no depth: give a time as 5ms, bytes as 64K, or both as 64K,5ms",
		    what, text);
	return depth;
}

/* In nanoseconds, which aren't 0. A plain number is in seconds. */
static inline __u64 parse_time(const char *text, const char *what)
{
	struct depth depth = { };
	const char *at = text;
	double seconds;

	if (parse_decimal(&at, &seconds) && !*at && seconds < AMOUNT_MAX / NSEC_PER_SEC) {
		depth.ns = seconds * NSEC_PER_SEC;
	} else {
		at = text;
		if (!parse_amount(&at, &depth) || *at || depth.bytes)
			depth.ns = 0;
	}
	if (!depth.ns)
		die("%s: '%s' is no time: give one as 500ms or 2s", what, text);
	return depth.ns;
}

/* A plain number is that of the pages. */
static inline unsigned long parse_pages(const char *text, const char *what)
{
	unsigned long page = sysconf(_SC_PAGESIZE), pages = 0;
	struct depth size = { };
	const char *at = text;

	if (text[strspn(text, "0123456789")] == '\0')
		pages = strtoul(text, NULL, 10);
	else if (parse_amount(&at, &size) && !*at && !size.ns && size.bytes % page == 0)
		pages = size.bytes / page;
	if (!pages || pages & (pages - 1) || pages > INT_MAX / page)
		die("%s: '%s' is no buffer size: give a power of two up to 1G, as 256K, or 8 pages",
		    what, text);
	return pages;
}

#endif /* _SAMPLES_FLIGHT_UNITS_H */
