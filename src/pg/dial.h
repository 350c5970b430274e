/*
 * dial: one try to connect.
 *
 * It either gives a connection or an error, once, and is freed by then.  A
 * server may have several addresses; libpq takes a new socket for each.
 */

#ifndef PG_DIAL_H
#define PG_DIAL_H

#include <libpq-fe.h>

#include "base/clock.h"

struct dial;
struct err;
struct event_base;

struct dial_to {
	const char *conninfo;
	const char *application;
	usec_t timeout; /* of each step, and of packets not acknowledged */
	PQnoticeReceiver notice; /* hears what else the server has to say */
	void *notice_arg;
};

/* `conn` is given, or else it is NULL and `err` says why. */
typedef void dial_done_fn(void *arg, PGconn *conn, const struct err *err);

/* Begin; `done` is called from the loop.  If it fails at once, -1. */
int dial_start(struct dial **out, struct event_base *loop,
    const struct dial_to *to, dial_done_fn *done, void *arg, struct err *err);

/* Stop; `done` is not called.  NULL is fine. */
void dial_cancel(struct dial *dial);

/*
 * The same in two parts: PQconnectStart(), which PQconnectPoll() and, should
 * that fail, error_of_dial() follow.  NULL with `*err` filled if it fails at
 * once; ERR_BROKEN if `conninfo` is no connection string.
 */
PGconn *dial_begin(const struct dial_to *to, struct err *err);

#endif
