#include <string.h>

#include <openssl/evp.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/key.h"
#include "store/stmt.h"

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

static enum key_role
parse_role(const char *role)
{
	if (strcmp(role, "admin") == 0)
		return KEY_ADMIN;
	if (strcmp(role, "operator") == 0)
		return KEY_OPERATOR;
	return KEY_PUBLISHER; /* may do least */
}

bool
key_found(struct key *out, const struct pg_rows *rows)
{
	if (pg_count(rows) == 0)
		return false;
	*out = (struct key){
		.id = pg_get_bigint(rows, 0, pg_column(rows, "id")),
		.tenant_id =
		    pg_get_bigint(rows, 0, pg_column(rows, "tenant_id")),
		.role =
		    parse_role(pg_get_text(rows, 0, pg_column(rows, "role"))),
	};
	return true;
}

void
key_valid(struct pg_batch *batch, const int64_t *ids, size_t n)
{
	pg_call(batch, STMT_KEY_VALID);
	pg_array(batch, PG_BIGINT);
	for (size_t i = 0; i < n; i++)
		pg_bigint(batch, ids[i]);
	pg_array_end(batch);
}
