/*
 * session: a connection that is used only on a schema it knows, with the
 * settings that the statements were planned for.
 *
 * It comes again by itself when it is lost.  What no new try will mend, such as
 * a schema of another version or a key that is missing, is told once, with the
 * command that does.
 */

#ifndef STORE_SESSION_H
#define STORE_SESSION_H

#include <stdbool.h>

#include "pg/pg.h"

struct err;
struct event_base;
struct seal_ring;
struct session;

struct session_conf {
	const char *database; /* as libpq takes it */
	const char *role; /* to take on; "" for none */
	const char *application; /* "postrider-dispatch claim"; copied */
	const char *channel; /* to listen to; "" for none */
	/* Stored secrets must be sealed under keys of this ring when it comes
	 * for the first time; NULL: it is not asked. */
	const struct seal_ring *ring;
	usec_t statement_timeout;
};

/* Called from the loop. */
struct session_events {
	/* It can be used, for the first time or again. */
	void (*ready)(void *arg);
	/* It is away, and will be tried again; called for each try.  A batch
	 * in flight has had its `done`. */
	void (*down)(void *arg, const struct err *err);
	/* It will not come: the program cannot go on. */
	void (*failed)(void *arg, const struct err *err);
	/* As pg's; NULL without a channel. */
	void (*notified)(void *arg, bool has_text);
};

/* What `conf` points to must outlive the session, but for `application`. */
int session_open(struct session **out, struct event_base *loop,
    const struct session_conf *conf, const struct session_events *events,
    void *arg, struct err *err);

/* NULL is fine. */
void session_close(struct session *session);

/* Connected, and the schema is known; a batch may be in flight. */
bool session_is_up(const struct session *session);

/* It can take a batch now. */
bool session_is_ready(const struct session *session);

/* As pg_submit(). */
int session_submit(struct session *session, struct pg_batch *batch,
    pg_done_fn *done, void *arg, struct err *err);

#endif
