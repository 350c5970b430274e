/*
 * conn_inside: a connection as its own files see it: conn_read.c makes requests
 * of what comes, conn_write.c sends answers, conn.c keeps the state.
 */

#ifndef HTTP_CONN_INSIDE_H
#define HTTP_CONN_INSIDE_H

#include "conn.h"

enum { KEEP_SIZE = 16384 }; /* of a buffer, from one request to the next */

/* The only way to write `state`. */
void conn_move(struct conn *conn, enum conn_state next);

/* Start the clock for a phase, unless it is running for it already: what a
 * client sends never moves a limit. */
void conn_limit(struct conn *conn, enum conn_limit limit);

/* Tell the server what it waits for. */
void conn_wait(struct conn *conn, enum crowd_wait wait);

/* Close the socket.  The request, if one is in hand, stays. */
void conn_drop(struct conn *conn);

/* Send no more, and throw away what still comes, for a while. */
void conn_linger(struct conn *conn);

/* The request is the program's to answer. */
void conn_hand_over(struct conn *conn);

/* Answer in the handler's stead, then close: where the next request would
 * begin is not known, or not to be trusted. */
void conn_refuse(struct conn *conn, int status, const char *detail);

/* The same for one whose turn it is not. */
void conn_turn_away(struct conn *conn, int status, const char *detail);

/* Tell the server how much memory the body has now. */
void conn_charge(struct conn *conn);

/* Start the clock that fits what has come of the next head. */
void conn_await_head(struct conn *conn);

/* One step in the state of that name.  True if another may follow. */
bool conn_step_head(struct conn *conn);
bool conn_step_body(struct conn *conn);
bool conn_step_write(struct conn *conn);

#endif
