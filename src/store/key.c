#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/key.h"
#include "store/stmt.h"
#include "store/tenant.h"

enum { KEY_BYTES = 32, KEY_BASE64 = 44 };
enum { MAX_NAME = 100 }; /* characters */

#define KEY_PREFIX "pr_"

static const char *const roles[] = {
	[KEY_PUBLISHER] = "publisher",
	[KEY_VIEWER] = "viewer",
	[KEY_ADMIN] = "admin",
	[KEY_OPERATOR] = "operator",
};

enum { NROLES = sizeof(roles) / sizeof(roles[0]) };

int
key_hash(
    unsigned char out[KEY_HASH], const char *key, size_t len, struct err *err)
{
	if (EVP_Digest(key, len, out, NULL, EVP_sha256(), NULL) != 1)
		return err_set(err, ERR_RETRY, "SHA-256 failed");
	return 0;
}

void
key_find(struct pg_batch *batch, const unsigned char hash[KEY_HASH])
{
	pg_call(batch, STMT_KEY_FIND);
	pg_bytes(batch, hash, KEY_HASH);
}

/* NROLES if there is no such role. */
static int
find_role(const char *name)
{
	int role = 0;

	while (role < NROLES && strcmp(roles[role], name) != 0)
		role++;
	return role;
}

bool
key_found(struct key *out, const struct pg_rows *rows)
{
	int role;

	if (pg_count(rows) == 0)
		return false;
	role = find_role(pg_read_text(rows, 0, "role"));
	if (role == NROLES)
		return false;
	*out = (struct key){
		.id = pg_read_bigint(rows, 0, "id"),
		.tenant_id = pg_read_bigint(rows, 0, "tenant_id"),
		.role = (enum key_role)role,
		.is_use_due = pg_read_bool(rows, 0, "is_use_due"),
	};
	return true;
}

static void
put_ids(struct pg_batch *batch, const int64_t *ids, size_t n)
{
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, ids[i]);
	pg_array_end(batch);
}

void
key_valid(struct pg_batch *batch, const int64_t *ids, size_t n)
{
	pg_call(batch, STMT_KEY_VALID);
	put_ids(batch, ids, n);
}

void
key_used(struct pg_batch *batch, const int64_t *ids, size_t n)
{
	pg_call(batch, STMT_KEY_USED);
	put_ids(batch, ids, n);
}

/* Characters of UTF-8. */
static size_t
count_chars(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static enum key_fault
fault(enum key_fault which, struct err *err, const char *why)
{
	(void)err_set(err, ERR_REFUSED, "%s", why);
	return which;
}

enum key_fault
key_check(const struct key_order *order, struct err *err)
{
	int role = find_role(order->role);
	size_t len = count_chars(order->name);

	if (role == NROLES)
		return fault(KEY_BAD_ROLE, err,
		    "a key's role is publisher, viewer, admin or operator");
	if (role == KEY_OPERATOR && order->tenant != NULL)
		return fault(
		    KEY_BAD_TENANT, err, "an operator's key has no tenant");
	if (role != KEY_OPERATOR && order->tenant == NULL) {
		(void)err_set(err, ERR_REFUSED,
		    "a key of role %s is for one tenant: which?", order->role);
		return KEY_BAD_TENANT;
	}
	if (order->tenant != NULL && tenant_check_name(order->tenant, err) != 0)
		return KEY_BAD_TENANT;
	if (len < 1 || len > MAX_NAME) {
		(void)err_set(err, ERR_REFUSED,
		    "a key's name has 1 to %d characters", MAX_NAME);
		return KEY_BAD_NAME;
	}
	if (order->expires_at >= 0 && order->expires_at <= clock_wall())
		return fault(
		    KEY_BAD_EXPIRY, err, "a key expires at a time to come");
	return KEY_NO_FAULT;
}

int
key_make(char key[KEY_LEN + 1], unsigned char hash[KEY_HASH], struct err *err)
{
	unsigned char bytes[KEY_BYTES], text[KEY_BASE64 + 1];
	size_t prefix = strlen(KEY_PREFIX);

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return err_set(err, ERR_RETRY, "no random bytes for a key");
	(void)EVP_EncodeBlock(text, bytes, sizeof(bytes));
	memcpy(key, KEY_PREFIX, prefix);
	for (size_t i = prefix; i < KEY_LEN; i++) {
		unsigned char c = text[i - prefix];

		key[i] = (char)(c == '+' ? '-' : c == '/' ? '_' : c);
	}
	key[KEY_LEN] = '\0';
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(text, sizeof(text));
	return key_hash(hash, key, KEY_LEN, err);
}

void
key_create(struct pg_batch *batch, const struct key_order *order,
    const unsigned char hash[KEY_HASH], const char *actor)
{
	pg_call(batch, STMT_KEY_CREATE);
	pg_text(batch, order->tenant);
	pg_text(batch, order->role);
	pg_text(batch, order->name);
	pg_bytes(batch, hash, KEY_HASH);
	pg_time(batch, order->expires_at);
	pg_text(batch, actor);
}

void
key_get(struct pg_batch *batch, int64_t id)
{
	pg_call(batch, STMT_KEY_GET);
	pg_bigint(batch, id);
}

void
key_list(struct pg_batch *batch, const char *tenant, int64_t after, int limit)
{
	pg_call(batch, STMT_KEY_LIST);
	pg_text(batch, tenant);
	pg_bigint(batch, after);
	pg_int(batch, limit);
}

bool
key_read(struct key_row *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows))
		return false;
	*out = (struct key_row){
		.id = pg_read_bigint(rows, row, "id"),
		.tenant = pg_read_text_or_null(rows, row, "tenant"),
		.role = pg_read_text_or_null(rows, row, "role"),
		.name = pg_read_text_or_null(rows, row, "name"),
		.created_at = pg_read_time(rows, row, "created_at"),
		.expires_at = pg_read_time(rows, row, "expires_at"),
		.revoked_at = pg_read_time(rows, row, "revoked_at"),
		.last_used_at = pg_read_time(rows, row, "last_used_at"),
	};
	return true;
}

void
key_revoke(struct pg_batch *batch, int64_t id, const char *actor)
{
	pg_call(batch, STMT_KEY_REVOKE);
	pg_bigint(batch, id);
	pg_text(batch, actor);
}
