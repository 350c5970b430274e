#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "outbox_memory.h"
#include "store/outbox.h"
#include "store/stmt.h"
#include "targets.h"

struct question {
	const struct outbox_event *ev; /* an event that asks it */
	size_t first, n; /* its answer in `found` */
};

struct targets {
	struct question *questions;
	size_t n;
	bool has_matched, has_named; /* questions of either kind */
	struct target *found;
	size_t nfound;
};

/* An event's place in the caller's list survives the sorting by type. */
struct place {
	const struct outbox_event *ev;
	size_t index;
};

static bool
is_named(const struct question *question)
{
	return question->ev->nnamed > 0;
}

static int
compare_types(const struct outbox_event *a, const struct outbox_event *b)
{
	if (a->tenant_id != b->tenant_id)
		return a->tenant_id < b->tenant_id ? -1 : 1;
	return strcmp(a->type, b->type);
}

static int
compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return compare_types(x->ev, y->ev);
}

/* Put one more question, unless it is the one just put. */
static size_t
put_question(struct targets *targets, const struct outbox_event *ev)
{
	const struct question *last = targets->questions + targets->n - 1;

	if (targets->n > 0 && ev->nnamed == 0 && !is_named(last) &&
	    compare_types(last->ev, ev) == 0)
		return targets->n - 1;
	targets->questions[targets->n].ev = ev;
	if (ev->nnamed > 0)
		targets->has_named = true;
	else
		targets->has_matched = true;
	return targets->n++;
}

static void
put_questions(struct targets *targets, struct place *places,
    struct outbox_event *const *events, size_t n, size_t *questions)
{
	size_t nplaces = 0;

	for (size_t i = 0; i < n; i++)
		if (events[i]->nnamed == 0)
			places[nplaces++] = (struct place){ events[i], i };
	qsort(places, nplaces, sizeof(*places), compare_places);
	for (size_t i = 0; i < nplaces; i++)
		questions[places[i].index] =
		    put_question(targets, places[i].ev);
	for (size_t i = 0; i < n; i++)
		if (events[i]->nnamed > 0)
			questions[i] = put_question(targets, events[i]);
}

int
targets_new(struct targets **out, struct outbox_event *const *events, size_t n,
    size_t *questions, struct err *err)
{
	struct targets *targets = calloc(1, sizeof(*targets));
	struct place *places = calloc(n, sizeof(*places));

	if (targets != NULL)
		targets->questions = calloc(n, sizeof(*targets->questions));
	if (places == NULL || targets == NULL || targets->questions == NULL) {
		free(places);
		targets_free(targets);
		return err_set(err, ERR_NOMEM, "targets");
	}
	put_questions(targets, places, events, n, questions);
	free(places);
	*out = targets;
	return 0;
}

void
targets_free(struct targets *targets)
{
	if (targets == NULL)
		return;
	free(targets->questions);
	free(targets->found);
	free(targets);
}

/* What is asked of the database for one question: a pattern that its type
 * matches, or a subscription that it names. */
typedef void put_part(
    struct pg_batch *batch, const struct targets *targets, size_t i, size_t k);

static void
put_number(
    struct pg_batch *batch, const struct targets *targets, size_t i, size_t k)
{
	(void)targets;
	(void)k;
	pg_int(batch, (int32_t)i);
}

static void
put_tenant(
    struct pg_batch *batch, const struct targets *targets, size_t i, size_t k)
{
	(void)k;
	pg_bigint(batch, targets->questions[i].ev->tenant_id);
}

/* Of a.b.c: for 0 the type itself, then "*", "a.*", "a.b.*". */
static void
put_pattern(
    struct pg_batch *batch, const struct targets *targets, size_t i, size_t k)
{
	const char *type = targets->questions[i].ev->type;
	const char *end = type;
	struct buf pattern = { 0 };

	if (k == 0) {
		pg_text(batch, type);
		return;
	}
	while (--k > 0)
		end = strchr(end, '.') + 1;
	buf_add(&pattern, type, (size_t)(end - type));
	buf_puts(&pattern, "*");
	pg_bytes(batch, pattern.data, pattern.len);
	buf_fini(&pattern);
}

static void
put_named(
    struct pg_batch *batch, const struct targets *targets, size_t i, size_t k)
{
	pg_bigint(batch, targets->questions[i].ev->named[k]);
}

static size_t
count_parts(const struct question *question)
{
	size_t n = 2; /* the type, and "*" */

	if (is_named(question))
		return question->ev->nnamed;
	for (const char *p = question->ev->type; *p != '\0'; p++)
		n += *p == '.';
	return n;
}

/* A parameter with one element a part, over the questions of one kind. */
static void
array(const struct targets *targets, struct pg_batch *batch, bool named,
    enum pg_type type, put_part *put)
{
	pg_array(batch, type);
	for (size_t i = 0; i < targets->n; i++) {
		const struct question *question = &targets->questions[i];

		if (is_named(question) != named)
			continue;
		for (size_t k = 0; k < count_parts(question); k++)
			put(batch, targets, i, k);
	}
	pg_array_end(batch);
}

static void
put_matched(const struct targets *targets, struct pg_batch *batch)
{
	array(targets, batch, false, PG_INT, put_number);
	array(targets, batch, false, PG_BIGINT, put_tenant);
	array(targets, batch, false, PG_TEXT, put_pattern);
}

void
targets_ask(const struct targets *targets, struct pg_batch *batch)
{
	if (targets->has_matched) {
		pg_call(batch, STMT_SUBSCRIPTION_MATCH);
		put_matched(targets, batch);
	}
	if (targets->has_named) {
		pg_call(batch, STMT_SUBSCRIPTION_NAMED);
		array(targets, batch, true, PG_INT, put_number);
		array(targets, batch, true, PG_BIGINT, put_tenant);
		array(targets, batch, true, PG_BIGINT, put_named);
	}
}

/* Rows come by question, then by subscription. */
static void
learn(struct targets *targets, const struct pg_rows *rows, bool named)
{
	int number = pg_column(rows, "question");
	int id = pg_column(rows, "subscription_id");
	int is_ordered = pg_column(rows, "is_ordered");
	int takes = named ? pg_column(rows, "takes_events") : -1;
	int weight = named ? -1 : pg_column(rows, "filter_weight");

	for (int row = 0; row < pg_count(rows); row++) {
		struct question *question =
		    &targets->questions[pg_get_int(rows, row, number)];

		if (question->n++ == 0)
			question->first = targets->nfound;
		targets->found[targets->nfound++] = (struct target){
			.subscription_id = pg_get_bigint(rows, row, id),
			.is_ordered = pg_get_bool(rows, row, is_ordered),
			.takes_events = !named || pg_get_bool(rows, row, takes),
			.filter_weight =
			    named ? 0 : pg_get_int(rows, row, weight),
		};
	}
}

int
targets_learn(
    struct targets *targets, struct pg_rows *const *rows, struct err *err)
{
	const struct pg_rows *matched = NULL, *named = NULL;
	size_t n = 1; /* calloc(0) may be NULL */

	if (targets->has_matched)
		matched = *rows++;
	if (targets->has_named)
		named = *rows;
	n += matched != NULL ? (size_t)pg_count(matched) : 0;
	n += named != NULL ? (size_t)pg_count(named) : 0;
	targets->found = calloc(n, sizeof(*targets->found));
	if (targets->found == NULL)
		return err_set(err, ERR_NOMEM, "targets");
	if (matched != NULL)
		learn(targets, matched, false);
	if (named != NULL)
		learn(targets, named, true);
	return 0;
}

bool
targets_guess(struct targets *targets, const struct outbox_memory *memory)
{
	const struct target *found;
	size_t n, room = 1; /* calloc(0) may be NULL */

	for (size_t i = 0; i < targets->n; i++) {
		const struct question *question = &targets->questions[i];

		if (is_named(question) ||
		    outbox_memory_find(memory, question->ev->tenant_id,
			question->ev->type, &n) == NULL)
			return false;
		room += n;
	}
	targets->found = calloc(room, sizeof(*targets->found));
	if (targets->found == NULL)
		return false;
	for (size_t i = 0; i < targets->n; i++) {
		struct question *question = &targets->questions[i];

		found = outbox_memory_find(memory, question->ev->tenant_id,
		    question->ev->type, &question->n);
		question->first = targets->nfound;
		for (size_t k = 0; k < question->n; k++)
			targets->found[targets->nfound++] = found[k];
	}
	return true;
}

void
targets_remember(const struct targets *targets, struct outbox_memory *memory)
{
	for (size_t i = 0; i < targets->n; i++) {
		const struct question *question = &targets->questions[i];

		if (!is_named(question))
			outbox_memory_keep(memory, question->ev->tenant_id,
			    question->ev->type,
			    targets->found + question->first, question->n);
	}
}

void
targets_put_guess(const struct targets *targets, struct pg_batch *batch)
{
	pg_array(batch, PG_INT);
	for (size_t i = 0; i < targets->n; i++)
		for (size_t k = 0; k < targets->questions[i].n; k++)
			pg_int(batch, (int32_t)i);
	pg_array_end(batch);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < targets->nfound; i++)
		pg_bigint(batch, targets->found[i].subscription_id);
	pg_array_end(batch);
	pg_array(batch, PG_BOOL);
	for (size_t i = 0; i < targets->nfound; i++)
		pg_bool(batch, targets->found[i].is_ordered);
	pg_array_end(batch);
	put_matched(targets, batch);
}

const struct target *
targets_of(const struct targets *targets, size_t question, size_t *n)
{
	assert(question < targets->n);
	*n = targets->questions[question].n;
	return targets->found + targets->questions[question].first;
}
