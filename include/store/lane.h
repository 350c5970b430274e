/*
 * lane: claim, take over, wake and rest: a dispatcher's pass over the queue.
 *
 * Each function puts calls into a batch; each *_read takes a row of the answer.
 * The statements say what they do and why in sql/lane_*.sql and sql/turn_*.sql.
 */

#ifndef STORE_LANE_H
#define STORE_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/verdict.h"

struct pg_batch;
struct pg_rows;

enum { LANE_TOKEN = 16 };

/* The right to attempt the head of a lane, until it runs out. */
struct lane_lease {
	int64_t lane_id;
	int64_t subscription_id;
	int64_t version; /* of the subscription, at the claim */
	int64_t delivery_id; /* the head: also its position */
	int64_t event_no;
	unsigned char token[LANE_TOKEN];
	int attempt; /* the number of this one; the first is 1 */
	bool goes_on; /* something is behind the head */
	usec_t timeout; /* the longest attempt that the lease outlives */
	/* Since the claim: later it is given back, for it is at a rate.
	 * INT64_MAX: it is not. */
	usec_t begin_within;
	usec_t accepted_at; /* the event, since 1970; 0: not known */
	/* These lend from the rows; `body` is NULL once purged. */
	const char *event_id;
	const void *body;
	size_t len;
};

/* A lease that ran out and is ours now, to be recorded as such. */
struct lane_expired {
	int64_t lane_id;
	int64_t delivery_id;
	int64_t subscription_id;
	unsigned char token[LANE_TOKEN];
	int attempt; /* the one that the vanished worker was at */
	struct retry_policy policy; /* without jitter: the caller's choice */
};

/* A turn that was asked for, or has come into the round. */
struct lane_turn {
	int64_t subscription_id;
	int64_t tenant_id; /* 0: it has left the round */
	bool is_taken;
};

/*
 * Take over at most `limit` leases that ran out, for `lease` from now.  Here and
 * in what follows, `from` is where to begin, as lane_wake_read() returned it, or
 * LANE_START to find also what others had in hand then.
 */
#define LANE_START INT64_C(-1)
void lane_reclaim(struct pg_batch *batch, const char *worker, int limit,
    usec_t lease, int64_t from);
void lane_reclaim_read(
    const struct pg_rows *rows, int row, struct lane_expired *out);

/* Wake at most `limit` subscriptions whose time has come. */
void lane_wake(struct pg_batch *batch, int limit, int64_t from);
int64_t lane_wake_read(const struct pg_rows *rows);

/*
 * Take at most `limit` turns: the `n` that are `asked` for, no more than that,
 * and of what came into the round since `from`.  In the transaction of
 * lane_claim(), before it, and not more of them than lanes.
 */
void lane_take(struct pg_batch *batch, int limit, const int64_t *asked,
    size_t n, int64_t from);

/* From when on the next is to look. */
int64_t lane_take_from(const struct pg_rows *rows);

/* False if the row has no turn: then it is the only one. */
bool lane_take_read(const struct pg_rows *rows, int row, struct lane_turn *out);

struct lane_claim_args {
	int limit; /* most lanes */
	const char *worker;
	usec_t margin; /* how long a lease outlives the longest attempt */
	usec_t
	    begin_within; /* of a request at a rate; later it is given back */
	int dice; /* 0..999999; 999999: remember no place, of few lanes */
};

/* Lease lanes of the turns that this transaction took.  lane_bodies() follows
 * its commit, and answers a row for each of these, in the same order. */
void lane_claim(struct pg_batch *batch, const struct lane_claim_args *args);
void lane_claim_read(
    const struct pg_rows *rows, int row, struct lane_lease *out);

/* Whether another claim would find more, as far as can be said. */
bool lane_claim_has_more(const struct pg_rows *rows);

/* Ask when to look again, should no turn have been taken.  In the transaction of
 * lane_take() or lane_rest(), after it. */
void lane_next(struct pg_batch *batch, int64_t from);

/* How long until something falls due; -1: nothing will. */
usec_t lane_next_read(const struct pg_rows *rows);

/* What a claim and a lane handed back have in common: all but the attempt and
 * what is to be sent. */
void lane_lease_read(
    const struct pg_rows *rows, int row, struct lane_lease *out);

/* Let subscriptions rest that have nothing to claim: two calls, to be put in a
 * transaction of their own.  The second answers how many stay in the round;
 * lane_next() follows. */
enum { LANE_REST_ROWS = 1, LANE_NEXT_ROWS = 2 };
void lane_rest(struct pg_batch *batch, const int64_t *subscriptions, size_t n);
int64_t lane_rest_read(const struct pg_rows *rows);

/*
 * What is to be sent, for the leases that the transaction before has made.  False
 * if that row is not the lease's event: another session answered, as behind a
 * pooler that gives each transaction another one.  Nothing may be sent then.
 */
void lane_bodies(struct pg_batch *batch);
bool lane_body_read(
    const struct pg_rows *rows, int row, struct lane_lease *out);

/* Is there any subscription? */
void lane_any(struct pg_batch *batch);
bool lane_any_read(const struct pg_rows *rows);

#endif
