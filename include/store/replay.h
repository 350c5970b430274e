/*
 * replay: send again what is over: one dead letter, all of them, or all events
 * of a time.
 *
 * A new generation of the delivery begins, and takes its event's own place in
 * its lane: ahead of all that has not been sent.  See sql/replay_place.sql.
 *
 *	retry    replay_one  -+                               +- replay_answer
 *	                      +-> hold -> place -> ready -----+
 *	step  pick -> look  --+                               +- replay_next
 *
 * A replay in the background is a row, replay_job.  Dispatchers take its steps,
 * each a short transaction that also moves its cursor on: whoever dies in the
 * middle, nothing is replayed twice by it, or left out.
 */

#ifndef STORE_REPLAY_H
#define STORE_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg;
struct pg_batch;
struct pg_rows;

enum {
	REPLAY_RATE_DEFAULT = 100, /* deliveries a second */
	REPLAY_RATE_MAX = 10000,
	/* Entries of an answer: what the *_read functions take. */
	REPLAY_RETRY_ROWS = 5,
	REPLAY_DISCARD_ROWS = 4,
	REPLAY_CANCEL_ROWS = 1,
};

/* Who asks, for what. */
struct replay_asked {
	int64_t tenant_id; /* 0: whatever the tenant */
	int64_t subscription_id;
	int64_t id; /* of a delivery or a replay, where one is asked for */
	const char *actor; /* for the audit */
	const char *source; /* the same, as audit_from() has it */
};

/* What became of one delivery. */
struct replay_answer {
	bool is_done; /* it was replayed or discarded, by this */
	bool is_purged;
	const char *state; /* lends from the rows */
	int generation;
	int64_t held_by; /* the dead letter that holds its lane; 0: none */
};

/* A replay in the background to be begun. */
struct replay_order {
	const char *what; /* "dead" or "events" */
	usec_t since; /* since 1970; -1: from the first on */
	usec_t until; /* -1: up to now, which is the latest in any case */
	int rate_per_second; /* 0: the default */
};

/* A replay in the background; its texts lend from the rows. */
struct replay_job {
	int64_t id;
	int64_t subscription_id;
	const char *what;
	usec_t since, until; /* -1 as in the order */
	int rate_per_second;
	int64_t reached; /* a delivery for "dead", else an event's number */
	int64_t examined; /* how many it came to */
	int64_t replayed;
	int64_t refused; /* their payload was purged */
	const char *state; /* "running", "done", "cancelled" */
	const char *created_by;
	usec_t created_at;
	usec_t finished_at; /* -1: it runs */
};

/* One whole transaction for one dead letter: to send it again, or to give it up
 * for good. */
void replay_retry(struct pg_batch *batch, const struct replay_asked *asked);
void replay_discard(struct pg_batch *batch, const struct replay_asked *asked);

/* Read entry REPLAY_RETRY_ROWS, REPLAY_DISCARD_ROWS of the answer.  False if
 * there is no such delivery. */
bool replay_answer_read(struct replay_answer *out, const struct pg_rows *rows);

/* Begin a replay; ask for one, for the newest `limit`.  The rows are for
 * replay_job_read(). */
void replay_start(struct pg_batch *batch, const struct replay_asked *asked,
    const struct replay_order *order);
void replay_get(struct pg_batch *batch, const struct replay_asked *asked);
void replay_list(
    struct pg_batch *batch, const struct replay_asked *asked, int limit);

/* End a replay where it is, and ask for it: entry REPLAY_CANCEL_ROWS. */
void replay_cancel(struct pg_batch *batch, const struct replay_asked *asked);

/* No row: there is no such subscription, or replay.  A row of replay_list()
 * that reads false says that there is none. */
bool replay_job_read(
    struct replay_job *out, const struct pg_rows *rows, int row);

/* For the command: from where to where `reached` goes. */
int replay_span(struct pg *pg, const struct replay_job *job, int64_t *first,
    int64_t *last, struct err *err);

/*
 * One whole transaction for the next step of a replay, if one is due.  The last
 * entry of its answer is for chore_read().
 */
void replay_step(struct pg_batch *batch);

#endif
