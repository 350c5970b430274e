/*
 * recorder: receipts to PostgreSQL, many to a commit.
 *
 *	       connected            loaded         something to keep
 *	DOWN -------------> LOADING ------> IDLE <------------------> SAVING
 *	 ^                     |                                        |
 *	 +---------------------+---------------- failed ----------------+
 *
 * What arrives while a commit is under way goes with the next one: no timer,
 * and no wait when idle.  The history is loaded from the database before the
 * first receipt, and again after every failure, since what was kept is then
 * in doubt; meanwhile nothing is taken.
 *
 * One recorder writes to a database: it numbers the requests itself.
 */

#ifndef RECEIVER_RECORDER_H
#define RECEIVER_RECORDER_H

#include <stdbool.h>

#include "receipt.h"

struct err;
struct event_base;
struct history;
struct recorder;

/* What the owner is told, from the loop. */
struct recorder_events {
	void (*ready)(void *arg); /* receipts are taken, at first or again */
	void (*down)(void *arg, const struct err *err); /* they are not */
};

struct recorder_conf {
	const char *conninfo; /* must outlive the recorder */
	struct history *history;
	struct recorder_events events;
	void *arg; /* of the events */
};

int recorder_open(struct recorder **out, struct event_base *loop,
    const struct recorder_conf *conf, struct err *err);

/* Close; no callback comes any more.  NULL is fine. */
void recorder_close(struct recorder *recorder);

bool recorder_is_ready(const struct recorder *recorder);

/*
 * Keep `receipt`, which must stay valid until `done`, and give it its id.  The
 * recorder is ready.  `done` is called once, from the loop, when it is
 * committed, its effect with it, or when that has failed.
 */
void recorder_keep(struct recorder *recorder, struct receipt *receipt,
    receipt_done_fn *done, void *arg);

/* Note that a receipt kept without a status has been answered now.  Best
 * effort: a failure of the database loses it. */
void recorder_answered(struct recorder *recorder, int64_t id, int status);

/* Forget all receipts, effects and history.  `done` as above.  ERR_RETRY if it
 * cannot be begun. */
int recorder_clear(struct recorder *recorder, receipt_done_fn *done, void *arg,
    struct err *err);

/* Call `done` from the loop when nothing is left to write, or cannot be. */
void recorder_drain(
    struct recorder *recorder, void (*done)(void *arg), void *arg);

#endif
