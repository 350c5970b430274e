#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "outbox_inside.h"
#include "pg/pg.h"
#include "store/stmt.h"
#include "targets.h"

typedef void put_entry(struct pg_batch *batch, const struct entry *entry);

static void
put_tenant(struct pg_batch *batch, const struct entry *entry)
{
	pg_bigint(batch, entry->ev->tenant_id);
}

static void
put_id(struct pg_batch *batch, const struct entry *entry)
{
	pg_text(batch, entry->ev->id);
}

static void
put_type(struct pg_batch *batch, const struct entry *entry)
{
	pg_text(batch, entry->ev->type);
}

static void
put_asset(struct pg_batch *batch, const struct entry *entry)
{
	pg_text(batch, entry->ev->asset);
}

static void
put_fingerprint(struct pg_batch *batch, const struct entry *entry)
{
	pg_bytes(batch, entry->ev->fingerprint, OUTBOX_FINGERPRINT);
}

static void
put_body(struct pg_batch *batch, const struct entry *entry)
{
	pg_bytes(batch, entry->ev->body, entry->ev->len);
}

static void
put_fan_out(struct pg_batch *batch, const struct entry *entry)
{
	pg_int(batch, entry->ev->fan_out);
}

static void
put_place(struct pg_batch *batch, const struct entry *entry)
{
	pg_int(batch, entry->place);
}

/* As the text of an array: arrays of several lengths make no array. */
static void
put_named(struct pg_batch *batch, const struct entry *entry)
{
	const struct outbox_event *ev = entry->ev;
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

/* A parameter of one element an event that is written, by tenant and id. */
static void
written_array(const struct outbox *outbox, struct pg_batch *batch,
    enum pg_type type, put_entry *put)
{
	pg_array(batch, type);
	for (size_t i = 0; i < outbox->nsorted; i++)
		if (entry_is_written(outbox->sorted[i]))
			put(batch, outbox->sorted[i]);
	pg_array_end(batch);
}

static void
write_events(const struct outbox *outbox, struct pg_batch *batch)
{
	written_array(outbox, batch, PG_BIGINT, put_tenant);
	written_array(outbox, batch, PG_TEXT, put_id);
	written_array(outbox, batch, PG_TEXT, put_type);
	written_array(outbox, batch, PG_TEXT, put_asset);
	written_array(outbox, batch, PG_BYTEA, put_fingerprint);
	written_array(outbox, batch, PG_BYTEA, put_body);
	written_array(outbox, batch, PG_INT, put_fan_out);
	written_array(outbox, batch, PG_TEXT, put_named);
	written_array(outbox, batch, PG_INT, put_place);
}

/* One delivery to be made. */
struct pair {
	int64_t subscription_id;
	const char *asset; /* NULL without order */
	int32_t place; /* of its event */
};

/* What one lane gets: `n` pairs, one behind the other. */
struct append {
	const struct pair *first;
	int32_t n;
};

/* The deliveries of an outbox, lane by lane. */
struct plan {
	struct pair *pairs;
	struct append *appends;
	size_t npairs, nappends;
};

static void
plan_fini(struct plan *plan)
{
	free(plan->pairs);
	free(plan->appends);
}

static void
plan_entry(
    struct plan *plan, const struct entry *entry, const struct targets *targets)
{
	size_t n;
	const struct target *found = targets_of(targets, entry->question, &n);

	for (size_t i = 0; i < n; i++) {
		if (!found[i].takes_events ||
		    (entry->skips != NULL && entry->skips[i]))
			continue;
		plan->pairs[plan->npairs++] = (struct pair){
			.subscription_id = found[i].subscription_id,
			.asset = found[i].is_ordered ? entry->ev->asset : NULL,
			.place = entry->place,
		};
	}
}

/* In the order of locks; in a lane, and without one, as they came. */
static int
compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int order =
	    outbox_compare_ids(&x->subscription_id, &y->subscription_id);

	if (order == 0 && x->asset != NULL && y->asset != NULL)
		order = strcmp(x->asset, y->asset);
	else if (order == 0)
		order = (x->asset == NULL) - (y->asset == NULL);
	return order != 0 ? order
	                  : (x->place > y->place) - (x->place < y->place);
}

static bool
is_same_lane(const struct pair *a, const struct pair *b)
{
	return a->subscription_id == b->subscription_id && a->asset != NULL &&
	       b->asset != NULL && strcmp(a->asset, b->asset) == 0;
}

static void
part_lanes(struct plan *plan)
{
	struct append *last = NULL;

	for (size_t i = 0; i < plan->npairs; i++) {
		const struct pair *pair = &plan->pairs[i];

		if (last == NULL || !is_same_lane(last->first, pair)) {
			last = &plan->appends[plan->nappends++];
			last->first = pair;
		}
		last->n++;
	}
}

/* False if memory is short. */
static bool
plan_make(struct plan *plan, const struct outbox *outbox)
{
	size_t room = outbox_deliveries(outbox) + 1; /* calloc(0) may be NULL */

	plan->pairs = calloc(room, sizeof(*plan->pairs));
	plan->appends = calloc(room, sizeof(*plan->appends));
	if (plan->pairs == NULL || plan->appends == NULL)
		return false;
	for (size_t i = 0; i < outbox->n; i++)
		if (entry_is_written(&outbox->entries[i]))
			plan_entry(plan, &outbox->entries[i], outbox->targets);
	qsort(plan->pairs, plan->npairs, sizeof(*plan->pairs), compare_pairs);
	part_lanes(plan);
	return true;
}

static void
write_lanes(const struct plan *plan, struct pg_batch *batch)
{
	const struct append *end = plan->appends + plan->nappends;

	pg_array(batch, PG_BIGINT);
	for (const struct append *a = plan->appends; a < end; a++)
		pg_bigint(batch, a->first->subscription_id);
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (const struct append *a = plan->appends; a < end; a++)
		pg_text(batch, a->first->asset);
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (const struct append *a = plan->appends; a < end; a++)
		pg_int(batch, a->n);
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (const struct append *a = plan->appends; a < end; a++)
		pg_int(batch, a->first->place);
	pg_array_end(batch);
}

static void
write_deliveries(const struct plan *plan, struct pg_batch *batch)
{
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < plan->nappends; i++)
		for (int32_t k = 0; k < plan->appends[i].n; k++)
			pg_int(batch, (int32_t)i + 1);
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < plan->npairs; i++)
		pg_int(batch, plan->pairs[i].place);
	pg_array_end(batch);
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < plan->nappends; i++)
		for (int32_t k = plan->appends[i].n; k > 0; k--)
			pg_int(batch, k - 1);
	pg_array_end(batch);
}

/* Pairs are sorted by subscription. */
static void
write_takers(const struct plan *plan, struct pg_batch *batch)
{
	int64_t last = 0;

	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < plan->npairs; i++) {
		if (plan->pairs[i].subscription_id != last)
			pg_bigint(batch, plan->pairs[i].subscription_id);
		last = plan->pairs[i].subscription_id;
	}
	pg_array_end(batch);
}

static void
write_guess(const struct outbox *outbox, struct pg_batch *batch)
{
	enum { PARAMETERS = 7 };

	if (!outbox->is_guessed) {
		for (int i = 0; i < PARAMETERS; i++)
			pg_null(batch);
		return;
	}
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < outbox->nkeys; i++)
		pg_bigint(batch, outbox->keys[i]);
	pg_array_end(batch);
	targets_put_guess(outbox->targets, batch);
}

static void
number_places(struct outbox *outbox)
{
	int32_t place = 0;

	for (size_t i = 0; i < outbox->n; i++)
		if (entry_is_written(&outbox->entries[i]))
			outbox->entries[i].place = ++place;
}

int
outbox_write(struct outbox *outbox, struct pg_batch *batch, struct err *err)
{
	struct plan plan = { 0 };
	int rc = 0;

	number_places(outbox);
	if (!plan_make(&plan, outbox)) {
		rc = err_set(err, ERR_NOMEM, "deliveries");
	} else {
		pg_call(batch, STMT_EVENT_ACCEPT);
		write_events(outbox, batch);
		write_lanes(&plan, batch);
		write_deliveries(&plan, batch);
		write_takers(&plan, batch);
		write_guess(outbox, batch);
	}
	if (rc == 0 && plan.npairs > 0) {
		pg_call(batch, STMT_WORK_SHARE);
		pg_call(batch, STMT_WORK_READY);
	}
	plan_fini(&plan);
	return rc;
}
