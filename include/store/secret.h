/*
 * secret: a stored secret of a subscription, sealed: what it is and how it is
 * opened.  Rows of all statements that return secrets are read here.
 */

#ifndef STORE_SECRET_H
#define STORE_SECRET_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "core/header.h"
#include "core/seal.h"

struct err;
struct pg_batch;
struct pg_rows;

enum secret_kind {
	SECRET_HEADER, /* the value of a header */
	SECRET_SIGNING, /* of HMAC signatures; stored as its bytes */
	SECRET_SIGNING_KEY, /* Ed25519; stored as sign_key's bytes */
	SECRET_TLS_KEY, /* of a client certificate; PEM */
	SECRET_STRANGE, /* of a kind that this program does not know */
};

enum { SECRET_LABEL = sizeof("header/") + HEADER_NAME_MAX };

/* Its texts and bytes lend from the row. */
struct secret {
	int64_t subscription_id;
	enum secret_kind kind;
	const char *name; /* the header's, in lower case; "" else */
	char label[SECRET_LABEL]; /* what it is sealed as */
	const char *key_id;
	const void *nonce;
	size_t nonce_len;
	const void *sealed;
	size_t len;
};

/* The word that stands for it in the table. */
const char *secret_word(enum secret_kind kind);

/*
 * What a secret of this kind is sealed as; `name` is the header's, in lower
 * case, or NULL.
 */
void secret_label(
    char out[SECRET_LABEL], enum secret_kind kind, const char *name);

/* Read the secret in `row`, whose owner is in the column called `owner`. */
void secret_read(
    struct secret *out, const struct pg_rows *rows, int row, const char *owner);

/* Ask for up to `limit` secrets behind `after`, by id, of those that are not
 * sealed under the key `but`; NULL: of all.  Rows have "id" and what
 * secret_read() reads, with their owner in "subscription_id". */
void secret_page(
    struct pg_batch *batch, int64_t after, const char *but, int64_t limit);

/*
 * Append what it is to `out`, which the caller wipes.  ERR_RETRY if it is
 * sealed under a key that is not in the ring; ERR_BROKEN if it does not open,
 * or cannot be what it is said to be.
 */
int secret_open(struct buf *out, const struct secret *secret,
    const struct seal_ring *ring, struct err *err);

/* A secret sealed anew. */
struct secret_resealed {
	int64_t id; /* of the row */
	const void *old_nonce; /* that it was read with */
	const struct seal_key *key;
	unsigned char nonce[SEAL_NONCE];
	struct buf sealed;
};

/*
 * Keep it.  No row is written if somebody else sealed it anew meanwhile or has
 * it in hand, or if the secret is gone.  A batch may have many.
 */
void secret_reseal(
    struct pg_batch *batch, const struct secret_resealed *resealed);

/*
 * Ask for keys that secrets are sealed under and that are not in the ring.
 * secret_check_keys() reads the answer: ERR_BROKEN if there is any says which,
 * and what to do.
 */
void secret_ask_keys(struct pg_batch *batch, const struct seal_ring *ring);
int secret_check_keys(const struct pg_rows *rows, struct err *err);

#endif
