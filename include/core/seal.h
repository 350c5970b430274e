/*
 * seal: secrets at rest, AES-256-GCM (NIST SP 800-38D) under keys that are not
 * in the database.
 *
 * The keys are a ring: the first one seals, each of them opens.  So a new key
 * is put first, all that is stored is sealed anew, and then the old one can go.
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
	SEAL_KEYS_MAX = 16, /* in a ring */
	SEAL_MAX = 16384, /* longest secret */
};

struct seal_key {
	unsigned char bytes[SEAL_KEY];
	char id[SEAL_KEY_ID + 1]; /* from SHA-256 of the key: says which, and
	                             nothing about it */
};

struct seal_ring {
	struct seal_key keys[SEAL_KEYS_MAX];
	size_t n; /* at least 1 once it is read */
};

/*
 * Read a ring from the file at `path`: a key a line, each of 64 hex digits, all
 * of them different.  ERR_BROKEN says what is wrong with the file, never what
 * is in it.  Nobody else may read or change the file, save that root's may be
 * read by a group: so do programs that run as a user of their own get it.
 */
int seal_ring_read(struct seal_ring *out, const char *path, struct err *err);

/* The key with this id; NULL if there is none. */
const struct seal_key *seal_ring_find(
    const struct seal_ring *ring, const char *key_id);

/* Wipe it. */
void seal_ring_fini(struct seal_ring *ring);

/*
 * Seal `secret` for the subscription `owner`, as what `label` says: a fresh
 * random nonce to `nonce`, and ciphertext with its tag appended to `out`.  What
 * is sealed opens for the same owner and the same label alone.
 */
int seal_close(struct buf *out, unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const char *label,
    const void *secret, size_t len, struct err *err);

/*
 * Append the secret to `out`, which the caller wipes.  ERR_BROKEN if it was
 * sealed under another key, for another owner or label, or changed since.
 */
int seal_open(struct buf *out, const unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const char *label,
    const void *sealed, size_t len, struct err *err);

#endif
