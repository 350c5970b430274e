/*
 * tenant: customers, and the keys that they call with.
 *
 * For the operator's command.  What asks the database waits for it, and what
 * changes it is one transaction.  ERR_REFUSED says what is wrong with the
 * input, in words for the operator.
 */

#ifndef STORE_TENANT_H
#define STORE_TENANT_H

#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg;

enum {
	TENANT_KEY_LEN = 46, /* "pr_" and 32 random bytes as base64url */
};

/* What is lent to a callback lasts until it returns. */
struct tenant {
	int64_t id;
	const char *name;
	usec_t created_at; /* since 1970 */
};

struct tenant_key {
	int64_t id;
	const char *tenant; /* NULL for an operator's */
	const char *role;
	const char *name;
	usec_t created_at; /* since 1970; so are the others, or -1 for never */
	usec_t expires_at;
	usec_t revoked_at;
};

/* ERR_REFUSED if no tenant can be called so.  Asks no database. */
int tenant_check_name(const char *name, struct err *err);

int tenant_create(
    struct pg *pg, const char *name, int64_t *id, struct err *err);

/* ERR_REFUSED if there is no such tenant. */
int tenant_find(struct pg *pg, const char *name, int64_t *id, struct err *err);

int tenant_list(struct pg *pg,
    void (*row)(void *arg, const struct tenant *tenant), void *arg,
    struct err *err);

/* What a key may do, and for whom. */
struct tenant_key_args {
	const char *tenant; /* NULL for an operator */
	const char *role; /* publisher, admin, operator */
	const char *name; /* for people */
};

/* ERR_REFUSED if there can be no such key.  Asks no database. */
int tenant_check_key(const struct tenant_key_args *args, struct err *err);

/*
 * Make a random key and keep its SHA-256.  `key` is the only copy: the caller
 * shows it and wipes it.
 */
int tenant_key_create(struct pg *pg, const struct tenant_key_args *args,
    char key[TENANT_KEY_LEN + 1], int64_t *id, struct err *err);

/* ERR_REFUSED if there is no such key, or it is revoked already. */
int tenant_key_revoke(struct pg *pg, int64_t id, struct err *err);

/* The keys of a tenant, which is there, else ERR_REFUSED; with NULL all, the
 * operators' included. */
int tenant_key_list(struct pg *pg, const char *tenant,
    void (*row)(void *arg, const struct tenant_key *key), void *arg,
    struct err *err);

#endif
