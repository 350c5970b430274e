/*
 * json: a strict RFC 8259 scanner that keeps the bytes.
 *
 * json-c keeps neither bytes nor strictness, and what an app posts must reach
 * its subscribers byte for byte.  So the event path validates with this and
 * hands on slices of the input.  Strict means: UTF-8 (no overlong forms, no
 * encoded surrogates), no control characters in strings, no lone surrogate
 * escapes, no leading zeros, nothing after the value.  Checking and walking
 * take time linear in the text, no recursion and no memory.
 */

#ifndef CORE_JSON_H
#define CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct buf;

enum { JSON_MAX_DEPTH = 64 };

enum json_kind {
	JSON_NULL,
	JSON_BOOL,
	JSON_NUMBER,
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

/* A value inside the caller's text: it lends, and owns nothing. */
struct json_slice {
	enum json_kind kind;
	const char *at;
	size_t len;
};

/*
 * Validate `text` as one JSON value with white space around it, and set `*out`
 * to it without that space.  ERR_REFUSED says what is wrong at which byte,
 * counted from 0.
 */
int json_check(
    struct json_slice *out, const char *text, size_t len, struct err *err);

/*
 * Walk the members of a validated object, in order.  `*pos` starts at 0.
 * Returns false after the last.  `key` is the raw string, quotes included.
 */
bool json_next_member(const struct json_slice *object, size_t *pos,
    struct json_slice *key, struct json_slice *value);

/* The same for the elements of a validated array. */
bool json_next_element(
    const struct json_slice *array, size_t *pos, struct json_slice *value);

/*
 * Append the characters that a validated string stands for, as UTF-8.
 * A \u0000 is appended as a NUL byte: the caller decides.
 */
void json_unescape(struct buf *out, const struct json_slice *string);

/* True if the string `key` stands for exactly `name`. */
bool json_is(const struct json_slice *key, const char *name);

/*
 * Order two validated strings by the UTF-8 of what they stand for: below, at
 * or above 0, as memcmp().
 */
int json_compare(const struct json_slice *a, const struct json_slice *b);

/* Append `text` as a JSON string with its quotes; invalid UTF-8 as U+FFFD. */
void json_quote(struct buf *out, const char *text, size_t len);

/*
 * Append the canonical form of a validated value: no white space, object
 * members sorted by the UTF-8 of their unescaped keys (members of one key keep
 * their order), strings in their shortest escaping, numbers as they were
 * written.  Two texts with one canonical form say the same.  It is never longer
 * than the value, and making it takes memory linear in it.
 */
void json_canonical(struct buf *out, const struct json_slice *value);

#endif
