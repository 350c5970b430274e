/* subscription: a tenant's registered endpoint, as its administrators see it. */

#ifndef STORE_SUBSCRIPTION_H
#define STORE_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct pg_batch;
struct pg_rows;
struct sealed;

enum {
	SUBSCRIPTION_TYPES_MAX = 100,
	SUBSCRIPTION_PATTERN_MAX = 256, /* octets of one of its types */
};

/* What a person says of it.  Texts that are NULL, types that are none and
 * numbers that are -1 are left out: a new one takes the schema's defaults, one
 * that is changed stays as it is. */
struct subscription_fields {
	const char *url; /* in canonical form */
	const char *const *event_types; /* "a.b", "a.*" or "*" */
	size_t nevent_types;
	const char *ordering;
	const char *on_dead;
	int older_signature; /* 0 or 1 */
	int max_attempts;
	int max_in_flight;
	int retry_base_ms;
	int retry_cap_ms;
	int timeout_ms;
	const char *rate_per_second; /* a decimal number; "" for no limit */
	int circuit_after;
	const char *headers; /* a JSON object of lower-case names and values */
	const char *tls_ca, *tls_certificate; /* PEM; "" for none */
	const char *filter; /* "" for none */
	int filter_weight; /* of one that is given, by filter_check() */
};

/* What a new one is made of. */
struct subscription_new {
	int64_t id; /* from subscription_id() */
	int64_t tenant_id;
	const char *actor; /* for the audit */
	struct subscription_fields fields; /* url and types are given */
	const struct sealed *sealed; /* its secrets */
};

/* One row; its texts live as long as the rows that it was read from. */
struct subscription {
	int64_t id;
	const char *url;
	const char *event_types; /* a JSON array of strings */
	const char *filter; /* "" for none */
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
	const char *rate_per_second; /* a JSON number; "" without a limit */
	int circuit_after;
	const char *headers; /* a JSON object of strings */
	const char *secret_headers; /* a JSON array of names, sorted */
	const char *public_keys; /* a JSON array of strings, newest first */
	const char *tls_ca, *tls_certificate; /* "" for none */
	int64_t version;
	usec_t created_at;
	usec_t updated_at;
};

/* Ask for a fresh id: one row, `id`. */
void subscription_id(struct pg_batch *batch);

/* Register it, with its secret, its place in the round and an audit entry.  The
 * second of two answers is one subscription. */
void subscription_insert(
    struct pg_batch *batch, const struct subscription_new *subscription);

/* Ask for one of the tenant's; for its first `limit` after the id `after`. */
void subscription_get(struct pg_batch *batch, int64_t tenant_id, int64_t id);
void subscription_list(
    struct pg_batch *batch, int64_t tenant_id, int64_t after, int limit);

/* Read a row of any of these three. */
void subscription_read(
    struct subscription *out, const struct pg_rows *rows, int row);

enum { SUBSCRIPTION_ANY_TENANT = -1 }; /* for the operator */

/* Which one is changed, by whom, and on which condition. */
struct subscription_change {
	int64_t tenant_id; /* or SUBSCRIPTION_ANY_TENANT */
	int64_t id;
	const char *actor; /* for the audit */
	const int64_t *versions; /* that it may have now; NULL: any */
	size_t nversions;
};

enum subscription_move {
	SUBSCRIPTION_PAUSE,
	SUBSCRIPTION_RESUME,
	SUBSCRIPTION_DISABLE,
	SUBSCRIPTION_ENABLE,
	SUBSCRIPTION_DELETE,
};

/* What a change makes of the secrets. */
struct subscription_secrets {
	/* Those that it has are given up. */
	bool drops_headers, drops_tls_key, drops_signing_keys;
	/* A signing key is only for one that has none: others keep theirs; else
	 * they are refused. */
	bool keeps_signing_key;
	const struct sealed *sealed; /* those that it gets */
};

/* A new secret to sign with.  At most ENDPOINT_SECRETS of a kind sign at once:
 * the oldest make room. */
struct subscription_rotation {
	int overlap_seconds; /* for which old ones sign beside it */
	const struct sealed *sealed; /* the new one, or a new signing key */
};

/* Change it, with its turn and an audit entry, and wake dispatchers if they may
 * have more to do.  Each puts its own answers into a batch, a transaction that
 * has nothing else; they are for subscription_changed(). */
void subscription_update(struct pg_batch *batch,
    const struct subscription_change *change,
    const struct subscription_fields *fields,
    const struct subscription_secrets *secrets);
void subscription_move(struct pg_batch *batch,
    const struct subscription_change *change, enum subscription_move move);
void subscription_rotate(struct pg_batch *batch,
    const struct subscription_change *change,
    const struct subscription_rotation *rotation);

enum subscription_answer {
	SUBSCRIPTION_CHANGED, /* or as it was to be already */
	SUBSCRIPTION_MISSING,
	SUBSCRIPTION_STALE, /* it has another version */
	SUBSCRIPTION_REFUSED,
};

/* Why a change is refused. */
enum subscription_refusal {
	SUBSCRIPTION_NOT_REFUSED,
	/* To be moved, it is paused and not disabled, or disabled and not so. */
	SUBSCRIPTION_IN_STATE,
	/* Its retry_base_ms would be above its retry_cap_ms. */
	SUBSCRIPTION_WAITS,
	/* A name would be among its headers and its secret headers; there would
	 * be too many; or they would be too long, together. */
	SUBSCRIPTION_HEADER_TWICE,
	SUBSCRIPTION_HEADER_COUNT,
	SUBSCRIPTION_HEADER_TOTAL,
	SUBSCRIPTION_HAS_KEY, /* it is given a signing key, and has one */
	SUBSCRIPTION_HAS_NO_KEY, /* its signing key cannot be rotated */
};

/* What has come of a change. */
struct subscription_outcome {
	enum subscription_answer answer;
	enum subscription_refusal refusal;
	struct subscription now; /* unless it is missing or deleted */
	bool has_new_key; /* of an update: the signing key was taken */
	usec_t old_until; /* of a rotation: old ones sign until then; or -1 */
};

void subscription_changed(
    struct subscription_outcome *out, struct pg_rows *const *rows);

#endif
