#include <assert.h>
#include <string.h>

#include "base/err.h"
#include "core/sign_key.h"
#include "pg/pg.h"
#include "store/sealed.h"

void
sealed_init(struct sealed *sealed, const struct seal_ring *ring, int64_t owner)
{
	*sealed = (struct sealed){ .key = &ring->keys[0], .owner = owner };
}

int
sealed_add(struct sealed *sealed, enum secret_kind kind, const char *name,
    const void *secret, size_t len, struct err *err)
{
	struct sealed_secret *out = &sealed->secrets[sealed->n];
	char label[SECRET_LABEL];

	assert(sealed->n < SEALED_MAX);
	*out = (struct sealed_secret){
		.kind = kind,
		.name = name,
		.at = sealed->bytes.len,
	};
	secret_label(label, kind, name);
	if (seal_close(&sealed->bytes, out->nonce, sealed->key, sealed->owner,
		label, secret, len, err) != 0)
		return -1;
	out->len = sealed->bytes.len - out->at;
	sealed->n++;
	return 0;
}

int
sealed_add_key(
    struct sealed *sealed, const struct sign_key *key, struct err *err)
{
	struct sealed_secret *out = &sealed->secrets[sealed->n];
	struct buf text = { 0 };
	int result = sealed_add(sealed, SECRET_SIGNING_KEY, NULL, key->bytes,
	    sizeof(key->bytes), err);

	if (result != 0)
		return -1;
	sign_key_print_public(&text, key);
	if (text.failed) {
		result = err_set(err, ERR_NOMEM, "public key");
	} else {
		assert(text.len < SEALED_PUBLIC);
		memcpy(out->public_key, text.data, text.len);
	}
	buf_fini(&text);
	return result;
}

void
sealed_put(struct pg_batch *batch, const struct sealed *sealed)
{
	const struct sealed_secret *secrets = sealed->secrets;

	pg_text(batch, sealed->key->id);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < sealed->n; i++)
		pg_text(batch, secret_word(secrets[i].kind));
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < sealed->n; i++)
		pg_text(batch, secrets[i].name);
	pg_array_end(batch);
	pg_array(batch, PG_TEXT);
	for (size_t i = 0; i < sealed->n; i++)
		pg_text(batch, secrets[i].public_key[0] == '\0'
				   ? NULL
				   : secrets[i].public_key);
	pg_array_end(batch);
	pg_array(batch, PG_BYTEA);
	for (size_t i = 0; i < sealed->n; i++)
		pg_bytes(batch, secrets[i].nonce, SEAL_NONCE);
	pg_array_end(batch);
	pg_array(batch, PG_BYTEA);
	for (size_t i = 0; i < sealed->n; i++)
		pg_bytes(
		    batch, sealed->bytes.data + secrets[i].at, secrets[i].len);
	pg_array_end(batch);
}

void
sealed_fini(struct sealed *sealed)
{
	buf_fini(&sealed->bytes);
}
