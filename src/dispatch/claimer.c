#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/log.h"
#include "base/notify.h"
#include "dispatch/chores.h"
#include "dispatch/claimer_inside.h"
#include "dispatch/dice.h"
#include "dispatch/recorder.h"
#include "dispatch/worker.h"
#include "pg/row.h"
#include "store/rota.h"
#include "store/session.h"

enum {
	RECLAIMS = 200, /* leases taken over in one pass */
	WAKES = 1000, /* turns woken in one pass */
};

/* The answers of a pass. */
enum {
	PASS_RECLAIM,
	PASS_WAKE,
	PASS_TAKE,
	PASS_CLAIM,
	PASS_NEXT,
	PASS_BODIES,
};

/* There is work, but somebody else holds it: its turn, its lane or its lease.
 * The wait doubles from the first to the second. */
#define CONTENDED_WAIT (5 * USEC_PER_MS)
#define CONTENDED_WAIT_MAX (160 * USEC_PER_MS)

/* Between passes that look from the start, for what others had in hand. */
#define SWEEP_EVERY (10 * USEC_PER_SEC)

void
claimer_look(struct claimer *claimer, usec_t wait)
{
	struct timeval tv = clock_timeval(wait);
	usec_t at = clock_now() + wait;

	if (event_pending(claimer->timer, EV_TIMEOUT, NULL) &&
	    claimer->look_at <= at)
		return;
	claimer->look_at = at;
	/* Without memory for a timer the next answer looks again. */
	(void)event_add(claimer->timer, &tv);
}

void
claimer_submit(
    struct claimer *claimer, struct pg_batch *batch, pg_done_fn *done)
{
	struct err err;

	claimer->asked_at = clock_now();
	if (session_submit(claimer->session, batch, done, claimer, &err) == 0) {
		claimer->is_busy = true;
		return;
	}
	outage_trouble(&claimer->outage, &err);
	claimer_look(claimer, CLAIMER_AGAIN_AFTER);
}

bool
claimer_answered(struct claimer *claimer, const struct err *err)
{
	usec_t took = clock_now() - claimer->asked_at;

	claimer->is_busy = false;
	claimer->slowness -= claimer->slowness / 8;
	if (took > claimer->slowness)
		claimer->slowness = took;
	if (err == NULL)
		return true;
	claimer->nempty = 0;
	outage_trouble(&claimer->outage, err);
	claimer_look(claimer, CLAIMER_AGAIN_AFTER);
	return false;
}

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
on_any(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;

	if (!claimer_answered(claimer, err))
		return;
	claimer->knows_any = lane_any_read(rows[0]);
	if (claimer->knows_any)
		chores_start(claimer->chores);
	claimer->is_wanted |= claimer->knows_any;
	claimer_step(claimer);
}

static void
begin_attempts(struct claimer *claimer, const struct pg_rows *rows,
    const struct pg_rows *bodies)
{
	struct lane_lease lease;
	struct attempt *attempt;
	struct err err;
	int n = pg_count(rows);

	claimer->was_vain = n == 0;
	if (n > 0)
		claimer->contended = CONTENDED_WAIT;
	for (int i = 0; i < n; i++) {
		lane_claim_read(rows, i, &lease);
		lane_body_read(bodies, i, &lease);
		claimer_strike(claimer, lease.subscription_id);
		if (attempt_new(&attempt, claimer->worker, &lease,
			claimer->asked_at, &err) != 0)
			log_error(
			    "a lease was dropped", "error", err.text, NULL);
		else
			claimer_start(claimer, attempt);
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
	claimer->contended = CONTENDED_WAIT;
	return next_in > 0 && next_in < poll ? next_in : poll;
}

/* Another pass at once would find something to do, or somebody to put to rest. */
static bool
has_more(const struct claimer *claimer, struct pg_rows *const *rows)
{
	if (lane_claim_has_more(rows[PASS_CLAIM]) ||
	    pg_count(rows[PASS_RECLAIM]) == RECLAIMS)
		return true;
	return rota_count(claimer->rota) > claimer->nturns &&
	       (claimer->nempty > 0 || pg_count(rows[PASS_CLAIM]) > 0);
}

static void
on_passed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;
	usec_t next_in;

	if (!claimer_answered(claimer, err))
		return;
	if (claimer->look_from == LANE_START)
		claimer->swept_at = claimer->asked_at;
	claimer->look_from = lane_wake_read(rows[PASS_WAKE]);
	next_in = lane_next_read(rows[PASS_NEXT]);
	claimer_taken(claimer, rows[PASS_TAKE]);
	if (has_more(claimer, rows))
		claimer->is_wanted = true;
	else
		claimer_look(claimer, idle_wait(claimer, next_in));
	take_over(claimer, rows[PASS_RECLAIM]);
	begin_attempts(claimer, rows[PASS_CLAIM], rows[PASS_BODIES]);
	claimer_step(claimer);
}

/* What stays after a pass in vain is due, and in somebody else's hands. */
static void
on_rested(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;
	int64_t staying;

	if (!claimer_answered(claimer, err))
		return;
	staying = lane_rest_read(rows[LANE_REST_ROWS]);
	for (size_t i = 0; staying == 0 && i < claimer->nempty; i++)
		rota_remove(claimer->rota, claimer->empty[i]);
	claimer->nempty = 0;
	if (claimer->was_vain && staying > 0) {
		claimer->is_wanted = false;
		claimer_look(claimer, contended_wait(claimer));
	} else if (!claimer->is_wanted)
		claimer_look(claimer,
		    idle_wait(claimer, lane_next_read(rows[LANE_NEXT_ROWS])));
	claimer_step(claimer);
}

static void
rest(struct claimer *claimer, struct pg_batch *batch)
{
	pg_begin(batch);
	lane_rest(batch, claimer->empty, claimer->nempty);
	lane_next(batch, claimer->look_from);
	pg_commit(batch);
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

/* One pass, in one transaction: it holds nothing while an answer travels. */
static void
pass(struct claimer *claimer, struct pg_batch *batch)
{
	const struct worker *worker = claimer->worker;
	int room = worker_room(worker);

	claimer->is_wanted = false;
	claimer->had_chore = false;
	if (clock_now() >= claimer->swept_at + SWEEP_EVERY) {
		claimer->look_from = LANE_START;
		claimer->entered_from = LANE_START;
	}
	pg_begin(batch);
	lane_reclaim(batch, worker->name,
	    recorder_is_failing(worker->recorder) ? 0 : RECLAIMS,
	    worker->conf->lease_margin + worker->conf->statement_timeout,
	    claimer->look_from);
	lane_wake(batch, WAKES, claimer->look_from);
	claimer_take(claimer, batch, room);
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

static void
on_chore(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct claimer *claimer = arg;

	chores_answered(claimer->chores, rows);
	if (claimer_answered(claimer, err))
		claimer_step(claimer);
}

static void
on_chore_due(void *arg)
{
	claimer_step(arg);
}

static bool
has_pass(const struct claimer *claimer)
{
	return claimer->is_wanted && worker_room(claimer->worker) > 0;
}

/* One between two passes: what has just come does not wait for several. */
static bool
has_chore(const struct claimer *claimer)
{
	return chores_are_due(claimer->chores) &&
	       !(claimer->had_chore && has_pass(claimer));
}

static bool
has_step(const struct claimer *claimer)
{
	return !TAILQ_EMPTY(&claimer->waiting) || claimer->nempty > 0 ||
	       has_chore(claimer) || has_pass(claimer);
}

void
claimer_step(struct claimer *claimer)
{
	struct pg_batch *batch;

	if (claimer->is_busy)
		return;
	if (claimer->worker->stopping) {
		worker_freed(claimer->worker);
		return;
	}
	if (!session_is_ready(claimer->session) || !has_step(claimer))
		return;
	batch = pg_batch_new();
	if (batch == NULL) {
		claimer_look(claimer, CLAIMER_AGAIN_AFTER);
		return;
	}
	if (!TAILQ_EMPTY(&claimer->waiting))
		claimer_load(claimer, batch);
	else if (claimer->nempty > 0)
		rest(claimer, batch);
	else if (has_chore(claimer)) {
		claimer->had_chore = true;
		chores_put(claimer->chores, batch);
		claimer_submit(claimer, batch, on_chore);
	} else if (!claimer->knows_any) {
		claimer->is_wanted = false;
		lane_any(batch);
		claimer_submit(claimer, batch, on_any);
	} else
		pass(claimer, batch);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct claimer *claimer = arg;

	(void)fd;
	(void)what;
	claimer->is_wanted = true;
	claimer_step(claimer);
}

static void
on_down(void *arg, const struct err *err)
{
	struct claimer *claimer = arg;

	outage_begin(&claimer->outage, err);
}

static void
on_failed(void *arg, const struct err *err)
{
	struct claimer *claimer = arg;

	worker_fail(claimer->worker, err);
}

static void
on_ready(void *arg)
{
	struct claimer *claimer = arg;

	outage_end(&claimer->outage);
	claimer->is_wanted = true;
	if (!claimer->is_ready_said) {
		claimer->is_ready_said = true;
		notify_send("READY=1\nSTATUS=listening for work");
		log_info("ready", "worker", claimer->worker->name, NULL);
	}
	claimer_step(claimer);
}

static void
on_notified(void *arg, bool has_chore)
{
	struct claimer *claimer = arg;

	claimer->is_wanted = true;
	if (has_chore)
		chores_notice(claimer->chores);
	claimer_step(claimer);
}

void
claimer_recorded(struct claimer *claimer)
{
	if (rota_count(claimer->rota) > 0)
		claimer_look(claimer, 0);
}

void
claimer_room(struct claimer *claimer)
{
	if (claimer->is_wanted)
		claimer_look(claimer, 0);
}

void
claimer_stop(struct claimer *claimer)
{
	claimer_start_waiting(claimer);
	claimer_step(claimer);
}

bool
claimer_is_idle(const struct claimer *claimer)
{
	return !claimer->is_busy;
}

int
claimer_open(struct claimer **out, struct worker *worker, struct err *err)
{
	struct claimer *claimer = calloc(1, sizeof(*claimer));

	if (claimer == NULL)
		return err_set(err, ERR_NOMEM, "claimer");
	claimer->worker = worker;
	claimer->outage.purpose = "claim";
	claimer->contended = CONTENDED_WAIT;
	claimer->swept_at = -SWEEP_EVERY;
	TAILQ_INIT(&claimer->waiting);
	if (rota_new(&claimer->rota, err) != 0)
		goto fail;
	claimer->timer = event_new(worker->loop, -1, 0, on_timer, claimer);
	if (claimer->timer == NULL ||
	    event_priority_set(claimer->timer, 0) != 0) {
		(void)err_set(err, ERR_NOMEM, "claimer");
		goto fail;
	}
	if (chores_open(&claimer->chores, worker, on_chore_due, claimer, err) !=
	    0)
		goto fail;
	if (session_open(&claimer->session, worker->loop,
		&(struct session_conf){
		    .database = worker->conf->database,
		    .role = worker->conf->database_role,
		    .application = "postrider-dispatch claim",
		    .channel = "postrider_work",
		    .ring = &worker->ring,
		    .statement_timeout = worker->conf->statement_timeout,
		},
		&(struct session_events){
		    .ready = on_ready,
		    .down = on_down,
		    .failed = on_failed,
		    .notified = on_notified,
		},
		claimer, err) != 0)
		goto fail;
	*out = claimer;
	return 0;

fail:
	claimer_close(claimer);
	return -1;
}

void
claimer_close(struct claimer *claimer)
{
	struct attempt *attempt;

	if (claimer == NULL)
		return;
	session_close(claimer->session);
	while ((attempt = TAILQ_FIRST(&claimer->waiting)) != NULL) {
		TAILQ_REMOVE(&claimer->waiting, attempt, entry);
		attempt_free(attempt);
	}
	chores_close(claimer->chores);
	rota_free(claimer->rota);
	if (claimer->timer != NULL)
		event_free(claimer->timer);
	free(claimer);
}
