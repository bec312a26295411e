/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a text is JSON as RFC 8259 has it, and nothing else. */
#ifndef _SELFTESTS_JSON_CHECK_H
#define _SELFTESTS_JSON_CHECK_H

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define JSON_DEPTH_MAX	32

static inline const char *json_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

/* Each of these returns what is behind its part, or NULL if there is none. */
static inline const char *json_check_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if (!isascii(*at) || iscntrl(*at))
			return NULL;
		if (*at != '\\')
			continue;
		at++;
		if (*at == 'u') {
			for (int i = 0; i < 4; i++)
				if (!isxdigit(*++at))
					return NULL;
		} else if (!*at || !strchr("\"\\/bfnrt", *at)) {
			return NULL;
		}
	}
	return at + 1;
}

static inline const char *json_check_digits(const char *at)
{
	return isdigit(*at) ? at + strspn(at, "0123456789") : NULL;
}

static inline const char *json_check_number(const char *at)
{
	if (*at == '-')
		at++;
	at = *at == '0' ? at + 1 : json_check_digits(at);
	if (at && *at == '.')
		at = json_check_digits(at + 1);
	if (at && (*at == 'e' || *at == 'E')) {
		at++;
		at = json_check_digits(*at == '+' || *at == '-' ? at + 1 : at);
	}
	return at;
}

static inline const char *json_check_value(const char *at, int depth);

/* An object if its members have names, else an array. */
static inline const char *json_check_members(const char *at, bool names, int depth)
{
	char end = names ? '}' : ']';

	at = json_blanks(at + 1);
	if (*at == end)
		return at + 1;
	for (;;) {
		if (names) {
			at = json_check_string(json_blanks(at));
			if (!at)
				return NULL;
			at = json_blanks(at);
			if (*at++ != ':')
				return NULL;
		}
		at = json_check_value(json_blanks(at), depth);
		if (!at)
			return NULL;
		at = json_blanks(at);
		if (*at == end)
			return at + 1;
		if (*at++ != ',')
			return NULL;
	}
}

static inline const char *json_check_value(const char *at, int depth)
{
	static const char * const words[] = { "true", "false", "null" };

	if (depth > JSON_DEPTH_MAX)
		return NULL;
	if (*at == '{' || *at == '[')
		return json_check_members(at, *at == '{', depth + 1);
	if (*at == '"')
		return json_check_string(at);
	for (int i = 0; i < 3; i++)
		if (!strncmp(at, words[i], strlen(words[i])))
			return at + strlen(words[i]);
	return json_check_number(at);
}

/* A line with one object. */
static inline bool is_json_object(const char *line)
{
	const char *end;

	if (*line != '{')
		return false;
	end = json_check_value(line, 0);
	return end && !*json_blanks(end);
}

#endif /* _SELFTESTS_JSON_CHECK_H */
