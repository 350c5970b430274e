#include <assert.h>
#include <event2/event.h>
#include <string.h>

#include "conn.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 425, "Too Early" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

const char *
request_method(const struct request *request)
{
	return request->head.method;
}

const char *
request_path(const struct request *request)
{
	return request->head.path;
}

const char *
request_query(const struct request *request)
{
	return request->head.query;
}

const char *
request_header(const struct request *request, const char *name)
{
	return head_value(&request->head, name, NULL);
}

const char *
request_next_header(
    const struct request *request, const char *name, const char *value)
{
	return head_value(&request->head, name, value);
}

const void *
request_body(const struct request *request, size_t *len)
{
	*len = request->body.len;
	return request->body.len == 0 ? "" : request->body.data;
}

const char *
request_peer(const struct request *request)
{
	return request->conn->peer;
}

void
request_add_header(struct request *request, const char *name, const char *value)
{
	struct buf *headers = &request->headers;

	buf_puts(headers, name);
	buf_puts(headers, ": ");
	/* RFC 9110 5.5: a space for what could end the line. */
	for (const char *p = value; *p != '\0'; p++)
		buf_add(
		    headers, head_is_control((unsigned char)*p) ? " " : p, 1);
	buf_puts(headers, "\r\n");
}

static const char *
reason(int status)
{
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return ""; /* RFC 9112 4: may be empty */
}

/* By hand: this runs for every answer, and printf costs more than the rest. */
static void
add_number(struct buf *out, size_t value)
{
	char digits[24], *p = digits + sizeof(digits);

	do {
		*--p = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	buf_add(out, p, (size_t)(digits + sizeof(digits) - p));
}

static void
add_head(struct request *request, int status, const char *type, size_t len)
{
	struct buf *out = &request->conn->wire.out;

	buf_puts(out, "HTTP/1.1 ");
	add_number(out, (size_t)status);
	buf_puts(out, " ");
	buf_puts(out, reason(status));
	buf_puts(out, "\r\n");
	buf_puts(out, server_date(request->conn->server));
	if (type != NULL) {
		buf_puts(out, "Content-Type: ");
		buf_puts(out, type);
		buf_puts(out, "\r\n");
	}
	if (request->more != NULL) {
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	} else if (status != 204 && status != 304) {
		buf_puts(out, "Content-Length: ");
		add_number(out, len);
		buf_puts(out, "\r\n");
	}
	buf_add(out, request->headers.data, request->headers.len);
	if (request->conn->closes)
		buf_puts(out, "Connection: close\r\n");
	buf_puts(out, "\r\n");
}

void
request_reply(struct request *request, int status, const char *type,
    const void *body, size_t len)
{
	struct conn *conn = request->conn;

	assert(status >= 200 && status <= 999);
	if (conn->state == CONN_GONE) {
		conn_answered(conn);
		return;
	}
	if (conn->server->is_draining)
		conn->closes = true;
	if (type == NULL)
		len = 0;
	add_head(request, status, type, len);
	if (strcmp(request->head.method, "HEAD") != 0 && status != 204 &&
	    status != 304)
		buf_add(&conn->wire.out, body, len);
	if (conn->wire.out.failed || request->headers.failed)
		conn_abort(conn);
	else
		conn_answered(conn);
}

void
request_stream(struct request *request, int status, const char *type,
    request_more_fn *more, void *arg)
{
	struct conn *conn = request->conn;

	if (conn->state == CONN_GONE || request->head.minor == 0 ||
	    strcmp(request->head.method, "HEAD") == 0) {
		request_reply(request, status, type, "", 0);
		return;
	}
	assert(
	    status >= 200 && status <= 999 && status != 204 && status != 304);
	request->more = more;
	request->more_arg = arg;
	if (conn->server->is_draining)
		conn->closes = true;
	add_head(request, status, type, 0);
	if (conn->wire.out.failed || request->headers.failed)
		conn_abort(conn);
	else
		conn_answered(conn);
}

void
request_on_gone(struct request *request, void (*gone)(void *arg), void *arg)
{
	struct wire *wire = &request->conn->wire;

	request->gone = gone;
	request->gone_arg = arg;
	/* It may have gone before: then no other event would tell. */
	if (wire->is_ended)
		event_active(&wire->readable, EV_READ, 0);
}

void
request_abort(struct request *request)
{
	conn_abort(request->conn);
}
