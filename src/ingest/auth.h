/*
 * auth: whose key comes with a request, and may it do this?
 *
 * Keys are remembered by their hash for a minute, so that a stream of events
 * costs no query an event.  That delays no revocation: the batch that accepts
 * events asks again which keys are valid, and every other route asks each time.
 *
 * Look-ups that come while one is under way are made together, in one trip to
 * the database, and stand before all else at the desk: a flood of wrong keys
 * turns nobody away whose key is right.
 *
 * Keys are 256 random bits and are looked up by hash, so the time that a look-up
 * takes tells nothing about any key.
 */

#ifndef INGEST_AUTH_H
#define INGEST_AUTH_H

#include <stdbool.h>
#include <stddef.h>

struct auth;
struct call;
struct err;
struct ingest;
struct request;

typedef void auth_pass_fn(struct call *call);

int auth_open(struct auth **out, struct ingest *ingest, struct err *err);

/* After the desk, which tells all who wait here.  NULL is fine. */
void auth_close(struct auth *auth);

/* True if there is something that may be a key. */
bool auth_is_offered(const struct request *request);

/*
 * Find the key that `call` offers, which it does.  If its role is among `roles`, bits
 * 1 << enum key_role, set call->key and call `pass`, now or from the loop;
 * else answer 401, 403, 429 or 503.  With `is_fresh` nothing remembered is used.
 */
void auth_check(
    struct call *call, unsigned roles, bool is_fresh, auth_pass_fn *pass);

#endif
