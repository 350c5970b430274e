#include "pg/pg.h"
#include "pg/row.h"
#include "store/chore.h"
#include "store/stmt.h"

/* A step takes a few milliseconds: claims wait for no more. */
enum {
	CANCEL_SUBSCRIPTIONS = 20,
	CANCEL_LANES = 100,
	CANCEL_DELIVERIES = 200,
	FORGET_ROWS = 200, /* events and deliveries together */
};

void
chore_cancel(struct pg_batch *batch)
{
	pg_begin(batch);
	pg_call(batch, STMT_CANCEL_BEGIN);
	pg_int(batch, CANCEL_SUBSCRIPTIONS);
	pg_call(batch, STMT_CANCEL_HOLD);
	pg_int(batch, CANCEL_LANES);
	pg_call(batch, STMT_CANCEL_DELIVERIES);
	pg_int(batch, CANCEL_DELIVERIES);
	pg_call(batch, STMT_CANCEL_LANES);
	pg_commit(batch);
}

static void
take(struct pg_batch *batch, const char *what, usec_t age)
{
	pg_call(batch, STMT_RETENTION_TAKE);
	pg_text(batch, what);
	pg_bigint(batch, age);
	pg_int(batch, FORGET_ROWS);
}

static void
judge(struct pg_batch *batch, const char *what, usec_t age)
{
	pg_call(batch, STMT_RETENTION_JUDGE);
	pg_text(batch, what);
	pg_bigint(batch, age);
}

static void
next(struct pg_batch *batch, const char *what, usec_t age)
{
	pg_call(batch, STMT_RETENTION_NEXT);
	pg_text(batch, what);
	pg_bigint(batch, age);
}

void
chore_forget_payload(struct pg_batch *batch, usec_t age)
{
	pg_begin(batch);
	take(batch, "payload", age);
	pg_call(batch, STMT_RETENTION_HOLD);
	judge(batch, "payload", age);
	pg_call(batch, STMT_RETENTION_PAYLOAD);
	next(batch, "payload", age);
	pg_commit(batch);
}

void
chore_forget_log(struct pg_batch *batch, usec_t age)
{
	pg_begin(batch);
	take(batch, "log", age);
	judge(batch, "log", age);
	pg_call(batch, STMT_RETENTION_ATTEMPTS);
	pg_int(batch, FORGET_ROWS);
	pg_call(batch, STMT_RETENTION_LOG);
	pg_int(batch, FORGET_ROWS);
	next(batch, "log", age);
	pg_commit(batch);
}

void
chore_read(const struct pg_rows *rows, struct chore_step *out)
{
	int next_in = pg_column(rows, "next_in_us");

	*out = (struct chore_step){
		.did = pg_read_int(rows, 0, "did"),
		.next_in = pg_is_null(rows, 0, next_in)
		               ? -1
		               : pg_get_bigint(rows, 0, next_in),
	};
}
