#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "problem.h"
#include "put.h"
#include "replay_form.h"
#include "replays.h"
#include "store/replay.h"
#include "subscriptions.h"

enum { JOBS_SHOWN = 100 };

static struct replay_asked
ask(const struct call *call, struct call_who *who)
{
	call_who(who, call);
	return (struct replay_asked){
		.tenant_id = call->key.tenant_id,
		.subscription_id = call_id(call),
		.id = call_inner_id(call),
		.actor = who->actor,
		.source = who->source,
	};
}

typedef void put_fn(struct pg_batch *batch, const struct replay_asked *asked);

/* Ask what `put` puts. */
static void
submit(struct call *call, put_fn *put, call_told_fn *told)
{
	struct pg_batch *batch = call_batch(call);
	struct call_who who;
	struct replay_asked asked = ask(call, &who);

	if (batch == NULL)
		return;
	put(batch, &asked);
	call_ask(call, batch, told);
}

static void
reply_delivery(
    struct call *call, const struct replay_answer *answer, int status)
{
	struct buf body = { 0 };

	buf_puts(&body, "{");
	put_id(&body, "id", call_inner_id(call));
	put_text(&body, "state", answer->state);
	put_number(&body, "generation", answer->generation);
	put_id(&body, "held_by", answer->held_by);
	buf_puts(&body, "}");
	call_json(call, status, &body);
}

static void
refuse_delivery(struct call *call, const struct replay_answer *answer)
{
	if (strcmp(answer->state, "dead") != 0)
		problem_reply(call, 409,
		    "only a dead letter can be retried or discarded, and this "
		    "delivery is %s",
		    answer->state);
	else if (answer->is_purged)
		problem_reply(call, 409,
		    "its payload was purged, so it cannot be sent again: post "
		    "the event anew under another id, or discard this");
	else
		problem_reply(call, 409, "it changed just now; try again");
}

static void
answer_delivery(
    struct call *call, const struct pg_rows *rows, int status_if_done)
{
	struct replay_answer answer;

	if (!replay_answer_read(&answer, rows))
		problem_reply(
		    call, 404, "this subscription has no such delivery");
	else if (answer.is_done)
		reply_delivery(call, &answer, status_if_done);
	else
		refuse_delivery(call, &answer);
}

static void
on_retried(struct call *call, struct pg_rows *const *rows)
{
	answer_delivery(call, rows[REPLAY_RETRY_ROWS], 202);
}

void
replays_retry(struct call *call)
{
	submit(call, replay_retry, on_retried);
}

static void
on_discarded(struct call *call, struct pg_rows *const *rows)
{
	answer_delivery(call, rows[REPLAY_DISCARD_ROWS], 200);
}

void
replays_discard(struct call *call)
{
	submit(call, replay_discard, on_discarded);
}

static void
put_job(struct buf *out, const struct replay_job *job)
{
	buf_puts(out, "{");
	put_id(out, "id", job->id);
	put_id(out, "subscription_id", job->subscription_id);
	put_text(out, "what", job->what);
	put_text(out, "state", job->state);
	put_time(out, "since", job->since);
	put_time(out, "until", job->until);
	put_number(out, "rate_per_second", job->rate_per_second);
	put_number(out, "examined", job->examined);
	put_number(out, "replayed", job->replayed);
	put_number(out, "refused", job->refused);
	put_text(out, "created_by", job->created_by);
	put_time(out, "created_at", job->created_at);
	put_time(out, "finished_at", job->finished_at);
	buf_puts(out, "}");
}

/* One job, or what there is none of. */
static void
reply_job(struct call *call, int status, const struct pg_rows *rows,
    const char *missing)
{
	struct buf body = { 0 };
	struct replay_job job;

	if (!replay_job_read(&job, rows, 0)) {
		problem_reply(call, 404, "%s", missing);
		return;
	}
	if (status == 202)
		call_add_location(call,
		    "/v1/subscriptions/%" PRId64 "/replays/%" PRId64,
		    job.subscription_id, job.id);
	put_job(&body, &job);
	call_json(call, status, &body);
}

static void
on_started(struct call *call, struct pg_rows *const *rows)
{
	reply_job(call, 202, rows[0], "there is no such subscription");
}

/* Begin what `order`, whose `what` is set, and the form say. */
static void
start(struct call *call, struct replay_order *order)
{
	char pointer[FORM_POINTER_SIZE];
	struct call_who who;
	struct replay_asked asked = ask(call, &who);
	struct pg_batch *batch;
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (replay_form_read(order, text, len, pointer, &err) != 0) {
		problem_reply_form(call, pointer, &err);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	replay_start(batch, &asked, order);
	call_ask(call, batch, on_started);
}

void
replays_post_dead(struct call *call)
{
	start(call, &(struct replay_order){ .what = "dead" });
}

void
replays_post_events(struct call *call)
{
	start(call, &(struct replay_order){ .what = "events" });
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };
	struct replay_job job;

	if (pg_count(rows[0]) == 0) {
		subscriptions_missing(call);
		return;
	}
	buf_puts(&body, "{\"replays\":[");
	for (int i = 0; replay_job_read(&job, rows[0], i); i++) {
		buf_puts(&body, i == 0 ? "" : ",");
		put_job(&body, &job);
	}
	buf_puts(&body, "]}");
	call_json(call, 200, &body);
}

static void
put_list(struct pg_batch *batch, const struct replay_asked *asked)
{
	replay_list(batch, asked, JOBS_SHOWN);
}

void
replays_list(struct call *call)
{
	submit(call, put_list, on_listed);
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	reply_job(call, 200, rows[0], "this subscription has no such replay");
}

void
replays_get(struct call *call)
{
	submit(call, replay_get, on_got);
}

static void
on_cancelled(struct call *call, struct pg_rows *const *rows)
{
	reply_job(call, 200, rows[REPLAY_CANCEL_ROWS],
	    "this subscription has no such replay");
}

void
replays_delete(struct call *call)
{
	submit(call, replay_cancel, on_cancelled);
}
