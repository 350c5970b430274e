/*
 * sign_key: Ed25519 signatures of Standard Webhooks ("v1a"), for receivers that
 * are to verify and not be able to sign.
 *
 * A private key is written "whsk_" and base64 of 64 bytes, the seed and the
 * public key (RFC 8032); a public one "whpk_" and base64 of its 32 bytes.
 */

#ifndef CORE_SIGN_KEY_H
#define CORE_SIGN_KEY_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum {
	SIGN_KEY_SEED = 32,
	SIGN_KEY_PUBLIC = 32,
	SIGN_KEY_SIZE = SIGN_KEY_SEED + SIGN_KEY_PUBLIC,
};

/* The seed, and behind it the public key. */
struct sign_key {
	unsigned char bytes[SIGN_KEY_SIZE];
};

/* A new random key.  ERR_RETRY if the system has no randomness to give. */
int sign_key_new(struct sign_key *out, struct err *err);

/*
 * Parse a private key, "whsk_" included.  ERR_REFUSED, which never repeats what
 * was given, if it is written in any other way, or if its public half is not
 * that of its seed.
 */
int sign_key_parse(
    struct sign_key *out, const char *text, size_t len, struct err *err);

/* Append "whsk_" and base64: the secret itself. */
void sign_key_print(struct buf *out, const struct sign_key *key);

/* Append "whpk_" and base64, what a receiver verifies with. */
void sign_key_print_public(struct buf *out, const struct sign_key *key);

/* Wipe it. */
void sign_key_fini(struct sign_key *key);

/*
 * Append "v1a,<base64>" for `body` sent as event `id` at `timestamp` (seconds
 * since 1970).  `out` is marked failed if OpenSSL or memory fails.
 */
void sign_key_sign(struct buf *out, const struct sign_key *key, const char *id,
    int64_t timestamp, const void *body, size_t len);

#endif
