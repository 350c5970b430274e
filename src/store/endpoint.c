#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/endpoint.h"
#include "store/stmt.h"

void
endpoint_load(struct pg_batch *batch, const int64_t *subscriptions, size_t n)
{
	pg_call(batch, STMT_SUBSCRIPTION_LOAD);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, subscriptions[i]);
	pg_array_end(batch);
}

static void
set_trouble(struct endpoint *endpoint, const char *why)
{
	(void)snprintf(endpoint->trouble, sizeof(endpoint->trouble), "%.*s",
	    (int)sizeof(endpoint->trouble) - 1, why);
}

/* Open the secret in `row` into the next free place. */
static int
read_secret(struct endpoint *endpoint, const struct pg_rows *rows, int row,
    const struct seal_key *key, struct err *err)
{
	struct endpoint_secret *out = &endpoint->secrets[endpoint->nsecrets];
	const char *key_id = pg_get_text(rows, row, pg_column(rows, "key_id"));
	size_t nonce_len, sealed_len;
	const void *nonce =
	    pg_get_bytes(rows, row, pg_column(rows, "nonce"), &nonce_len);
	const void *sealed =
	    pg_get_bytes(rows, row, pg_column(rows, "sealed"), &sealed_len);
	struct buf plain = { 0 };
	int result = -1;

	if (strcmp(key_id, key->id) != 0)
		(void)err_set(err, ERR_BROKEN,
		    "its secret is sealed under key %s, and ours is %s", key_id,
		    key->id);
	else if (nonce == NULL || sealed == NULL || nonce_len != SEAL_NONCE)
		(void)err_set(err, ERR_BROKEN, "its secret is malformed");
	else if (seal_open(&plain, nonce, key, endpoint->subscription_id,
		     sealed, sealed_len, err) == 0) {
		if (plain.len < SIGN_SECRET_MIN || plain.len > SIGN_SECRET_MAX)
			(void)err_set(
			    err, ERR_BROKEN, "its secret has a wrong length");
		else {
			memcpy(out->secret.bytes, plain.data, plain.len);
			out->secret.len = plain.len;
			result = 0;
		}
	}
	buf_wipe(&plain);
	return result;
}

static void
read_secrets(struct endpoint *endpoint, const struct pg_rows *rows, int *row,
    const struct seal_key *key, usec_t asked_at)
{
	int id = pg_column(rows, "id");
	int valid = pg_column(rows, "valid_us");
	struct err err;

	for (; *row < pg_count(rows) &&
	       pg_get_bigint(rows, *row, id) == endpoint->subscription_id;
	     (*row)++) {
		if (endpoint->nsecrets == ENDPOINT_SECRETS)
			continue;
		if (pg_is_null(rows, *row, pg_column(rows, "key_id"))) {
			set_trouble(endpoint, "it has no secret to sign with");
			continue;
		}
		if (read_secret(endpoint, rows, *row, key, &err) != 0) {
			set_trouble(endpoint, err.text);
			continue;
		}
		endpoint->secrets[endpoint->nsecrets++].valid_until =
		    pg_is_null(rows, *row, valid)
			? INT64_MAX
			: asked_at + pg_get_bigint(rows, *row, valid);
	}
}

int
endpoint_read(struct endpoint **out, const struct pg_rows *rows, int *row,
    const struct seal_key *key, usec_t asked_at, struct err *err)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
	int r = *row;

	if (endpoint == NULL)
		return err_set(err, ERR_NOMEM, "endpoint");
	*endpoint = (struct endpoint){
		.subscription_id =
		    pg_get_bigint(rows, r, pg_column(rows, "id")),
		.version = pg_get_bigint(rows, r, pg_column(rows, "version")),
		.url = strdup(pg_get_text(rows, r, pg_column(rows, "url"))),
		.older_signature = pg_get_bool(
		    rows, r, pg_column(rows, "older_signature")),
		.timeout = pg_get_int(rows, r, pg_column(rows, "timeout_ms")) *
		           USEC_PER_MS,
		.policy = {
			.base = pg_get_int(rows, r,
			    pg_column(rows, "retry_base_ms")) * USEC_PER_MS,
			.cap = pg_get_int(rows, r,
			    pg_column(rows, "retry_cap_ms")) * USEC_PER_MS,
			.max_attempts = pg_get_int(
			    rows, r, pg_column(rows, "max_attempts")),
		},
	};
	if (endpoint->url == NULL) {
		endpoint_free(endpoint);
		return err_set(err, ERR_NOMEM, "endpoint");
	}
	read_secrets(endpoint, rows, row, key, asked_at);
	*out = endpoint;
	return 0;
}

void
endpoint_free(struct endpoint *endpoint)
{
	if (endpoint == NULL)
		return;
	free(endpoint->url);
	OPENSSL_cleanse(endpoint->secrets, sizeof(endpoint->secrets));
	free(endpoint);
}
