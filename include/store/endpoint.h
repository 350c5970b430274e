/*
 * endpoint: what an attempt needs to know of its subscription, its secrets
 * opened.
 */

#ifndef STORE_ENDPOINT_H
#define STORE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/sign.h"
#include "core/verdict.h"

struct err;
struct pg_batch;
struct pg_rows;
struct seal_key;

enum { ENDPOINT_SECRETS = 4 }; /* that sign at once; older ones do not */

struct endpoint_secret {
	struct sign_secret secret;
	usec_t valid_until; /* on clock_now(); INT64_MAX: without end */
};

struct endpoint {
	int64_t subscription_id;
	int64_t version;
	char *url; /* owned */
	bool older_signature;
	usec_t timeout;
	struct retry_policy policy;
	struct endpoint_secret secrets[ENDPOINT_SECRETS]; /* newest first */
	size_t nsecrets;
	/* Why nothing can be sent, for people: a secret that does not open.
	 * "": all is well. */
	char trouble[128];
};

/* Ask for `n` subscriptions. */
void endpoint_load(
    struct pg_batch *batch, const int64_t *subscriptions, size_t n);

/*
 * Read one endpoint that begins at `*row`, and move `*row` behind its rows.
 * `asked_at` is when the question was sent, on clock_now().  A secret that
 * does not open is `trouble`, not a failure.  Free with endpoint_free().
 */
int endpoint_read(struct endpoint **out, const struct pg_rows *rows, int *row,
    const struct seal_key *key, usec_t asked_at, struct err *err);

/* Wipe and free.  NULL is fine. */
void endpoint_free(struct endpoint *endpoint);

#endif
