#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "events.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "post.h"
#include "problem.h"
#include "put.h"
#include "store/stmt.h"

enum { DELIVERIES_SHOWN = 1000 };

void
events_put_accepted(struct buf *out, const struct outbox_event *ev)
{
	put_text(out, "id", ev->id);
	put_time(out, "accepted_at", ev->accepted_at);
	put_number(out, "deliveries", ev->fan_out);
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
	put_text(&more, "id", ev->id);
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
		    "another event was accepted under the id \"%s\": give "
		    "this one an id of its own",
		    ev->id);
		break;
	case OUTBOX_NOBODY:
		problem_reply_at(call, 422, "/subscriptions",
		    "there is no subscription \"%lld\"", (long long)ev->nobody);
		break;
	case OUTBOX_REVOKED:
		problem_reply(
		    call, 401, "this key was revoked, or has expired");
		break;
	case OUTBOX_OPEN:
	case OUTBOX_LATER:
		problem_reply(call, 503, "try again in a moment");
		break;
	}
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
		problem_reply_form(call, pointer, &err);
	else if (post_submit(post, false, on_posted, &err) != 0)
		problem_reply_err(call, &err);
	else
		return;
	post_free(post);
}

static void
put_delivery(struct buf *out, const struct pg_rows *rows, int row)
{
	int status = pg_column(rows, "status");

	buf_puts(out, "{");
	put_id(out, "id", pg_read_bigint(rows, row, "delivery_id"));
	put_id(out, "subscription_id",
	    pg_read_bigint(rows, row, "subscription_id"));
	put_text(out, "state", pg_read_text(rows, row, "state"));
	put_number(out, "attempts", pg_read_int(rows, row, "attempts"));
	if (pg_is_null(rows, row, status))
		put_json(out, "status", "null");
	else
		put_number(out, "status", pg_get_int(rows, row, status));
	buf_puts(out, "}");
}

static void
put_event(struct buf *out, const struct pg_rows *rows)
{
	int delivery = pg_column(rows, "delivery_id");

	buf_puts(out, "{");
	put_text(out, "id", pg_read_text(rows, 0, "event_id"));
	put_text(out, "type", pg_read_text(rows, 0, "type"));
	put_text(out, "asset", pg_read_text_or_null(rows, 0, "asset"));
	put_time(out, "accepted_at", pg_read_bigint(rows, 0, "accepted_at"));
	put_number(out, "fan_out", pg_read_int(rows, 0, "fan_out"));
	buf_puts(out, ",\"deliveries\":[");
	for (int row = 0; row < pg_count(rows); row++) {
		if (pg_is_null(rows, row, delivery))
			break;
		buf_puts(out, row == 0 ? "" : ",");
		put_delivery(out, rows, row);
	}
	buf_puts(out, "]}");
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };

	if (pg_count(rows[0]) == 0) {
		problem_reply(call, 404, "there is no such event");
		return;
	}
	put_event(&body, rows[0]);
	call_json(call, 200, &body);
}

void
events_get(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	pg_call(batch, STMT_EVENT_GET);
	pg_bigint(batch, call->key.tenant_id);
	pg_text(batch, call->id);
	pg_int(batch, DELIVERIES_SHOWN);
	call_ask(call, batch, on_got);
}

static void
on_got_payload(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };
	const void *bytes;
	size_t len;

	if (pg_count(rows[0]) == 0) {
		problem_reply(call, 404, "there is no such event");
		return;
	}
	if (pg_is_null(rows[0], 0, pg_column(rows[0], "body"))) {
		problem_reply(call, 404, "its payload was purged");
		return;
	}
	bytes = pg_get_bytes(rows[0], 0, pg_column(rows[0], "body"), &len);
	buf_add(&body, bytes, len);
	call_json(call, 200, &body);
}

void
events_get_payload(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	pg_call(batch, STMT_EVENT_PAYLOAD);
	pg_bigint(batch, call->key.tenant_id);
	pg_text(batch, call->id);
	call_ask(call, batch, on_got_payload);
}
