/* message: the headers of one signed request. */

#ifndef DISPATCH_MESSAGE_H
#define DISPATCH_MESSAGE_H

#include "base/buf.h"
#include "base/clock.h"
#include "core/header.h"

struct endpoint;
struct lane_lease;

/* Ours, the NULL behind them, and those of the subscription. */
enum { MESSAGE_HEADERS = 12 + HEADER_COUNT_MAX };

/* The text holds secrets: it is wiped. */
struct message {
	const char
	    *headers[MESSAGE_HEADERS]; /* ended by NULL; lend from text */
	struct buf text;
};

/*
 * Write the headers for sending `lease` to `endpoint`, signed for the time
 * `wall` with each secret and each key that is valid at `now`, and those that
 * the subscription adds.  What is no delivery, but a test, has the id 0 and no
 * position.  0, or -1 if memory or OpenSSL fails, or if no secret
 * is valid: nothing is sent unsigned.  Free with message_fini() in either case.
 */
int message_write(struct message *out, struct endpoint *endpoint,
    const struct lane_lease *lease, usec_t wall, usec_t now);

void message_fini(struct message *message);

#endif
