#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/filter.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/key.h"
#include "store/outbox.h"
#include "store/stmt.h"
#include "outbox_inside.h"
#include "targets.h"

int
outbox_compare_ids(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void
collect_keys(struct outbox *outbox)
{
	size_t n = 0;

	for (size_t i = 0; i < outbox->n; i++)
		outbox->keys[i] = outbox->entries[i].ev->key_id;
	qsort(
	    outbox->keys, outbox->n, sizeof(*outbox->keys), outbox_compare_ids);
	for (size_t i = 0; i < outbox->n; i++)
		if (outbox->keys[i] != OUTBOX_NO_KEY &&
		    (n == 0 || outbox->keys[n - 1] != outbox->keys[i]))
			outbox->keys[n++] = outbox->keys[i];
	outbox->nkeys = n;
}

static int
find_questions(
    struct outbox *outbox, struct outbox_event *const *events, struct err *err)
{
	size_t *questions = calloc(outbox->n, sizeof(*questions));
	int rc;

	if (questions == NULL)
		return err_set(err, ERR_NOMEM, "outbox");
	rc = targets_new(&outbox->targets, events, outbox->n, questions, err);
	for (size_t i = 0; rc == 0 && i < outbox->n; i++)
		outbox->entries[i].question = questions[i];
	free(questions);
	return rc;
}

int
outbox_open(struct outbox **out, struct outbox_event *const *events, size_t n,
    struct err *err)
{
	struct outbox *outbox = calloc(1, sizeof(*outbox));

	assert(n >= 1 && n <= OUTBOX_EVENTS_MAX);
	if (outbox == NULL)
		return err_set(err, ERR_NOMEM, "outbox");
	outbox->n = n;
	outbox->entries = calloc(n, sizeof(*outbox->entries));
	outbox->sorted = calloc(n, sizeof(struct entry *));
	outbox->keys = calloc(n, sizeof(*outbox->keys));
	if (outbox->entries == NULL || outbox->sorted == NULL ||
	    outbox->keys == NULL) {
		(void)err_set(err, ERR_NOMEM, "outbox");
		goto fail;
	}
	for (size_t i = 0; i < n; i++) {
		outbox->entries[i].ev = events[i];
		events[i]->outcome = OUTBOX_OPEN;
	}
	collect_keys(outbox);
	if (find_questions(outbox, events, err) != 0)
		goto fail;
	*out = outbox;
	return 0;

fail:
	outbox_close(outbox);
	return -1;
}

void
outbox_close(struct outbox *outbox)
{
	if (outbox == NULL)
		return;
	targets_free(outbox->targets);
	for (size_t i = 0; outbox->entries != NULL && i < outbox->n; i++)
		free(outbox->entries[i].skips);
	free(outbox->asked);
	free(outbox->entries);
	free(outbox->sorted);
	free(outbox->keys);
	free(outbox);
}

static void
ask_known(const struct outbox *outbox, struct pg_batch *batch)
{
	pg_call(batch, STMT_EVENT_KNOWN);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < outbox->n; i++)
		pg_bigint(batch, outbox->entries[i].ev->tenant_id);
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < outbox->n; i++)
		pg_text(batch, outbox->entries[i].ev->id);
	pg_array_end(batch);
}

void
outbox_ask(struct outbox *outbox, struct pg_batch *batch)
{
	key_valid(batch, outbox->keys, outbox->nkeys);
	ask_known(outbox, batch);
	targets_ask(outbox->targets, batch);
}

static void
refuse_revoked(struct outbox *outbox, const struct pg_rows *rows)
{
	size_t n = 0, nvalid = (size_t)pg_count(rows);

	if (nvalid == outbox->nkeys)
		return;
	for (size_t i = 0; i < nvalid; i++)
		outbox->keys[n++] = pg_get_bigint(rows, (int)i, 0);
	qsort(outbox->keys, n, sizeof(*outbox->keys), outbox_compare_ids);
	for (size_t i = 0; i < outbox->n; i++) {
		struct outbox_event *ev = outbox->entries[i].ev;

		if (ev->key_id != OUTBOX_NO_KEY &&
		    bsearch(&ev->key_id, outbox->keys, n, sizeof(*outbox->keys),
			outbox_compare_ids) == NULL)
			ev->outcome = OUTBOX_REVOKED;
	}
}

/* The first subscription that the event names and the answer has not; 0 if
 * none.  Both lists ascend. */
static int64_t
find_missing(
    const struct outbox_event *ev, const struct target *found, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < ev->nnamed; i++) {
		if (at == n || found[at].subscription_id != ev->named[i])
			return ev->named[i];
		at++;
	}
	return 0;
}

static int
count_takers(const struct target *found, size_t n)
{
	int takers = 0;

	for (size_t i = 0; i < n; i++)
		takers += found[i].takes_events;
	return takers;
}

/* An event goes to all that it names, or is refused: silence about one that is
 * missing would lose a delivery. */
static void
find_targets(struct outbox *outbox)
{
	for (size_t i = 0; i < outbox->n; i++) {
		struct entry *entry = &outbox->entries[i];
		size_t n;
		const struct target *found =
		    targets_of(outbox->targets, entry->question, &n);

		entry->ev->fan_out = count_takers(found, n);
		entry->work = outbox_weigh(entry->ev, found, n);
		entry->ev->nobody = find_missing(entry->ev, found, n);
		if (entry->ev->nobody != 0 && entry_is_open(entry))
			entry->ev->outcome = OUTBOX_NOBODY;
	}
}

/* By tenant and id; of the same id the first to come first. */
static int
compare_entries(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int order = outbox_compare_ids(&x->ev->tenant_id, &y->ev->tenant_id);

	if (order == 0)
		order = strcmp(x->ev->id, y->ev->id);
	if (order == 0)
		order = (x > y) - (x < y);
	return order;
}

static bool
is_same_id(const struct entry *a, const struct entry *b)
{
	return a->ev->tenant_id == b->ev->tenant_id &&
	       strcmp(a->ev->id, b->ev->id) == 0;
}

/* Of several open events with one id the first is written, and the others are
 * held against it. */
static void
find_repeats(struct outbox *outbox)
{
	struct entry **sorted = outbox->sorted;
	size_t n = 0;

	for (size_t i = 0; i < outbox->n; i++)
		if (entry_is_open(&outbox->entries[i]))
			sorted[n++] = &outbox->entries[i];
	qsort(sorted, n, sizeof(struct entry *), compare_entries);
	for (size_t i = 1; i < n; i++) {
		const struct entry *before = sorted[i - 1];

		if (is_same_id(before, sorted[i]))
			sorted[i]->first =
			    before->first != NULL ? before->first : before;
	}
	outbox->nsorted = n;
}

static bool
is_same_content(const struct outbox_event *ev, const void *fingerprint)
{
	return memcmp(ev->fingerprint, fingerprint, OUTBOX_FINGERPRINT) == 0;
}

/* Hold events against what was accepted under their ids. */
static void
judge_known(struct outbox *outbox, const struct pg_rows *rows)
{
	for (int row = 0; row < pg_count(rows); row++) {
		int place = pg_get_int(rows, row, pg_column(rows, "place"));
		struct entry *entry = &outbox->entries[place - 1];
		struct outbox_event *ev = entry->ev;
		size_t len;
		const void *first = pg_get_bytes(
		    rows, row, pg_column(rows, "fingerprint"), &len);

		if (!entry_is_open(entry))
			continue;
		ev->outcome =
		    len == OUTBOX_FINGERPRINT && is_same_content(ev, first)
			? OUTBOX_REPEATED
			: OUTBOX_CONFLICT;
		ev->accepted_at =
		    pg_get_bigint(rows, row, pg_column(rows, "accepted_at"));
		ev->fan_out = pg_get_int(rows, row, pg_column(rows, "fan_out"));
	}
}

static void
judge_repeats(struct outbox *outbox)
{
	for (size_t i = 0; i < outbox->n; i++) {
		struct entry *entry = &outbox->entries[i];

		if (entry_is_open(entry) && entry->first != NULL &&
		    !is_same_content(entry->ev, entry->first->ev->fingerprint))
			entry->ev->outcome = OUTBOX_CONFLICT;
	}
}

static void
trim(struct outbox *outbox, size_t max_deliveries)
{
	size_t n = 0, work = 0;
	/* What cannot be parted has a bound of its own. */
	size_t max_work =
	    max_deliveries == SIZE_MAX ? SIZE_MAX : FILTER_WORK_MAX;
	bool is_full = false;

	for (size_t i = 0; i < outbox->n; i++) {
		struct entry *entry = &outbox->entries[i];

		if (entry_is_written(entry)) {
			n += (size_t)entry->ev->fan_out;
			work += entry->work;
			is_full = (n > max_deliveries &&
				      n > (size_t)entry->ev->fan_out) ||
			          (work > max_work && work > entry->work);
		}
		/* All after it too, repeats of it among them. */
		if (is_full && entry_is_open(entry))
			entry->ev->outcome = OUTBOX_LATER;
	}
}

/* Decide by what is known of keys, targets and ids. */
static void
decide(
    struct outbox *outbox, const struct pg_rows *known, size_t max_deliveries)
{
	find_targets(outbox);
	if (known != NULL)
		judge_known(outbox, known);
	find_repeats(outbox);
	trim(outbox, max_deliveries);
	judge_repeats(outbox);
}

/* The answers to outbox_ask(), in its order. */
enum { ASKED_KEYS, ASKED_KNOWN, ASKED_TARGETS };

int
outbox_learn(struct outbox *outbox, struct pg_rows *const *rows,
    size_t max_deliveries, struct err *err)
{
	refuse_revoked(outbox, rows[ASKED_KEYS]);
	if (targets_learn(outbox->targets, rows + ASKED_TARGETS, err) != 0)
		return -1;
	decide(outbox, rows[ASKED_KNOWN], max_deliveries);
	return 0;
}

void
outbox_remember(const struct outbox *outbox, struct outbox_memory *memory)
{
	targets_remember(outbox->targets, memory);
}

bool
outbox_guess(struct outbox *outbox, const struct outbox_memory *memory,
    size_t max_deliveries)
{
	outbox->is_guessed = targets_guess(outbox->targets, memory);
	if (outbox->is_guessed)
		decide(outbox, NULL, max_deliveries);
	return outbox->is_guessed;
}

size_t
outbox_count(const struct outbox *outbox)
{
	size_t n = 0;

	for (size_t i = 0; i < outbox->n; i++)
		n += entry_is_open(&outbox->entries[i]);
	return n;
}

size_t
outbox_deliveries(const struct outbox *outbox)
{
	size_t n = 0;

	for (size_t i = 0; i < outbox->n; i++)
		if (entry_is_written(&outbox->entries[i]))
			n += (size_t)outbox->entries[i].ev->fan_out;
	return n;
}

bool
outbox_settle(struct outbox *outbox, struct pg_rows *const *rows)
{
	usec_t now;

	if (pg_count(rows[0]) == 0)
		return false;
	now = pg_get_bigint(rows[0], 0, pg_column(rows[0], "accepted_at"));
	for (size_t i = 0; i < outbox->n; i++) {
		const struct entry *entry = &outbox->entries[i];
		struct outbox_event *ev = entry->ev;

		if (!entry_is_open(entry))
			continue;
		ev->outcome =
		    entry->first == NULL ? OUTBOX_ACCEPTED : OUTBOX_REPEATED;
		ev->accepted_at = now;
		if (entry->first != NULL)
			ev->fan_out = entry->first->ev->fan_out;
	}
	return true;
}
