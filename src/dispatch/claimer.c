#include <stdbool.h>
#include <stdlib.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/log.h"
#include "base/notify.h"
#include "dispatch/chores.h"
#include "dispatch/claimer_inside.h"
#include "dispatch/pace.h"
#include "dispatch/worker.h"
#include "store/rota.h"
#include "store/session.h"

void
claimer_look(struct claimer *claimer, usec_t wait)
{
	/* Without memory for a timer the next answer looks again. */
	timer_within(&claimer->timer, wait);
}

void
claimer_due(struct claimer *claimer, usec_t wait)
{
	usec_t at = clock_now() + wait;

	if (at < claimer->due_at)
		claimer->due_at = at;
	claimer_look(claimer, wait);
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

/* True if there is nothing else to do than a pass that has to wait. */
static bool
rests(struct claimer *claimer)
{
	const struct worker *worker = claimer->worker;
	usec_t wait = claimer->rests_until - clock_now();

	if (wait <= 0 ||
	    worker_room(worker) >= pace_enough(worker_room_max(worker)) ||
	    !TAILQ_EMPTY(&claimer->waiting) || claimer->nempty > 0 ||
	    has_chore(claimer))
		return false;
	claimer_look(claimer, wait);
	return true;
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
	if (!session_is_ready(claimer->session) || !has_step(claimer) ||
	    rests(claimer))
		return;
	batch = pg_batch_new();
	if (batch == NULL) {
		claimer_look(claimer, CLAIMER_AGAIN_AFTER);
		return;
	}
	if (!TAILQ_EMPTY(&claimer->waiting))
		claimer_load(claimer, batch);
	else if (claimer->nempty > 0)
		claimer_rest(claimer, batch);
	else if (has_chore(claimer)) {
		claimer->had_chore = true;
		chores_put(claimer->chores, batch);
		claimer_submit(claimer, batch, on_chore);
	} else if (!claimer->knows_any) {
		claimer->is_wanted = false;
		lane_any(batch);
		claimer_submit(claimer, batch, on_any);
	} else
		claimer_pass(claimer, batch);
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
	/* What was known may be gone. */
	claimer->swept_at = -CLAIMER_SWEEP_EVERY;
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
	claimer->contended = CLAIMER_CONTENDED_WAIT;
	claimer->turns = CLAIMER_TURNS;
	claimer->due_at = INT64_MAX;
	claimer->swept_at = -CLAIMER_SWEEP_EVERY;
	TAILQ_INIT(&claimer->waiting);
	if (rota_new(&claimer->rota, err) != 0)
		goto fail;
	if (timer_open(&claimer->timer, worker->loop, on_timer, claimer) != 0) {
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
	timer_close(&claimer->timer);
	free(claimer);
}
