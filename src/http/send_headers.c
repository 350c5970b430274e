#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "send.h"

enum { HEADER_LINE_MAX = 16 * 1024 };

/* They are the client's own: another value would change where the request ends
 * or goes, or how the connection is kept. */
static const char *const reserved[] = {
	"connection",
	"content-length",
	"expect",
	"host",
	"keep-alive",
	"proxy-connection",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
};

/* RFC 9110 section 5.6.2. */
static bool
is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') ||
		    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL))
			continue;
		return false;
	}
	return len > 0;
}

static bool
is_named(const char *line, size_t len, const char *name)
{
	return strlen(name) == len && strncasecmp(line, name, len) == 0;
}

static bool
is_reserved(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (is_named(line, len, reserved[i]))
			return true;
	return false;
}

static int
check_line(const char *line, size_t name, struct err *err)
{
	if (line[name] != ':' || !is_token(line, name))
		return err_set(err, ERR_REFUSED,
		    "a header must be written as Name: value");
	if (is_reserved(line, name))
		return err_set(err, ERR_REFUSED,
		    "the header %.*s is set by the client itself", (int)name,
		    line);
	if (strlen(line) > HEADER_LINE_MAX)
		return err_set(err, ERR_REFUSED,
		    "the header %.*s is longer than %d octets", (int)name, line,
		    HEADER_LINE_MAX);
	for (const char *p = line + name + 1; *p != '\0'; p++)
		if ((*p > 0 && *p < 0x20 && *p != '\t') || *p == 0x7f)
			return err_set(err, ERR_REFUSED,
			    "the value of header %.*s has a control character",
			    (int)name, line);
	return 0;
}

/* libcurl's own notation: "Name:" leaves a header out, "Name;" sends it with
 * an empty value. */
static void
add_line(struct buf *text, const char *line, size_t name)
{
	if (line[name + 1 + strspn(line + name + 1, " \t")] != '\0') {
		buf_puts(text, line);
	} else {
		buf_add(text, line, name);
		buf_puts(text, ";");
	}
	buf_add(text, "", 1);
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
		size_t name = strcspn(*headers, ":");

		if (check_line(*headers, name, err) != 0)
			return -1;
		if (is_named(*headers, name, "content-type"))
			has_type = true;
		add_line(text, *headers, name);
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
