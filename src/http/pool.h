/*
 * pool: the multis that transfers are spread over.
 *
 * libcurl looks through a multi's connections one by one, the busy ones too:
 * those to the same host when a transfer begins, and all, until it meets its
 * own, when one ends.  Were there one multi, receivers that are silent would
 * make each send to the others dearer with every request that they keep
 * waiting.  So no multi gets more than a share of the transfers.
 *
 * A host's transfers begin at one place, where they find the connections of
 * those before them; while it is full the next places take them.
 */

#ifndef HTTP_POOL_H
#define HTTP_POOL_H

#include <stdint.h>

#include "multi.h"

struct pool;

/* `max` transfers at once have room; how many connections each multi keeps is
 * not the caller's to say.  ERR_BROKEN names an option that cannot be set. */
int pool_open(
    struct pool **out, int max, const struct multi_conf *conf, struct err *err);

/* All handles have been removed.  NULL is fine. */
void pool_close(struct pool *pool);

/* The multi for one more transfer to `host`, of `max` at most; NULL if it
 * cannot be opened. */
struct multi *pool_pick(
    struct pool *pool, const char *host, uint16_t port, struct err *err);

#endif
