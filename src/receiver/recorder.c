#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "history.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "recorder.h"
#include "rows.h"
#include "stmt.h"

enum { BATCH_MAX = 1000 };

#define DEADLINE (30 * USEC_PER_SEC)
#define RECONNECT_MIN (50 * USEC_PER_MS)
#define RECONNECT_MAX (2 * USEC_PER_SEC)
#define LOAD_AGAIN USEC_PER_SEC

enum state { DOWN, LOADING, IDLE, SAVING, CLEARING, NSTATES };

#define BIT(s) (1u << (s))

/* From each state, the states it may move to. */
static const unsigned allowed[NSTATES] = {
	[DOWN] = BIT(LOADING) | BIT(DOWN),
	[LOADING] = BIT(IDLE) | BIT(DOWN),
	[IDLE] = BIT(SAVING) | BIT(CLEARING) | BIT(DOWN),
	[SAVING] = BIT(IDLE) | BIT(DOWN),
	[CLEARING] = BIT(IDLE) | BIT(DOWN),
};

struct recorder {
	enum state state;
	struct pg *pg;
	struct history *history;
	struct recorder_events events;
	void *arg;
	struct event *turn; /* looks for work once a turn of the loop */

	int64_t next_id;
	struct receipts_queue waiting;
	struct receipts_queue saving;
	struct buf answers; /* struct rows_answer, one after another */

	receipt_done_fn *clear_done; /* NULL: nothing to clear */
	void *clear_arg;
	void (*drained)(void *arg);
	void *drained_arg;
};

/* A setting that a plan made for arrays of any length needs: one that looks
 * each id up, however large the table. */
static const struct pg_setting settings[] = {
	{ "enable_hashjoin", "off" },
	{ "enable_mergejoin", "off" },
	{ NULL, NULL },
};

/* The only place `state` is written. */
static void
move(struct recorder *recorder, enum state next)
{
	assert(allowed[recorder->state] & BIT(next));
	recorder->state = next;
}

/* What arrives in one turn of the loop goes into one batch. */
static void
look_again(struct recorder *recorder)
{
	event_active(recorder->turn, EV_TIMEOUT, 0);
}

static void
tell_clear(struct recorder *recorder, const struct err *err)
{
	receipt_done_fn *done = recorder->clear_done;

	recorder->clear_done = NULL;
	if (done != NULL)
		done(recorder->clear_arg, err);
}

static void
tell_all(struct receipts_queue *queue, const struct err *err)
{
	struct receipt *receipt;

	while ((receipt = TAILQ_FIRST(queue)) != NULL) {
		TAILQ_REMOVE(queue, receipt, entry);
		receipt->done(receipt->arg, err);
	}
}

/* What was kept is in doubt, and with it what those that wait were told of the
 * history: all are told to come again. */
static void
fail(struct recorder *recorder, const struct err *err)
{
	bool was_up = recorder->state != DOWN;

	move(recorder, DOWN);
	buf_clear(&recorder->answers);
	if (was_up)
		recorder->events.down(recorder->arg, err);
	tell_all(&recorder->saving, err);
	tell_all(&recorder->waiting, err);
	tell_clear(recorder, err);
	look_again(recorder);
}

static void
become_idle(struct recorder *recorder)
{
	move(recorder, IDLE);
	look_again(recorder);
}

static int
load_rows(
    struct recorder *recorder, struct pg_rows *const *rows, struct err *err)
{
	history_forget(recorder->history);
	recorder->next_id = pg_get_bigint(rows[0], 0, pg_column(rows[0], "id"));
	if (rows_load_events(recorder->history, rows[1], err) != 0)
		return -1;
	return rows_load_lanes(recorder->history, rows[2], err);
}

static void
on_loaded(void *arg, struct pg_rows *const *rows, const struct err *why)
{
	struct recorder *recorder = arg;
	struct timeval wait = clock_timeval(LOAD_AGAIN);
	struct err err;

	if (why != NULL)
		err = *why;
	if (why == NULL && load_rows(recorder, rows, &err) == 0) {
		become_idle(recorder);
		recorder->events.ready(recorder->arg);
		return;
	}
	move(recorder, DOWN);
	recorder->events.down(recorder->arg, &err);
	event_add(recorder->turn, &wait);
}

static void
load(struct recorder *recorder)
{
	struct pg_batch *batch = pg_batch_new();
	struct timeval wait = clock_timeval(LOAD_AGAIN);
	struct err err;

	if (batch != NULL) {
		pg_call(batch, STMT_HISTORY_NEXT);
		pg_call(batch, STMT_HISTORY_EVENTS);
		pg_call(batch, STMT_HISTORY_LANES);
	}
	if (pg_submit(recorder->pg, batch, on_loaded, recorder, &err) == 0)
		move(recorder, LOADING);
	else
		event_add(recorder->turn, &wait);
}

static void
on_saved(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct recorder *recorder = arg;

	(void)rows;
	if (err != NULL) {
		fail(recorder, err);
		return;
	}
	become_idle(recorder);
	tell_all(&recorder->saving, NULL);
}

static void
take_batch(struct recorder *recorder)
{
	struct receipt *receipt;

	for (int i = 0; i < BATCH_MAX; i++) {
		receipt = TAILQ_FIRST(&recorder->waiting);
		if (receipt == NULL)
			return;
		TAILQ_REMOVE(&recorder->waiting, receipt, entry);
		TAILQ_INSERT_TAIL(&recorder->saving, receipt, entry);
	}
}

static void
save(struct recorder *recorder)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	take_batch(recorder);
	if (batch != NULL) {
		rows_insert(batch, &recorder->saving);
		rows_answer(batch, &recorder->answers);
	}
	move(recorder, SAVING);
	if (pg_submit(recorder->pg, batch, on_saved, recorder, &err) != 0)
		fail(recorder, &err);
	else
		buf_clear(&recorder->answers);
}

static void
on_cleared(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct recorder *recorder = arg;

	(void)rows;
	if (err != NULL) {
		fail(recorder, err);
		return;
	}
	history_forget(recorder->history);
	become_idle(recorder);
	tell_clear(recorder, NULL);
}

static void
clear(struct recorder *recorder)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch != NULL)
		pg_call(batch, STMT_REQUEST_CLEAR);
	move(recorder, CLEARING);
	if (pg_submit(recorder->pg, batch, on_cleared, recorder, &err) != 0)
		fail(recorder, &err);
}

static void
tell_drained(struct recorder *recorder)
{
	void (*drained)(void *arg) = recorder->drained;

	recorder->drained = NULL;
	if (drained != NULL)
		drained(recorder->drained_arg);
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct recorder *recorder = arg;

	(void)fd;
	(void)what;
	if (recorder->state == IDLE && recorder->clear_done != NULL)
		clear(recorder);
	else if (recorder->state == IDLE && (!TAILQ_EMPTY(&recorder->waiting) ||
						recorder->answers.len > 0))
		save(recorder);
	else if (recorder->state == IDLE || recorder->state == DOWN)
		tell_drained(recorder);
	if (recorder->state == DOWN && pg_is_ready(recorder->pg))
		load(recorder);
}

static void
on_connected(void *arg)
{
	look_again(arg);
}

static void
on_down(void *arg, const struct err *err)
{
	struct recorder *recorder = arg;

	/* A batch in flight has told us already. */
	if (recorder->state == IDLE)
		fail(recorder, err);
	else
		recorder->events.down(recorder->arg, err);
}

int
recorder_open(struct recorder **out, struct event_base *loop,
    const struct recorder_conf *conf, struct err *err)
{
	const struct pg_conf pg_conf = {
		.conninfo = conf->conninfo,
		.application = "postrider-receiver",
		.role = "",
		.channel = "",
		.statements = stmt_table,
		.settings = settings,
		.statement_timeout = DEADLINE,
		.reconnect_min = RECONNECT_MIN,
		.reconnect_max = RECONNECT_MAX,
	};
	const struct pg_events events = { .ready = on_connected,
		.down = on_down };
	struct recorder *recorder = calloc(1, sizeof(*recorder));

	if (recorder == NULL)
		return err_set(err, ERR_NOMEM, "recorder");
	recorder->history = conf->history;
	recorder->events = conf->events;
	recorder->arg = conf->arg;
	TAILQ_INIT(&recorder->waiting);
	TAILQ_INIT(&recorder->saving);
	recorder->turn = evtimer_new(loop, on_turn, recorder);
	if (recorder->turn == NULL) {
		(void)err_set(err, ERR_NOMEM, "recorder");
		goto fail;
	}
	if (pg_open(&recorder->pg, loop, &pg_conf, &events, recorder, err) != 0)
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
	if (recorder == NULL)
		return;
	pg_close(recorder->pg);
	if (recorder->turn != NULL)
		event_free(recorder->turn);
	buf_fini(&recorder->answers);
	free(recorder);
}

bool
recorder_is_ready(const struct recorder *recorder)
{
	return recorder->state != DOWN && recorder->state != LOADING;
}

void
recorder_keep(struct recorder *recorder, struct receipt *receipt,
    receipt_done_fn *done, void *arg)
{
	assert(recorder_is_ready(recorder));
	receipt->id = recorder->next_id++;
	receipt->done = done;
	receipt->arg = arg;
	TAILQ_INSERT_TAIL(&recorder->waiting, receipt, entry);
	look_again(recorder);
}

void
recorder_answered(struct recorder *recorder, int64_t id, int status)
{
	const struct rows_answer answer = {
		.id = id,
		.status = status,
		.answered_at = clock_wall(),
	};

	if (!recorder_is_ready(recorder))
		return;
	buf_add(&recorder->answers, &answer, sizeof(answer));
	look_again(recorder);
}

int
recorder_clear(struct recorder *recorder, receipt_done_fn *done, void *arg,
    struct err *err)
{
	if (!recorder_is_ready(recorder) || recorder->clear_done != NULL)
		return err_set(
		    err, ERR_RETRY, "receipts cannot be cleared now");
	recorder->clear_done = done;
	recorder->clear_arg = arg;
	look_again(recorder);
	return 0;
}

void
recorder_drain(struct recorder *recorder, void (*done)(void *arg), void *arg)
{
	recorder->drained = done;
	recorder->drained_arg = arg;
	look_again(recorder);
}
