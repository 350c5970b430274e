/*
 * receipts: what was received, told over HTTP.
 *
 *	GET /receipts                          counts, for each path
 *	GET /receipts?path=P&events=1          the events of one path, in order
 *	    [&after=CURSOR][&limit=N]
 *	GET /receipts/body?path=P&event_id=E   the first request's body, as it came
 *	DELETE /receipts                       forget everything
 */

#ifndef RECEIVER_RECEIPTS_H
#define RECEIVER_RECEIPTS_H

struct err;
struct event_base;
struct receipts;
struct recorder;
struct request;

/* It reads through a connection of its own.  `conninfo` is kept, not copied. */
int receipts_open(struct receipts **out, struct event_base *loop,
    const char *conninfo, struct recorder *recorder, struct err *err);

/* The requests in hand are not answered any more.  NULL is fine. */
void receipts_close(struct receipts *receipts);

/* Take over and answer a request whose path begins with /receipts. */
void receipts_take(struct receipts *receipts, struct request *request);

#endif
