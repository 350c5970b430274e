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
enum { MAX_NAME = 63, MAX_KEY_NAME = 100 }; /* characters */

#define LETTERS_DIGITS                                                         \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

#define KEY_PREFIX "pr_"

#define IS_UNIQUE "23505"

/* A batch of one call, whose parameters follow. */
static struct pg_batch *
call(enum stmt statement)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch != NULL)
		pg_call(batch, (int)statement);
	return batch;
}

/* The id in the only row; ERR_REFUSED with `missing` if there is none. */
static int
run_for_id(struct pg *pg, struct pg_batch *batch, int64_t *id,
    const char *missing, struct err *err)
{
	struct pg_rows **rows;
	int status = 0;

	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	if (pg_count(rows[0]) == 0)
		status = err_set(err, ERR_REFUSED, "%s", missing);
	else
		*id = pg_get_bigint(rows[0], 0, pg_column(rows[0], "id"));
	pg_rows_free(rows);
	return status;
}

/* A null is -1, so that it cannot be taken for 1970. */
static usec_t
get_time(const struct pg_rows *rows, int row, const char *column)
{
	int c = pg_column(rows, column);

	return pg_is_null(rows, row, c) ? -1 : pg_get_bigint(rows, row, c);
}

static const char *
get_text(const struct pg_rows *rows, int row, const char *column)
{
	int c = pg_column(rows, column);

	return pg_is_null(rows, row, c) ? NULL : pg_get_text(rows, row, c);
}

int
tenant_check_name(const char *name, struct err *err)
{
	size_t len = strspn(name, LETTERS_DIGITS "_-");

	if (len <= MAX_NAME && name[len] == '\0' &&
	    strspn(name, LETTERS_DIGITS) > 0)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "a tenant's name is 1 to %d of A-Z a-z 0-9 _ -, and begins with a "
	    "letter or a digit",
	    MAX_NAME);
}

int
tenant_create(struct pg *pg, const char *name, int64_t *id, struct err *err)
{
	struct pg_batch *batch = call(STMT_TENANT_CREATE);

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenant");
	pg_text(batch, name);
	if (run_for_id(pg, batch, id, "no tenant was made", err) == 0)
		return 0;
	if (strcmp(err->sqlstate, IS_UNIQUE) == 0)
		return err_set(
		    err, ERR_REFUSED, "there is a tenant %s already", name);
	return -1;
}

int
tenant_find(struct pg *pg, const char *name, int64_t *id, struct err *err)
{
	struct pg_batch *batch = call(STMT_TENANT_FIND);

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenant");
	pg_text(batch, name);
	return run_for_id(pg, batch, id, "there is no such tenant", err);
}

int
tenant_list(struct pg *pg, void (*row)(void *arg, const struct tenant *tenant),
    void *arg, struct err *err)
{
	struct pg_batch *batch = call(STMT_TENANT_LIST);
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenants");
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	for (int i = 0; i < pg_count(rows[0]); i++) {
		const struct tenant tenant = {
			.id =
			    pg_get_bigint(rows[0], i, pg_column(rows[0], "id")),
			.name = get_text(rows[0], i, "name"),
			.created_at = get_time(rows[0], i, "created_at"),
		};

		row(arg, &tenant);
	}
	pg_rows_free(rows);
	return 0;
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

int
tenant_check_key(const struct tenant_key_args *args, struct err *err)
{
	bool is_operator = strcmp(args->role, "operator") == 0;
	size_t len = count_chars(args->name);

	if (!is_operator && strcmp(args->role, "publisher") != 0 &&
	    strcmp(args->role, "admin") != 0)
		return err_set(err, ERR_REFUSED,
		    "a key's role is publisher, admin or operator");
	if (is_operator && args->tenant != NULL)
		return err_set(
		    err, ERR_REFUSED, "an operator's key has no tenant");
	if (!is_operator && args->tenant == NULL)
		return err_set(err, ERR_REFUSED,
		    "a key of role %s is for one tenant: which?", args->role);
	if (len < 1 || len > MAX_KEY_NAME)
		return err_set(err, ERR_REFUSED,
		    "a key's name has 1 to %d characters", MAX_KEY_NAME);
	return is_operator ? 0 : tenant_check_name(args->tenant, err);
}

static int
make_key(char key[TENANT_KEY_LEN + 1], struct err *err)
{
	unsigned char bytes[KEY_BYTES], text[KEY_BASE64 + 1];
	size_t prefix = strlen(KEY_PREFIX);

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return err_set(err, ERR_RETRY, "no random bytes for a key");
	(void)EVP_EncodeBlock(text, bytes, sizeof(bytes));
	memcpy(key, KEY_PREFIX, prefix);
	for (size_t i = prefix; i < TENANT_KEY_LEN; i++) {
		unsigned char c = text[i - prefix];

		key[i] = (char)(c == '+' ? '-' : c == '/' ? '_' : c);
	}
	key[TENANT_KEY_LEN] = '\0';
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(text, sizeof(text));
	return 0;
}

int
tenant_key_create(struct pg *pg, const struct tenant_key_args *args,
    char key[TENANT_KEY_LEN + 1], int64_t *id, struct err *err)
{
	unsigned char hash[KEY_HASH];
	struct pg_batch *batch;

	if (make_key(key, err) != 0 ||
	    key_hash(hash, key, TENANT_KEY_LEN, err) != 0)
		goto fail;
	batch = call(STMT_KEY_CREATE);
	if (batch == NULL) {
		(void)err_set(err, ERR_NOMEM, "key");
		goto fail;
	}
	pg_text(batch, args->tenant);
	pg_text(batch, args->role);
	pg_text(batch, args->name);
	pg_bytes(batch, hash, sizeof(hash));
	if (run_for_id(pg, batch, id, "there is no such tenant", err) != 0)
		goto fail;
	return 0;

fail:
	OPENSSL_cleanse(key, TENANT_KEY_LEN + 1);
	return -1;
}

int
tenant_key_revoke(struct pg *pg, int64_t id, struct err *err)
{
	struct pg_batch *batch = call(STMT_KEY_REVOKE);

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "key");
	pg_bigint(batch, id);
	return run_for_id(pg, batch, &id,
	    "there is no such key, or it is revoked already", err);
}

int
tenant_key_list(struct pg *pg, const char *tenant,
    void (*row)(void *arg, const struct tenant_key *key), void *arg,
    struct err *err)
{
	struct pg_batch *batch;
	struct pg_rows **rows;
	int64_t id;

	if (tenant != NULL && tenant_find(pg, tenant, &id, err) != 0)
		return -1;
	batch = call(STMT_KEY_LIST);
	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "keys");
	pg_text(batch, tenant);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	for (int i = 0; i < pg_count(rows[0]); i++) {
		const struct tenant_key key = {
			.id =
			    pg_get_bigint(rows[0], i, pg_column(rows[0], "id")),
			.tenant = get_text(rows[0], i, "tenant"),
			.role = get_text(rows[0], i, "role"),
			.name = get_text(rows[0], i, "name"),
			.created_at = get_time(rows[0], i, "created_at"),
			.expires_at = get_time(rows[0], i, "expires_at"),
			.revoked_at = get_time(rows[0], i, "revoked_at"),
		};

		row(arg, &key);
	}
	pg_rows_free(rows);
	return 0;
}
