#include <string.h>
#include <strings.h>

#include "core/retry_after.h"
#include "core/text.h"
#include "send.h"

enum {
	RETRY_AFTER_TEXT = 64, /* longer than any form of it */
	LENGTH_DIGITS = 18, /* of the longest length that is read */
	VALUE_KEPT = 256, /* octets of a header's value that are kept */
};

/* What helps a person to see who answered, and why so.  Nothing that may hold
 * a credential (Set-Cookie, Authentication-Info), nothing of any length. */
#define NAME(text)                                                             \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}
static const struct name {
	const char *text;
	size_t len;
} kept[] = {
	NAME("allow"),
	NAME("cf-ray"),
	NAME("content-encoding"),
	NAME("content-length"),
	NAME("content-type"),
	NAME("date"),
	NAME("location"),
	NAME("request-id"),
	NAME("retry-after"),
	NAME("server"),
	NAME("via"),
	NAME("www-authenticate"),
	NAME("x-amzn-requestid"),
	NAME("x-correlation-id"),
	NAME("x-request-id"),
};
static const struct name content_length = NAME("content-length");
static const struct name retry_after = NAME("retry-after");

/* "HTTP/1.1 503 Why"; 0 if it is none. */
static int
parse_status(const char *line, size_t len)
{
	const char *at = memchr(line, ' ', len);
	int status = 0;

	if (at == NULL || (size_t)(line + len - at) < 4)
		return 0;
	for (int i = 1; i <= 3; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		status = status * 10 + (at[i] - '0');
	}
	return status >= 100 ? status : 0;
}

/* The first line of all, and the first after an interim response; one further
 * down is a header with an odd name. */
static bool
is_status_line(const struct send *send, const char *line, size_t len)
{
	bool is_first = send->header_bytes == len;

	return (is_first || (send->header_ended && send->status < 200)) &&
	       len >= 5 && memcmp(line, "HTTP/", 5) == 0;
}

void
send_answer_reset(struct send *send)
{
	send->header_ended = false;
	send->retry_after = -1;
	send->length = -1;
	buf_clear(&send->kept);
}

/* A response begins; what came before it was an interim one. */
static int
begin(struct send *send, const char *line, size_t len)
{
	send_answer_reset(send);
	send->marks[MARK_ANSWER] = clock_now();
	send->status = parse_status(line, len);
	if (send->status == 0)
		return send_stop(send, SEND_STOP_STATUS);
	if (send->status == 101)
		return send_stop(send, SEND_STOP_INTERIM);
	if (send->status < 200 && ++send->interim > SEND_INTERIM_MAX)
		return send_stop(send, SEND_STOP_INTERIM);
	return 0;
}

/* A header in two parts, neither ended by a NUL. */
struct field {
	const char *name, *value;
	size_t name_len, value_len;
};

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool
split(struct field *out, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *end = line + len;

	if (colon == NULL)
		return false;
	out->name = line;
	out->name_len = (size_t)(colon - line);
	out->value = colon + 1;
	while (out->value < end && is_space(*out->value))
		out->value++;
	while (end > out->value && is_space(end[-1]))
		end--;
	out->value_len = (size_t)(end - out->value);
	return true;
}

static bool
is_named(const struct field *field, const struct name *name)
{
	/* A NUL in the field's name would end the comparison too early. */
	return field->name_len == name->len &&
	       strncasecmp(field->name, name->text, name->len) == 0;
}

/* Two that differ: the longer wait harms nobody. */
static void
read_retry_after(struct send *send, const struct field *field)
{
	char text[RETRY_AFTER_TEXT];
	usec_t wait;

	if (field->value_len >= sizeof(text))
		return;
	memcpy(text, field->value, field->value_len);
	text[field->value_len] = '\0';
	wait = retry_after_parse(text, clock_wall());
	if (wait > send->retry_after)
		send->retry_after = wait;
}

/* libcurl would take the last of several, so where the answer ends would be
 * anybody's guess (RFC 9112 section 6.3). */
static int
read_length(struct send *send, const struct field *field)
{
	long long length = 0;

	if (field->value_len == 0 || field->value_len > LENGTH_DIGITS)
		return send_stop(send, SEND_STOP_LENGTH);
	for (size_t i = 0; i < field->value_len; i++) {
		if (field->value[i] < '0' || field->value[i] > '9')
			return send_stop(send, SEND_STOP_LENGTH);
		length = length * 10 + (field->value[i] - '0');
	}
	if (send->length >= 0 && send->length != length)
		return send_stop(send, SEND_STOP_LENGTH);
	send->length = length;
	return 0;
}

/* Add "name: value" to what is kept, as far as there is room. */
static void
keep(struct send *send, const struct name *name, const struct field *field)
{
	struct buf *to = &send->kept;
	char value[VALUE_KEPT + 1];
	size_t len, room = SEND_HEADERS_KEPT - to->len;

	len = text_make_safe(
	    value, sizeof(value), field->value, field->value_len);
	if (name->len + len + sizeof("\n: ") > room)
		return;
	if (to->len > 0)
		buf_add(to, "\n", 1);
	buf_add(to, name->text, name->len);
	buf_add(to, ": ", 2);
	buf_add(to, value, len);
}

static int
read_header(struct send *send, const struct field *field)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (is_named(field, &kept[i]))
			keep(send, &kept[i], field);
	if (is_named(field, &retry_after))
		read_retry_after(send, field);
	return is_named(field, &content_length) ? read_length(send, field) : 0;
}

size_t
send_answer_header(char *line, size_t size, size_t n, void *arg)
{
	struct send *send = arg;
	struct field field;
	size_t len = size * n;

	send->header_bytes += len;
	if (send->header_bytes > SEND_HEADER_MAX) {
		(void)send_stop(send, SEND_STOP_HEADER);
		return 0;
	}
	if (is_status_line(send, line, len))
		return begin(send, line, len) == 0 ? len : 0;
	if (len <= 2 && (*line == '\r' || *line == '\n'))
		send->header_ended = true;
	/* What comes after the end is a trailer, and says nothing. */
	if (send->header_ended || !split(&field, line, len))
		return len;
	return read_header(send, &field) == 0 ? len : 0;
}

size_t
send_answer_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct send *send = arg;
	size_t len = size * n;
	size_t room = SEND_EXCERPT_MAX - send->excerpt.len;

	buf_add(&send->excerpt, bytes, len < room ? len : room);
	send->body_bytes += len;
	if (send->body_bytes <= SEND_BODY_MAX)
		return len;
	(void)send_stop(send, SEND_STOP_BODY);
	return 0;
}
