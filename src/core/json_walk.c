#include <assert.h>

#include "json_walk.h"

enum json_kind
json_walk_kind(const char *at)
{
	switch (*at) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_NUMBER;
	}
}

/* Eight bytes at once: the high bit of one is set if it is over 0x7f, below a
 * blank, or the same as one of the two others. */
const char *
json_walk_plain(const char *at, const char *end)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t eight;

	for (; end - at >= 8; at += 8) {
		memcpy(&eight, at, sizeof(eight));
		if (((eight | (eight - each * ' ') |
			 ((eight ^ each * '"') - each) |
			 ((eight ^ each * '\\') - each)) &
			each * 0x80) != 0)
			break;
	}
	while (at < end && json_walk_is_plain(*at))
		at++;
	return at;
}

/* A quote ends the string unless an odd number of backslashes is before it. */
static bool
is_escaped(const char *quote)
{
	const char *at = quote;

	while (at[-1] == '\\')
		at--;
	return (quote - at) % 2 != 0;
}

const char *
json_walk_string(const char *at)
{
	do /* there is one, so that nothing beyond it is read */
		at = memchr(at + 1, '"', INT32_MAX);
	while (is_escaped(at));
	return at + 1;
}

const char *
json_walk_scalar(const char *at)
{
	while (
	    *at != ',' && *at != '}' && *at != ']' && !json_walk_is_space(*at))
		at++;
	return at;
}

static const char *
container_end(const char *at)
{
	int depth = 0;

	do {
		switch (*at) {
		case '"':
			at = json_walk_string(at);
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			break;
		}
		at++;
	} while (depth > 0);
	return at;
}

static const char *
value_end(const struct json_slice *value)
{
	switch (value->kind) {
	case JSON_STRING:
		return json_walk_string(value->at);
	case JSON_ARRAY:
	case JSON_OBJECT:
		return container_end(value->at);
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
		break;
	}
	return json_walk_scalar(value->at);
}

static const char *
read_value(struct json_slice *value, const char *at)
{
	const char *end;

	value->kind = json_walk_kind(at);
	value->at = at;
	end = value_end(value);
	value->len = (size_t)(end - at);
	return end;
}

/* Step over the bracket or comma before an item; NULL if none follows. */
static const char *
next_item(const struct json_slice *in, size_t pos)
{
	const char *last = in->at + in->len - 1; /* the closing bracket */
	const char *at = json_walk_space(in->at + pos);

	if (at < last)
		at = json_walk_space(at + 1);
	return at < last ? at : NULL;
}

bool
json_next_member(const struct json_slice *object, size_t *pos,
    struct json_slice *key, struct json_slice *value)
{
	const char *at;

	assert(object->kind == JSON_OBJECT);
	at = next_item(object, *pos);
	if (at == NULL)
		return false;
	at = json_walk_space(read_value(key, at));
	at = json_walk_space(at + 1); /* the colon */
	at = read_value(value, at);
	*pos = (size_t)(at - object->at);
	return true;
}

bool
json_next_element(
    const struct json_slice *array, size_t *pos, struct json_slice *value)
{
	const char *at;

	assert(array->kind == JSON_ARRAY);
	at = next_item(array, *pos);
	if (at == NULL)
		return false;
	at = read_value(value, at);
	*pos = (size_t)(at - array->at);
	return true;
}
