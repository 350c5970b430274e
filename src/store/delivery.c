#include <string.h>

#include "pg/pg.h"
#include "pg/row.h"
#include "delivery_inside.h"
#include "store/stmt.h"

static const char *const verdict_names[] = {
	[VERDICT_DELIVERED] = "delivered",
	[VERDICT_RETRY] = "retry",
	[VERDICT_DEAD] = "dead",
	[VERDICT_RELEASE] = "release",
};

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
put_ended(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		pg_text(batch, outcomes[i]->is_bare
				   ? NULL
				   : send_end_name(outcomes[i]->end));
	pg_array_end(batch);
}

static void
put_reasons(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		pg_text(batch,
		    outcomes[i]->is_bare || outcomes[i]->reason[0] == '\0'
			? NULL
			: outcomes[i]->reason);
	pg_array_end(batch);
}

static void
put_disables(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
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

static bool
slows(const struct delivery_outcome *outcome)
{
	return outcome->verdict.slows >= 0;
}

/* `n` if none does, as nearly always. */
static size_t
first_that_slows(outcomes_t outcomes, size_t n)
{
	size_t first = 0;

	while (first < n && !slows(outcomes[first]))
		first++;
	return first;
}

static bool
is_overloaded(
    outcomes_t outcomes, size_t first, size_t n, int64_t subscription_id)
{
	for (size_t i = first; i < n; i++)
		if (slows(outcomes[i]) &&
		    outcomes[i]->subscription_id == subscription_id)
			return true;
	return false;
}

static void
put_hands_back(
    struct pg_batch *batch, outcomes_t outcomes, size_t n, bool hands_back)
{
	size_t first = first_that_slows(outcomes, n);

	pg_array(batch, PG_BOOL);
	for (size_t i = 0; i < n; i++)
		pg_bool(batch, hands_back && !is_overloaded(outcomes, first, n,
						 outcomes[i]->subscription_id));
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

static void
put_slows(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	usec_t now = clock_now();

	if (first_that_slows(outcomes, n) == n) {
		pg_null(batch);
		pg_null(batch);
		return;
	}
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++) {
		if (slows(outcomes[i]))
			pg_bigint(batch, outcomes[i]->verdict.slows);
		else
			pg_null(batch);
	}
	pg_array_end(batch);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, now - outcomes[i]->claimed_at);
	pg_array_end(batch);
}

void
delivery_record(struct pg_batch *batch, outcomes_t outcomes, size_t n,
    bool hands_back, usec_t margin)
{
	pg_call(batch, STMT_LANE_HOLD);
	delivery_put_lanes(batch, outcomes, n);

	pg_call(batch, STMT_DELIVERY_RECORD);
	delivery_put_lanes(batch, outcomes, n);
	delivery_put_tokens(batch, outcomes, n);
	delivery_put_versions(batch, outcomes, n);
	put_verdicts(batch, outcomes, n);
	put_ended(batch, outcomes, n);
	delivery_put_results(batch, outcomes, n);
	put_reasons(batch, outcomes, n);
	put_disables(batch, outcomes, n);
	put_hands_back(batch, outcomes, n, hands_back);
	pg_bigint(batch, margin);
	delivery_put_answers(batch, outcomes, n);

	pg_call(batch, STMT_TURN_SHARE);
	put_subscriptions(batch, outcomes, n);
	pg_call(batch, STMT_TURN_SETTLE);
	put_subscriptions(batch, outcomes, n);
	delivery_put_lanes(batch, outcomes, n);
	put_says(batch, outcomes, n);
	put_slows(batch, outcomes, n);
	pg_commit(batch);
	lane_bodies(batch);
}

bool
delivery_is_plain(const struct delivery_outcome *outcome)
{
	return outcome->verdict.kind == VERDICT_DELIVERED &&
	       outcome->end == SEND_ANSWERED && outcome->reason[0] == '\0' &&
	       !outcome->is_bare;
}

static void
taken_one(struct pg_batch *batch, const struct delivery_outcome *outcome,
    usec_t margin)
{
	pg_call(batch, STMT_DELIVERY_TAKEN_ONE);
	pg_bigint(batch, outcome->lane_id);
	pg_bytes(batch, outcome->token, LANE_TOKEN);
	pg_bigint(batch, outcome->version);
	delivery_put_result(batch, outcome);
	pg_bigint(batch, margin);
	delivery_put_answer(batch, outcome);
}

static void
taken_many(struct pg_batch *batch, outcomes_t outcomes, size_t n,
    enum delivery_fate fate, usec_t margin)
{
	if (fate != DELIVERY_GOES_ON) {
		pg_call(batch, STMT_TURN_SHARE);
		put_subscriptions(batch, outcomes, n);
	}
	pg_call(batch, STMT_DELIVERY_TAKEN);
	delivery_put_lanes(batch, outcomes, n);
	delivery_put_tokens(batch, outcomes, n);
	delivery_put_versions(batch, outcomes, n);
	delivery_put_results(batch, outcomes, n);
	pg_bigint(batch, margin);
	delivery_put_answers(batch, outcomes, n);
	pg_bool(batch, fate != DELIVERY_LET_GO);
	pg_bool(batch, fate != DELIVERY_GOES_ON);
}

void
delivery_taken(struct pg_batch *batch, outcomes_t outcomes, size_t n,
    enum delivery_fate fate, usec_t margin)
{
	if (n == 1 && fate == DELIVERY_GOES_ON)
		taken_one(batch, outcomes[0], margin);
	else
		taken_many(batch, outcomes, n, fate, margin);
	pg_commit(batch);
	lane_bodies(batch);
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
