#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "columns.h"
#include "dead_letters.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "problem.h"
#include "query.h"
#include "store/stmt.h"
#include "subscriptions.h"

enum {
	LOOKED_AT = 10000,
	LOOKED_AT_OF_EACH = 1000, /* where no subscription is named */
	GROUPS_SHOWN = 200,
};

enum { SUBSCRIPTION, REASON, NITEMS };

static int
read_asked(struct query_item items[NITEMS], int64_t *subscription_id,
    const struct call *call, struct err *err)
{
	items[SUBSCRIPTION] = (struct query_item){ .name = "subscription" };
	items[REASON] =
	    (struct query_item){ .name = "reason", .is_text = true };
	*subscription_id = -1;
	if (query_read(items, NITEMS, request_query(call->request), err) != 0)
		return -1;
	return query_number(
	    &items[SUBSCRIPTION], 0, INT64_MAX, subscription_id, err);
}

static void
put_groups(struct buf *out, const struct pg_rows *rows)
{
	static const struct column group[] = {
		{ "subscription_id", COLUMN_ID },
		{ "url", COLUMN_TEXT },
		{ "reason", COLUMN_TEXT },
		{ "count", COLUMN_BIGINT },
		{ "oldest_died_at", COLUMN_TIME },
		{ "newest_died_at", COLUMN_TIME },
		{ "newest_delivery_id", COLUMN_ID },
	};
	static const struct column all[] = {
		{ "examined", COLUMN_BIGINT },
		{ "is_complete", COLUMN_BOOL },
	};
	int reason = pg_column(rows, "reason");

	buf_puts(out, "{\"groups\":[");
	for (int row = 0; row < pg_count(rows); row++) {
		if (pg_is_null(rows, row, reason))
			break;
		buf_puts(out, row == 0 ? "{" : ",{");
		columns_put(
		    out, rows, row, group, sizeof(group) / sizeof(group[0]));
		buf_puts(out, "}");
	}
	buf_puts(out, "]");
	columns_put(out, rows, 0, all, sizeof(all) / sizeof(all[0]));
	buf_puts(out, "}");
}

static void
on_grouped(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };

	if (pg_count(rows[0]) == 0) {
		subscriptions_missing(call);
	} else {
		put_groups(&body, rows[0]);
		call_json(call, 200, &body);
	}
}

void
dead_letters_get(struct call *call)
{
	struct query_item items[NITEMS];
	struct pg_batch *batch;
	struct err err;
	int64_t subscription_id;

	if (read_asked(items, &subscription_id, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	pg_call(batch, STMT_DEAD_LETTER_GROUPS);
	pg_bigint(batch, call->key.tenant_id);
	query_put_id(batch, subscription_id);
	pg_text(batch, query_text(&items[REASON]));
	pg_int(batch, subscription_id < 0 ? LOOKED_AT_OF_EACH : LOOKED_AT);
	pg_int(batch, LOOKED_AT);
	pg_int(batch, GROUPS_SHOWN);
	call_ask(call, batch, on_grouped);
}
