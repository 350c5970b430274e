#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "call.h"
#include "http/server.h"
#include "ingest.h"
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

void
call_put_time(struct buf *out, usec_t time)
{
	time_t seconds = (time_t)(time / USEC_PER_SEC);
	struct tm tm = { 0 };
	char text[64];

	(void)gmtime_r(&seconds, &tm);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_printf(out, "\"%s.%06dZ\"", text, (int)(time % USEC_PER_SEC));
}

void
call_put_id(struct buf *out, int64_t id)
{
	buf_printf(out, "\"%" PRId64 "\"", id);
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
