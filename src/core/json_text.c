#include <string.h>

#include "base/buf.h"
#include "core/json.h"
#include "core/utf8.h"
#include "json_walk.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/*
 * What an escape of one letter stands for and, at the same place, the letter.
 * The last is read and never written: a slash needs no escape.
 */
static const char escaped[] = "\"\\\b\f\n\r\t/";
static const char letters[] = "\"\\bfnrt/";

enum { NWRITTEN = sizeof(letters) - 2 };

static uint32_t
get_hex(const char **at)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++) {
		unsigned char c = (unsigned char)*(*at)++;

		unit = unit * 16 + (c & 0xfu) + (c > '9' ? 9u : 0u);
	}
	return unit;
}

/* Read the escape at `*at`, and step over it. */
static uint32_t
get_escape(const char **at)
{
	char letter = (*at)[1];
	uint32_t high, low;

	*at += 2;
	if (letter != 'u')
		return (uint32_t)escaped[strchr(letters, letter) - letters];
	high = get_hex(at);
	if (high < 0xd800 || high > 0xdfff)
		return high;
	*at += 2;
	low = get_hex(at);
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* Read the character at `*at` inside a validated string, and step over it. */
static uint32_t
get_char(const char **at)
{
	return **at == '\\' ? get_escape(at) : utf8_get(at);
}

static const char *
content_end(const struct json_slice *string)
{
	return string->at + string->len - 1;
}

void
json_unescape(struct buf *out, const struct json_slice *string)
{
	const char *at = string->at + 1;
	const char *end = content_end(string);

	while (at < end) {
		const char *start = at;
		char bytes[4];

		if (*at == '\\') {
			buf_add(out, bytes, utf8_put(bytes, get_escape(&at)));
			continue;
		}
		at = memchr(start, '\\', (size_t)(end - start));
		if (at == NULL)
			at = end;
		buf_add(out, start, (size_t)(at - start));
	}
}

bool
json_is(const struct json_slice *key, const char *name)
{
	const char *at = key->at + 1;
	const char *end = content_end(key);

	while (at < end) {
		uint32_t c = get_char(&at);
		char bytes[4];
		size_t n = utf8_put(bytes, c);

		if (c == 0 || strncmp(name, bytes, n) != 0)
			return false;
		name += n;
	}
	return *name == '\0';
}

int
json_compare(const struct json_slice *a, const struct json_slice *b)
{
	const char *at_a = a->at + 1, *end_a = content_end(a);
	const char *at_b = b->at + 1, *end_b = content_end(b);

	/* Characters and the bytes of their UTF-8 sort alike. */
	while (at_a < end_a && at_b < end_b) {
		uint32_t ca, cb;

		if (*at_a == '\\' || *at_b == '\\') {
			ca = get_char(&at_a);
			cb = get_char(&at_b);
		} else {
			ca = (unsigned char)*at_a++;
			cb = (unsigned char)*at_b++;
		}
		if (ca != cb)
			return ca < cb ? -1 : 1;
	}
	return (at_a < end_a) - (at_b < end_b);
}

/* The shortest spelling of an ASCII character. */
static void
put_ascii(struct buf *out, char c)
{
	static const char hex[] = "0123456789abcdef";
	const char *found = memchr(escaped, c, NWRITTEN);

	if (found != NULL)
		buf_add(out, (char[]){ '\\', letters[found - escaped] }, 2);
	else if (c < ' ')
		buf_add(out,
		    (char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] },
		    6);
	else
		buf_add(out, &c, 1);
}

void
json_quote(struct buf *out, const char *text, size_t len)
{
	const char *end = len > 0 ? text + len : text;

	buf_puts(out, "\"");
	while (text < end) {
		const char *plain = json_walk_plain(text, end);
		size_t n;

		buf_add(out, text, (size_t)(plain - text));
		text = plain;
		if (text == end)
			break;
		n = utf8_len(text, (size_t)(end - text));
		if (n == 0)
			buf_puts(out, REPLACEMENT);
		else if (n == 1)
			put_ascii(out, *text);
		else
			buf_add(out, text, n);
		text += n > 0 ? n : 1;
	}
	buf_puts(out, "\"");
}
