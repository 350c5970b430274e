/* resolver_inside: what the resolver's own tests may choose. */

#ifndef HTTP_RESOLVER_INSIDE_H
#define HTTP_RESOLVER_INSIDE_H

#include "http/resolver.h"

/* Where things are; the texts outlive the resolver. */
struct resolver_places {
	const char *nameserver; /* "" for those of resolv_conf */
	const char *hosts, *resolv_conf; /* paths */
	unsigned short port; /* of the servers in resolv_conf */
};

/* As resolver_open(). */
int resolver_open_at(struct resolver **out, struct event_base *loop,
    const struct resolver_places *places, struct err *err);

#endif
