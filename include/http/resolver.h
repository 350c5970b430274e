/*
 * resolver: names to addresses, on the loop, in bounded time.
 *
 * Asks for A and AAAA at once, over libevent's evdns: no thread, no blocking
 * call.  The hosts file comes first, as it does in the system's resolver;
 * search domains are never tried.  Nothing is cached.  An answer that does not
 * fit a datagram of 512 octets fails: there is no fallback to TCP.
 */

#ifndef HTTP_RESOLVER_H
#define HTTP_RESOLVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"

struct err;
struct event_base;
struct lookup;
struct resolver;

enum { RESOLVER_ANSWERS_MAX = 32 }; /* of both families; others are dropped */

union resolver_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

enum lookup_end {
	LOOKUP_FOUND, /* at least one address */
	LOOKUP_FAILED, /* no such name, or no name server could say */
	LOOKUP_TIMED_OUT, /* no answer in time */
};

struct lookup_result {
	enum lookup_end end;
	size_t count;
	union resolver_address addresses[RESOLVER_ANSWERS_MAX]; /* port 0 */
	const char *reason; /* a constant for people; "" when found */
};

/* Called exactly once, from the loop, never from resolver_start(). */
typedef void lookup_done_fn(void *arg, const struct lookup_result *result);

/*
 * `nameserver` is "address:port", or "" for those of the system, which are
 * read once, here.
 */
int resolver_open(struct resolver **out, struct event_base *loop,
    const char *nameserver, struct err *err);

/*
 * Cancel what is in flight and free.  evdns lets go of cancelled lookups in
 * the loop's next turn: one that runs no more leaks them.  NULL is fine.
 */
void resolver_close(struct resolver *resolver);

/* Begin to look up `name`, which is copied, for at most `timeout`. */
int resolver_start(struct lookup **out, struct resolver *resolver,
    const char *name, usec_t timeout, lookup_done_fn *done, void *arg,
    struct err *err);

/* Stop: `done` is not called. */
void lookup_cancel(struct lookup *lookup);

#endif
