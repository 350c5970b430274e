/*
 * session: a connection that is used only on a schema that it knows.
 *
 * It comes again by itself.  A schema that is not known ends the program, with
 * the reason and the command that mends it.
 */

#ifndef INGEST_SESSION_H
#define INGEST_SESSION_H

#include <stdbool.h>

#include "pg/pg.h"

struct err;
struct ingest;
struct session;

/* Called from the loop: it can be used from now on; it is gone, and the batch
 * that was in flight has had its `done`. */
struct session_events {
	void (*ready)(void *arg);
	void (*down)(void *arg);
};

/* `purpose` goes into application_name. */
int session_open(struct session **out, struct ingest *ingest,
    const char *purpose, const struct session_events *events, void *arg,
    struct err *err);

/* NULL is fine. */
void session_close(struct session *session);

/* True if it can take a batch, now or after the one in flight. */
bool session_is_up(const struct session *session);

/* As pg_submit(). */
int session_submit(struct session *session, struct pg_batch *batch,
    pg_done_fn *done, void *arg, struct err *err);

#endif
