#include <stdlib.h>

#include "base/err.h"
#include "core/filter.h"
#include "outbox_inside.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/stmt.h"
#include "targets.h"

/* A transaction that cannot be parted may do so many times the work of one
 * event: that is a second, where every octet was chosen to take long. */
enum { UNIT_WORK_MAX = 8 * FILTER_WORK_MAX };

/* What is done for one event, and for all of them, goes this far and no
 * further. */
struct budget {
	size_t of_event, of_all;
};

static bool
is_filtered(const struct target *target)
{
	return target->takes_events && target->filter_weight > 0;
}

size_t
outbox_weigh(
    const struct outbox_event *ev, const struct target *found, size_t n)
{
	size_t weight = 0;

	for (size_t i = 0; i < n; i++)
		if (is_filtered(&found[i]))
			weight += (size_t)found[i].filter_weight;
	return weight == 0 ? 0 : weight * filter_values(ev->body, ev->len);
}

static bool
afford(struct budget *budget, size_t work)
{
	if (work > budget->of_event || work > budget->of_all)
		return false;
	budget->of_event -= work;
	budget->of_all -= work;
	return true;
}

static int
grow(struct outbox *outbox, size_t *room, struct err *err)
{
	size_t wanted = *room == 0 ? 256 : 2 * *room;
	struct question_of_filter *larger =
	    realloc(outbox->asked, wanted * sizeof(*larger));

	if (larger == NULL)
		return err_set(err, ERR_NOMEM, "filters");
	outbox->asked = larger;
	*room = wanted;
	return 0;
}

/* Ask about those of an event that the budget lets be judged. */
static int
ask_entry(struct outbox *outbox, struct entry *entry, struct budget *budget,
    size_t *room, struct err *err)
{
	size_t n;
	const struct target *found =
	    targets_of(outbox->targets, entry->question, &n);
	size_t values = filter_values(entry->ev->body, entry->ev->len);

	budget->of_event = FILTER_WORK_MAX;
	for (size_t i = 0; i < n; i++) {
		if (!is_filtered(&found[i]) ||
		    !afford(budget, values * (size_t)found[i].filter_weight))
			continue;
		if (outbox->nasked == *room && grow(outbox, room, err) != 0)
			return -1;
		outbox->asked[outbox->nasked++] =
		    (struct question_of_filter){ entry, i };
	}
	return 0;
}

static bool
begins_entry(const struct outbox *outbox, size_t i)
{
	return i == 0 || outbox->asked[i].entry != outbox->asked[i - 1].entry;
}

static void
put_bodies(const struct outbox *outbox, struct pg_batch *batch)
{
	pg_array(batch, PG_BYTEA);
	for (size_t i = 0; i < outbox->nasked; i++)
		if (begins_entry(outbox, i))
			pg_bytes(batch, outbox->asked[i].entry->ev->body,
			    outbox->asked[i].entry->ev->len);
	pg_array_end(batch);
}

/* Where each event's own begin, or end. */
static void
put_places(const struct outbox *outbox, struct pg_batch *batch, bool begins)
{
	pg_array(batch, PG_INT);
	for (size_t i = begins ? 0 : 1; i < outbox->nasked; i++)
		if (begins_entry(outbox, i))
			pg_int(batch, (int32_t)(begins ? i + 1 : i));
	if (!begins && outbox->nasked > 0)
		pg_int(batch, (int32_t)outbox->nasked);
	pg_array_end(batch);
}

static void
put_subscriptions(const struct outbox *outbox, struct pg_batch *batch)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < outbox->nasked; i++) {
		const struct question_of_filter *q = &outbox->asked[i];
		size_t n;

		pg_bigint(batch,
		    targets_of(outbox->targets, q->entry->question, &n)[q->nth]
			.subscription_id);
	}
	pg_array_end(batch);
}

int
outbox_filter(struct outbox *outbox, struct pg_batch *batch, struct err *err)
{
	struct budget budget = { .of_all = UNIT_WORK_MAX };
	size_t room = 0;

	for (size_t i = 0; i < outbox->n; i++) {
		struct entry *entry = &outbox->entries[i];

		if (entry->work > 0 && entry_is_written(entry) &&
		    ask_entry(outbox, entry, &budget, &room, err) != 0)
			return -1;
	}
	pg_call(batch, STMT_EVENT_FILTER);
	put_bodies(outbox, batch);
	put_places(outbox, batch, true);
	put_places(outbox, batch, false);
	put_subscriptions(outbox, batch);
	return 0;
}

int
outbox_filtered(
    struct outbox *outbox, struct pg_rows *const *rows, struct err *err)
{
	int column = pg_column(rows[0], "place");
	size_t n;

	for (int row = 0; row < pg_count(rows[0]); row++) {
		const struct question_of_filter *q =
		    &outbox->asked[pg_get_int(rows[0], row, column) - 1];
		struct entry *entry = q->entry;

		(void)targets_of(outbox->targets, entry->question, &n);
		if (entry->skips == NULL)
			entry->skips = calloc(n, sizeof(*entry->skips));
		if (entry->skips == NULL)
			return err_set(err, ERR_NOMEM, "filters");
		entry->skips[q->nth] = true;
		entry->ev->fan_out--;
	}
	return 0;
}

bool
outbox_has_filters(const struct outbox *outbox)
{
	for (size_t i = 0; i < outbox->n; i++)
		if (outbox->entries[i].work > 0 &&
		    entry_is_written(&outbox->entries[i]))
			return true;
	return false;
}
