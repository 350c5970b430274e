#include <string.h>

#include "pg/pg.h"
#include "pg/row.h"
#include "store/lane.h"
#include "store/stmt.h"

static void
put_ids(struct pg_batch *batch, const int64_t *ids, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, ids[i]);
	pg_array_end(batch);
}

static void
put_from(struct pg_batch *batch, int64_t from)
{
	if (from == LANE_START)
		pg_null(batch);
	else
		pg_bigint(batch, from);
}

static void
read_token(
    const struct pg_rows *rows, int row, const char *column, unsigned char *out)
{
	size_t len;
	const void *token =
	    pg_get_bytes(rows, row, pg_column(rows, column), &len);

	memset(out, 0, LANE_TOKEN);
	if (token != NULL && len == LANE_TOKEN)
		memcpy(out, token, LANE_TOKEN);
}

void
lane_reclaim(struct pg_batch *batch, const char *worker, int limit,
    usec_t lease, int64_t from)
{
	pg_call(batch, STMT_LANE_RECLAIM);
	pg_text(batch, worker);
	pg_int(batch, limit);
	pg_bigint(batch, lease);
	put_from(batch, from);
}

void
lane_reclaim_read(const struct pg_rows *rows, int row, struct lane_expired *out)
{
	*out = (struct lane_expired){
		.lane_id = pg_get_bigint(rows, row, pg_column(rows, "lane_id")),
		.delivery_id =
		    pg_get_bigint(rows, row, pg_column(rows, "head_id")),
		.subscription_id = pg_get_bigint(
		    rows, row, pg_column(rows, "subscription_id")),
		.attempt = pg_get_int(rows, row, pg_column(rows, "attempts")),
		.policy = {
			.base = pg_get_int(rows, row,
			    pg_column(rows, "retry_base_ms")) * USEC_PER_MS,
			.cap = pg_get_int(rows, row,
			    pg_column(rows, "retry_cap_ms")) * USEC_PER_MS,
			.max_attempts = pg_get_int(
			    rows, row, pg_column(rows, "max_attempts")),
		},
	};
	read_token(rows, row, "lease_token", out->token);
}

void
lane_wake(struct pg_batch *batch, int limit, int64_t from)
{
	pg_call(batch, STMT_TURN_WAKE);
	pg_int(batch, limit);
	put_from(batch, from);
}

int64_t
lane_wake_read(const struct pg_rows *rows)
{
	int from = pg_column(rows, "look_from");

	return pg_is_null(rows, 0, from) ? LANE_START
	                                 : pg_get_bigint(rows, 0, from);
}

void
lane_next(struct pg_batch *batch, int64_t from)
{
	pg_call(batch, STMT_TURN_NEXT);
	put_from(batch, from);
}

usec_t
lane_next_read(const struct pg_rows *rows)
{
	int column = pg_column(rows, "next_in_us");
	usec_t next_in;

	if (pg_is_null(rows, 0, column))
		return -1;
	next_in = pg_get_bigint(rows, 0, column);
	return next_in < 0 ? 0 : next_in;
}

void
lane_take(struct pg_batch *batch, int limit, const int64_t *asked, size_t n,
    int64_t from)
{
	pg_call(batch, STMT_TURN_TAKE);
	pg_int(batch, limit);
	put_ids(batch, asked, n);
	put_from(batch, from);
}

int64_t
lane_take_from(const struct pg_rows *rows)
{
	return pg_get_bigint(rows, 0, pg_column(rows, "look_from"));
}

bool
lane_take_read(const struct pg_rows *rows, int row, struct lane_turn *out)
{
	int subscription = pg_column(rows, "subscription_id");
	int tenant = pg_column(rows, "tenant_id");

	if (pg_is_null(rows, row, subscription))
		return false;
	*out = (struct lane_turn){
		.subscription_id = pg_get_bigint(rows, row, subscription),
		.tenant_id = pg_is_null(rows, row, tenant)
		                 ? 0
		                 : pg_get_bigint(rows, row, tenant),
		.is_taken = pg_get_bool(rows, row, pg_column(rows, "is_taken")),
	};
	return true;
}

void
lane_claim(struct pg_batch *batch, const struct lane_claim_args *args)
{
	pg_call(batch, STMT_LANE_CLAIM);
	pg_int(batch, args->limit);
	pg_text(batch, args->worker);
	pg_bigint(batch, args->margin);
	pg_bigint(batch, args->begin_within);
	pg_int(batch, args->dice);
}

void
lane_lease_read(const struct pg_rows *rows, int row, struct lane_lease *out)
{
	*out = (struct lane_lease){
		.lane_id = pg_get_bigint(rows, row, pg_column(rows, "lane_id")),
		.subscription_id = pg_get_bigint(
		    rows, row, pg_column(rows, "subscription_id")),
		.version = pg_get_bigint(rows, row, pg_column(rows, "version")),
		.delivery_id =
		    pg_get_bigint(rows, row, pg_column(rows, "head_id")),
		.event_no =
		    pg_get_bigint(rows, row, pg_column(rows, "head_event_no")),
		.goes_on = pg_get_bool(rows, row, pg_column(rows, "goes_on")),
		.timeout =
		    pg_get_int(rows, row, pg_column(rows, "timeout_ms")) *
		    USEC_PER_MS,
		.begin_within = INT64_MAX,
	};
	read_token(rows, row, "lease_token", out->token);
}

void
lane_claim_read(const struct pg_rows *rows, int row, struct lane_lease *out)
{
	int begin_within = pg_column(rows, "begin_within_us");

	lane_lease_read(rows, row, out);
	out->attempt = pg_get_int(rows, row, pg_column(rows, "attempts"));
	if (!pg_is_null(rows, row, begin_within))
		out->begin_within = pg_get_bigint(rows, row, begin_within);
}

bool
lane_claim_has_more(const struct pg_rows *rows)
{
	return pg_count(rows) > 0 &&
	       pg_get_bool(rows, 0, pg_column(rows, "has_more"));
}

void
lane_rest(struct pg_batch *batch, const int64_t *subscriptions, size_t n)
{
	pg_call(batch, STMT_TURN_EXCLUDE);
	put_ids(batch, subscriptions, n);
	pg_call(batch, STMT_TURN_REST);
	put_ids(batch, subscriptions, n);
}

int64_t
lane_rest_read(const struct pg_rows *rows)
{
	return pg_get_bigint(rows, 0, pg_column(rows, "staying"));
}

void
lane_bodies(struct pg_batch *batch)
{
	pg_call(batch, STMT_EVENT_BODIES);
}

bool
lane_body_read(const struct pg_rows *rows, int row, struct lane_lease *out)
{
	int event_no = pg_column(rows, "event_no");

	if (row >= pg_count(rows) ||
	    pg_get_bigint(rows, row, event_no) != out->event_no)
		return false;
	out->event_id = pg_get_text(rows, row, pg_column(rows, "event_id"));
	out->accepted_at =
	    pg_get_bigint(rows, row, pg_column(rows, "accepted_us"));
	out->body = pg_get_bytes(rows, row, pg_column(rows, "body"), &out->len);
	return true;
}

void
lane_any(struct pg_batch *batch)
{
	pg_call(batch, STMT_SUBSCRIPTION_EXISTS);
}

bool
lane_any_read(const struct pg_rows *rows)
{
	return pg_get_bool(rows, 0, pg_column(rows, "is_any"));
}
