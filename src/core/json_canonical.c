#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/json.h"
#include "json_walk.h"

/*
 * One pass over the value.  An object's members are written as they come, each
 * with a comma behind it, and then put in order in the output.  Recursion is
 * bounded: only what json_check() has passed comes here.
 */

struct writer {
	struct buf *out;
	struct buf members; /* a stack, of all objects that are open */
	struct buf spare;
};

struct member {
	struct json_slice key;
	size_t at, len; /* in the output, the comma included */
};

/* By key; members of one key in the order in which they stand. */
static int
compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;
	int order = json_compare(&a->key, &b->key);

	return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/* Put the `n` members that stand from `start` to the output's end in order. */
static void
sort_members(struct writer *w, struct member *members, size_t n, size_t start)
{
	struct buf *out = w->out;

	if (n == 1)
		return;
	qsort(members, n, sizeof(*members), compare_members);
	buf_clear(&w->spare);
	buf_add(&w->spare, out->data + start, out->len - start);
	if (w->spare.failed)
		return;
	out->len = start;
	for (size_t i = 0; i < n; i++)
		buf_add(out, w->spare.data + (members[i].at - start),
		    members[i].len);
}

static const char *
put_string(struct buf *out, struct json_slice *string, const char *at)
{
	const char *end = json_walk_string(at);
	struct buf text = { 0 };

	*string = (struct json_slice){ JSON_STRING, at, (size_t)(end - at) };
	if (memchr(at, '\\', string->len) == NULL) {
		buf_add(out, at, string->len);
		return end;
	}
	json_unescape(&text, string);
	json_quote(out, text.data, text.len);
	out->failed |= text.failed;
	buf_fini(&text);
	return end;
}

static const char *put_value(struct writer *w, const char *at);

static const char *
put_array(struct writer *w, const char *at)
{
	buf_puts(w->out, "[");
	at = json_walk_space(at + 1);
	while (*at != ']') {
		at = json_walk_space(put_value(w, at));
		if (*at != ',')
			continue;
		buf_puts(w->out, ",");
		at = json_walk_space(at + 1);
	}
	buf_puts(w->out, "]");
	return at + 1;
}

static const char *
put_member(struct writer *w, const char *at)
{
	struct member member = { .at = w->out->len };

	at = json_walk_space(put_string(w->out, &member.key, at));
	buf_puts(w->out, ":");
	at = json_walk_space(put_value(w, json_walk_space(at + 1)));
	buf_puts(w->out, ",");
	member.len = w->out->len - member.at;
	buf_add(&w->members, &member, sizeof(member));
	return *at == ',' ? json_walk_space(at + 1) : at;
}

static const char *
put_object(struct writer *w, const char *at)
{
	size_t first = w->members.len, start, n;

	buf_puts(w->out, "{");
	start = w->out->len;
	at = json_walk_space(at + 1);
	while (*at != '}')
		at = put_member(w, at);
	n = (w->members.len - first) / sizeof(struct member);
	if (n > 0 && !w->out->failed && !w->members.failed) {
		sort_members(w, (void *)(w->members.data + first), n, start);
		w->out->len--; /* the last comma */
	}
	buf_puts(w->out, "}");
	w->members.len = first;
	return at + 1;
}

static const char *
put_value(struct writer *w, const char *at)
{
	struct json_slice string;
	const char *end;

	switch (json_walk_kind(at)) {
	case JSON_STRING:
		return put_string(w->out, &string, at);
	case JSON_ARRAY:
		return put_array(w, at);
	case JSON_OBJECT:
		return put_object(w, at);
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
		break;
	}
	end = json_walk_scalar(at);
	buf_add(w->out, at, (size_t)(end - at));
	return end;
}

void
json_canonical(struct buf *out, const struct json_slice *value)
{
	struct writer w = { .out = out };

	/* Alone, a number or word may end where the text does. */
	switch (value->kind) {
	case JSON_NULL:
	case JSON_BOOL:
	case JSON_NUMBER:
		buf_add(out, value->at, value->len);
		break;
	case JSON_STRING:
	case JSON_ARRAY:
	case JSON_OBJECT:
		(void)put_value(&w, value->at);
		break;
	}
	out->failed |= w.members.failed || w.spare.failed;
	buf_fini(&w.members);
	buf_fini(&w.spare);
}
