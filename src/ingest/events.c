#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "desk.h"
#include "events.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/row.h"
#include "post.h"
#include "problem.h"
#include "store/stmt.h"

enum { DELIVERIES_SHOWN = 1000 };

static void
put(struct buf *out, const char *text)
{
	json_quote(out, text, strlen(text));
}

void
events_put_accepted(struct buf *out, const struct outbox_event *ev)
{
	buf_puts(out, "\"id\":");
	put(out, ev->id);
	buf_puts(out, ",\"accepted_at\":");
	call_put_time(out, ev->accepted_at);
	buf_printf(out, ",\"deliveries\":%d", ev->fan_out);
}

static void
reply_accepted(struct call *call, int status, const struct outbox_event *ev)
{
	struct buf body = { 0 };

	buf_puts(&body, "{");
	events_put_accepted(&body, ev);
	buf_puts(&body, "}");
	call_json(call, status, &body);
}

/* Whoever let us make the id needs it to ask again. */
static void
reply_err(
    struct call *call, const struct outbox_event *ev, const struct err *err)
{
	struct buf more = { 0 };

	if (err->code != ERR_UNKNOWN) {
		problem_reply_err(call, err);
		return;
	}
	buf_puts(&more, ",\"id\":");
	put(&more, ev->id);
	problem_reply_with(call, 504,
	    "the database's answer was lost: the event may have been accepted; "
	    "post it again with the same id, and the answer will tell",
	    &more);
}

static void
on_posted(struct post *post, const struct err *err)
{
	struct call *call = post->call;
	const struct outbox_event *ev = &post->events[0];

	if (err != NULL) {
		reply_err(call, ev, err);
		return;
	}
	switch (ev->outcome) {
	case OUTBOX_ACCEPTED:
		reply_accepted(call, 202, ev);
		break;
	case OUTBOX_REPEATED:
		reply_accepted(call, 200, ev);
		break;
	case OUTBOX_CONFLICT:
		problem_reply_at(call, 409, "/id",
		    "another event was accepted under the id \"%s\"", ev->id);
		break;
	case OUTBOX_NOBODY:
		problem_reply_at(call, 422, "/subscriptions",
		    "there is no subscription \"%lld\"", (long long)ev->nobody);
		break;
	case OUTBOX_REVOKED:
		problem_reply(call, 401, "this key is not valid");
		break;
	case OUTBOX_OPEN:
	case OUTBOX_LATER:
		problem_reply(call, 503, "try again in a moment");
		break;
	}
}

/* What is no event at all cannot be read; a field that is wrong is invalid. */
static void
reply_refused(struct call *call, const char *pointer, const struct err *err)
{
	if (err->code != ERR_REFUSED)
		problem_reply_err(call, err);
	else
		problem_reply_at(call, pointer[0] == '\0' ? 400 : 422, pointer,
		    "%s", err->text);
}

void
events_post(struct call *call)
{
	char pointer[ENVELOPE_POINTER_SIZE] = "";
	struct post *post = NULL;
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (post_new(&post, call, 1, &err) != 0 ||
	    post_add(post, text, len, pointer, &err) != 0)
		reply_refused(call, pointer, &err);
	else if (post_submit(post, false, on_posted, &err) != 0)
		problem_reply_err(call, &err);
	else
		return;
	post_free(post);
}

static const char *
text_at(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_text(rows, row, pg_column(rows, column));
}

static void
put_delivery(struct buf *out, const struct pg_rows *rows, int row)
{
	int status = pg_column(rows, "status");

	buf_puts(out, "{\"id\":");
	call_put_id(
	    out, pg_get_bigint(rows, row, pg_column(rows, "delivery_id")));
	buf_puts(out, ",\"subscription_id\":");
	call_put_id(
	    out, pg_get_bigint(rows, row, pg_column(rows, "subscription_id")));
	buf_puts(out, ",\"state\":");
	put(out, text_at(rows, row, "state"));
	buf_printf(out, ",\"attempts\":%d",
	    pg_get_int(rows, row, pg_column(rows, "attempts")));
	if (pg_is_null(rows, row, status))
		buf_puts(out, ",\"status\":null}");
	else
		buf_printf(
		    out, ",\"status\":%d}", pg_get_int(rows, row, status));
}

static void
put_event(struct buf *out, const struct pg_rows *rows)
{
	buf_puts(out, "{\"id\":");
	put(out, text_at(rows, 0, "event_id"));
	buf_puts(out, ",\"type\":");
	put(out, text_at(rows, 0, "type"));
	buf_puts(out, ",\"asset\":");
	if (pg_is_null(rows, 0, pg_column(rows, "asset")))
		buf_puts(out, "null");
	else
		put(out, text_at(rows, 0, "asset"));
	buf_puts(out, ",\"accepted_at\":");
	call_put_time(
	    out, pg_get_bigint(rows, 0, pg_column(rows, "accepted_at")));
	buf_printf(out, ",\"fan_out\":%d,\"deliveries\":[",
	    pg_get_int(rows, 0, pg_column(rows, "fan_out")));
	for (int row = 0; row < pg_count(rows); row++) {
		if (pg_is_null(rows, row, pg_column(rows, "delivery_id")))
			break;
		buf_puts(out, row == 0 ? "" : ",");
		put_delivery(out, rows, row);
	}
	buf_puts(out, "]}");
}

static void
on_got(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct buf body = { 0 };

	if (err != NULL) {
		problem_reply_err(call, err);
	} else if (pg_count(rows[0]) == 0) {
		problem_reply(call, 404, "there is no such event");
	} else {
		put_event(&body, rows[0]);
		call_json(call, 200, &body);
	}
}

void
events_get(struct call *call)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	pg_call(batch, STMT_EVENT_GET);
	pg_bigint(batch, call->key.tenant_id);
	pg_text(batch, call->id);
	pg_int(batch, DELIVERIES_SHOWN);
	if (desk_submit(call->ingest->desk, batch, on_got, call, &err) != 0)
		problem_reply_err(call, &err);
}
