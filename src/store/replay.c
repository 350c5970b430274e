#include "base/err.h"
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

/* The first three parameters of what is asked for with an id. */
static void
put_asked(struct pg_batch *batch, const struct replay_asked *asked)
{
	id_or_null(batch, asked->tenant_id);
	pg_bigint(batch, asked->subscription_id);
	pg_bigint(batch, asked->id);
}

/* Lets those know who wait for what may have been made. */
static void
put_ready(struct pg_batch *batch)
{
	pg_call(batch, STMT_WORK_SHARE);
	pg_call(batch, STMT_WORK_READY);
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
	pg_call(batch, STMT_REPLAY_ONE);
	put_asked(batch, asked);
	pg_call(batch, STMT_REPLAY_HOLD);
	pg_call(batch, STMT_REPLAY_PLACE);
	put_ready(batch);
	put_answer(batch, asked, "delivery.retried");
}

void
replay_discard(struct pg_batch *batch, const struct replay_asked *asked)
{
	pg_call(batch, STMT_DISCARD_HOLD);
	put_asked(batch, asked);
	pg_call(batch, STMT_DELIVERY_DISCARD);
	put_asked(batch, asked);
	put_ready(batch);
	put_answer(batch, asked, "delivery.discarded");
}

bool
replay_answer_read(struct replay_answer *out, const struct pg_rows *rows)
{
	if (pg_count(rows) == 0)
		return false;
	*out = (struct replay_answer){
		.is_done = pg_read_bool(rows, 0, "is_done"),
		.is_purged = pg_read_bool(rows, 0, "is_purged"),
		.state = pg_read_text(rows, 0, "state"),
		.generation = pg_read_int(rows, 0, "generation"),
		.held_by = pg_read_bigint(rows, 0, "held_by"),
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
	pg_time(batch, order->since);
	pg_time(batch, order->until);
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
	pg_call(batch, STMT_REPLAY_CANCEL);
	put_asked(batch, asked);
	pg_text(batch, asked->actor);
	replay_get(batch, asked);
	audit_from(batch, asked->source);
}

bool
replay_job_read(struct replay_job *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows) ||
	    pg_is_null(rows, row, pg_column(rows, "id")))
		return false;
	*out = (struct replay_job){
		.id = pg_read_bigint(rows, row, "id"),
		.subscription_id = pg_read_bigint(rows, row, "subscription_id"),
		.what = pg_read_text(rows, row, "what"),
		.since = pg_read_time(rows, row, "since"),
		.until = pg_read_time(rows, row, "until"),
		.rate_per_second = pg_read_int(rows, row, "rate_per_second"),
		.reached = pg_read_bigint(rows, row, "reached"),
		.examined = pg_read_bigint(rows, row, "examined"),
		.replayed = pg_read_bigint(rows, row, "replayed"),
		.refused = pg_read_bigint(rows, row, "refused"),
		.state = pg_read_text(rows, row, "state"),
		.created_by = pg_read_text(rows, row, "created_by"),
		.created_at = pg_read_bigint(rows, row, "created_at"),
		.finished_at = pg_read_time(rows, row, "finished_at"),
	};
	return true;
}

void
replay_step(struct pg_batch *batch)
{
	pg_call(batch, STMT_REPLAY_PICK);
	pg_call(batch, STMT_REPLAY_LOOK);
	pg_call(batch, STMT_REPLAY_HOLD);
	pg_call(batch, STMT_REPLAY_PLACE);
	put_ready(batch);
	pg_call(batch, STMT_REPLAY_NEXT);
}

int
replay_span(struct pg *pg, const struct replay_job *job, int64_t *first,
    int64_t *last, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "replay");
	pg_call(batch, STMT_REPLAY_SPAN);
	pg_bigint(batch, job->subscription_id);
	pg_text(batch, job->what);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	*first = pg_read_bigint(rows[0], 0, "first");
	if (job->reached > *first)
		*first = job->reached;
	*last = pg_read_bigint(rows[0], 0, "last");
	pg_rows_free(rows);
	return 0;
}
