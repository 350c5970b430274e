#include "base/buf.h"
#include "history.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "rows.h"
#include "stmt.h"

typedef void put_fn(struct pg_batch *batch, const struct receipt *receipt);

static void
put_id(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_bigint(batch, receipt->id);
}

static void
put_path(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_text(batch, receipt->path);
}

static void
put_event_id(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_text(batch, receipt->event_id);
}

static void
put_asset(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_text(batch, receipt->asset);
}

static void
put_position(struct pg_batch *batch, const struct receipt *receipt)
{
	if (receipt->has_position)
		pg_bigint(batch, receipt->position);
	else
		pg_null(batch);
}

static void
put_positive(struct pg_batch *batch, int value)
{
	if (value > 0)
		pg_int(batch, value);
	else
		pg_null(batch);
}

static void
put_attempt(struct pg_batch *batch, const struct receipt *receipt)
{
	put_positive(batch, receipt->attempt);
}

static void
put_arrived(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_bigint(batch, receipt->arrived_at);
}

static void
put_status(struct pg_batch *batch, const struct receipt *receipt)
{
	put_positive(batch, receipt->status);
}

static void
put_verdict(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_text(batch, verify_verdict_name(receipt->verdict));
}

static void
put_nth(struct pg_batch *batch, const struct receipt *receipt)
{
	put_positive(batch, receipt->nth);
}

static void
put_out_of_order(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_bool(batch, receipt->out_of_order);
}

static void
put_overlaps(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_bool(batch, receipt->overlaps);
}

static void
put_sha256(struct pg_batch *batch, const struct receipt *receipt)
{
	pg_bytes(batch, receipt->sha256, sizeof(receipt->sha256));
}

static void
put_body(struct pg_batch *batch, const struct receipt *receipt)
{
	if (receipt->nth == 1)
		pg_bytes(batch, receipt->body, receipt->len);
	else
		pg_null(batch);
}

/* The parameters of request_insert, in order. */
static const struct column {
	enum pg_type type;
	put_fn *put;
} request_columns[] = {
	{ PG_BIGINT, put_id },
	{ PG_TEXT, put_path },
	{ PG_TEXT, put_event_id },
	{ PG_TEXT, put_asset },
	{ PG_BIGINT, put_position },
	{ PG_INT, put_attempt },
	{ PG_BIGINT, put_arrived },
	{ PG_INT, put_status },
	{ PG_TEXT, put_verdict },
	{ PG_INT, put_nth },
	{ PG_BOOL, put_out_of_order },
	{ PG_BOOL, put_overlaps },
	{ PG_BYTEA, put_sha256 },
	{ PG_BYTEA, put_body },
	{ PG_BOOL, NULL },
};

/* The same of effect_insert. */
static const struct column effect_columns[] = {
	{ PG_TEXT, put_path },
	{ PG_TEXT, put_event_id },
	{ PG_BIGINT, put_id },
	{ PG_BOOL, NULL },
};

static bool
takes_effect(const struct receipt *receipt)
{
	return receipt->takes_effect;
}

static bool
is_any(const struct receipt *receipt)
{
	(void)receipt;
	return true;
}

/* Call `statement` with the receipts that are `wanted`, if there are any. */
static void
call(struct pg_batch *batch, enum stmt statement, const struct column *columns,
    const struct receipts_queue *queue,
    bool (*wanted)(const struct receipt *receipt))
{
	const struct receipt *receipt;

	TAILQ_FOREACH (receipt, queue, entry)
		if (wanted(receipt))
			break;
	if (receipt == NULL)
		return;
	pg_call(batch, (int)statement);
	for (; columns->put != NULL; columns++) {
		pg_array(batch, columns->type);
		TAILQ_FOREACH (receipt, queue, entry)
			if (wanted(receipt))
				columns->put(batch, receipt);
		pg_array_end(batch);
	}
}

void
rows_insert(struct pg_batch *batch, const struct receipts_queue *queue)
{
	call(batch, STMT_REQUEST_INSERT, request_columns, queue, is_any);
	call(batch, STMT_EFFECT_INSERT, effect_columns, queue, takes_effect);
}

void
rows_answer(struct pg_batch *batch, const struct buf *answers)
{
	const struct rows_answer *all = (const void *)answers->data;
	size_t n = answers->len / sizeof(*all);

	if (n == 0)
		return;
	pg_call(batch, STMT_REQUEST_ANSWER);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, all[i].id);
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < n; i++)
		pg_int(batch, all[i].status);
	pg_array_end(batch);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, all[i].answered_at);
	pg_array_end(batch);
}

int
rows_load_events(
    struct history *history, const struct pg_rows *rows, struct err *err)
{
	int path = pg_column(rows, "path");
	int event_id = pg_column(rows, "event_id");
	int requests = pg_column(rows, "requests");

	for (int i = 0; i < pg_count(rows); i++)
		if (history_load_event(history, pg_get_text(rows, i, path),
			pg_get_text(rows, i, event_id),
			pg_get_int(rows, i, requests), err) != 0)
			return -1;
	return 0;
}

int
rows_load_lanes(
    struct history *history, const struct pg_rows *rows, struct err *err)
{
	int path = pg_column(rows, "path");
	int asset = pg_column(rows, "asset");
	int highest = pg_column(rows, "highest");

	for (int i = 0; i < pg_count(rows); i++)
		if (history_load_lane(history, pg_get_text(rows, i, path),
			pg_get_text(rows, i, asset),
			pg_get_bigint(rows, i, highest), err) != 0)
			return -1;
	return 0;
}
