#include <string.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/stmt.h"
#include "store/tenant.h"

enum { MAX_NAME = 63 };

#define LETTERS_DIGITS                                                         \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

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

void
tenant_create(struct pg_batch *batch, const char *name, const char *actor)
{
	pg_call(batch, STMT_TENANT_CREATE);
	pg_text(batch, name);
	pg_text(batch, actor);
}

void
tenant_get(struct pg_batch *batch, int64_t id)
{
	pg_call(batch, STMT_TENANT_GET);
	pg_bigint(batch, id);
}

void
tenant_list(struct pg_batch *batch, int64_t after, int limit)
{
	pg_call(batch, STMT_TENANT_LIST);
	pg_bigint(batch, after);
	pg_int(batch, limit);
}

bool
tenant_read(struct tenant *out, const struct pg_rows *rows, int row)
{
	if (row >= pg_count(rows))
		return false;
	*out = (struct tenant){
		.id = pg_read_bigint(rows, row, "id"),
		.name = pg_read_text(rows, row, "name"),
		.created_at = pg_read_bigint(rows, row, "created_at"),
	};
	return true;
}

int
tenant_find(struct pg *pg, const char *name, int64_t *id, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result = 0;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenant");
	pg_call(batch, STMT_TENANT_FIND);
	pg_text(batch, name);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	if (pg_count(rows[0]) == 0)
		result = err_set(err, ERR_REFUSED, "there is no such tenant");
	else
		*id = pg_read_bigint(rows[0], 0, "id");
	pg_rows_free(rows);
	return result;
}
