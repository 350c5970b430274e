#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/err.h"
#include "core/header.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/endpoint.h"
#include "store/secret.h"
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

static void
keep_secret(struct endpoint *endpoint, const struct buf *plain, usec_t until)
{
	struct endpoint_secret *out = &endpoint->secrets[endpoint->nsecrets++];

	memcpy(out->secret.bytes, plain->data, plain->len);
	out->secret.len = plain->len;
	out->valid_until = until;
}

static void
keep_key(struct endpoint *endpoint, const struct buf *plain, usec_t until)
{
	struct endpoint_key *out = &endpoint->keys[endpoint->nkeys++];

	memcpy(out->key.bytes, plain->data, plain->len);
	out->valid_until = until;
}

/* They were checked when they were registered; what somebody wrote into the
 * table since must not become another header, or a request of its own. */
static void
keep_header(struct endpoint *endpoint, const char *name, size_t name_len,
    const char *value, size_t len)
{
	if (header_name_fault(name, name_len) != NULL ||
	    header_value_fault(value, len) != NULL ||
	    endpoint->nheaders == HEADER_COUNT_MAX) {
		set_trouble(endpoint, "it has a header that cannot be sent");
		return;
	}
	buf_add(&endpoint->headers, name, name_len);
	buf_puts(&endpoint->headers, ": ");
	buf_add(&endpoint->headers, value, len);
	buf_add(&endpoint->headers, "", 1);
	endpoint->nheaders++;
}

/* `lines` are joined by line feeds; "" for none. */
static void
keep_plain_headers(struct endpoint *endpoint, const char *lines)
{
	while (lines[0] != '\0') {
		size_t len = strcspn(lines, "\n");
		const char *colon = memchr(lines, ':', len);
		size_t name_len = colon == NULL ? len : (size_t)(colon - lines);
		size_t skip = name_len + strlen(": ");

		keep_header(endpoint, lines, name_len, lines + skip,
		    len < skip ? 0 : len - skip);
		lines += len + (lines[len] == '\n');
	}
}

static void
wipe_text(char *text)
{
	if (text == NULL)
		return;
	OPENSSL_cleanse(text, strlen(text));
	free(text);
}

static int
keep_tls_key(struct endpoint *endpoint, const struct buf *pem)
{
	char *copy = malloc(pem->len + 1);

	if (copy == NULL)
		return -1;
	memcpy(copy, pem->data, pem->len);
	copy[pem->len] = '\0';
	wipe_text(endpoint->tls.key);
	endpoint->tls.key = copy;
	return 0;
}

static int
keep(struct endpoint *endpoint, const struct secret *secret,
    const struct buf *plain, usec_t until)
{
	switch (secret->kind) {
	case SECRET_HEADER:
		keep_header(endpoint, secret->name, strlen(secret->name),
		    plain->data, plain->len);
		break;
	case SECRET_SIGNING:
		keep_secret(endpoint, plain, until);
		break;
	case SECRET_SIGNING_KEY:
		keep_key(endpoint, plain, until);
		break;
	case SECRET_TLS_KEY:
		return keep_tls_key(endpoint, plain);
	case SECRET_STRANGE:
		break;
	}
	return 0;
}

/* There is no place for one more of its kind: it is too old to sign. */
static bool
is_surplus(const struct endpoint *endpoint, const struct secret *secret)
{
	return (secret->kind == SECRET_SIGNING &&
		   endpoint->nsecrets == ENDPOINT_SECRETS) ||
	       (secret->kind == SECRET_SIGNING_KEY &&
		   endpoint->nkeys == ENDPOINT_SECRETS);
}

/* -1: memory is short. */
static int
read_secret(struct endpoint *endpoint, const struct secret *secret,
    const struct seal_ring *ring, usec_t until)
{
	struct buf plain = { 0 };
	struct err err;
	int result = 0;

	if (is_surplus(endpoint, secret))
		return 0;
	if (secret_open(&plain, secret, ring, &err) == 0)
		result = keep(endpoint, secret, &plain, until);
	else if (err.code == ERR_RETRY)
		(void)snprintf(endpoint->missing_key,
		    sizeof(endpoint->missing_key), "%.*s", SEAL_KEY_ID,
		    secret->key_id);
	else if (err.code == ERR_NOMEM)
		result = -1;
	else
		set_trouble(endpoint, err.text);
	buf_wipe(&plain);
	return result;
}

static int
read_secrets(struct endpoint *endpoint, const struct pg_rows *rows, int *row,
    const struct seal_ring *ring, usec_t asked_at)
{
	int id = pg_column(rows, "id");
	int key_id = pg_column(rows, "key_id");
	int valid = pg_column(rows, "valid_us");
	struct secret secret;

	for (; *row < pg_count(rows) &&
	       pg_get_bigint(rows, *row, id) == endpoint->subscription_id;
	     (*row)++) {
		if (pg_is_null(rows, *row, key_id))
			continue;
		secret_read(&secret, rows, *row, "id");
		if (read_secret(endpoint, &secret, ring,
			pg_is_null(rows, *row, valid)
			    ? INT64_MAX
			    : asked_at + pg_get_bigint(rows, *row, valid)) != 0)
			return -1;
	}
	return 0;
}

/* A copy of a text that may be null: then NULL. */
static int
copy_text(char **out, const struct pg_rows *rows, int row, const char *name)
{
	int column = pg_column(rows, name);

	if (pg_is_null(rows, row, column))
		return 0;
	*out = strdup(pg_get_text(rows, row, column));
	return *out == NULL ? -1 : 0;
}

/* All that stands in the first row, and is no secret. */
static int
read_subscription(struct endpoint *endpoint, const struct pg_rows *rows, int r)
{
	*endpoint = (struct endpoint){
		.subscription_id =
		    pg_get_bigint(rows, r, pg_column(rows, "id")),
		.version = pg_get_bigint(rows, r, pg_column(rows, "version")),
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
	keep_plain_headers(
	    endpoint, pg_get_text(rows, r, pg_column(rows, "header_lines")));
	if (copy_text(&endpoint->url, rows, r, "url") != 0 ||
	    copy_text(&endpoint->tls.ca, rows, r, "tls_ca") != 0 ||
	    copy_text(&endpoint->tls.certificate, rows, r, "tls_certificate") !=
		0)
		return -1;
	return 0;
}

/* What is missing or half there must not be sent without. */
static int
check(struct endpoint *endpoint)
{
	if (endpoint->headers.failed)
		return -1;
	if (endpoint->trouble[0] != '\0' || endpoint->missing_key[0] != '\0')
		return 0;
	if (endpoint->nsecrets == 0)
		set_trouble(endpoint, "it has no secret to sign with");
	else if ((endpoint->tls.certificate == NULL) !=
		 (endpoint->tls.key == NULL))
		set_trouble(endpoint,
		    "its client certificate is without a key, or its key "
		    "without a certificate");
	return 0;
}

int
endpoint_read(struct endpoint **out, const struct pg_rows *rows, int *row,
    const struct seal_ring *ring, usec_t asked_at, struct err *err)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));

	if (endpoint == NULL)
		return err_set(err, ERR_NOMEM, "endpoint");
	if (read_subscription(endpoint, rows, *row) != 0 ||
	    read_secrets(endpoint, rows, row, ring, asked_at) != 0 ||
	    check(endpoint) != 0)
		goto fail;
	*out = endpoint;
	return 0;

fail:
	endpoint_free(endpoint);
	return err_set(err, ERR_NOMEM, "endpoint");
}

void
endpoint_free(struct endpoint *endpoint)
{
	if (endpoint == NULL)
		return;
	free(endpoint->url);
	free(endpoint->tls.ca);
	free(endpoint->tls.certificate);
	wipe_text(endpoint->tls.key);
	buf_wipe(&endpoint->headers);
	for (size_t i = 0; i < endpoint->nsecrets; i++)
		sign_secret_fini(&endpoint->secrets[i].secret);
	OPENSSL_cleanse(endpoint, sizeof(*endpoint));
	free(endpoint);
}
