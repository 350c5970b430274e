#include <string.h>

#include "pg/pg.h"
#include "pg/row.h"
#include "store/delivery.h"
#include "store/stmt.h"

typedef const struct delivery_outcome *const *outcomes_t;

static const char *const verdict_names[] = {
	[VERDICT_DELIVERED] = "delivered",
	[VERDICT_RETRY] = "retry",
	[VERDICT_DEAD] = "dead",
	[VERDICT_RELEASE] = "release",
};

static void
text_or_null(struct pg_batch *batch, const char *text)
{
	pg_text(batch, text[0] == '\0' ? NULL : text);
}

static void
put_lanes(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->lane_id);
	pg_array_end(batch);
}

static void
put_tokens(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_UUID);
	for (size_t i = 0; i < n; i++)
		pg_bytes(batch, outcomes[i]->token, LANE_TOKEN);
	pg_array_end(batch);
}

static void
put_versions(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->version);
	pg_array_end(batch);
}

static void
put_verdicts(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		pg_text(batch, verdict_names[outcomes[i]->verdict.kind]);
	pg_array_end(batch);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->verdict.wait);
	pg_array_end(batch);
}

static void
put_results(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		pg_text(batch, outcomes[i]->is_bare
				   ? NULL
				   : send_end_name(outcomes[i]->end));
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < n; i++) {
		if (outcomes[i]->status == 0)
			pg_null(batch);
		else
			pg_int(batch, outcomes[i]->status);
	}
	pg_array_end(batch);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++) {
		if (outcomes[i]->duration < 0)
			pg_null(batch);
		else
			pg_bigint(batch, outcomes[i]->duration);
	}
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		text_or_null(
		    batch, outcomes[i]->is_bare ? "" : outcomes[i]->remote);
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		text_or_null(
		    batch, outcomes[i]->is_bare ? "" : outcomes[i]->reason);
	pg_array_end(batch);
	pg_array(batch, PG_BOOL);
	for (size_t i = 0; i < n; i++)
		pg_bool(batch, outcomes[i]->verdict.disables);
	pg_array_end(batch);
}

static void
put_subscriptions(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->subscription_id);
	pg_array_end(batch);
}

/* What an outcome says of the endpoint, for its circuit. */
static int
says(const struct delivery_outcome *outcome)
{
	if (outcome->verdict.kind == VERDICT_DELIVERED)
		return 1;
	if (outcome->verdict.kind == VERDICT_RELEASE ||
	    outcome->end == SEND_LEASE_EXPIRED)
		return 0;
	return -1;
}

static void
put_says(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < n; i++)
		pg_int(batch, says(outcomes[i]));
	pg_array_end(batch);
}

void
delivery_record(struct pg_batch *batch, outcomes_t outcomes, size_t n,
    bool hands_back, usec_t margin)
{
	pg_begin(batch);
	pg_call(batch, STMT_LANE_HOLD);
	put_lanes(batch, outcomes, n);

	pg_call(batch, STMT_DELIVERY_RECORD);
	put_lanes(batch, outcomes, n);
	put_tokens(batch, outcomes, n);
	put_versions(batch, outcomes, n);
	put_verdicts(batch, outcomes, n);
	put_results(batch, outcomes, n);
	pg_bool(batch, hands_back);
	pg_bigint(batch, margin);

	pg_call(batch, STMT_TURN_SHARE);
	put_subscriptions(batch, outcomes, n);
	pg_call(batch, STMT_TURN_SETTLE);
	put_subscriptions(batch, outcomes, n);
	put_lanes(batch, outcomes, n);
	put_says(batch, outcomes, n);
	pg_commit(batch);
}

void
delivery_record_read(
    const struct pg_rows *rows, int row, struct delivery_recorded *out)
{
	int ord = pg_column(rows, "ord");
	int token = pg_column(rows, "lease_token");

	*out = (struct delivery_recorded){
		.nth = (size_t)pg_get_bigint(rows, row, ord) - 1,
		.hands_back = !pg_is_null(rows, row, token),
	};
	if (out->hands_back) {
		lane_lease_read(rows, row, &out->next);
		out->next.attempt = 1;
	}
}

usec_t
delivery_wake_read(const struct pg_rows *rows)
{
	int column = pg_column(rows, "wake_in_us");
	usec_t earliest = -1;

	for (int i = 0; i < pg_count(rows); i++) {
		usec_t wake_in = pg_get_bigint(rows, i, column);

		if (!pg_is_null(rows, i, column) &&
		    (earliest < 0 || wake_in < earliest))
			earliest = wake_in;
	}
	return earliest;
}
