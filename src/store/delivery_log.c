#include <string.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/delivery_log.h"
#include "store/stmt.h"

enum { LOOKED_AT = 10000 }; /* deliveries, for one page */

static const char *const states[] = { "pending", "delivering", "retrying",
	"delivered", "dead", "cancelled" };

enum { NSTATES = sizeof(states) / sizeof(states[0]) };

int
delivery_log_check_state(const char *state, struct err *err)
{
	for (size_t i = 0; i < NSTATES; i++)
		if (strcmp(state, states[i]) == 0)
			return 0;
	return err_set(err, ERR_REFUSED,
	    "state: want pending, delivering, retrying, delivered, dead or "
	    "cancelled");
}

void
delivery_log_get(struct pg_batch *batch, int64_t tenant_id,
    int64_t subscription_id, int64_t id, int attempts)
{
	pg_call(batch, STMT_DELIVERY_GET);
	pg_bigint(batch, tenant_id);
	pg_bigint(batch, subscription_id);
	pg_bigint(batch, id);
	pg_int(batch, attempts);
}

static void
number_if_given(struct pg_batch *batch, int64_t value)
{
	if (value < 0)
		pg_null(batch);
	else
		pg_bigint(batch, value);
}

void
delivery_log_list(struct pg_batch *batch, const struct delivery_query *query)
{
	pg_call(batch, STMT_DELIVERY_LIST);
	number_if_given(batch, query->tenant_id);
	pg_bigint(batch, query->subscription_id);
	number_if_given(batch, query->after);
	pg_text(batch, query->state);
	pg_text(batch, query->type);
	pg_text(batch, query->asset);
	pg_text(batch, query->event_id);
	number_if_given(batch, query->since);
	number_if_given(batch, query->until);
	pg_int(batch, query->limit);
	pg_int(batch, LOOKED_AT);
}

static int
number_or_none(const struct pg_rows *rows, int row, const char *column)
{
	return pg_is_null(rows, row, pg_column(rows, column))
	           ? -1
	           : pg_read_int(rows, row, column);
}

bool
delivery_log_read(
    struct delivery_entry *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows) || pg_read_bigint(rows, row, "id") == 0)
		return false;
	*out = (struct delivery_entry){
		.id = pg_read_bigint(rows, row, "id"),
		.event_id = pg_read_text(rows, row, "event_id"),
		.type = pg_read_text(rows, row, "type"),
		.asset = pg_read_text_or_null(rows, row, "asset"),
		.state = pg_read_text(rows, row, "state"),
		.why = pg_read_text_or_null(rows, row, "why"),
		.until = pg_read_time(rows, row, "until"),
		.behind = pg_read_bigint(rows, row, "behind"),
		.generation = pg_read_int(rows, row, "generation"),
		.attempts = pg_read_int(rows, row, "attempts"),
		.status = number_or_none(rows, row, "status"),
		.accepted_at = pg_read_time(rows, row, "accepted_at"),
		.finished_at = pg_read_time(rows, row, "finished_at"),
		.is_purged = pg_read_bool(rows, row, "is_purged"),
	};
	return true;
}

int
delivery_log_last_status(const struct pg_rows *rows, int row)
{
	return number_or_none(rows, row, "last_status");
}

const char *
delivery_log_last_error(const struct pg_rows *rows, int row)
{
	return pg_read_text_or_null(rows, row, "last_error");
}

int64_t
delivery_log_more_after(const struct pg_rows *rows, int limit)
{
	int n = pg_count(rows);
	int64_t last = n == 0 ? 0 : pg_read_bigint(rows, n - 1, "id");

	if (n == 0 || (n == limit && last != 0))
		return last;
	return pg_read_bigint(rows, 0, "more_after");
}
