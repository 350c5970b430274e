#include <assert.h>
#include <stdlib.h>

#include "pg/pg.h"
#include "rows.h"

struct pg_rows **
rows_new(size_t n)
{
	/* One block: the pointers, their NULL, what they point to. */
	struct pg_rows **rows = calloc(
	    1, (n + 1) * sizeof(struct pg_rows *) + n * sizeof(struct pg_rows));
	struct pg_rows *each;

	if (rows == NULL)
		return NULL;
	each = (struct pg_rows *)(void *)(rows + n + 1);
	for (size_t i = 0; i < n; i++)
		rows[i] = each + i;
	return rows;
}

void
pg_rows_free(struct pg_rows **rows)
{
	if (rows == NULL)
		return;
	for (size_t i = 0; rows[i] != NULL; i++)
		PQclear(rows[i]->result);
	free(rows);
}

int
pg_count(const struct pg_rows *rows)
{
	return PQntuples(rows->result);
}

int64_t
pg_affected(const struct pg_rows *rows)
{
	return strtoll(PQcmdTuples(rows->result), NULL, 10);
}

int
pg_column(const struct pg_rows *rows, const char *name)
{
	int column = PQfnumber(rows->result, name);

	assert(column >= 0);
	return column;
}

bool
pg_is_null(const struct pg_rows *rows, int row, int column)
{
	return PQgetisnull(rows->result, row, column);
}

/* A value of `len` bytes, big-endian, as PostgreSQL sends it; 0 for null. */
static uint64_t
get_be(const struct pg_rows *rows, int row, int column, int len)
{
	const char *at = PQgetvalue(rows->result, row, column);
	uint64_t value = 0;

	if (pg_is_null(rows, row, column))
		return 0;
	assert(PQgetlength(rows->result, row, column) == len);
	for (int i = 0; i < len; i++)
		value = value << 8 | (unsigned char)at[i];
	return value;
}

bool
pg_get_bool(const struct pg_rows *rows, int row, int column)
{
	return get_be(rows, row, column, 1) != 0;
}

int32_t
pg_get_int(const struct pg_rows *rows, int row, int column)
{
	return (int32_t)(uint32_t)get_be(rows, row, column, 4);
}

int64_t
pg_get_bigint(const struct pg_rows *rows, int row, int column)
{
	return (int64_t)get_be(rows, row, column, 8);
}

const char *
pg_get_text(const struct pg_rows *rows, int row, int column)
{
	/* libpq ends every value with a NUL; a null is an empty one. */
	return PQgetvalue(rows->result, row, column);
}

const void *
pg_get_bytes(const struct pg_rows *rows, int row, int column, size_t *len)
{
	*len = (size_t)PQgetlength(rows->result, row, column);
	if (pg_is_null(rows, row, column))
		return NULL;
	return PQgetvalue(rows->result, row, column);
}

bool
pg_read_bool(const struct pg_rows *rows, int row, const char *name)
{
	return pg_get_bool(rows, row, pg_column(rows, name));
}

int32_t
pg_read_int(const struct pg_rows *rows, int row, const char *name)
{
	return pg_get_int(rows, row, pg_column(rows, name));
}

int64_t
pg_read_bigint(const struct pg_rows *rows, int row, const char *name)
{
	return pg_get_bigint(rows, row, pg_column(rows, name));
}

const char *
pg_read_text(const struct pg_rows *rows, int row, const char *name)
{
	return pg_get_text(rows, row, pg_column(rows, name));
}

const char *
pg_read_text_or_null(const struct pg_rows *rows, int row, const char *name)
{
	int column = pg_column(rows, name);

	if (pg_is_null(rows, row, column))
		return NULL;
	return pg_get_text(rows, row, column);
}

usec_t
pg_read_time(const struct pg_rows *rows, int row, const char *name)
{
	int column = pg_column(rows, name);

	if (pg_is_null(rows, row, column))
		return -1;
	return pg_get_bigint(rows, row, column);
}
