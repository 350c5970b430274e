#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "send.h"

enum { HEADER_LINE_MAX = 16 * 1024 };

/* They are the client's own: another value would change where the request ends
 * or goes, or how the connection is kept. */
#define NAME(text)                                                             \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}
static const struct name {
	const char *text;
	size_t len;
} reserved[] = {
	NAME("connection"),
	NAME("content-length"),
	NAME("expect"),
	NAME("host"),
	NAME("keep-alive"),
	NAME("proxy-connection"),
	NAME("te"),
	NAME("trailer"),
	NAME("transfer-encoding"),
	NAME("upgrade"),
};
static const struct name content_type = NAME("content-type");

/* A header that is given, in the making. */
struct line {
	const char *text;
	size_t len, name; /* of all of it, of the part before the colon */
};

static struct line
read_line(const char *text)
{
	size_t len = strlen(text);
	const char *colon = memchr(text, ':', len);

	return (struct line){
		.text = text,
		.len = len,
		.name = colon == NULL ? len : (size_t)(colon - text),
	};
}

/* RFC 9110 section 5.6.2. */
static bool
is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
	       (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+.^_`|~", c) != NULL);
}

static bool
is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(text[i]))
			return false;
	return len > 0;
}

static bool
is_named(const struct line *line, const struct name *name)
{
	return line->name == name->len &&
	       strncasecmp(line->text, name->text, name->len) == 0;
}

static bool
is_reserved(const struct line *line)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (is_named(line, &reserved[i]))
			return true;
	return false;
}

/* Looks at every octet: the compiler makes that fast. */
static bool
has_control(const char *text, size_t len)
{
	bool found = false;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		found |= (c < 0x20 && c != '\t') || c == 0x7f;
	}
	return found;
}

static int
check_line(const struct line *line, struct err *err)
{
	int name = (int)line->name;

	if (line->name == line->len || !is_token(line->text, line->name))
		return err_set(err, ERR_REFUSED,
		    "a header must be written as Name: value");
	if (is_reserved(line))
		return err_set(err, ERR_REFUSED,
		    "the header %.*s is set by the client itself", name,
		    line->text);
	if (line->len > HEADER_LINE_MAX)
		return err_set(err, ERR_REFUSED,
		    "the header %.*s is longer than %d octets", name,
		    line->text, HEADER_LINE_MAX);
	if (has_control(line->text + line->name, line->len - line->name))
		return err_set(err, ERR_REFUSED,
		    "the value of header %.*s has a control character", name,
		    line->text);
	return 0;
}

/* libcurl's own notation: "Name:" leaves a header out, "Name;" sends it with
 * an empty value. */
static void
add_line(struct buf *text, const struct line *line)
{
	const char *value = line->text + line->name + 1;

	if (value[strspn(value, " \t")] != '\0') {
		buf_add(text, line->text, line->len + 1);
	} else {
		buf_add(text, line->text, line->name);
		buf_add(text, ";", sizeof(";"));
	}
}

/* Chain one node a line.  Only now, that the text moves no more. */
static void
link_lines(struct send *send, size_t count)
{
	struct curl_slist *nodes;
	char *at = send->header_text.data;

	buf_clear(&send->header_nodes);
	nodes = (struct curl_slist *)(void *)buf_grow(
	    &send->header_nodes, count * sizeof(*nodes));
	if (nodes == NULL)
		return;
	for (size_t i = 0; i < count; i++) {
		nodes[i].data = at;
		nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
		at += strlen(at) + 1;
	}
}

int
send_headers_copy(
    struct send *send, const char *const *headers, struct err *err)
{
	struct buf *text = &send->header_text;
	bool has_type = false;
	size_t count = 1;

	buf_clear(text);
	buf_add(text, "Expect:", sizeof("Expect:"));
	for (; *headers != NULL; headers++, count++) {
		struct line line = read_line(*headers);

		if (check_line(&line, err) != 0)
			return -1;
		if (is_named(&line, &content_type))
			has_type = true;
		add_line(text, &line);
	}
	if (!has_type) { /* or libcurl calls it a form */
		buf_add(text, "Content-Type:", sizeof("Content-Type:"));
		count++;
	}
	if (!text->failed)
		link_lines(send, count);
	if (text->failed || send->header_nodes.failed)
		return err_set(err, ERR_NOMEM, "headers");
	return 0;
}

struct curl_slist *
send_headers_list(struct send *send)
{
	return (struct curl_slist *)(void *)send->header_nodes.data;
}
