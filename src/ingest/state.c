#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "columns.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "state.h"
#include "store/stmt.h"
#include "subscriptions.h"

#define COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

enum {
	ENDPOINTS_DEFAULT = 20,
	ENDPOINTS_MAX = 100,
	COUNTS_STOP_AT = 10000,
};

/* The answers of one batch. */
enum { TOTALS, RECENT, ENDPOINTS };

static bool
is_operator(const struct call *call)
{
	return call->key.role == KEY_OPERATOR;
}

/* Who is asked about: the key's tenant; or the one that is named, or all. */
static void
put_scope(struct pg_batch *batch, const struct call *call,
    const struct query_item *tenant)
{
	if (is_operator(call))
		pg_null(batch);
	else
		pg_bigint(batch, call->key.tenant_id);
	pg_text(batch, query_text(tenant));
}

/* Read the query; a tenant is the last item, and for an operator to name. */
static int
read_query(struct query_item *items, size_t n, const struct call *call,
    struct err *err)
{
	return query_read(items, is_operator(call) ? n : n - 1,
	    request_query(call->request), err);
}

static void
missing_tenant(struct call *call)
{
	problem_reply(call, 404, "there is no such tenant");
}

static int
read_state(struct query_item items[2], int64_t *limit, const struct call *call,
    struct err *err)
{
	items[0] = (struct query_item){ .name = "limit" };
	items[1] = (struct query_item){ .name = "tenant" };
	*limit = ENDPOINTS_DEFAULT;
	if (read_query(items, 2, call, err) != 0)
		return -1;
	return query_number(&items[0], 1, ENDPOINTS_MAX, limit, err);
}

static void
put_totals(struct buf *out, const struct pg_rows *rows)
{
	static const struct column totals[] = {
		{ "at", COLUMN_TIME },
		{ "tenant", COLUMN_TEXT },
		{ "subscriptions", COLUMN_BIGINT },
		{ "waiting", COLUMN_BIGINT },
		{ "due", COLUMN_BIGINT },
		{ "later", COLUMN_BIGINT },
		{ "held", COLUMN_BIGINT },
		{ "in_flight", COLUMN_BIGINT },
		{ "dead", COLUMN_BIGINT },
		{ "oldest_accepted_at", COLUMN_TIME },
		{ "oldest_waiting_seconds", COLUMN_JSON },
	};

	columns_put(out, rows, 0, totals, COUNT(totals));
}

static void
put_recent(struct buf *out, const struct pg_rows *rows)
{
	static const struct column recent[] = {
		{ "from", COLUMN_TIME },
		{ "until", COLUMN_TIME },
		{ "delivered", COLUMN_INT },
		{ "failed", COLUMN_INT },
		{ "dead", COLUMN_INT },
		{ "per_second", COLUMN_JSON },
		{ "success", COLUMN_JSON },
		{ "attempt_ms", COLUMN_JSON },
		{ "delivery_ms", COLUMN_JSON },
	};

	columns_put(out, rows, 0, recent, COUNT(recent));
}

static void
put_endpoint(struct buf *out, const struct pg_rows *rows, int row)
{
	static const struct column endpoint[] = {
		{ "subscription_id", COLUMN_ID },
		{ "tenant", COLUMN_TEXT },
		{ "url", COLUMN_TEXT },
		{ "state", COLUMN_TEXT },
		{ "state_reason", COLUMN_TEXT },
		{ "rest", COLUMN_TEXT },
		{ "why", COLUMN_TEXT },
		{ "until", COLUMN_TIME },
		{ "circuit", COLUMN_TEXT },
		{ "probe_at", COLUMN_TIME },
		{ "failures", COLUMN_INT },
		{ "in_flight", COLUMN_BIGINT },
		{ "in_flight_limit", COLUMN_INT },
		{ "max_in_flight", COLUMN_INT },
		{ "rate_per_second", COLUMN_JSON },
		{ "slowed_to", COLUMN_INT },
		{ "slowed_until", COLUMN_TIME },
		{ "due", COLUMN_BIGINT },
		{ "later", COLUMN_BIGINT },
		{ "held", COLUMN_BIGINT },
		{ "first_due_at", COLUMN_TIME },
		{ "oldest_accepted_at", COLUMN_TIME },
		{ "oldest_waiting_seconds", COLUMN_JSON },
		{ "dead", COLUMN_BIGINT },
		{ "last_hour", COLUMN_JSON },
		{ "last_error", COLUMN_TEXT },
		{ "last_error_at", COLUMN_TIME },
	};

	buf_puts(out, row == 0 ? "{" : ",{");
	columns_put(out, rows, row, endpoint, COUNT(endpoint));
	buf_puts(out, "}");
}

/* One row more than is shown says that there are more. */
static void
put_state(struct buf *out, struct pg_rows *const *rows, int64_t limit)
{
	int n = pg_count(rows[ENDPOINTS]);

	buf_puts(out, "{");
	put_totals(out, rows[TOTALS]);
	buf_puts(out, ",\"recent\":{");
	put_recent(out, rows[RECENT]);
	buf_puts(out, "},\"endpoints\":[");
	for (int row = 0; row < n && row < limit; row++)
		put_endpoint(out, rows[ENDPOINTS], row);
	buf_puts(out, "]");
	put_bool(out, "more", n > limit);
	buf_puts(out, "}");
}

static void
on_state(struct call *call, struct pg_rows *const *rows)
{
	struct query_item items[2];
	struct buf body = { 0 };
	struct err ignored;
	int64_t limit;

	if (pg_count(rows[TOTALS]) == 0 || pg_count(rows[RECENT]) == 0) {
		missing_tenant(call);
	} else {
		(void)read_state(items, &limit, call, &ignored);
		put_state(&body, rows, limit);
		call_json(call, 200, &body);
	}
}

void
state_get(struct call *call)
{
	struct query_item items[2];
	struct pg_batch *batch;
	struct err err;
	int64_t limit;

	if (read_state(items, &limit, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	pg_call(batch, STMT_STATE_TOTALS);
	put_scope(batch, call, &items[1]);
	pg_int(batch, COUNTS_STOP_AT);
	pg_call(batch, STMT_STATE_RECENT);
	put_scope(batch, call, &items[1]);
	pg_call(batch, STMT_STATE_ENDPOINTS);
	put_scope(batch, call, &items[1]);
	pg_int(batch, (int32_t)limit + 1);
	call_ask(call, batch, on_state);
}

/* How the history is told, by the name of the span. */
static const struct span {
	const char *name;
	int seconds; /* in a period */
	int periods;
} spans[] = {
	{ "hour", 60, 60 },
	{ "day", 900, 96 },
};

enum { SPAN, SUBSCRIPTION, TENANT, NITEMS };

/* What is asked for. */
struct asked {
	struct query_item items[NITEMS];
	const struct span *span;
	int64_t subscription_id; /* -1: all */
};

static int
read_asked(struct asked *asked, const struct call *call, struct err *err)
{
	struct query_item *items = asked->items;

	*asked = (struct asked){
		.items = { [SPAN] = { .name = "span" },
		    [SUBSCRIPTION] = { .name = "subscription" },
		    [TENANT] = { .name = "tenant" } },
		.subscription_id = -1,
	};
	if (read_query(items, NITEMS, call, err) != 0 ||
	    query_number(&items[SUBSCRIPTION], 0, INT64_MAX,
		&asked->subscription_id, err) != 0)
		return -1;
	for (size_t i = 0; i < COUNT(spans); i++)
		if (strcmp(items[SPAN].value, spans[i].name) == 0)
			asked->span = &spans[i];
	if (asked->span == NULL)
		return err_set(err, ERR_REFUSED, "span: want hour or day");
	return 0;
}

static void
put_history(
    struct buf *out, const struct pg_rows *rows, const struct span *span)
{
	static const struct column all[] = {
		{ "tenant", COLUMN_TEXT },
		{ "subscription_id", COLUMN_ID },
		{ "until", COLUMN_TIME },
	};
	static const struct column period[] = {
		{ "at", COLUMN_TIME },
		{ "delivered", COLUMN_INT },
		{ "failed", COLUMN_INT },
		{ "dead", COLUMN_INT },
		{ "success", COLUMN_JSON },
		{ "attempt_ms", COLUMN_JSON },
		{ "delivery_ms", COLUMN_JSON },
	};

	buf_puts(out, "{");
	put_text(out, "span", span->name);
	put_number(out, "bucket_seconds", span->seconds);
	put_time(out, "from", pg_read_time(rows, 0, "at"));
	columns_put(out, rows, 0, all, COUNT(all));
	buf_puts(out, ",\"buckets\":[");
	for (int row = 0; row < pg_count(rows); row++) {
		buf_puts(out, row == 0 ? "{" : ",{");
		columns_put(out, rows, row, period, COUNT(period));
		buf_puts(out, "}");
	}
	buf_puts(out, "]}");
}

static void
on_history(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };
	struct asked asked;
	struct err ignored;

	(void)read_asked(&asked, call, &ignored);
	if (pg_count(rows[0]) > 0) {
		put_history(&body, rows[0], asked.span);
		call_json(call, 200, &body);
	} else if (asked.subscription_id >= 0) {
		subscriptions_missing(call);
	} else {
		missing_tenant(call);
	}
}

void
state_get_history(struct call *call)
{
	struct pg_batch *batch;
	struct asked asked;
	struct err err;

	if (read_asked(&asked, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	pg_call(batch, STMT_HISTORY_LIST);
	put_scope(batch, call, &asked.items[TENANT]);
	query_put_id(batch, asked.subscription_id);
	pg_int(batch, asked.span->seconds);
	pg_int(batch, asked.span->periods);
	call_ask(call, batch, on_history);
}
