/* session: a connection with every statement prepared, on the right schema. */

#ifndef CLI_SESSION_H
#define CLI_SESSION_H

struct err;
struct event_base;
struct pg;
struct settings;

struct session {
	struct event_base *loop;
	struct pg *pg;
};

/* Connect and check that the schema is ours.  Call session_close() in either
 * case. */
int session_open(
    struct session *session, const struct settings *settings, struct err *err);
void session_close(struct session *session);

#endif
