#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "call.h"
#include "http/server.h"
#include "problem.h"
#include "problem_kind.h"
#include "put.h"

enum { DETAIL_MAX = 600 };

static void
put_problem(struct buf *out, int status, const char *detail)
{
	const struct problem_kind *kind = problem_kind_of(status);

	buf_puts(out, "{\"type\":\"" PROBLEM_PAGES);
	buf_puts(out, kind->name);
	buf_puts(out, "\"");
	put_text(out, "title", kind->title);
	put_number(out, "status", status);
	put_text(out, "detail", detail);
}

/* What a client needs besides the body to do better next time. */
static void
add_headers(struct call *call, int status)
{
	if (status == 401)
		request_add_header(call->request, "WWW-Authenticate",
		    "Bearer realm=\"postrider\"");
	if (status == 429 || status == 503 || status == 504)
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
	put_text(&more, "pointer", pointer);
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
