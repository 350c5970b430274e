#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "core/json.h"
#include "core/utf8.h"
#include "json_walk.h"

/* A text on its way to being known as JSON. */
struct scan {
	const char *text, *at, *end;
	uint64_t objects; /* lowest bit: the innermost container is an object */
	int depth; /* how many containers are open */
	struct err *err;
};

static_assert(JSON_MAX_DEPTH <= 64, "a container is a bit of `objects`");

static int
refuse(const struct scan *s, const char *why)
{
	return err_set(s->err, ERR_REFUSED, "JSON at byte %zu: %s",
	    (size_t)(s->at - s->text), why);
}

/* The next byte, or -1 at the end. */
static int
peek(const struct scan *s)
{
	return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool
take(struct scan *s, int c)
{
	if (peek(s) != c)
		return false;
	s->at++;
	return true;
}

static void
take_space(struct scan *s)
{
	while (s->at < s->end && json_walk_is_space(*s->at))
		s->at++;
}

/* Four hex digits as a number; -1 if they are not. */
static int
take_hex(struct scan *s)
{
	int unit = 0;

	for (int i = 0; i < 4; i++) {
		int c = peek(s);

		if (c >= '0' && c <= '9')
			unit = unit * 16 + c - '0';
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			unit = unit * 16 + (c | 0x20) - 'a' + 10;
		else
			return -1;
		s->at++;
	}
	return unit;
}

/*
 * What follows "\u".  RFC 8259 leaves a surrogate without its other half open;
 * it is no character, and PostgreSQL's jsonb refuses it too.
 */
static int
scan_unit(struct scan *s)
{
	int unit = take_hex(s);

	if (unit < 0)
		return refuse(s, "\\u takes four hex digits");
	if (unit < 0xd800 || unit > 0xdfff)
		return 0;
	if (unit < 0xdc00 && take(s, '\\') && take(s, 'u')) {
		unit = take_hex(s);
		if (unit >= 0xdc00 && unit <= 0xdfff)
			return 0;
	}
	return refuse(s, "an escaped surrogate without its other half");
}

static int
scan_escape(struct scan *s)
{
	int c = peek(s);

	if (take(s, 'u'))
		return scan_unit(s);
	if (c <= 0 || strchr("\"\\/bfnrt", c) == NULL)
		return refuse(s, "an unknown escape in a string");
	s->at++;
	return 0;
}

static int
scan_other(struct scan *s)
{
	size_t n;

	if ((unsigned char)*s->at < ' ')
		return refuse(s, "a control character in a string");
	n = utf8_len(s->at, (size_t)(s->end - s->at));
	if (n == 0)
		return refuse(s, "a string is not UTF-8");
	s->at += n;
	return 0;
}

static int
scan_string(struct scan *s)
{
	s->at++;
	for (;;) {
		s->at = json_walk_plain(s->at, s->end);
		if (take(s, '"'))
			return 0;
		if (s->at == s->end)
			return refuse(s, "a string does not end");
		if (take(s, '\\') ? scan_escape(s) != 0 : scan_other(s) != 0)
			return -1;
	}
}

static bool
take_digits(struct scan *s)
{
	const char *start = s->at;

	while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
		s->at++;
	return s->at > start;
}

static int
scan_number(struct scan *s)
{
	(void)take(s, '-');
	if (!take(s, '0') && !take_digits(s))
		return refuse(s, "a number lacks its digits");
	if (take(s, '.') && !take_digits(s))
		return refuse(s, "a number lacks digits after its point");
	if (take(s, 'e') || take(s, 'E')) {
		if (!take(s, '+'))
			(void)take(s, '-');
		if (!take_digits(s))
			return refuse(s, "a number lacks its exponent");
	}
	return 0;
}

static int
scan_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return refuse(s, "expected a value");
	s->at += n;
	return 0;
}

static int
scan_scalar(struct scan *s)
{
	int c = peek(s);

	if (c == '"')
		return scan_string(s);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s);
	return scan_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null");
}

static int
scan_open(struct scan *s)
{
	if (s->depth == JSON_MAX_DEPTH)
		return refuse(s, "nested too deep");
	s->depth++;
	s->objects = s->objects << 1 | (*s->at == '{');
	s->at++;
	take_space(s);
	return 0;
}

/* The bracket that would close the innermost container. */
static int
closer(const struct scan *s)
{
	return (s->objects & 1) != 0 ? '}' : ']';
}

static int
scan_key(struct scan *s)
{
	if (peek(s) != '"')
		return refuse(s, "expected a member's name");
	if (scan_string(s) != 0)
		return -1;
	take_space(s);
	if (!take(s, ':'))
		return refuse(s, "expected a colon");
	take_space(s);
	return 0;
}

/* Close what ends after a value, up to a comma or the end of the whole. */
static int
scan_after(struct scan *s)
{
	while (s->depth > 0) {
		take_space(s);
		if (take(s, ',')) {
			take_space(s);
			return 0;
		}
		if (!take(s, closer(s)))
			return refuse(s, "expected a comma or the end of the "
					 "array or object");
		s->depth--;
		s->objects >>= 1;
	}
	return 0;
}

static int
scan_value(struct scan *s)
{
	do {
		int c;

		if ((s->objects & 1) != 0 && scan_key(s) != 0)
			return -1;
		c = peek(s);
		if (c == '{' || c == '[') {
			if (scan_open(s) != 0)
				return -1;
			if (peek(s) != closer(s))
				continue;
		} else if (scan_scalar(s) != 0) {
			return -1;
		}
		if (scan_after(s) != 0)
			return -1;
	} while (s->depth > 0);
	return 0;
}

int
json_check(
    struct json_slice *out, const char *text, size_t len, struct err *err)
{
	struct scan s = { .err = err };
	const char *start;

	s.text = s.at = len > 0 ? text : "";
	s.end = s.text + len;
	take_space(&s);
	start = s.at;
	if (scan_value(&s) != 0)
		return -1;
	*out = (struct json_slice){
		.kind = json_walk_kind(start),
		.at = start,
		.len = (size_t)(s.at - start),
	};
	take_space(&s);
	return s.at == s.end ? 0 : refuse(&s, "something follows the value");
}
