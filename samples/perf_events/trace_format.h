/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tracefs tells about a tracepoint: its number, and the fields of its raw
 * data, which can thus be printed without knowing the tracepoint.
 */
#ifndef _SAMPLES_TRACE_FORMAT_H
#define _SAMPLES_TRACE_FORMAT_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

#define TRACE_FIELDS_MAX	64

struct trace_field {
	char		name[64];
	unsigned int	offset;
	unsigned int	size;		/* of the whole field */
	unsigned int	width;		/* of one element */
	bool		array;
	bool		is_signed;
	bool		hex;		/* an address or a set of bits, not a count */
	bool		text;
	bool		located;	/* the field says where the data is ... */
	bool		relative;	/* ... counted from the field's end */
};

struct trace_format {
	unsigned int		id;
	unsigned int		nr_fields;
	struct trace_field	fields[TRACE_FIELDS_MAX];
};

/* Where tracefs is mounted, or NULL with errno set. */
static inline const char *trace_root(void)
{
	static const char * const roots[] = {
		"/sys/kernel/tracing", "/sys/kernel/debug/tracing",
	};
	char path[64];
	int error = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/trace_clock", roots[i]);
		file = fopen(path, "r");
		if (file) {
			fclose(file);
			return roots[i];
		}
		if (errno != ENOENT)
			error = errno;
	}
	errno = error;
	return NULL;
}

/*
 * Understands one "field:" line, such as
 *
 *	field:unsigned long args[6];	offset:16;	size:48;	signed:0;
 *	field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
 */
static inline bool trace_parse_field(char *line, struct trace_field *field)
{
	unsigned int offset, size, is_signed, count = 0;
	char *declaration, *end, *name, *bracket;

	declaration = strstr(line, "field:");
	if (!declaration)
		return false;
	declaration += strlen("field:");
	end = strchr(declaration, ';');
	if (!end || sscanf(end, "; offset:%u; size:%u; signed:%u;", &offset,
			   &size, &is_signed) != 3)
		return false;
	*end = '\0';

	name = strrchr(declaration, ' ');
	if (!name)
		return false;
	*name++ = '\0';

	memset(field, 0, sizeof(*field));
	field->offset = offset;
	field->size = size;
	field->is_signed = is_signed;
	field->located = strstr(declaration, "__data_loc");
	field->relative = strstr(declaration, "__rel_loc");
	field->located |= field->relative;
	field->array = field->located;

	bracket = strchr(name, '[');
	if (bracket) {
		*bracket++ = '\0';
		count = strtoul(bracket, NULL, 0);
		field->array = true;
	}
	snprintf(field->name, sizeof(field->name), "%s", name);

	field->width = size;
	if (field->located)
		field->width = 1;
	else if (count && size % count == 0)
		field->width = size / count;
	else if (field->array)
		field->width = 1;

	/* 'char *' is an address: only an array of char holds the text itself. */
	field->text = field->array && field->width == 1 &&
		      strstr(declaration, "char") && !strchr(declaration, '*');
	field->hex = strchr(declaration, '*') ||
		     (!is_signed && (field->width == sizeof(__u64) ||
				     strstr(declaration, "unsigned long")));
	return true;
}

/* Reads the format of @group:@name. Returns 0, or -1 with errno set. */
static inline int trace_read_format(struct trace_format *format, const char *root,
				    const char *group, const char *name)
{
	char path[512], line[512];
	bool known = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/events/%s/%s/format", root, group, name);
	file = fopen(path, "r");
	if (!file)
		return -1;

	format->nr_fields = 0;
	while (fgets(line, sizeof(line), file)) {
		struct trace_field *field = &format->fields[format->nr_fields];

		if (sscanf(line, "ID: %u", &format->id) == 1)
			known = true;
		if (format->nr_fields < TRACE_FIELDS_MAX &&
		    trace_parse_field(line, field) &&
		    strncmp(field->name, "common_", strlen("common_")))
			format->nr_fields++;
	}
	fclose(file);

	if (!known) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

/* An integer of @width bytes, in the byte order of this machine. */
static inline __u64 trace_integer(const unsigned char *data, unsigned int width,
				  bool is_signed)
{
	__u64 value64;
	__u32 value32;
	__u16 value16;

	switch (width) {
	case 1:
		return is_signed ? (__u64)(signed char)data[0] : data[0];
	case 2:
		memcpy(&value16, data, sizeof(value16));
		return is_signed ? (__u64)(__s16)value16 : value16;
	case 4:
		memcpy(&value32, data, sizeof(value32));
		return is_signed ? (__u64)(__s32)value32 : value32;
	case 8:
		memcpy(&value64, data, sizeof(value64));
		return value64;
	default:
		return 0;
	}
}

/* How fields are printed. Each but the ends is a format of printf(). */
struct trace_style {
	const char	*between;	/* fields */
	const char	*name;		/* a string, before the value */
	const char	*hex;		/* an address, long long */
	const char	*byte;		/* that isn't a plain character, int */
	const char	*begin, *end;	/* an array */
	const char	*cut;		/* the record doesn't have it all */
	const char	*syscall;	/* a name, behind the number */
};

static inline void trace_print_name(const char *name, bool first,
				    const struct trace_style *style)
{
	if (!first)
		fputs(style->between, stdout);
	printf(style->name, name);
}

static inline void trace_print_text(const unsigned char *text, unsigned int size,
				    const struct trace_style *style)
{
	putchar('"');
	for (unsigned int i = 0; i < size && text[i]; i++) {
		if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			printf(style->byte, text[i]);
		else
			putchar(text[i]);
	}
	putchar('"');
}

static inline void trace_print_integer(const struct trace_field *field,
				       const unsigned char *data,
				       const struct trace_style *style)
{
	__u64 value = trace_integer(data, field->width, field->is_signed);

	if (field->hex)
		printf(style->hex, (unsigned long long)value);
	else if (field->is_signed)
		printf("%lld", (long long)value);
	else
		printf("%llu", (unsigned long long)value);
}

/* Prints the value of @field out of the @size bytes of raw data. */
static inline void trace_print_field(const struct trace_field *field,
				     const unsigned char *data, unsigned int size,
				     const struct trace_style *style)
{
	unsigned int offset = field->offset, bytes = field->size;

	if (field->located && offset + sizeof(__u32) <= size) {
		__u32 where = trace_integer(data + offset, sizeof(where), false);

		bytes = where >> 16;
		where &= 0xffff;
		offset = field->relative ? offset + field->size + where : where;
	}
	if (offset > size || bytes > size - offset) {
		fputs(style->cut, stdout);
		return;
	}

	if (field->text) {
		trace_print_text(data + offset, bytes, style);
		return;
	}
	if (!field->array) {
		trace_print_integer(field, data + offset, style);
		return;
	}
	fputs(style->begin, stdout);
	for (unsigned int i = 0; i + field->width <= bytes; i += field->width) {
		if (i)
			putchar(',');
		trace_print_integer(field, data + offset + i, style);
	}
	fputs(style->end, stdout);
}

#endif /* _SAMPLES_TRACE_FORMAT_H */
