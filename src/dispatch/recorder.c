#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/claimer.h"
#include "dispatch/pace.h"
#include "dispatch/recorder_inside.h"
#include "dispatch/worker.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/session.h"

/* Between tries of a transaction that the database would not take now. */
#define AGAIN_AFTER (100 * USEC_PER_MS)

static void
schedule(struct recorder *recorder, usec_t wait)
{
	/* Nothing is lost if libevent has no memory: the next outcome tries
	 * again, and leases run out at the worst. */
	timer_within(&recorder->flush, wait);
}

static void
wait_first(struct recorder *recorder, struct attempt *attempt)
{
	TAILQ_INSERT_HEAD(&recorder->waiting, attempt, entry);
	recorder->nwaiting++;
}

void
recorder_add(struct recorder *recorder, struct attempt *attempt)
{
	assert(attempt->state == ATTEMPT_DONE);
	TAILQ_INSERT_TAIL(&recorder->waiting, attempt, entry);
	recorder->nwaiting++;
	if (!delivery_is_plain(&attempt->outcome))
		recorder_complicate(attempt);
	if (recorder->nin_hand == 0)
		schedule(recorder, recorder_is_urgent(recorder, attempt)
				       ? 0
				       : recorder_rest_left(recorder));
}

bool
recorder_is_busy(const struct recorder *recorder)
{
	return recorder->nin_hand > 0;
}

bool
recorder_is_failing(const struct recorder *recorder)
{
	return recorder->is_failing;
}

static void
log_attempt(
    const struct attempt *attempt, const char *message, const char *error)
{
	char delivery[24], number[16];

	(void)snprintf(
	    delivery, sizeof(delivery), "%" PRId64, attempt->lease.delivery_id);
	(void)snprintf(number, sizeof(number), "%d", attempt->lease.attempt);
	log_warn(message, "delivery", delivery, "attempt", number, "error",
	    error, NULL);
}

static void
settle_one(struct recorder *recorder, const struct delivery_recorded *recorded)
{
	struct attempt *done = recorder->in_hand[recorded->nth];

	done->is_recorded = true;
	if (!recorded->hands_back &&
	    (done->outcome.verdict.kind == VERDICT_RETRY ||
		done->outcome.verdict.kind == VERDICT_RELEASE))
		claimer_due(
		    recorder->worker->claimer, done->outcome.verdict.wait);
}

/* Done with one of a batch.  What delivery_taken() left as it was, since its lane
 * does not go on, may end there; else it is for delivery_record(). */
static void
let_go(struct recorder *recorder, struct attempt *done)
{
	if (!done->is_recorded && recorder->is_short) {
		if (!recorder->is_urgent)
			recorder_complicate(done);
		done->lease.goes_on = false;
		wait_first(recorder, done);
		return;
	}
	if (!done->is_recorded)
		log_attempt(
		    done, "outcome not recorded: the lease was lost", NULL);
	attempt_free(done);
}

/* Heads that came back are held before the old attempts are let go: a stop ends
 * with the last that is held. */
static void
settle(struct recorder *recorder, const struct pg_rows *rows,
    const struct pg_rows *bodies)
{
	struct delivery_recorded recorded;
	int n = pg_count(rows);
	int body = 0;

	for (int i = 0; i < n; i++) {
		delivery_record_read(rows, i, &recorded);
		assert(recorded.nth < recorder->nin_hand);
		settle_one(recorder, &recorded);
		/* The lane's next head is ours already: go on at once. */
		if (recorded.hands_back)
			claimer_begin(recorder->worker->claimer, &recorded.next,
			    bodies, body++, recorder->submitted_at);
	}
	while (recorder->nin_hand > 0)
		let_go(recorder, recorder->in_hand[--recorder->nin_hand]);
}

/* Put the batch back in front, in its order. */
static void
put_back(struct recorder *recorder)
{
	while (recorder->nin_hand > 0)
		wait_first(recorder, recorder->in_hand[--recorder->nin_hand]);
}

/*
 * PostgreSQL refuses what is in the batch.  Record each outcome alone, so that
 * one never fails its neighbours; then without the attempt's record, since a
 * delivery that was taken must not be sent again for want of one; and if even
 * that is refused, let its lease run out.
 */
static void
refused(struct recorder *recorder, const struct err *err)
{
	struct attempt *attempt = recorder->in_hand[0];

	if (recorder->nin_hand > 1 || recorder->is_short) {
		recorder->suspects = recorder->nin_hand;
		put_back(recorder);
	} else if (!attempt->outcome.is_bare) {
		log_attempt(
		    attempt, "the record of an attempt was refused", err->text);
		attempt->outcome.is_bare = true;
		recorder->suspects++;
		put_back(recorder);
	} else {
		log_attempt(attempt,
		    "an outcome cannot be recorded: its lease runs out",
		    err->text);
		recorder->nin_hand = 0;
		attempt_free(attempt);
	}
}

static void
settle_all(struct recorder *recorder, struct pg_rows *const *rows)
{
	const struct pg_rows *wakes;
	usec_t wake_in;

	if (recorder->is_short) {
		rows += !recorder->is_urgent;
		wakes = rows[DELIVERY_TAKEN_ROWS];
		settle(recorder, wakes, rows[DELIVERY_TAKEN_BODY_ROWS]);
	} else {
		wakes = rows[DELIVERY_WAKE_ROWS];
		settle(recorder, rows[DELIVERY_RECORD_ROWS],
		    rows[DELIVERY_BODY_ROWS]);
	}
	wake_in = delivery_wake_read(wakes);
	if (wake_in >= 0)
		claimer_due(recorder->worker->claimer, wake_in);
}

static void
on_recorded(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct recorder *recorder = arg;
	struct worker *worker = recorder->worker;
	usec_t now = clock_now(), wait = 0;

	recorder->is_failing = err != NULL;
	if (!recorder->is_urgent)
		recorder->rests_until =
		    now + pace_rest(now - recorder->submitted_at,
			      (int)recorder->nin_hand, (int)worker->conf->batch,
			      worker_room(worker));
	if (err == NULL) {
		settle_all(recorder, rows);
	} else if (err->code == ERR_REFUSED) {
		refused(recorder, err);
	} else {
		/* Also when the answer was lost: what had been committed is
		 * not ours any more, and is passed over. */
		outage_trouble(&recorder->outage, err);
		put_back(recorder);
		wait = AGAIN_AFTER;
	}
	if (!TAILQ_EMPTY(&recorder->waiting))
		schedule(recorder, wait);
	claimer_recorded(worker->claimer);
}

static void
flush(struct recorder *recorder)
{
	struct pg_batch *batch;
	struct err err;

	if (recorder->nin_hand > 0 || TAILQ_EMPTY(&recorder->waiting) ||
	    !session_is_ready(recorder->session))
		return;
	batch = pg_batch_new();
	if (batch == NULL) {
		schedule(recorder, AGAIN_AFTER);
		return;
	}
	if (!recorder_take(recorder)) {
		pg_batch_free(batch);
		schedule(recorder, recorder_rest_left(recorder));
		return;
	}
	recorder_put(recorder, batch);
	recorder->submitted_at = clock_now();
	if (session_submit(
		recorder->session, batch, on_recorded, recorder, &err) != 0) {
		put_back(recorder);
		schedule(recorder, AGAIN_AFTER);
	}
}

static void
on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	flush(arg);
}

static void
on_ready(void *arg)
{
	struct recorder *recorder = arg;

	outage_end(&recorder->outage);
	flush(recorder);
}

static void
on_down(void *arg, const struct err *err)
{
	struct recorder *recorder = arg;

	outage_begin(&recorder->outage, err);
}

static void
on_failed(void *arg, const struct err *err)
{
	struct recorder *recorder = arg;

	worker_fail(recorder->worker, err);
}

int
recorder_open(struct recorder **out, struct worker *worker, struct err *err)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (recorder == NULL)
		return err_set(err, ERR_NOMEM, "recorder");
	recorder->worker = worker;
	recorder->outage.purpose = "record";
	TAILQ_INIT(&recorder->waiting);
	recorder->in_hand =
	    calloc((size_t)worker->conf->batch, sizeof(struct attempt *));
	recorder->outcomes = calloc(
	    (size_t)worker->conf->batch, sizeof(struct delivery_outcome *));
	if (recorder->in_hand == NULL || recorder->outcomes == NULL ||
	    timer_open(&recorder->flush, worker->loop, on_flush, recorder) !=
		0) {
		(void)err_set(err, ERR_NOMEM, "recorder");
		goto fail;
	}
	if (session_open(&recorder->session, worker->loop,
		&(struct session_conf){
		    .database = worker->conf->database,
		    .role = worker->conf->database_role,
		    .application = "postrider-dispatch record",
		    .channel = "",
		    .statement_timeout = worker->conf->statement_timeout,
		},
		&(struct session_events){
		    .ready = on_ready,
		    .down = on_down,
		    .failed = on_failed,
		},
		recorder, err) != 0)
		goto fail;
	*out = recorder;
	return 0;

fail:
	recorder_close(recorder);
	return -1;
}

void
recorder_close(struct recorder *recorder)
{
	struct attempt *attempt;

	if (recorder == NULL)
		return;
	session_close(recorder->session);
	if (recorder->in_hand != NULL)
		put_back(recorder);
	while ((attempt = TAILQ_FIRST(&recorder->waiting)) != NULL) {
		TAILQ_REMOVE(&recorder->waiting, attempt, entry);
		attempt_free(attempt);
	}
	timer_close(&recorder->flush);
	free(recorder->in_hand);
	free(recorder->outcomes);
	free(recorder);
}
