/*
 * seal: secrets at rest, AES-256-GCM (NIST SP 800-38D) under a key that is not
 * in the database.
 */

#ifndef CORE_SEAL_H
#define CORE_SEAL_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum {
	SEAL_KEY = 32,
	SEAL_NONCE = 12,
	SEAL_TAG = 16,
	SEAL_KEY_ID = 16, /* hex digits of a key's id */
	SEAL_MAX = 4096, /* longest secret */
};

struct seal_key {
	unsigned char bytes[SEAL_KEY];
	char id[SEAL_KEY_ID + 1]; /* from SHA-256 of the key: says which, and
	                             nothing about it */
};

/*
 * Read a key from the file at `path`: 64 hex digits and an optional newline.
 * ERR_BROKEN says what is wrong with the file, never what is in it; a file
 * that others may read is refused.
 */
int seal_key_read(struct seal_key *out, const char *path, struct err *err);

void seal_key_fini(struct seal_key *key);

/*
 * Seal `secret` for the subscription `owner`: a fresh random nonce to `nonce`,
 * and ciphertext with its tag appended to `out`.
 */
int seal_close(struct buf *out, unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const void *secret, size_t len,
    struct err *err);

/*
 * Append the secret to `out`, which the caller wipes.  ERR_BROKEN if it was
 * sealed under another key, for another owner, or changed since.
 */
int seal_open(struct buf *out, const unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const void *sealed, size_t len,
    struct err *err);

#endif
