/*
 * hook: one webhook at an endpoint, from its request to its answer.
 *
 *	verify -> see in the history -> decide -> keep, committed -> act
 *
 * A request whose signature does not verify gets 401, is kept, and does
 * nothing else.  While receipts cannot be kept the answer is 503.
 */

#ifndef RECEIVER_HOOK_H
#define RECEIVER_HOOK_H

#include "base/clock.h"

struct err;
struct event_base;
struct history;
struct hooks;
struct recorder;
struct request;
struct secrets;

struct hooks_conf {
	struct history *history;
	struct recorder *recorder;
	struct secrets *secrets;
	usec_t tolerance; /* of a signature's timestamp */
};

int hooks_open(struct hooks **out, struct event_base *loop,
    const struct hooks_conf *conf, struct err *err);

/* Free all that is in hand; the requests' server and the recorder are closed
 * before.  NULL is fine. */
void hooks_close(struct hooks *hooks);

/* Take `request` over and answer it, or not, as its endpoint does. */
void hooks_take(struct hooks *hooks, struct request *request);

/* Hold up nothing any more: answer at once what is slow, hang up on what would
 * never be answered, end what is endless. */
void hooks_drain(struct hooks *hooks);

#endif
