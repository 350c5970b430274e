/*
 * resolver: names to addresses, on the loop, in bounded time.
 *
 * Asks for A and AAAA at once, by c-ares: no thread, and nothing that waits but
 * for a disk.  What fits no datagram is asked for over TCP.  The hosts file
 * comes first, as it does in the system's resolver; search domains are never
 * tried.  Nothing is cached.  A changed hosts file or resolv.conf counts within
 * a second.
 *
 * Once one family has an answer the other is waited for half a second more, so
 * one that is dead costs no more than that.  A name server is asked four times,
 * waiting longer each time; one that is down is soon asked last.
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
	LOOKUP_FAILED, /* no such name, or the name servers could not say */
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
 * `nameserver` is "address:port", several of them separated by commas, or ""
 * for those of the system.  It outlives the resolver.  ERR_REFUSED if it is
 * none of these.
 */
int resolver_open(struct resolver **out, struct event_base *loop,
    const char *nameserver, struct err *err);

/* Cancel what is in flight and free.  NULL is fine. */
void resolver_close(struct resolver *resolver);

/* Begin to look up `name`, which is copied, for at most `timeout`. */
int resolver_start(struct lookup **out, struct resolver *resolver,
    const char *name, usec_t timeout, lookup_done_fn *done, void *arg,
    struct err *err);

/* Stop: `done` is not called. */
void lookup_cancel(struct lookup *lookup);

#endif
