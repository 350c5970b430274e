#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/pg.h"
#include "problem.h"
#include "routes.h"

struct call *
call_new(struct ingest *ingest, struct request *request)
{
	struct call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->ingest = ingest;
	call->request = request;
	return call;
}

void
call_answer(struct call *call, int status, const char *type, struct buf *body)
{
	if (body->failed) {
		buf_wipe(body);
		problem_reply(call, 503, "out of memory");
		return;
	}
	call->ingest->metrics.answers[routes_index(call->route)][status]++;
	request_reply(call->request, status, type, body->data, body->len);
	buf_wipe(body);
	free(call);
}

void
call_json(struct call *call, int status, struct buf *body)
{
	/* What is about a tenant is nobody else's, caches included. */
	request_add_header(call->request, "Cache-Control", "no-store");
	call_answer(call, status, "application/json", body);
}

struct pg_batch *
call_batch(struct call *call)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch == NULL)
		problem_reply(call, 503, "out of memory");
	return batch;
}

static void
on_told(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;

	if (err != NULL)
		problem_reply_err(call, err);
	else
		call->told(call, rows);
}

void
call_ask(struct call *call, struct pg_batch *batch, call_told_fn *told)
{
	struct err err;

	call->told = told;
	if (desk_submit(call->ingest->desk, batch, on_told, call, &err) != 0)
		problem_reply_err(call, &err);
}

void
call_add_location(struct call *call, const char *format, ...)
{
	char location[96];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(location, sizeof(location), format, ap);
	va_end(ap);
	request_add_header(call->request, "Location", location);
}

void
call_who(struct call_who *out, const struct call *call)
{
	const char *peer = request_peer(call->request);
	const char *port = strrchr(peer, ':');
	int len = port == NULL ? (int)strlen(peer) : (int)(port - peer);
	bool is_bracketed = len > 1 && peer[0] == '[';

	(void)snprintf(
	    out->actor, sizeof(out->actor), "key:%" PRId64, call->key.id);
	(void)snprintf(out->source, sizeof(out->source), "%.*s",
	    is_bracketed ? len - 2 : len, is_bracketed ? peer + 1 : peer);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int
call_escaped(const char *text)
{
	int high = text[0] == '%' ? hex_digit(text[1]) : -1;
	int low = high < 0 ? -1 : hex_digit(text[2]);

	return low < 0 ? -1 : high << 4 | low;
}

int64_t
call_number(const char *text, size_t len)
{
	char digits[20] = "";
	long long number;

	if (len == 0 || len >= sizeof(digits))
		return -1;
	memcpy(digits, text, len);
	if (digits[strspn(digits, "0123456789")] != '\0')
		return -1;
	errno = 0;
	number = strtoll(digits, NULL, 10);
	return errno == 0 ? number : -1;
}

int64_t
call_id(const struct call *call)
{
	return call_number(call->id, strlen(call->id));
}

int64_t
call_inner_id(const struct call *call)
{
	return call_number(call->inner_id, strlen(call->inner_id));
}
