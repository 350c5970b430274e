#include "pg/pg.h"
#include "delivery_inside.h"

void
delivery_put_lanes(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->lane_id);
	pg_array_end(batch);
}

void
delivery_put_tokens(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_UUID);
	for (size_t i = 0; i < n; i++)
		pg_bytes(batch, outcomes[i]->token, LANE_TOKEN);
	pg_array_end(batch);
}

void
delivery_put_versions(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, outcomes[i]->version);
	pg_array_end(batch);
}

/* -- one value -- */

static void
put_status(struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	if (outcome->status == 0)
		pg_null(batch);
	else
		pg_int(batch, outcome->status);
}

static void
put_duration(struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	if (outcome->duration < 0)
		pg_null(batch);
	else
		pg_bigint(batch, outcome->duration);
}

static void
put_remote(struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	bool is_known = !outcome->is_bare && outcome->remote[0] != '\0';

	pg_text(batch, is_known ? outcome->remote : NULL);
}

static bool
has_phase(const struct delivery_outcome *outcome, enum delivery_phase phase)
{
	return !outcome->is_bare && outcome->phases[phase] >= 0;
}

static void
put_phase(struct pg_batch *batch, const struct delivery_outcome *outcome,
    enum delivery_phase phase)
{
	if (has_phase(outcome, phase))
		pg_int(batch, (int32_t)outcome->phases[phase]);
	else
		pg_null(batch);
}

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

static void
put_accepted(struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	if (outcome->accepted_at == 0)
		pg_null(batch);
	else
		pg_bigint(batch, outcome->accepted_at);
}

void
delivery_put_result(
    struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	put_status(batch, outcome);
	put_duration(batch, outcome);
	put_remote(batch, outcome);
}

void
delivery_put_answer(
    struct pg_batch *batch, const struct delivery_outcome *outcome)
{
	for (int phase = 0; phase < DELIVERY_PHASES; phase++)
		put_phase(batch, outcome, (enum delivery_phase)phase);
	pg_text(batch, headers(outcome));
	pg_text(batch, excerpt(outcome));
	put_accepted(batch, outcome);
}

/* -- an array of them -- */

typedef void put_fn(
    struct pg_batch *batch, const struct delivery_outcome *outcome);

static void
put_all(struct pg_batch *batch, enum pg_type type, outcomes_t outcomes,
    size_t n, put_fn *put)
{
	pg_array(batch, type);
	for (size_t i = 0; i < n; i++)
		put(batch, outcomes[i]);
	pg_array_end(batch);
}

void
delivery_put_results(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	put_all(batch, PG_INT, outcomes, n, put_status);
	put_all(batch, PG_BIGINT, outcomes, n, put_duration);
	put_all(batch, PG_TEXT, outcomes, n, put_remote);
}

/* An array of microseconds, or null if there is not one. */
static void
put_phases(struct pg_batch *batch, outcomes_t outcomes, size_t n,
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
	for (size_t i = 0; i < n; i++)
		put_phase(batch, outcomes[i], phase);
	pg_array_end(batch);
}

typedef const char *text_fn(const struct delivery_outcome *outcome);

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

void
delivery_put_answers(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	for (int phase = 0; phase < DELIVERY_PHASES; phase++)
		put_phases(batch, outcomes, n, (enum delivery_phase)phase);
	put_texts(batch, outcomes, n, headers);
	put_texts(batch, outcomes, n, excerpt);
	put_all(batch, PG_BIGINT, outcomes, n, put_accepted);
}
