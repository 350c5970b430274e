/*
 * key: API keys: who presents one, and how they are made and given up.
 *
 * A key is shown once, by who makes it.  Only its hash is kept anywhere.
 */

#ifndef STORE_KEY_H
#define STORE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg_batch;
struct pg_rows;

enum {
	KEY_HASH = 32, /* SHA-256 */
	KEY_LEN = 46, /* "pr_" and 32 random bytes as base64url */
	KEY_USED_MAX = 256, /* for one key_used() */
};

enum key_role {
	KEY_PUBLISHER, /* posts events and reads them */
	KEY_VIEWER, /* reads all of its tenant */
	KEY_ADMIN, /* all of its tenant */
	KEY_OPERATOR, /* of no tenant: looks after all of them */
};

struct key {
	int64_t id;
	int64_t tenant_id; /* 0 for an operator */
	enum key_role role;
	bool is_use_due; /* it is worth a key_used() */
};

/* The hash under which `key` is kept. */
int key_hash(
    unsigned char out[KEY_HASH], const char *key, size_t len, struct err *err);

/* Ask for the key with this hash. */
void key_find(struct pg_batch *batch, const unsigned char hash[KEY_HASH]);

/* Read the answer; false if no such key may be used now. */
bool key_found(struct key *out, const struct pg_rows *rows);

/* Ask which of these keys may still be used: one row, `id`, for each. */
void key_valid(struct pg_batch *batch, const int64_t *ids, size_t n);

/* Write down that these keys were used just now, unless that was done some
 * minutes ago. */
void key_used(struct pg_batch *batch, const int64_t *ids, size_t n);

/* What a key may do, for whom and until when. */
struct key_order {
	const char *tenant; /* its name; NULL for an operator */
	const char *role; /* as people write it */
	const char *name; /* for people */
	usec_t expires_at; /* since 1970; -1: never */
};

/* What is wrong with an order. */
enum key_fault {
	KEY_NO_FAULT,
	KEY_BAD_ROLE,
	KEY_BAD_TENANT,
	KEY_BAD_NAME,
	KEY_BAD_EXPIRY,
};

/* Whether there can be such a key; if not, `err` says why in words for
 * people. */
enum key_fault key_check(const struct key_order *order, struct err *err);

/* A new random key, and the hash of it: the caller shows it and wipes it. */
int key_make(
    char key[KEY_LEN + 1], unsigned char hash[KEY_HASH], struct err *err);

/* Keep a key that can be; no row if there is no such tenant. */
void key_create(struct pg_batch *batch, const struct key_order *order,
    const unsigned char hash[KEY_HASH], const char *actor);

/* One row; its texts live as long as the rows.  Times are since 1970, and -1 for
 * never. */
struct key_row {
	int64_t id;
	const char *tenant; /* NULL for an operator's */
	const char *role;
	const char *name;
	usec_t created_at;
	usec_t expires_at;
	usec_t revoked_at;
	usec_t last_used_at; /* to within some minutes */
};

/* Ask for one; for the first `limit` after the id `after`, of a tenant, or with
 * NULL of all, the operators' included. */
void key_get(struct pg_batch *batch, int64_t id);
void key_list(
    struct pg_batch *batch, const char *tenant, int64_t after, int limit);

/* Read a row of key_create(), key_get() or key_list(); false behind the last. */
bool key_read(struct key_row *out, const struct pg_rows *rows, int row);

/* Let a key open nothing from now on: one row; none if there is no such key, or
 * it is revoked already. */
void key_revoke(struct pg_batch *batch, int64_t id, const char *actor);

#endif
