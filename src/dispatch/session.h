/*
 * session: a connection that is used only on a schema it knows, and that says
 * once when it goes and once when it is back.
 */

#ifndef DISPATCH_SESSION_H
#define DISPATCH_SESSION_H

#include <stdbool.h>

struct err;
struct pg;
struct session;
struct worker;

typedef void session_fn(void *arg);

/*
 * `purpose` goes into application_name.  `ready` is called each time that the
 * connection is there and its schema is known; with `notified`, it listens for
 * work.  A schema that is not known ends the program, with the reason.
 */
int session_open(struct session **out, struct worker *worker,
    const char *purpose, session_fn *ready, session_fn *notified, void *arg,
    struct err *err);
void session_close(struct session *session);

/* A batch can be submitted to session_pg(). */
bool session_is_ready(const struct session *session);
struct pg *session_pg(struct session *session);

/* A batch failed: log it, at most once a second. */
void session_trouble(struct session *session, const struct err *err);

#endif
