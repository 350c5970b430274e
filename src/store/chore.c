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
	TELL_ENTRIES = 200, /* of the audit */
	TELL_DEAD = 1000, /* what a look finds is one event a subscription */
	TELL_BACKLOGS = 200,
	HISTORY_ATTEMPTS = 300,
	HISTORY_ROWS = 300, /* that are old */
};

/* Between two looks that find dead letters, and between two rounds. */
#define TELL_DEAD_EVERY (60 * USEC_PER_SEC)
#define TELL_BACKLOGS_EVERY (10 * USEC_PER_SEC)

/* How long the history keeps minutes and quarters of an hour, and how often it
 * is looked after while there is something to count. */
#define MINUTES_AGE (2 * 3600 * USEC_PER_SEC)
#define QUARTERS_AGE (3 * 86400 * USEC_PER_SEC)
#define HISTORY_EVERY USEC_PER_SEC

void
chore_cancel(struct pg_batch *batch)
{
	pg_call(batch, STMT_CANCEL_BEGIN);
	pg_int(batch, CANCEL_SUBSCRIPTIONS);
	pg_call(batch, STMT_CANCEL_HOLD);
	pg_int(batch, CANCEL_LANES);
	pg_call(batch, STMT_CANCEL_DELIVERIES);
	pg_int(batch, CANCEL_DELIVERIES);
	pg_call(batch, STMT_CANCEL_LANES);
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
	take(batch, "payload", age);
	pg_call(batch, STMT_RETENTION_HOLD);
	judge(batch, "payload", age);
	pg_call(batch, STMT_RETENTION_PAYLOAD);
	next(batch, "payload", age);
}

void
chore_forget_log(struct pg_batch *batch, usec_t age)
{
	take(batch, "log", age);
	judge(batch, "log", age);
	pg_call(batch, STMT_RETENTION_ATTEMPTS);
	pg_int(batch, FORGET_ROWS);
	pg_call(batch, STMT_RETENTION_LOG);
	pg_int(batch, FORGET_ROWS);
	next(batch, "log", age);
}

void
chore_tell(struct pg_batch *batch, usec_t old)
{
	pg_call(batch, STMT_OPERATION_TAKE);
	pg_int(batch, TELL_ENTRIES);
	pg_call(batch, STMT_OPERATION_DEAD);
	pg_int(batch, TELL_DEAD);
	pg_bigint(batch, TELL_DEAD_EVERY);
	pg_call(batch, STMT_OPERATION_BACKLOG);
	pg_bigint(batch, old);
	pg_int(batch, TELL_BACKLOGS);
	pg_bigint(batch, TELL_BACKLOGS_EVERY);
	pg_call(batch, STMT_OPERATION_ACCEPT);
	pg_call(batch, STMT_WORK_SHARE);
	pg_call(batch, STMT_WORK_READY);
	pg_call(batch, STMT_OPERATION_NEXT);
}

void
chore_history(struct pg_batch *batch)
{
	pg_call(batch, STMT_HISTORY_STEP);
	pg_int(batch, HISTORY_ATTEMPTS);
	pg_int(batch, HISTORY_ROWS);
	pg_bigint(batch, MINUTES_AGE);
	pg_bigint(batch, QUARTERS_AGE);
	pg_bigint(batch, HISTORY_EVERY);
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
