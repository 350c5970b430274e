#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "call.h"
#include "core/json.h"
#include "http/server.h"
#include "problem.h"

enum { DETAIL_MAX = 600 };

static const struct kind {
	int status;
	const char *name; /* of its type, after urn:postrider:problem: */
	const char *title;
} kinds[] = {
	{ 400, "malformed", "The request cannot be read" },
	{ 401, "unauthorized", "A valid key is needed" },
	{ 403, "forbidden", "This key may not do this" },
	{ 404, "not-found", "There is no such thing" },
	{ 405, "method-not-allowed", "This method does not fit here" },
	{ 408, "too-slow", "The request took too long" },
	{ 409, "conflict", "It conflicts with what was accepted before" },
	{ 411, "length-required", "The body's length is not given" },
	{ 412, "stale", "It is not what it was when it was read" },
	{ 413, "too-large", "The body is too large" },
	{ 414, "uri-too-long", "The address is too long" },
	{ 415, "media-type", "This media type is not taken" },
	{ 422, "invalid", "The content is not acceptable" },
	{ 431, "header-too-large", "The headers are too large" },
	{ 500, "internal", "It went wrong here" },
	{ 501, "not-implemented", "This is not implemented" },
	{ 503, "unavailable", "Not now" },
	{ 504, "outcome-unknown", "It is not known whether it was done" },
	{ 505, "http-version", "This version of HTTP is not spoken" },
};

static const struct kind *
find_kind(int status)
{
	static const struct kind other = { 0, "internal", "It went wrong" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].status == status)
			return &kinds[i];
	return &other;
}

static void
put(struct buf *out, const char *text)
{
	json_quote(out, text, strlen(text));
}

static void
put_problem(struct buf *out, int status, const char *detail)
{
	const struct kind *kind = find_kind(status);

	buf_puts(out, "{\"type\":\"urn:postrider:problem:");
	buf_puts(out, kind->name);
	buf_puts(out, "\",\"title\":");
	put(out, kind->title);
	buf_printf(out, ",\"status\":%d,\"detail\":", status);
	put(out, detail);
}

/* What a client needs besides the body to do better next time. */
static void
add_headers(struct call *call, int status)
{
	if (status == 401)
		request_add_header(call->request, "WWW-Authenticate",
		    "Bearer realm=\"postrider\"");
	if (status == 503 || status == 504)
		request_add_header(call->request, "Retry-After", "1");
	request_add_header(call->request, "Cache-Control", "no-store");
}

void
problem_reply_with(
    struct call *call, int status, const char *detail, struct buf *more)
{
	struct buf body = { 0 };

	put_problem(&body, status, detail);
	buf_add(&body, more->data, more->len);
	buf_puts(&body, "}");
	/* A problem without its list is better than none. */
	if (more->failed || body.failed)
		buf_clear(&body);
	buf_fini(more);
	add_headers(call, status);
	body.failed = false;
	call_answer(call, status, "application/problem+json", &body);
}

void
problem_reply(struct call *call, int status, const char *format, ...)
{
	char detail[DETAIL_MAX];
	struct buf more = { 0 };
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(detail, sizeof(detail), format, ap);
	va_end(ap);
	problem_reply_with(call, status, detail, &more);
}

void
problem_reply_at(
    struct call *call, int status, const char *pointer, const char *format, ...)
{
	char detail[DETAIL_MAX];
	struct buf more = { 0 };
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(detail, sizeof(detail), format, ap);
	va_end(ap);
	buf_puts(&more, ",\"pointer\":");
	put(&more, pointer);
	problem_reply_with(call, status, detail, &more);
}

void
problem_reply_form(
    struct call *call, const char *pointer, const struct err *err)
{
	if (err->code == ERR_REFUSED)
		problem_reply_at(call, pointer[0] == '\0' ? 400 : 422, pointer,
		    "%s", err->text);
	else
		problem_reply_err(call, err);
}

/* At most one line a second, however many requests meet the same trouble. */
static void
complain(const struct call *call, const struct err *err)
{
	static usec_t said_at;
	usec_t now = clock_now();

	if (said_at != 0 && now - said_at < USEC_PER_SEC)
		return;
	said_at = now;
	log_error("a request failed", "method", request_method(call->request),
	    "path", request_path(call->request), "error", err->text, NULL);
}

void
problem_reply_err_with(
    struct call *call, const struct err *err, struct buf *more)
{
	int status = 500;
	const char *detail = "the operator's log says what";

	switch (err->code) {
	case ERR_RETRY:
	case ERR_NOMEM:
		status = 503;
		detail = "nothing was kept; try again in a moment";
		/* That the database is away was said once already. */
		if (err->sqlstate[0] != '\0')
			complain(call, err);
		break;
	case ERR_UNKNOWN:
		status = 504;
		detail = "the database's answer was lost";
		break;
	case ERR_REFUSED:
		status = 422;
		/* Our own words say enough; the database's are for us. */
		detail = err->text;
		if (err->sqlstate[0] == '\0')
			break;
		detail = "the database does not take this content";
		complain(call, err);
		break;
	case ERR_BROKEN:
	case ERR_NONE:
		complain(call, err);
		break;
	}
	problem_reply_with(call, status, detail, more);
}

void
problem_reply_err(struct call *call, const struct err *err)
{
	struct buf more = { 0 };

	problem_reply_err_with(call, err, &more);
}
