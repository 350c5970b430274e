#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"
#include "core/sign.h"
#include "core/sign_key.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/secret.h"
#include "store/stmt.h"

/* By kind: how it is written in the table, how it is sealed, and how long it
 * can be. */
static const struct {
	const char *word, *label;
	size_t min, max;
} kinds[] = {
	[SECRET_HEADER] = { "header", "header/", 0, HEADER_VALUE_MAX },
	[SECRET_SIGNING] = { "secret", "", SIGN_SECRET_MIN, SIGN_SECRET_MAX },
	[SECRET_SIGNING_KEY] = { "signing_key", "signing_key", SIGN_KEY_SIZE,
	    SIGN_KEY_SIZE },
	[SECRET_TLS_KEY] = { "tls_key", "tls_key", 1, SEAL_MAX },
	[SECRET_STRANGE] = { "", "?", 0, SEAL_MAX },
};

static enum secret_kind
parse_kind(const char *word)
{
	int kind = 0;

	while (kind < SECRET_STRANGE && strcmp(kinds[kind].word, word) != 0)
		kind++;
	return (enum secret_kind)kind;
}

const char *
secret_word(enum secret_kind kind)
{
	return kinds[kind].word;
}

void
secret_label(char out[SECRET_LABEL], enum secret_kind kind, const char *name)
{
	(void)snprintf(out, SECRET_LABEL, "%s%.*s", kinds[kind].label,
	    HEADER_NAME_MAX, name == NULL ? "" : name);
}

void
secret_read(
    struct secret *out, const struct pg_rows *rows, int row, const char *owner)
{
	*out = (struct secret){
		.subscription_id = pg_read_bigint(rows, row, owner),
		.kind = parse_kind(pg_read_text(rows, row, "kind")),
		.name = pg_read_text(rows, row, "name"),
		.key_id = pg_read_text(rows, row, "key_id"),
	};
	out->nonce =
	    pg_get_bytes(rows, row, pg_column(rows, "nonce"), &out->nonce_len);
	out->sealed =
	    pg_get_bytes(rows, row, pg_column(rows, "sealed"), &out->len);
	secret_label(out->label, out->kind, out->name);
}

int
secret_open(struct buf *out, const struct secret *secret,
    const struct seal_ring *ring, struct err *err)
{
	const struct seal_key *key = seal_ring_find(ring, secret->key_id);
	size_t before = out->len, len;

	if (key == NULL)
		return err_set(err, ERR_RETRY,
		    "a secret is sealed under key %.*s, which is not in the "
		    "key file",
		    SEAL_KEY_ID, secret->key_id);
	if (secret->kind == SECRET_STRANGE || secret->nonce == NULL ||
	    secret->sealed == NULL || secret->nonce_len != SEAL_NONCE)
		return err_set(err, ERR_BROKEN, "a secret is malformed");
	if (seal_open(out, secret->nonce, key, secret->subscription_id,
		secret->label, secret->sealed, secret->len, err) != 0)
		return -1;
	len = out->len - before;
	if (len < kinds[secret->kind].min || len > kinds[secret->kind].max)
		return err_set(err, ERR_BROKEN, "a secret has a wrong length");
	return 0;
}

void
secret_page(
    struct pg_batch *batch, int64_t after, const char *but, int64_t limit)
{
	pg_call(batch, STMT_SECRET_PAGE);
	pg_bigint(batch, after);
	pg_text(batch, but);
	pg_bigint(batch, limit);
}

void
secret_reseal(struct pg_batch *batch, const struct secret_resealed *resealed)
{
	pg_call(batch, STMT_SECRET_RESEAL);
	pg_bigint(batch, resealed->id);
	pg_bytes(batch, resealed->old_nonce, SEAL_NONCE);
	pg_text(batch, resealed->key->id);
	pg_bytes(batch, resealed->nonce, SEAL_NONCE);
	pg_bytes(batch, resealed->sealed.data, resealed->sealed.len);
}

void
secret_ask_keys(struct pg_batch *batch, const struct seal_ring *ring)
{
	pg_call(batch, STMT_SECRET_STRANGE);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < ring->n; i++)
		pg_text(batch, ring->keys[i].id);
	pg_array_end(batch);
}

int
secret_check_keys(const struct pg_rows *rows, struct err *err)
{
	if (pg_count(rows) == 0)
		return 0;
	return err_set(err, ERR_BROKEN,
	    "secrets are sealed under key %.*s (of subscription %" PRId64
	    ", for one), which is not in secret_key_file: add its line to the "
	    "file, behind the first; `postrider doctor` tells more",
	    SEAL_KEY_ID, pg_read_text(rows, 0, "key_id"),
	    pg_read_bigint(rows, 0, "subscription_id"));
}
