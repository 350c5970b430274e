/* sealed: secrets that a subscription is given, sealed to be kept. */

#ifndef STORE_SEALED_H
#define STORE_SEALED_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/header.h"
#include "core/seal.h"
#include "store/secret.h"

struct err;
struct pg_batch;
struct sign_key;

enum {
	/* Each kind but headers has one. */
	SEALED_MAX = HEADER_COUNT_MAX + SECRET_STRANGE - 1,
	SEALED_PUBLIC = 64, /* room for a printed public key */
};

struct sealed_secret {
	enum secret_kind kind;
	const char *name; /* of a header; else NULL */
	char public_key[SEALED_PUBLIC]; /* of a signing key; else "" */
	unsigned char nonce[SEAL_NONCE];
	size_t at, len; /* in `bytes` */
};

struct sealed {
	const struct seal_key *key;
	int64_t owner; /* the subscription, and no other, that they open for */
	struct sealed_secret secrets[SEALED_MAX];
	size_t n;
	struct buf bytes;
};

/* To be sealed under the first key of `ring`, which is lent. */
void sealed_init(
    struct sealed *sealed, const struct seal_ring *ring, int64_t owner);

/* Add a secret; `name` is a header's, in lower case and lent, else NULL. */
int sealed_add(struct sealed *sealed, enum secret_kind kind, const char *name,
    const void *secret, size_t len, struct err *err);

/* Add a signing key, with its public half. */
int sealed_add_key(
    struct sealed *sealed, const struct sign_key *key, struct err *err);

/* Put them as a statement's parameters: the sealing key's id, and of each its
 * kind, name, public key, nonce, and what is sealed. */
void sealed_put(struct pg_batch *batch, const struct sealed *sealed);

void sealed_fini(struct sealed *sealed);

#endif
