#include <stdlib.h>

#include <event2/event.h>

#include "base/err.h"
#include "dispatch/chores.h"
#include "dispatch/tester.h"
#include "dispatch/worker.h"
#include "pg/pg.h"
#include "store/chore.h"
#include "store/replay.h"

enum { RESTS = 5 }; /* times as long as the step that went before */

/* What is announced is mostly work for a pass, which goes first. */
#define NOTICE_WAIT (5 * USEC_PER_MS)

/* Between looks in vain, and after an error. */
#define VAIN_WAIT (100 * USEC_PER_MS)
#define ERROR_WAIT USEC_PER_SEC

/* A dispatcher that starts has something better to do. */
#define START_WAIT (500 * USEC_PER_MS)

#define NEVER INT64_MAX

enum chore {
	CHORE_TEST,
	CHORE_CANCEL,
	CHORE_REPLAY,
	CHORE_PAYLOAD,
	CHORE_LOG,
	CHORE_TELL,
	CHORE_HISTORY,
	NCHORES,
};

/* Those whose work is announced when it is made. */
static const bool is_announced[NCHORES] = {
	[CHORE_TEST] = true,
	[CHORE_CANCEL] = true,
	[CHORE_REPLAY] = true,
};

struct chores {
	const struct worker_conf *conf;
	chores_due_fn *due;
	void *arg;
	struct tester *tester;
	struct event *timer;
	usec_t at[NCHORES]; /* when each is to be looked at */
	usec_t ended_at[NCHORES]; /* its last step */
	usec_t rests_until;
	enum chore current; /* whose step was put last */
	usec_t began_at;
};

static enum chore
first_due(const struct chores *chores)
{
	enum chore first = 0;

	for (enum chore i = 0; i < NCHORES; i++)
		if (chores->at[i] < chores->at[first])
			first = i;
	return first;
}

static usec_t
next_at(const struct chores *chores)
{
	usec_t at = chores->at[first_due(chores)];

	return at > chores->rests_until ? at : chores->rests_until;
}

static void
arm(struct chores *chores)
{
	struct timeval wait = clock_timeval(next_at(chores) - clock_now());

	/* Without memory for a timer the next pass brings the step. */
	(void)event_add(chores->timer, &wait);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct chores *chores = arg;

	(void)fd;
	(void)what;
	/* libevent rounds to milliseconds, and may come a little early. */
	if (chores_are_due(chores))
		chores->due(chores->arg);
	else
		arm(chores);
}

void
chores_start(struct chores *chores)
{
	usec_t at = clock_now() + START_WAIT;

	chores->at[CHORE_TEST] = at;
	chores->at[CHORE_CANCEL] = at;
	chores->at[CHORE_REPLAY] = at;
	chores->at[CHORE_TELL] = at;
	chores->at[CHORE_HISTORY] = at;
	if (chores->conf->retention_payload > 0)
		chores->at[CHORE_PAYLOAD] = at;
	if (chores->conf->retention_log > 0)
		chores->at[CHORE_LOG] = at;
	arm(chores);
}

bool
chores_are_due(const struct chores *chores)
{
	return next_at(chores) <= clock_now();
}

void
chores_put(struct chores *chores, struct pg_batch *batch)
{
	const struct worker_conf *conf = chores->conf;

	chores->current = first_due(chores);
	chores->began_at = clock_now();
	switch (chores->current) {
	case CHORE_TEST:
		tester_put(chores->tester, batch);
		break;
	case CHORE_CANCEL:
		chore_cancel(batch);
		break;
	case CHORE_REPLAY:
		replay_step(batch);
		break;
	case CHORE_PAYLOAD:
		chore_forget_payload(batch, conf->retention_payload);
		break;
	case CHORE_LOG:
		chore_forget_log(batch, conf->retention_log);
		break;
	case CHORE_TELL:
		chore_tell(batch, conf->backlog_old);
		break;
	case CHORE_HISTORY:
		chore_history(batch);
		break;
	case NCHORES:
		break;
	}
}

/* How long until the next look, after a step. */
static usec_t
wait_after(const struct chores *chores, const struct chore_step *step)
{
	usec_t poll = chores->conf->poll;
	usec_t wait =
	    step->next_in < 0 || step->next_in > poll ? poll : step->next_in;

	return step->did == 0 && wait < VAIN_WAIT ? VAIN_WAIT : wait;
}

static void
read_step(
    struct chores *chores, struct pg_rows *const *rows, struct chore_step *out)
{
	if (chores->current == CHORE_TEST) {
		tester_answered(chores->tester, rows, out);
		return;
	}
	while (rows[1] != NULL)
		rows++;
	chore_read(rows[0], out);
}

void
chores_answered(struct chores *chores, struct pg_rows *const *rows)
{
	usec_t now = clock_now();
	usec_t wait = ERROR_WAIT;
	struct chore_step step = { 0 };

	if (rows != NULL) {
		read_step(chores, rows, &step);
		wait = wait_after(chores, &step);
	}
	if (step.did > 0)
		chores->rests_until = now + RESTS * (now - chores->began_at);
	chores->at[chores->current] = now + wait;
	chores->ended_at[chores->current] = now;
	arm(chores);
}

void
chores_notice(struct chores *chores)
{
	usec_t soon = clock_now() + NOTICE_WAIT;

	if (chores->at[CHORE_CANCEL] == NEVER)
		return; /* not started yet */
	for (enum chore i = 0; i < NCHORES; i++) {
		usec_t at = chores->ended_at[i] + VAIN_WAIT;

		if (at < soon)
			at = soon;
		if (is_announced[i] && chores->at[i] > at)
			chores->at[i] = at;
	}
	arm(chores);
}

static void
on_test_due(void *arg)
{
	struct chores *chores = arg;

	chores->at[CHORE_TEST] = clock_now();
	arm(chores);
}

int
chores_open(struct chores **out, struct worker *worker, chores_due_fn *due,
    void *arg, struct err *err)
{
	const struct worker_conf *conf = worker->conf;
	struct chores *chores = calloc(1, sizeof(*chores));

	if (chores == NULL)
		return err_set(err, ERR_NOMEM, "chores");
	chores->conf = conf;
	chores->due = due;
	chores->arg = arg;
	for (enum chore i = 0; i < NCHORES; i++)
		chores->at[i] = NEVER;
	chores->timer = event_new(worker->loop, -1, 0, on_timer, chores);
	if (chores->timer == NULL) {
		(void)err_set(err, ERR_NOMEM, "chores");
		goto fail;
	}
	if (tester_open(&chores->tester, worker, on_test_due, chores, err) != 0)
		goto fail;
	*out = chores;
	return 0;

fail:
	chores_close(chores);
	return -1;
}

void
chores_close(struct chores *chores)
{
	if (chores == NULL)
		return;
	tester_close(chores->tester);
	if (chores->timer != NULL)
		event_free(chores->timer);
	free(chores);
}
