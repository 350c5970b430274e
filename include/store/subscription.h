/* subscription: a tenant's registered endpoint, as its administrators see it. */

#ifndef STORE_SUBSCRIPTION_H
#define STORE_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct pg_batch;
struct pg_rows;

enum {
	SUBSCRIPTION_TYPES_MAX = 100,
	SUBSCRIPTION_PATTERN_MAX = 256, /* octets of one of its types */
};

/* What a new one is made of.  Texts and numbers that are NULL or 0 take the
 * schema's defaults. */
struct subscription_new {
	int64_t id; /* from subscription_id() */
	int64_t tenant_id;
	const char *url; /* in canonical form */
	const char *const *event_types; /* "a.b", "a.*" or "*" */
	size_t nevent_types;
	const char *ordering;
	const char *on_dead;
	bool older_signature;
	int max_attempts;
	int max_in_flight;
	int retry_base_ms;
	int retry_cap_ms;
	int timeout_ms;
	const char *secret_key_id; /* of the key that sealed the secret */
	const unsigned char *nonce; /* SEAL_NONCE bytes */
	const void *sealed;
	size_t sealed_len;
	const char *actor; /* for the audit */
};

/* One row; its texts live as long as the rows that it was read from. */
struct subscription {
	int64_t id;
	const char *url;
	const char *event_types; /* a JSON array of strings */
	const char *state;
	const char *state_reason; /* "" if none */
	const char *ordering;
	const char *on_dead;
	bool older_signature;
	int max_attempts;
	int max_in_flight;
	int retry_base_ms;
	int retry_cap_ms;
	int timeout_ms;
	usec_t created_at;
	usec_t updated_at;
};

/* Ask for a fresh id: one row, `id`. */
void subscription_id(struct pg_batch *batch);

/* Register it, with its secret, its place in the round and an audit entry; the
 * answer is one subscription. */
void subscription_insert(
    struct pg_batch *batch, const struct subscription_new *subscription);

/* Ask for one of the tenant's; for its first `limit` after the id `after`. */
void subscription_get(struct pg_batch *batch, int64_t tenant_id, int64_t id);
void subscription_list(
    struct pg_batch *batch, int64_t tenant_id, int64_t after, int limit);

/* Read a row of any of these three. */
void subscription_read(
    struct subscription *out, const struct pg_rows *rows, int row);

#endif
