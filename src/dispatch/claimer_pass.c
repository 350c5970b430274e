#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/claimer_inside.h"
#include "dispatch/dice.h"
#include "dispatch/pace.h"
#include "dispatch/recorder.h"
#include "dispatch/worker.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/rota.h"

enum {
	RECLAIMS = 200, /* leases taken over in one pass */
	WAKES = 1000, /* turns woken in one pass */
};

/* The answers of a pass; those of one that wakes are behind two more. */
enum { PASS_RECLAIM, PASS_WAKE, PASS_WAKES };
enum { PASS_TAKE, PASS_CLAIM, PASS_NEXT, PASS_BODIES };

/* A pass wakes when something is known to fall due; what only others know of
 * waits so long at most, and where much is sent nobody asks more often than that. */
#define WAKE_EVERY USEC_PER_SEC
#define WAKE_BETWEEN (10 * USEC_PER_MS)

#define CONTENDED_WAIT_MAX (32 * CLAIMER_CONTENDED_WAIT)

/* A lease that ran out goes to the recorder like any outcome. */
static void
take_over(struct claimer *claimer, const struct pg_rows *rows)
{
	struct worker *worker = claimer->worker;
	struct lane_expired expired;
	struct attempt *attempt;
	struct err err;
	int n = pg_count(rows);

	for (int i = 0; i < n; i++) {
		struct lane_lease lease = { 0 };

		lane_reclaim_read(rows, i, &expired);
		lease.lane_id = expired.lane_id;
		lease.delivery_id = expired.delivery_id;
		lease.subscription_id = expired.subscription_id;
		lease.attempt = expired.attempt;
		memcpy(lease.token, expired.token, LANE_TOKEN);
		if (attempt_new(&attempt, worker, &lease, claimer->asked_at,
			&err) != 0) {
			log_error(
			    "a lease was dropped", "error", err.text, NULL);
			continue;
		}
		attempt_expired(attempt, &expired.policy);
	}
}

static void
begin_attempts(struct claimer *claimer, const struct pg_rows *rows,
    const struct pg_rows *bodies)
{
	struct lane_lease lease;
	int n = pg_count(rows);

	claimer->was_vain = n == 0;
	if (n > 0)
		claimer->contended = CLAIMER_CONTENDED_WAIT;
	for (int i = 0; i < n; i++) {
		lane_claim_read(rows, i, &lease);
		claimer_strike(claimer, lease.subscription_id);
		claimer_begin(claimer, &lease, bodies, i, claimer->asked_at);
	}
}

static usec_t
contended_wait(struct claimer *claimer)
{
	usec_t wait = claimer->contended;

	if (claimer->contended < CONTENDED_WAIT_MAX)
		claimer->contended *= 2;
	return wait;
}

/* Nobody's turn: how long until the next look. */
static usec_t
idle_wait(struct claimer *claimer, usec_t next_in)
{
	usec_t poll = claimer->worker->conf->poll;

	/* What is being recorded makes room, and then there is a look. */
	if (rota_count(claimer->rota) > 0 &&
	    recorder_is_busy(claimer->worker->recorder))
		return poll;
	if (rota_count(claimer->rota) > 0 || next_in == 0)
		return contended_wait(claimer);
	claimer->contended = CLAIMER_CONTENDED_WAIT;
	return next_in > 0 && next_in < poll ? next_in : poll;
}

/* Another pass at once would find something to do, or somebody to put to rest. */
static bool
has_more(const struct claimer *claimer, const struct pg_rows *leases)
{
	return lane_claim_has_more(leases) ||
	       (rota_count(claimer->rota) > claimer->nturns &&
		   (claimer->nempty > 0 || pg_count(leases) > 0));
}

static void
read_wakes(struct claimer *claimer, struct pg_rows *const *rows)
{
	if (claimer->look_from == LANE_START)
		claimer->swept_at = claimer->asked_at;
	claimer->look_from = lane_wake_read(rows[PASS_WAKE]);
	claimer->wakes_at = clock_now() + WAKE_BETWEEN;
	if (pg_count(rows[PASS_RECLAIM]) == RECLAIMS)
		claimer->is_wanted = true;
	take_over(claimer, rows[PASS_RECLAIM]);
}

/* Where no turn was taken it is known when something falls due, or that nothing
 * does. */
static usec_t
read_next(struct claimer *claimer, const struct pg_rows *rows)
{
	usec_t next_in = lane_next_read(rows);
	bool is_soon = next_in >= 0 && next_in < WAKE_EVERY;

	claimer->wakes_at =
	    claimer->asked_at + (is_soon ? next_in : WAKE_EVERY);
	return next_in;
}

static void
on_passed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;
	const struct worker *worker = claimer->worker;
	usec_t now = clock_now(), next_in = -1;
	int found;

	if (!claimer_answered(claimer, err))
		return;
	if (claimer->wakes) {
		read_wakes(claimer, rows);
		rows += PASS_WAKES;
	}
	claimer_taken(claimer, rows[PASS_TAKE]);
	if (claimer->nempty == 0)
		next_in = read_next(claimer, rows[PASS_NEXT]);
	else if (!claimer->wakes)
		claimer_look(claimer, claimer->wakes_at - now);
	if (has_more(claimer, rows[PASS_CLAIM]))
		claimer->is_wanted = true;
	else
		claimer_look(claimer, idle_wait(claimer, next_in));
	found = pg_count(rows[PASS_CLAIM]);
	claimer->turns =
	    pace_turns(claimer->turns, CLAIMER_TURNS, claimer->room, found);
	begin_attempts(claimer, rows[PASS_CLAIM], rows[PASS_BODIES]);
	/* What has just come does not wait; who has no room for it can. */
	if (claimer->room < pace_enough(worker_room_max(worker)))
		claimer->rests_until =
		    now + pace_rest(now - claimer->asked_at, found,
			      worker_room_max(worker), claimer->room);
	claimer_step(claimer);
}

/* What stays after a pass in vain is due, and in somebody else's hands. */
static void
on_rested(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;
	int64_t staying;
	usec_t next_in;

	if (!claimer_answered(claimer, err))
		return;
	next_in = read_next(claimer, rows[LANE_NEXT_ROWS]);
	staying = lane_rest_read(rows[LANE_REST_ROWS]);
	for (size_t i = 0; staying == 0 && i < claimer->nempty; i++)
		rota_remove(claimer->rota, claimer->empty[i]);
	claimer->nempty = 0;
	if (claimer->was_vain && staying > 0) {
		claimer->is_wanted = false;
		claimer_look(claimer, contended_wait(claimer));
	} else if (!claimer->is_wanted)
		claimer_look(claimer, idle_wait(claimer, next_in));
	claimer_step(claimer);
}

void
claimer_rest(struct claimer *claimer, struct pg_batch *batch)
{
	lane_rest(batch, claimer->empty, claimer->nempty);
	lane_next(batch, claimer->look_from);
	claimer_submit(claimer, batch, on_rested);
}

/*
 * A request at a rate is charged as if it began at the end of this time.  It
 * begins after the pass and perhaps two more answers; a database that is far
 * away, or slow, must not have it given back again and again.
 */
static usec_t
begin_within(const struct claimer *claimer)
{
	usec_t most = claimer->worker->conf->lease_margin / 2;
	usec_t wait = 4 * claimer->slowness;

	if (wait < WORKER_BEGIN_WITHIN)
		wait = WORKER_BEGIN_WITHIN;
	return wait < most ? wait : most;
}

static void
wake(const struct claimer *claimer, struct pg_batch *batch)
{
	const struct worker *worker = claimer->worker;

	lane_reclaim(batch, worker->name,
	    recorder_is_failing(worker->recorder) ? 0 : RECLAIMS,
	    worker->conf->lease_margin + worker->conf->statement_timeout,
	    claimer->look_from);
	lane_wake(batch, WAKES, claimer->look_from);
}

/* One pass, in one transaction: it holds nothing while an answer travels. */
void
claimer_pass(struct claimer *claimer, struct pg_batch *batch)
{
	const struct worker *worker = claimer->worker;
	int room = worker_room(worker);
	usec_t now = clock_now();
	bool sweeps = now >= claimer->swept_at + CLAIMER_SWEEP_EVERY;

	claimer->is_wanted = false;
	claimer->had_chore = false;
	claimer->wakes =
	    sweeps || now >= claimer->wakes_at || now >= claimer->due_at;
	if (now >= claimer->due_at)
		claimer->due_at = INT64_MAX;
	if (sweeps) {
		claimer->look_from = LANE_START;
		claimer->entered_from = LANE_START;
	}
	if (claimer->wakes)
		wake(claimer, batch);
	claimer_take(claimer, batch, room);
	claimer->room = room;
	lane_claim(batch, &(struct lane_claim_args){
			      .limit = room,
			      .worker = worker->name,
			      .margin = worker->conf->lease_margin,
			      .begin_within = begin_within(claimer),
			      .dice = dice_roll(),
			  });
	lane_next(batch, claimer->look_from);
	pg_commit(batch);
	lane_bodies(batch);
	claimer_submit(claimer, batch, on_passed);
}
