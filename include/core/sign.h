/*
 * sign: webhook signatures, and the secrets they are made with.
 *
 * Standard Webhooks (https://www.standardwebhooks.com): the signature is
 * HMAC-SHA256 over "id.timestamp.body" under the decoded secret, written
 * "v1," and base64.  The older scheme is HMAC-SHA256 over "timestamp.body",
 * written "v1=" and lower-case hex.
 */

#ifndef CORE_SIGN_H
#define CORE_SIGN_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct evp_mac_ctx_st;

enum {
	SIGN_SECRET_MIN = 24, /* bytes, by Standard Webhooks */
	SIGN_SECRET_MAX = 64,
	SIGN_SECRET_NEW = 32, /* what sign_secret_new() makes */
};

/* Not to be copied once it has signed. */
struct sign_secret {
	unsigned char bytes[SIGN_SECRET_MAX];
	size_t len;
	struct evp_mac_ctx_st *mac; /* keyed with it; NULL until it signs */
};

/* A new random secret.  ERR_RETRY if the system has no randomness to give. */
int sign_secret_new(struct sign_secret *out, struct err *err);

/*
 * Parse "whsec_" and base64 with its padding, or the base64 alone.  Only what
 * sign_secret_print() would write is taken.  ERR_REFUSED says what a secret
 * looks like, and never repeats what was given.
 */
int sign_secret_parse(
    struct sign_secret *out, const char *text, size_t len, struct err *err);

/* Append "whsec_" and base64. */
void sign_secret_print(struct buf *out, const struct sign_secret *secret);

/* Wipe it, and what was made of it. */
void sign_secret_fini(struct sign_secret *secret);

/*
 * Append "v1,<base64>" for `body` sent as event `id` at `timestamp` (seconds
 * since 1970).  `out` is marked failed if OpenSSL fails.
 */
void sign_standard(struct buf *out, struct sign_secret *secret, const char *id,
    int64_t timestamp, const void *body, size_t len);

/* Append "v1=<hex>" for `body` sent at `timestamp`: the older scheme. */
void sign_older(struct buf *out, struct sign_secret *secret, int64_t timestamp,
    const void *body, size_t len);

#endif
