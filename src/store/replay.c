#include "pg/pg.h"
#include "pg/row.h"
#include "store/audit.h"
#include "store/replay.h"
#include "store/stmt.h"

static void
id_or_null(struct pg_batch *batch, int64_t id)
{
	if (id == 0)
		pg_null(batch);
	else
		pg_bigint(batch, id);
}

static void
time_or_null(struct pg_batch *batch, usec_t time)
{
	if (time < 0)
		pg_null(batch);
	else
		pg_bigint(batch, time);
}

/* The first three parameters of what is asked for with an id. */
static void
put_asked(struct pg_batch *batch, const struct replay_asked *asked)
{
	id_or_null(batch, asked->tenant_id);
	pg_bigint(batch, asked->subscription_id);
	pg_bigint(batch, asked->id);
}

static void
put_answer(struct pg_batch *batch, const struct replay_asked *asked,
    const char *action)
{
	pg_call(batch, STMT_REPLAY_ANSWER);
	put_asked(batch, asked);
	pg_text(batch, action);
	pg_text(batch, asked->actor);
	audit_from(batch, asked->source);
}

void
replay_retry(struct pg_batch *batch, const struct replay_asked *asked)
{
	pg_begin(batch);
	pg_call(batch, STMT_REPLAY_ONE);
	put_asked(batch, asked);
	pg_call(batch, STMT_REPLAY_HOLD);
	pg_call(batch, STMT_REPLAY_PLACE);
	pg_call(batch, STMT_REPLAY_READY);
	put_answer(batch, asked, "delivery.retried");
	pg_commit(batch);
}

void
replay_discard(struct pg_batch *batch, const struct replay_asked *asked)
{
	pg_begin(batch);
	pg_call(batch, STMT_DISCARD_HOLD);
	put_asked(batch, asked);
	pg_call(batch, STMT_DELIVERY_DISCARD);
	put_asked(batch, asked);
	pg_call(batch, STMT_DISCARD_SHARE);
	pg_call(batch, STMT_REPLAY_READY);
	put_answer(batch, asked, "delivery.discarded");
	pg_commit(batch);
}

static int64_t
number(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_bigint(rows, row, pg_column(rows, column));
}

static const char *
text(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_text(rows, row, pg_column(rows, column));
}

/* A null is -1, so that it cannot be taken for 1970. */
static usec_t
get_time(const struct pg_rows *rows, int row, const char *column)
{
	int c = pg_column(rows, column);

	return pg_is_null(rows, row, c) ? -1 : pg_get_bigint(rows, row, c);
}

bool
replay_answer_read(struct replay_answer *out, const struct pg_rows *rows)
{
	if (pg_count(rows) == 0)
		return false;
	*out = (struct replay_answer){
		.is_done = pg_get_bool(rows, 0, pg_column(rows, "is_done")),
		.is_purged = pg_get_bool(rows, 0, pg_column(rows, "is_purged")),
		.state = text(rows, 0, "state"),
		.generation =
		    pg_get_int(rows, 0, pg_column(rows, "generation")),
		.held_by = number(rows, 0, "held_by"),
	};
	return true;
}

void
replay_start(struct pg_batch *batch, const struct replay_asked *asked,
    const struct replay_order *order)
{
	pg_call(batch, STMT_REPLAY_START);
	id_or_null(batch, asked->tenant_id);
	pg_bigint(batch, asked->subscription_id);
	pg_text(batch, order->what);
	time_or_null(batch, order->since);
	time_or_null(batch, order->until);
	if (order->rate_per_second == 0)
		pg_null(batch);
	else
		pg_int(batch, order->rate_per_second);
	pg_text(batch, asked->actor);
	audit_from(batch, asked->source);
}

void
replay_get(struct pg_batch *batch, const struct replay_asked *asked)
{
	pg_call(batch, STMT_REPLAY_GET);
	put_asked(batch, asked);
}

void
replay_list(struct pg_batch *batch, const struct replay_asked *asked, int limit)
{
	pg_call(batch, STMT_REPLAY_LIST);
	id_or_null(batch, asked->tenant_id);
	pg_bigint(batch, asked->subscription_id);
	pg_int(batch, limit);
}

void
replay_cancel(struct pg_batch *batch, const struct replay_asked *asked)
{
	pg_begin(batch);
	pg_call(batch, STMT_REPLAY_CANCEL);
	put_asked(batch, asked);
	pg_text(batch, asked->actor);
	replay_get(batch, asked);
	audit_from(batch, asked->source);
	pg_commit(batch);
}

bool
replay_job_read(struct replay_job *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows) ||
	    pg_is_null(rows, row, pg_column(rows, "id")))
		return false;
	*out = (struct replay_job){
		.id = number(rows, row, "id"),
		.subscription_id = number(rows, row, "subscription_id"),
		.what = text(rows, row, "what"),
		.since = get_time(rows, row, "since"),
		.until = get_time(rows, row, "until"),
		.rate_per_second =
		    pg_get_int(rows, row, pg_column(rows, "rate_per_second")),
		.reached = number(rows, row, "reached"),
		.examined = number(rows, row, "examined"),
		.replayed = number(rows, row, "replayed"),
		.refused = number(rows, row, "refused"),
		.state = text(rows, row, "state"),
		.created_by = text(rows, row, "created_by"),
		.created_at = number(rows, row, "created_at"),
		.finished_at = get_time(rows, row, "finished_at"),
	};
	return true;
}

void
replay_step(struct pg_batch *batch)
{
	pg_begin(batch);
	pg_call(batch, STMT_REPLAY_PICK);
	pg_call(batch, STMT_REPLAY_LOOK);
	pg_call(batch, STMT_REPLAY_HOLD);
	pg_call(batch, STMT_REPLAY_PLACE);
	pg_call(batch, STMT_REPLAY_READY);
	pg_call(batch, STMT_REPLAY_NEXT);
	pg_commit(batch);
}
