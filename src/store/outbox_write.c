#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "outbox_inside.h"
#include "pg/pg.h"
#include "store/stmt.h"
#include "targets.h"

typedef bool entry_filter(const struct entry *entry);
typedef void put_event(struct pg_batch *batch, const struct outbox_event *ev);

static void
put_tenant(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_bigint(batch, ev->tenant_id);
}

static void
put_id(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_text(batch, ev->id);
}

static void
put_type(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_text(batch, ev->type);
}

static void
put_asset(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_text(batch, ev->asset);
}

static void
put_fingerprint(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_bytes(batch, ev->fingerprint, OUTBOX_FINGERPRINT);
}

static void
put_body(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_bytes(batch, ev->body, ev->len);
}

static void
put_fan_out(struct pg_batch *batch, const struct outbox_event *ev)
{
	pg_int(batch, ev->fan_out);
}

/* As the text of an array: arrays of several lengths make no array. */
static void
put_named(struct pg_batch *batch, const struct outbox_event *ev)
{
	struct buf text = { 0 };

	if (ev->nnamed == 0) {
		pg_null(batch);
		return;
	}
	for (size_t i = 0; i < ev->nnamed; i++)
		buf_printf(
		    &text, "%c%" PRId64, i == 0 ? '{' : ',', ev->named[i]);
	buf_puts(&text, "}");
	pg_bytes(batch, text.data, text.len);
	buf_fini(&text);
}

/* A parameter of one element an event. */
static void
array(const struct outbox *outbox, struct pg_batch *batch, enum pg_type type,
    entry_filter *filter, put_event *put)
{
	pg_array(batch, type);
	for (size_t i = 0; i < outbox->n; i++)
		if (filter(&outbox->entries[i]))
			put(batch, outbox->entries[i].ev);
	pg_array_end(batch);
}

static void
write_events(const struct outbox *outbox, struct pg_batch *batch)
{
	pg_call(batch, STMT_EVENT_ACCEPT);
	array(outbox, batch, PG_BIGINT, entry_is_written, put_tenant);
	array(outbox, batch, PG_TEXT, entry_is_written, put_id);
	array(outbox, batch, PG_TEXT, entry_is_written, put_type);
	array(outbox, batch, PG_TEXT, entry_is_written, put_asset);
	array(outbox, batch, PG_BYTEA, entry_is_written, put_fingerprint);
	array(outbox, batch, PG_BYTEA, entry_is_written, put_body);
	array(outbox, batch, PG_INT, entry_is_written, put_fan_out);
	array(outbox, batch, PG_TEXT, entry_is_written, put_named);

	pg_call(batch, STMT_EVENT_KNOWN);
	array(outbox, batch, PG_BIGINT, entry_is_open, put_tenant);
	array(outbox, batch, PG_TEXT, entry_is_open, put_id);
}

/* One delivery to be made. */
struct pair {
	const struct outbox_event *ev;
	int64_t subscription_id;
};

/* The deliveries of an outbox, in the order in which they are to be sent. */
struct plan {
	struct pair *ordered, *unordered;
	size_t nordered, nunordered;
	int64_t *subscriptions; /* each once, ascending */
	size_t nsubscriptions;
};

static void
plan_fini(struct plan *plan)
{
	free(plan->ordered);
	free(plan->unordered);
	free(plan->subscriptions);
}

static void
plan_entry(
    struct plan *plan, const struct entry *entry, const struct targets *targets)
{
	size_t n;
	const struct target *found = targets_of(targets, entry->question, &n);

	for (size_t i = 0; i < n; i++) {
		const struct pair pair = { entry->ev,
			found[i].subscription_id };

		if (!found[i].takes_events)
			continue;
		if (found[i].is_ordered && entry->ev->asset != NULL)
			plan->ordered[plan->nordered++] = pair;
		else
			plan->unordered[plan->nunordered++] = pair;
		plan->subscriptions[plan->nsubscriptions++] =
		    pair.subscription_id;
	}
}

static void
sort_subscriptions(struct plan *plan)
{
	int64_t *ids = plan->subscriptions;
	size_t n = 0;

	qsort(ids, plan->nsubscriptions, sizeof(*ids), outbox_compare_ids);
	for (size_t i = 0; i < plan->nsubscriptions; i++)
		if (n == 0 || ids[n - 1] != ids[i])
			ids[n++] = ids[i];
	plan->nsubscriptions = n;
}

/* False if memory is short. */
static bool
plan_make(struct plan *plan, const struct outbox *outbox, size_t n)
{
	plan->ordered = calloc(n, sizeof(*plan->ordered));
	plan->unordered = calloc(n, sizeof(*plan->unordered));
	plan->subscriptions = calloc(n, sizeof(*plan->subscriptions));
	if (plan->ordered == NULL || plan->unordered == NULL ||
	    plan->subscriptions == NULL)
		return false;
	for (size_t i = 0; i < outbox->n; i++)
		if (entry_is_written(&outbox->entries[i]))
			plan_entry(plan, &outbox->entries[i], outbox->targets);
	sort_subscriptions(plan);
	return true;
}

static void
pair_array(struct pg_batch *batch, enum pg_type type, const struct pair *pairs,
    size_t n, put_event *put)
{
	pg_array(batch, type);
	for (size_t i = 0; i < n; i++)
		put(batch, pairs[i].ev);
	pg_array_end(batch);
}

/* The first three parameters of either delivery_append. */
static void
write_pairs(struct pg_batch *batch, const struct pair *pairs, size_t n)
{
	pair_array(batch, PG_BIGINT, pairs, n, put_tenant);
	pair_array(batch, PG_TEXT, pairs, n, put_id);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, pairs[i].subscription_id);
	pg_array_end(batch);
}

static void
write_turns(struct pg_batch *batch, int statement, const struct plan *plan)
{
	pg_call(batch, statement);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < plan->nsubscriptions; i++)
		pg_bigint(batch, plan->subscriptions[i]);
	pg_array_end(batch);
}

static void
write_deliveries(struct pg_batch *batch, const struct plan *plan)
{
	if (plan->nunordered > 0) {
		pg_call(batch, STMT_DELIVERY_APPEND_UNORDERED);
		write_pairs(batch, plan->unordered, plan->nunordered);
	}
	if (plan->nordered > 0) {
		pg_call(batch, STMT_DELIVERY_APPEND);
		write_pairs(batch, plan->ordered, plan->nordered);
		pair_array(
		    batch, PG_TEXT, plan->ordered, plan->nordered, put_asset);
	}
	write_turns(batch, STMT_TURN_SHARE, plan);
	write_turns(batch, STMT_TURN_READY, plan);
}

int
outbox_write(
    const struct outbox *outbox, struct pg_batch *batch, struct err *err)
{
	size_t n = outbox_deliveries(outbox);
	struct plan plan = { 0 };
	int rc = 0;

	write_events(outbox, batch);
	if (n == 0)
		return 0;
	if (plan_make(&plan, outbox, n))
		write_deliveries(batch, &plan);
	else
		rc = err_set(err, ERR_NOMEM, "deliveries");
	plan_fini(&plan);
	return rc;
}
