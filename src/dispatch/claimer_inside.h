/* claimer_inside: what the claimer*.c share. */

#ifndef DISPATCH_CLAIMER_INSIDE_H
#define DISPATCH_CLAIMER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "dispatch/attempt.h"
#include "dispatch/claimer.h"
#include "dispatch/outage.h"
#include "dispatch/timer.h"
#include "pg/pg.h"

struct chores;
struct rota;
struct session;

enum {
	CLAIMER_TURNS = 200, /* most subscriptions served in one pass */
};

/* Between tries of a transaction that the database would not take now. */
#define CLAIMER_AGAIN_AFTER (100 * USEC_PER_MS)

/* There is work, but somebody else holds it: its turn, its lane or its lease.
 * The wait doubles from this to the 32-fold. */
#define CLAIMER_CONTENDED_WAIT (5 * USEC_PER_MS)

/* Between passes that look from the start, for what others had in hand. */
#define CLAIMER_SWEEP_EVERY (10 * USEC_PER_SEC)

struct claimer {
	struct worker *worker;
	struct session *session;
	struct outage outage;
	struct timer timer; /* the next look, wanted or by the poll */
	bool is_busy; /* a batch is in flight */
	bool is_ready_said;
	bool is_wanted; /* a pass is to be made */
	bool knows_any; /* there is some subscription */
	bool was_vain; /* the last pass claimed nothing at all */
	bool wakes; /* the pass in flight wakes and takes over */
	struct rota *rota; /* who is in the round, and who is next */
	int turns; /* most that a pass takes, at most CLAIMER_TURNS */
	int room; /* the most lanes that the last pass could lease */
	size_t nturns; /* and turns that it could take */
	usec_t swept_at; /* the last pass that looked from the start */
	int64_t look_from; /* for the next, as lane_wake_read() says */
	int64_t entered_from; /* and as lane_take_from() does */
	usec_t contended; /* the next wait for what somebody else holds */
	int64_t
	    empty[CLAIMER_TURNS]; /* claimed for in vain: to be put to rest */
	size_t nempty;
	usec_t asked_at; /* when the batch in flight was submitted */
	usec_t wakes_at; /* when a pass is to do so again */
	usec_t due_at; /* when something falls due that a record has told */
	usec_t rests_until; /* no pass before */
	usec_t keyless_at; /* when a missing key was last logged */
	usec_t slowness; /* how long one took lately, at worst */
	struct attempt_list waiting; /* for their endpoints */
	struct chores *chores;
	bool had_chore; /* the next pass goes before another */
};

/* Submit what was put into `batch`; its end comes to `done`. */
void claimer_submit(
    struct claimer *claimer, struct pg_batch *batch, pg_done_fn *done);

/* The common beginning of every answer.  True if it can be read. */
bool claimer_answered(struct claimer *claimer, const struct err *err);

/* Make a pass within `wait`. */
void claimer_look(struct claimer *claimer, usec_t wait);

/* Decide what is to be done next, and do it. */
void claimer_step(struct claimer *claimer);

/* Put a pass into `batch` and submit it. */
void claimer_pass(struct claimer *claimer, struct pg_batch *batch);

/* The same, to let rest what was claimed for in vain. */
void claimer_rest(struct claimer *claimer, struct pg_batch *batch);

/* Take turns for a claim of `room` lanes. */
void claimer_take(struct claimer *claimer, struct pg_batch *batch, int room);

/* Read the answer: what was taken is `empty` until something is claimed for it. */
void claimer_taken(struct claimer *claimer, const struct pg_rows *rows);

/* There was something to claim for it. */
void claimer_strike(struct claimer *claimer, int64_t subscription_id);

/* Load the endpoints that the first waiting attempts need. */
void claimer_load(struct claimer *claimer, struct pg_batch *batch);

/* Start those that wait and have their endpoint now. */
void claimer_start_waiting(struct claimer *claimer);

#endif
