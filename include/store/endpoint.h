/*
 * endpoint: what an attempt needs to know of its subscription, its secrets
 * opened.
 */

#ifndef STORE_ENDPOINT_H
#define STORE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "core/seal.h"
#include "core/sign.h"
#include "core/sign_key.h"
#include "core/verdict.h"

struct err;
struct pg_batch;
struct pg_rows;

enum { ENDPOINT_SECRETS = 4 }; /* that sign at once; older ones do not */

struct endpoint_secret {
	struct sign_secret secret;
	usec_t valid_until; /* on clock_now(); INT64_MAX: without end */
};

struct endpoint_key {
	struct sign_key key;
	usec_t valid_until;
};

/* PEM texts, owned; NULL for none. */
struct endpoint_tls {
	char *ca; /* trusted instead of all others */
	char *certificate, *key; /* both or none */
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
	struct endpoint_key keys[ENDPOINT_SECRETS]; /* newest first */
	size_t nkeys;
	/* Headers of its own, plain and secret: "name: value", each ended by
	 * NUL. */
	struct buf headers;
	int nheaders; /* at most HEADER_COUNT_MAX */
	struct endpoint_tls tls;
	/* Why nothing can be sent, for people: a secret that does not open.
	 * "": all is well. */
	char trouble[128];
	/* The id of a key that a secret is sealed under and that we do not
	 * have: others may, or the secret may be sealed anew.  "": all are
	 * there. */
	char missing_key[SEAL_KEY_ID + 1];
};

/* Ask for `n` subscriptions. */
void endpoint_load(
    struct pg_batch *batch, const int64_t *subscriptions, size_t n);

/*
 * Read one endpoint that begins at `*row`, and move `*row` behind its rows.
 * `asked_at` is when the question was sent, on clock_now().  A secret that
 * does not open is `trouble` or a `missing_key`, not a failure.  Free with
 * endpoint_free().
 */
int endpoint_read(struct endpoint **out, const struct pg_rows *rows, int *row,
    const struct seal_ring *ring, usec_t asked_at, struct err *err);

/* Wipe and free.  NULL is fine. */
void endpoint_free(struct endpoint *endpoint);

#endif
