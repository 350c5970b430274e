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

static bool
has_phase(const struct delivery_outcome *outcome, enum delivery_phase phase)
{
	return !outcome->is_bare && outcome->phases[phase] >= 0;
}

/* An array of microseconds, or null if there is not one. */
static void
put_phase(struct pg_batch *batch, outcomes_t outcomes, size_t n,
    enum delivery_phase phase)
{
	size_t none = 0;

	while (none < n && !has_phase(outcomes[none], phase))
		none++;
	if (none == n) {
		pg_null(batch);
		return;
	}
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < n; i++) {
		if (has_phase(outcomes[i], phase))
			pg_int(batch, (int32_t)outcomes[i]->phases[phase]);
		else
			pg_null(batch);
	}
	pg_array_end(batch);
}

typedef const char *text_fn(const struct delivery_outcome *outcome);

static const char *
headers(const struct delivery_outcome *outcome)
{
	return outcome->is_bare ? NULL : outcome->headers;
}

static const char *
excerpt(const struct delivery_outcome *outcome)
{
	return outcome->is_bare ? NULL : outcome->excerpt;
}

/* An array of texts, or null if there is not one. */
static void
put_texts(struct pg_batch *batch, outcomes_t outcomes, size_t n, text_fn *text)
{
	size_t none = 0;

	while (none < n && text(outcomes[none]) == NULL)
		none++;
	if (none == n) {
		pg_null(batch);
		return;
	}
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < n; i++)
		pg_text(batch, text(outcomes[i]));
	pg_array_end(batch);
}

/* What is kept of the answers. */
static void
put_answers(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	for (int phase = 0; phase < DELIVERY_PHASES; phase++)
		put_phase(batch, outcomes, n, (enum delivery_phase)phase);
	put_texts(batch, outcomes, n, headers);
	put_texts(batch, outcomes, n, excerpt);
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
	pg_begin(batch);
	pg_call(batch, STMT_LANE_HOLD);
	put_lanes(batch, outcomes, n);

	pg_call(batch, STMT_DELIVERY_RECORD);
	put_lanes(batch, outcomes, n);
	put_tokens(batch, outcomes, n);
	put_versions(batch, outcomes, n);
	put_verdicts(batch, outcomes, n);
	put_results(batch, outcomes, n);
	put_hands_back(batch, outcomes, n, hands_back);
	pg_bigint(batch, margin);
	put_answers(batch, outcomes, n);

	pg_call(batch, STMT_TURN_SHARE);
	put_subscriptions(batch, outcomes, n);
	pg_call(batch, STMT_TURN_SETTLE);
	put_subscriptions(batch, outcomes, n);
	put_lanes(batch, outcomes, n);
	put_says(batch, outcomes, n);
	put_slows(batch, outcomes, n);
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
