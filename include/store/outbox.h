/*
 * outbox: events on their way into the database, many in one transaction.
 *
 *	outbox_ask    -- who may post, what is there, where do the events go?
 *	outbox_learn     revoked keys, unknown subscriptions, known ids
 *	outbox_filter -- where there are filters: whom are the events for?
 *	outbox_filtered  not all have as many deliveries as it seemed
 *	outbox_write  -- events, lanes, deliveries: one transaction
 *	outbox_settle    the rest is accepted
 *
 * or, where an outbox_memory has all the answers, in one batch:
 *
 *	outbox_guess     as if they still were what they were
 *	outbox_write  -- the same, if they are
 *	outbox_settle    the rest is accepted; or else nothing is, and has to be asked
 *
 * The caller sends the batches.  Each is a transaction of its own, and nothing
 * is kept unless the last succeeds: at any failure the whole can be begun
 * again with a new outbox.  So it has to be after a unique_violation: somebody
 * accepted one of the ids between the first and the last.
 */

#ifndef STORE_OUTBOX_H
#define STORE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct outbox;
struct outbox_memory;
struct pg_batch;
struct pg_rows;

enum {
	/* Events in one outbox, so that a lane never gets more than the block
	 * of positions that a transaction takes for it. */
	OUTBOX_EVENTS_MAX = 1000,
	/* Deliveries after which further events are left for later, so that a
	 * type with thousands of subscribers makes no endless transaction. */
	OUTBOX_DELIVERIES_MAX = 20000,
	OUTBOX_FINGERPRINT = 32,
	OUTBOX_NO_KEY = 0, /* no key of the API: who posts has the database */
};

enum outbox_outcome {
	OUTBOX_OPEN, /* not decided */
	OUTBOX_LATER, /* too much for this transaction: try it again */
	OUTBOX_REVOKED, /* its key may not be used any more */
	OUTBOX_NOBODY, /* names a subscription that does not exist */
	OUTBOX_ACCEPTED, /* new, and kept */
	OUTBOX_REPEATED, /* the same was accepted before */
	OUTBOX_CONFLICT, /* another event was accepted under its id */
};

struct outbox_event {
	/* What is given.  It must stay as it is while the outbox is open. */
	int64_t key_id; /* or OUTBOX_NO_KEY */
	int64_t tenant_id;
	const char *id;
	const char *type;
	const char *asset; /* NULL if none */
	const int64_t *named; /* subscriptions, ascending; */
	size_t nnamed; /* 0: all that match by type */
	const unsigned char *fingerprint;
	const void *body;
	size_t len;

	/* What becomes of it. */
	enum outbox_outcome outcome;
	int64_t nobody; /* the subscription that does not exist */
	usec_t accepted_at; /* of the first acceptance */
	int fan_out; /* deliveries that it made */
};

/* Begin with 1 to OUTBOX_EVENTS_MAX events, in the order in which they are to
 * be sent.  The list is copied, the events are lent. */
int outbox_open(struct outbox **out, struct outbox_event *const *events,
    size_t n, struct err *err);

/* NULL is fine. */
void outbox_close(struct outbox *outbox);

/* Add the questions to `batch`, which is new: no transaction is needed. */
void outbox_ask(struct outbox *outbox, struct pg_batch *batch);

/* Read their answers: decide what needs no writing.  What goes beyond
 * `max_deliveries`, or the work of filters, is left for later; one event is always
 * kept.  SIZE_MAX: all are, whatever they take. */
int outbox_learn(struct outbox *outbox, struct pg_rows *const *rows,
    size_t max_deliveries, struct err *err);

/* Of tenants and types: where their events went. */
int outbox_memory_new(struct outbox_memory **out, struct err *err);
void outbox_memory_free(struct outbox_memory *memory); /* NULL is fine */

/* Keep what outbox_learn() has read. */
void outbox_remember(const struct outbox *outbox, struct outbox_memory *memory);

/* Instead of asking and learning: decide by what others learned, that no key has
 * been revoked, and that no id is known.  False if the memory does not have it
 * all; then the outbox is as it was. */
bool outbox_guess(struct outbox *outbox, const struct outbox_memory *memory,
    size_t max_deliveries);

/* Whether there are filters to ask: there are none, as a rule. */
bool outbox_has_filters(const struct outbox *outbox);

/*
 * Add the question to `batch`, which is new; read the answer.  What would be more
 * work than FILTER_WORK_MAX for one event is not asked, nor what would be more
 * than eight times that for all: then the event is for them, as if they had no
 * filter.  Named subscriptions are not asked about.
 */
int outbox_filter(
    struct outbox *outbox, struct pg_batch *batch, struct err *err);
int outbox_filtered(
    struct outbox *outbox, struct pg_rows *const *rows, struct err *err);

/* How many are open: if none, there is nothing to write. */
size_t outbox_count(const struct outbox *outbox);

/* How many deliveries the open ones will make. */
size_t outbox_deliveries(const struct outbox *outbox);

/* Add what keeps the open ones to `batch`, which is new. */
int outbox_write(
    struct outbox *outbox, struct pg_batch *batch, struct err *err);

/* It has succeeded: read the answers.  False if what was guessed was wrong, and
 * nothing is kept: it is to be asked, of a new outbox. */
bool outbox_settle(struct outbox *outbox, struct pg_rows *const *rows);

#endif
