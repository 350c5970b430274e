/*
 * json_walk: steps over a text that json_check() has passed.
 *
 * Every string there has its end and every bracket its partner, so nothing
 * looks for the end of the text.
 */

#ifndef CORE_JSON_WALK_H
#define CORE_JSON_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/json.h"

static inline bool
json_walk_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const char *
json_walk_space(const char *at)
{
	while (json_walk_is_space(*at))
		at++;
	return at;
}

/* The bytes of a string that stand for themselves and need no look at what
 * follows them. */
static inline bool
json_walk_is_plain(char c)
{
	return c >= ' ' && c != '"' && c != '\\' && (unsigned char)c < 0x80;
}

/* The first byte from `at` that is not plain, or `end`. */
const char *json_walk_plain(const char *at, const char *end);

/* The kind of the value that begins at `at`. */
enum json_kind json_walk_kind(const char *at);

/* Where the string at `at`, or the number or word inside a container, ends. */
const char *json_walk_string(const char *at);
const char *json_walk_scalar(const char *at);

#endif
