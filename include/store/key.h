/* key: who presents an API key.  Only the hash of a key is kept anywhere. */

#ifndef STORE_KEY_H
#define STORE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct pg_batch;
struct pg_rows;

enum { KEY_HASH = 32 }; /* SHA-256 */

enum key_role {
	KEY_PUBLISHER, /* posts events and reads them */
	KEY_ADMIN, /* all of its tenant */
	KEY_OPERATOR, /* of no tenant: looks after all of them */
};

struct key {
	int64_t id;
	int64_t tenant_id; /* 0 for an operator */
	enum key_role role;
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

#endif
