/* row: read the rows of an answer, in PostgreSQL's binary format. */

#ifndef PG_ROW_H
#define PG_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct pg_rows;

/* How many rows came back. */
int pg_count(const struct pg_rows *rows);

/* How many rows were written, for a statement without RETURNING. */
int64_t pg_affected(const struct pg_rows *rows);

/* The column called `name`; asserts that it is there: the statement is ours. */
int pg_column(const struct pg_rows *rows, const char *name);

bool pg_is_null(const struct pg_rows *rows, int row, int column);

/*
 * A value of the column's own type: boolean, integer, bigint, text (or any
 * type whose binary form is its text), and bytea, or uuid as its 16 bytes.
 * What is lent lives as long as `rows`.  A null reads as 0, false, "" and
 * NULL.
 */
bool pg_get_bool(const struct pg_rows *rows, int row, int column);
int32_t pg_get_int(const struct pg_rows *rows, int row, int column);
int64_t pg_get_bigint(const struct pg_rows *rows, int row, int column);
const char *pg_get_text(const struct pg_rows *rows, int row, int column);
const void *pg_get_bytes(
    const struct pg_rows *rows, int row, int column, size_t *len);

/* The same by the column's name.  pg_read_text_or_null() tells a null from an
 * empty text, and pg_read_time(), of a bigint of microseconds, has -1 for a
 * null, so that it cannot be taken for 1970. */
bool pg_read_bool(const struct pg_rows *rows, int row, const char *name);
int32_t pg_read_int(const struct pg_rows *rows, int row, const char *name);
int64_t pg_read_bigint(const struct pg_rows *rows, int row, const char *name);
const char *pg_read_text(const struct pg_rows *rows, int row, const char *name);
const char *pg_read_text_or_null(
    const struct pg_rows *rows, int row, const char *name);
usec_t pg_read_time(const struct pg_rows *rows, int row, const char *name);

#endif
