/* What an outbox decides about its events, on answers made by hand. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <libpq-fe.h>

#include "../../src/pg/batch.h"
#include "../../src/pg/rows.h"
#include "../../src/store/outbox_inside.h"
#include "base/err.h"
#include "core/filter.h"
#include "store/outbox.h"

enum {
	EVENTS = 8,
	COLUMNS_MAX = 5,
	WEIGHT = 12,
	KEY = 5,
	TENANT = 1,
	NOW = 5000
};

/* The answers, in their order. */
enum { KEYS, KNOWN, MATCHED, NAMED, ANSWERS };

static const unsigned char one[OUTBOX_FINGERPRINT] = { 1 };
static const unsigned char two[OUTBOX_FINGERPRINT] = { 2 };

struct world {
	struct outbox_event list[EVENTS];
	struct outbox_event *events[EVENTS];
	size_t n;
	struct outbox *outbox;
	struct pg_rows rows[ANSWERS];
	struct pg_rows *answers[ANSWERS + 1];
};

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -1;
	for (size_t i = 0; i < ANSWERS; i++)
		w->answers[i] = &w->rows[i];
	*state = w;
	return 0;
}

static void
forget_answers(struct world *w)
{
	for (size_t i = 0; i < ANSWERS; i++) {
		PQclear(w->rows[i].result);
		w->rows[i].result = NULL;
	}
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	forget_answers(w);
	outbox_close(w->outbox);
	free(w);
	return 0;
}

/* -- Answers, as the database sends them. -- */

/* Columns by their names, with blanks between. */
static void
table(struct world *w, size_t answer, const char *columns)
{
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	PGresAttDesc attributes[COLUMNS_MAX] = { 0 };
	char names[128], *rest = names;
	int n = 0;

	(void)snprintf(names, sizeof(names), "%s", columns);
	for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL; n++)
		attributes[n] =
		    (PGresAttDesc){ .name = name, .format = 1, .typlen = -1 };
	assert_int_equal(1, PQsetResultAttrs(result, n, attributes));
	w->rows[answer].result = result;
}

/* Put a big-endian value of `len` bytes. */
static void
put(struct world *w, size_t answer, int row, int column, int64_t value, int len)
{
	char bytes[8];

	for (int i = 0; i < len; i++)
		bytes[i] = (char)(value >> (8 * (len - 1 - i)));
	assert_int_equal(
	    1, PQsetvalue(w->rows[answer].result, row, column, bytes, len));
}

static void
valid_key(struct world *w, int64_t id)
{
	put(w, KEYS, PQntuples(w->rows[KEYS].result), 0, id, 8);
}

/* A subscription to which the events go that ask this question. */
static void
target(struct world *w, size_t answer, int question, int64_t id, bool takes)
{
	int row = PQntuples(w->rows[answer].result);

	put(w, answer, row, 0, question, 4);
	put(w, answer, row, 1, id, 8);
	put(w, answer, row, 2, true, 1);
	put(w, answer, row, 3, takes, 1);
}

/* One with a filter, which takes that much work for each value. */
static void
filtered(struct world *w, int question, int64_t id, int weight)
{
	int row = PQntuples(w->rows[MATCHED].result);

	target(w, MATCHED, question, id, true);
	put(w, MATCHED, row, 4, weight, 4);
}

#define TARGETS "question subscription_id is_ordered takes_events filter_weight"

static void
known(struct world *w, int place, const unsigned char *fingerprint, int fan_out)
{
	PGresult *result = w->rows[KNOWN].result;
	int row = PQntuples(result);

	put(w, KNOWN, row, 0, place, 4);
	put(w, KNOWN, row, 2, 1000 + place, 8);
	put(w, KNOWN, row, 3, fan_out, 4);
	assert_int_equal(
	    1, PQsetvalue(result, row, 1, (char *)(uintptr_t)fingerprint,
		   OUTBOX_FINGERPRINT));
}

#define EVENTS_KNOWN "place fingerprint accepted_at fan_out"

/* -- The story. -- */

static struct outbox_event *
post(struct world *w, const char *id, const char *type,
    const unsigned char *fingerprint)
{
	struct outbox_event *ev = &w->list[w->n];

	*ev = (struct outbox_event){ .key_id = KEY,
		.tenant_id = TENANT,
		.id = id,
		.type = type,
		.fingerprint = fingerprint,
		.body = "{}",
		.len = 2 };
	w->events[w->n++] = ev;
	return ev;
}

/* Ask; returns how many calls that took. */
static size_t
ask(struct world *w)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;
	size_t ncalls;

	assert_int_equal(0, outbox_open(&w->outbox, w->events, w->n, &err));
	outbox_ask(w->outbox, batch);
	assert_false(batch_failed(batch));
	ncalls = batch->ncalls;
	pg_batch_free(batch);
	table(w, KEYS, "id");
	table(w, KNOWN, EVENTS_KNOWN);
	table(w, MATCHED, TARGETS);
	table(w, NAMED, TARGETS);
	return ncalls;
}

static void
learn(struct world *w)
{
	struct err err;

	assert_int_equal(0,
	    outbox_learn(w->outbox, w->answers, OUTBOX_DELIVERIES_MAX, &err));
	forget_answers(w);
}

/* Write; returns how many calls that took. */
static size_t
write_all(struct world *w)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;
	size_t ncalls;

	assert_int_equal(0, outbox_write(w->outbox, batch, &err));
	assert_false(batch_failed(batch));
	ncalls = batch->ncalls;
	pg_batch_free(batch);
	table(w, 0, "accepted_at");
	put(w, 0, 0, 0, NOW, 8);
	return ncalls;
}

static void
test_each_key_and_each_type_is_asked_once(void **state)
{
	static const int64_t named[] = { 7 };
	struct world *w = *state;
	struct outbox_event *last;

	post(w, "a", "t.x", one);
	post(w, "b", "t.y", one);
	post(w, "c", "t.x", one);
	last = post(w, "d", "t.x", one);
	last->named = named;
	last->nnamed = 1;
	assert_int_equal(4, ask(w));

	/* By tenant and type first, then those who name theirs. */
	valid_key(w, KEY);
	target(w, MATCHED, 0, 7, true);
	target(w, MATCHED, 0, 8, true);
	target(w, MATCHED, 1, 9, true);
	target(w, NAMED, 2, 7, true);
	learn(w);
	assert_int_equal(w->list[0].fan_out, 2);
	assert_int_equal(w->list[1].fan_out, 1);
	assert_int_equal(w->list[2].fan_out, 2);
	assert_int_equal(w->list[3].fan_out, 1);
	assert_int_equal(6, outbox_deliveries(w->outbox));
}

static void
test_a_revoked_key_costs_its_own_events_alone(void **state)
{
	struct world *w = *state;

	post(w, "a", "t", one)->key_id = 9;
	post(w, "b", "t", one)->key_id = 3;
	post(w, "c", "t", one)->key_id = 9;
	(void)ask(w);
	valid_key(w, 3);
	learn(w);
	assert_int_equal(w->list[0].outcome, OUTBOX_REVOKED);
	assert_int_equal(w->list[1].outcome, OUTBOX_OPEN);
	assert_int_equal(w->list[2].outcome, OUTBOX_REVOKED);
	assert_int_equal(1, outbox_count(w->outbox));
}

static void
test_an_event_that_names_a_missing_subscription_goes_nowhere(void **state)
{
	static const int64_t named[] = { 2, 4, 6 };
	static const struct {
		const char *label;
		int64_t found[3];
		int64_t missing;
	} rows[] = {
		{ "all are there", { 2, 4, 6 }, 0 },
		{ "the first is not", { 4, 6 }, 2 },
		{ "the middle is not", { 2, 6 }, 4 },
		{ "the last is not", { 2, 4 }, 6 },
		{ "none is", { 0 }, 2 },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outbox_event *ev;

		w->n = 0;
		ev = post(w, "a", "t", one);
		ev->named = named;
		ev->nnamed = 3;
		assert_int_equal(3, ask(w));
		valid_key(w, KEY);
		for (size_t k = 0; k < 3 && rows[i].found[k] != 0; k++)
			target(w, MATCHED, 0, rows[i].found[k], true);
		learn(w);
		if (ev->nobody != rows[i].missing ||
		    (ev->outcome == OUTBOX_NOBODY) != (rows[i].missing != 0))
			fail_msg("%s: %d", rows[i].label, (int)ev->nobody);
		outbox_close(w->outbox);
		w->outbox = NULL;
	}
}

static void
test_a_disabled_subscription_that_is_named_gets_no_delivery(void **state)
{
	static const int64_t named[] = { 2, 4 };
	struct world *w = *state;
	struct outbox_event *ev = post(w, "a", "t", one);

	ev->named = named;
	ev->nnamed = 2;
	(void)ask(w);
	valid_key(w, KEY);
	target(w, MATCHED, 0, 2, false);
	target(w, MATCHED, 0, 4, true);
	learn(w);
	assert_int_equal(ev->outcome, OUTBOX_OPEN);
	assert_int_equal(ev->fan_out, 1);
	/* The event with its delivery, its turn twice. */
	assert_int_equal(3, write_all(w));
}

static void
test_of_events_with_one_id_the_first_is_kept_and_judges_the_rest(void **state)
{
	struct world *w = *state;

	post(w, "a", "t", one);
	post(w, "a", "t", one);
	post(w, "a", "t", two);
	post(w, "a", "t", two)->tenant_id = 2;
	(void)ask(w);
	valid_key(w, KEY);
	target(w, MATCHED, 0, 7, true);
	target(w, MATCHED, 1, 8, true);
	learn(w);
	assert_int_equal(w->list[2].outcome, OUTBOX_CONFLICT);
	assert_int_equal(3, outbox_count(w->outbox));
	assert_int_equal(2, outbox_deliveries(w->outbox));
	(void)write_all(w);
	outbox_settle(w->outbox, w->answers);
	assert_int_equal(w->list[0].outcome, OUTBOX_ACCEPTED);
	assert_int_equal(w->list[1].outcome, OUTBOX_REPEATED);
	assert_int_equal(w->list[3].outcome, OUTBOX_ACCEPTED);
	assert_int_equal(w->list[1].accepted_at, NOW);
	assert_int_equal(w->list[1].fan_out, 1);
}

static void
test_what_was_accepted_before_is_told_from_another_content(void **state)
{
	struct world *w = *state;

	post(w, "a", "t", one);
	post(w, "b", "t", one);
	post(w, "c", "t", one);
	(void)ask(w);
	valid_key(w, KEY);
	known(w, 1, one, 4);
	known(w, 3, two, 4);
	learn(w);
	assert_int_equal(w->list[0].outcome, OUTBOX_REPEATED);
	assert_int_equal(w->list[0].accepted_at, 1001);
	assert_int_equal(w->list[0].fan_out, 4);
	assert_int_equal(w->list[2].outcome, OUTBOX_CONFLICT);
	assert_int_equal(1, outbox_count(w->outbox));
	assert_int_equal(1, write_all(w));
	outbox_settle(w->outbox, w->answers);
	assert_int_equal(w->list[1].outcome, OUTBOX_ACCEPTED);
	assert_int_equal(w->list[1].accepted_at, NOW);
}

static void
test_a_transaction_is_not_made_endless(void **state)
{
	enum { MANY = OUTBOX_DELIVERIES_MAX / 2 + 1 };
	struct world *w = *state;

	post(w, "a", "huge", one);
	post(w, "b", "many", one);
	post(w, "c", "small", one);
	(void)ask(w);
	valid_key(w, KEY);
	for (int i = 0; i < OUTBOX_DELIVERIES_MAX + 1; i++)
		target(w, MATCHED, 0, i + 1, true);
	for (int i = 0; i < MANY; i++)
		target(w, MATCHED, 1, i + 1, true);
	target(w, MATCHED, 2, 1, true);
	learn(w);
	/* One is always kept, and order is: what follows waits too. */
	assert_int_equal(w->list[0].outcome, OUTBOX_OPEN);
	assert_int_equal(w->list[1].outcome, OUTBOX_LATER);
	assert_int_equal(w->list[2].outcome, OUTBOX_LATER);
	assert_int_equal(
	    OUTBOX_DELIVERIES_MAX + 1, outbox_deliveries(w->outbox));
}

/* Ask the filters; `places` are those that do not match, ended by 0. */
static void
filter(struct world *w, const int *places)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	assert_true(outbox_has_filters(w->outbox));
	assert_int_equal(0, outbox_filter(w->outbox, batch, &err));
	assert_false(batch_failed(batch));
	assert_int_equal(1, batch->ncalls);
	pg_batch_free(batch);
	table(w, 0, "place");
	for (int i = 0; places[i] != 0; i++)
		put(w, 0, i, 0, places[i], 4);
	assert_int_equal(0, outbox_filtered(w->outbox, w->answers, &err));
	forget_answers(w);
}

static void
test_what_no_filter_has_to_judge_is_not_asked_about(void **state)
{
	struct world *w = *state;

	post(w, "a", "t", one);
	(void)ask(w);
	valid_key(w, KEY);
	target(w, MATCHED, 0, 7, true);
	learn(w);
	assert_false(outbox_has_filters(w->outbox));
}

static void
test_what_a_filter_keeps_out_has_no_delivery(void **state)
{
	static const int places[] = { 1, 4, 0 };
	struct world *w = *state;

	post(w, "a", "t", one);
	post(w, "a", "t", one); /* the same again: not asked about */
	post(w, "b", "t", one);
	post(w, "c", "u", one);
	(void)ask(w);
	valid_key(w, KEY);
	filtered(w, 0, 7, WEIGHT);
	target(w, MATCHED, 0, 8, true);
	filtered(w, 0, 9, WEIGHT);
	target(w, MATCHED, 1, 8, true);
	learn(w);
	assert_int_equal(7, outbox_deliveries(w->outbox));
	filter(w, places);
	assert_int_equal(w->list[0].fan_out, 2);
	assert_int_equal(w->list[2].fan_out, 2);
	assert_int_equal(w->list[3].fan_out, 1);
	assert_int_equal(5, outbox_deliveries(w->outbox));
	(void)write_all(w);
	outbox_settle(w->outbox, w->answers);
	assert_int_equal(w->list[1].fan_out, 2);
}

static void
test_the_work_of_filters_is_bounded(void **state)
{
	static const int second[] = { 2, 0 };
	struct world *w = *state;

	post(w, "a", "t", one);
	(void)ask(w);
	valid_key(w, KEY);
	filtered(w, 0, 7, FILTER_WORK_MAX / 4);
	filtered(w, 0, 8, FILTER_WORK_MAX); /* a body of "{}" has two values */
	filtered(w, 0, 9, FILTER_WORK_MAX / 4);
	learn(w);
	filter(w, second);
	assert_int_equal(w->outbox->nasked, 2);
	assert_int_equal(w->outbox->asked[0].nth, 0);
	assert_int_equal(w->outbox->asked[1].nth, 2);
	assert_int_equal(w->list[0].fan_out, 2);
}

static void
test_what_filters_have_too_much_work_with_is_left_for_later(void **state)
{
	static const int none[] = { 0 };
	struct world *w = *state;

	post(w, "a", "t", one);
	post(w, "b", "u", one);
	post(w, "c", "v", one);
	(void)ask(w);
	valid_key(w, KEY);
	filtered(w, 0, 7, FILTER_WORK_MAX); /* one is always kept */
	filtered(w, 1, 8, 1);
	target(w, MATCHED, 2, 9, true);
	learn(w);
	assert_int_equal(w->list[0].outcome, OUTBOX_OPEN);
	assert_int_equal(w->list[1].outcome, OUTBOX_LATER);
	assert_int_equal(w->list[2].outcome, OUTBOX_LATER);
	filter(w, none);
	assert_int_equal(w->list[0].fan_out, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_key_and_each_type_is_asked_once),
		TEST(test_a_revoked_key_costs_its_own_events_alone),
		TEST(
		    test_an_event_that_names_a_missing_subscription_goes_nowhere),
		TEST(
		    test_a_disabled_subscription_that_is_named_gets_no_delivery),
		TEST(
		    test_of_events_with_one_id_the_first_is_kept_and_judges_the_rest),
		TEST(
		    test_what_was_accepted_before_is_told_from_another_content),
		TEST(test_a_transaction_is_not_made_endless),
		TEST(test_what_no_filter_has_to_judge_is_not_asked_about),
		TEST(test_what_a_filter_keeps_out_has_no_delivery),
		TEST(test_the_work_of_filters_is_bounded),
		TEST(
		    test_what_filters_have_too_much_work_with_is_left_for_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
