#include <string.h>

#include "pg/pg.h"
#include "pg/row.h"
#include "store/endpoint.h"
#include "store/sealed.h"
#include "store/stmt.h"
#include "store/subscription.h"

void
subscription_id(struct pg_batch *batch)
{
	pg_call(batch, STMT_SUBSCRIPTION_ID);
}

static void
number_if_given(struct pg_batch *batch, int value)
{
	if (value < 0)
		pg_null(batch);
	else
		pg_int(batch, value);
}

static void
types_if_given(struct pg_batch *batch, const struct subscription_fields *f)
{
	if (f->nevent_types == 0) {
		pg_null(batch);
		return;
	}
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < f->nevent_types; i++)
		pg_text(batch, f->event_types[i]);
	pg_array_end(batch);
}

static void
put_fields(struct pg_batch *batch, const struct subscription_fields *f)
{
	pg_text(batch, f->url);
	types_if_given(batch, f);
	pg_text(batch, f->ordering);
	pg_text(batch, f->on_dead);
	if (f->older_signature < 0)
		pg_null(batch);
	else
		pg_bool(batch, f->older_signature != 0);
	number_if_given(batch, f->max_attempts);
	number_if_given(batch, f->max_in_flight);
	number_if_given(batch, f->retry_base_ms);
	number_if_given(batch, f->retry_cap_ms);
	number_if_given(batch, f->timeout_ms);
	pg_text(batch, f->rate_per_second);
	number_if_given(batch, f->circuit_after);
	pg_text(batch, f->headers);
	pg_text(batch, f->tls_ca);
	pg_text(batch, f->tls_certificate);
	pg_text(batch, f->filter);
	number_if_given(batch, f->filter_weight);
}

void
subscription_insert(
    struct pg_batch *batch, const struct subscription_new *subscription)
{
	const struct subscription_new *s = subscription;

	pg_call(batch, STMT_SUBSCRIPTION_INSERT);
	pg_bigint(batch, s->id);
	pg_bigint(batch, s->tenant_id);
	pg_text(batch, s->actor);
	put_fields(batch, &s->fields);
	sealed_put(batch, s->sealed);
	subscription_get(batch, s->tenant_id, s->id);
}

static void
put_which(struct pg_batch *batch, int64_t tenant_id, int64_t id)
{
	if (tenant_id == SUBSCRIPTION_ANY_TENANT)
		pg_null(batch);
	else
		pg_bigint(batch, tenant_id);
	pg_bigint(batch, id);
}

void
subscription_get(struct pg_batch *batch, int64_t tenant_id, int64_t id)
{
	pg_call(batch, STMT_SUBSCRIPTION_GET);
	put_which(batch, tenant_id, id);
}

void
subscription_list(
    struct pg_batch *batch, int64_t tenant_id, int64_t after, int limit)
{
	pg_call(batch, STMT_SUBSCRIPTION_LIST);
	pg_bigint(batch, tenant_id);
	pg_bigint(batch, after);
	pg_int(batch, limit);
}

void
subscription_read(struct subscription *out, const struct pg_rows *rows, int row)
{
	*out = (struct subscription){
		.id = pg_read_bigint(rows, row, "id"),
		.url = pg_read_text(rows, row, "url"),
		.event_types = pg_read_text(rows, row, "event_types"),
		.filter = pg_read_text(rows, row, "filter"),
		.state = pg_read_text(rows, row, "state"),
		.state_reason = pg_read_text(rows, row, "state_reason"),
		.ordering = pg_read_text(rows, row, "ordering"),
		.on_dead = pg_read_text(rows, row, "on_dead"),
		.older_signature = pg_read_bool(rows, row, "older_signature"),
		.max_attempts = pg_read_int(rows, row, "max_attempts"),
		.max_in_flight = pg_read_int(rows, row, "max_in_flight"),
		.retry_base_ms = pg_read_int(rows, row, "retry_base_ms"),
		.retry_cap_ms = pg_read_int(rows, row, "retry_cap_ms"),
		.timeout_ms = pg_read_int(rows, row, "timeout_ms"),
		.rate_per_second = pg_read_text(rows, row, "rate_per_second"),
		.circuit_after = pg_read_int(rows, row, "circuit_after"),
		.headers = pg_read_text(rows, row, "headers"),
		.secret_headers = pg_read_text(rows, row, "secret_headers"),
		.public_keys = pg_read_text(rows, row, "public_keys"),
		.tls_ca = pg_read_text(rows, row, "tls_ca"),
		.tls_certificate = pg_read_text(rows, row, "tls_certificate"),
		.version = pg_read_bigint(rows, row, "version"),
		.created_at = pg_read_bigint(rows, row, "created_at"),
		.updated_at = pg_read_bigint(rows, row, "updated_at"),
	};
}

/* The answers of a change. */
enum { HELD, CHANGED, GOT };

static void
put_change(struct pg_batch *batch, const struct subscription_change *c)
{
	put_which(batch, c->tenant_id, c->id);
	if (c->versions == NULL) {
		pg_null(batch);
	} else {
		pg_array(batch, PG_BIGINT);
		for (size_t i = 0; i < c->nversions; i++)
			pg_bigint(batch, c->versions[i]);
		pg_array_end(batch);
	}
	pg_text(batch, c->actor);
}

static void
hold(struct pg_batch *batch, const struct subscription_change *change)
{
	pg_call(batch, STMT_SUBSCRIPTION_HOLD);
	put_which(batch, change->tenant_id, change->id);
}

static void
put_dropped(struct pg_batch *batch, const struct subscription_secrets *secrets)
{
	pg_array(batch, PG_TEXT);
	if (secrets->drops_headers)
		pg_text(batch, secret_word(SECRET_HEADER));
	if (secrets->drops_tls_key)
		pg_text(batch, secret_word(SECRET_TLS_KEY));
	if (secrets->drops_signing_keys)
		pg_text(batch, secret_word(SECRET_SIGNING_KEY));
	pg_array_end(batch);
}

void
subscription_update(struct pg_batch *batch,
    const struct subscription_change *change,
    const struct subscription_fields *fields,
    const struct subscription_secrets *secrets)
{
	hold(batch, change);
	pg_call(batch, STMT_SUBSCRIPTION_UPDATE);
	put_change(batch, change);
	put_fields(batch, fields);
	put_dropped(batch, secrets);
	pg_bool(batch, secrets->keeps_signing_key);
	sealed_put(batch, secrets->sealed);
	subscription_get(batch, change->tenant_id, change->id);
}

/* The state to which a move goes, from which ones, and its name afterwards. */
static const struct {
	const char *done;
	const char *from[3]; /* NULL: no more */
	const char *to;
} moves[] = {
	[SUBSCRIPTION_PAUSE] = { "paused", { "active" }, "paused" },
	[SUBSCRIPTION_RESUME] = { "resumed", { "paused" }, "active" },
	[SUBSCRIPTION_DISABLE] = { "disabled", { "active", "paused" },
	    "disabled" },
	[SUBSCRIPTION_ENABLE] = { "enabled", { "disabled" }, "active" },
	[SUBSCRIPTION_DELETE] = { "deleted", { "active", "paused", "disabled" },
	    "deleted" },
};

void
subscription_move(struct pg_batch *batch,
    const struct subscription_change *change, enum subscription_move move)
{
	hold(batch, change);
	pg_call(batch, STMT_SUBSCRIPTION_MOVE);
	put_change(batch, change);
	pg_text(batch, moves[move].done);
	pg_array(batch, PG_TEXT);
	for (int i = 0; i < 3 && moves[move].from[i] != NULL; i++)
		pg_text(batch, moves[move].from[i]);
	pg_array_end(batch);
	pg_text(batch, moves[move].to);
	subscription_get(batch, change->tenant_id, change->id);
}

void
subscription_rotate(struct pg_batch *batch,
    const struct subscription_change *change,
    const struct subscription_rotation *rotation)
{
	bool is_key = rotation->sealed->secrets[0].kind == SECRET_SIGNING_KEY;

	hold(batch, change);
	pg_call(batch, STMT_SUBSCRIPTION_ROTATE);
	put_change(batch, change);
	pg_text(batch, is_key ? "signing_key_rotated" : "secret_rotated");
	pg_int(batch, rotation->overlap_seconds);
	pg_int(batch, ENDPOINT_SECRETS);
	sealed_put(batch, rotation->sealed);
	subscription_get(batch, change->tenant_id, change->id);
}

/* As the statements say them. */
static const char *const refusals[] = {
	[SUBSCRIPTION_NOT_REFUSED] = "",
	[SUBSCRIPTION_IN_STATE] = "state",
	[SUBSCRIPTION_WAITS] = "waits",
	[SUBSCRIPTION_HEADER_TWICE] = "header_twice",
	[SUBSCRIPTION_HEADER_COUNT] = "header_count",
	[SUBSCRIPTION_HEADER_TOTAL] = "header_total",
	[SUBSCRIPTION_HAS_KEY] = "signing_key",
	[SUBSCRIPTION_HAS_NO_KEY] = "no_signing_key",
};

static enum subscription_refusal
read_refusal(const struct pg_rows *rows)
{
	const char *word = pg_read_text(rows, 0, "refusal");
	int refusal = SUBSCRIPTION_HAS_NO_KEY;

	while (refusal > 0 && strcmp(refusals[refusal], word) != 0)
		refusal--;
	return (enum subscription_refusal)refusal;
}

void
subscription_changed(
    struct subscription_outcome *out, struct pg_rows *const *rows)
{
	const struct pg_rows *changed = rows[CHANGED];

	*out = (struct subscription_outcome){
		.answer = SUBSCRIPTION_MISSING,
		.old_until = -1,
	};
	if (pg_count(rows[GOT]) > 0)
		subscription_read(&out->now, rows[GOT], 0);
	if (pg_count(changed) == 0)
		return;
	out->refusal = read_refusal(changed);
	out->has_new_key = pg_read_bool(changed, 0, "has_new_key");
	out->old_until = pg_read_time(changed, 0, "old_until");
	if (pg_read_bool(changed, 0, "is_stale"))
		out->answer = SUBSCRIPTION_STALE;
	else if (out->refusal != SUBSCRIPTION_NOT_REFUSED)
		out->answer = SUBSCRIPTION_REFUSED;
	else
		out->answer = SUBSCRIPTION_CHANGED;
}
