#include "core/seal.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/stmt.h"
#include "store/subscription.h"

void
subscription_id(struct pg_batch *batch)
{
	pg_call(batch, STMT_SUBSCRIPTION_ID);
}

static void
number_or_default(struct pg_batch *batch, int value)
{
	if (value == 0)
		pg_null(batch);
	else
		pg_int(batch, value);
}

void
subscription_insert(
    struct pg_batch *batch, const struct subscription_new *subscription)
{
	const struct subscription_new *s = subscription;

	pg_call(batch, STMT_SUBSCRIPTION_INSERT);
	pg_bigint(batch, s->id);
	pg_bigint(batch, s->tenant_id);
	pg_text(batch, s->url);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < s->nevent_types; i++)
		pg_text(batch, s->event_types[i]);
	pg_array_end(batch);
	pg_text(batch, s->ordering);
	pg_text(batch, s->on_dead);
	pg_bool(batch, s->older_signature);
	number_or_default(batch, s->max_attempts);
	number_or_default(batch, s->max_in_flight);
	number_or_default(batch, s->retry_base_ms);
	number_or_default(batch, s->retry_cap_ms);
	number_or_default(batch, s->timeout_ms);
	pg_text(batch, s->secret_key_id);
	pg_bytes(batch, s->nonce, SEAL_NONCE);
	pg_bytes(batch, s->sealed, s->sealed_len);
	pg_text(batch, s->actor);
}

void
subscription_get(struct pg_batch *batch, int64_t tenant_id, int64_t id)
{
	pg_call(batch, STMT_SUBSCRIPTION_GET);
	pg_bigint(batch, tenant_id);
	pg_bigint(batch, id);
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

static const char *
text(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_text(rows, row, pg_column(rows, column));
}

static int
number(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_int(rows, row, pg_column(rows, column));
}

static int64_t
big(const struct pg_rows *rows, int row, const char *column)
{
	return pg_get_bigint(rows, row, pg_column(rows, column));
}

void
subscription_read(struct subscription *out, const struct pg_rows *rows, int row)
{
	*out = (struct subscription){
		.id = big(rows, row, "id"),
		.url = text(rows, row, "url"),
		.event_types = text(rows, row, "event_types"),
		.state = text(rows, row, "state"),
		.state_reason = text(rows, row, "state_reason"),
		.ordering = text(rows, row, "ordering"),
		.on_dead = text(rows, row, "on_dead"),
		.older_signature =
		    pg_get_bool(rows, row, pg_column(rows, "older_signature")),
		.max_attempts = number(rows, row, "max_attempts"),
		.max_in_flight = number(rows, row, "max_in_flight"),
		.retry_base_ms = number(rows, row, "retry_base_ms"),
		.retry_cap_ms = number(rows, row, "retry_cap_ms"),
		.timeout_ms = number(rows, row, "timeout_ms"),
		.created_at = big(rows, row, "created_at"),
		.updated_at = big(rows, row, "updated_at"),
	};
}
