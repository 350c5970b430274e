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

static void
text_or_null(struct pg_batch *batch, const char *text)
{
	pg_text(batch, text[0] == '\0' ? NULL : text);
}

void
delivery_put_results(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
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

static void
put_accepted(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++) {
		if (outcomes[i]->accepted_at == 0)
			pg_null(batch);
		else
			pg_bigint(batch, outcomes[i]->accepted_at);
	}
	pg_array_end(batch);
}

/* What is kept of the answers. */
void
delivery_put_answers(struct pg_batch *batch, outcomes_t outcomes, size_t n)
{
	for (int phase = 0; phase < DELIVERY_PHASES; phase++)
		put_phase(batch, outcomes, n, (enum delivery_phase)phase);
	put_texts(batch, outcomes, n, headers);
	put_texts(batch, outcomes, n, excerpt);
	put_accepted(batch, outcomes, n);
}
