/* columns: what a row says, as members of a JSON object. */

#ifndef INGEST_COLUMNS_H
#define INGEST_COLUMNS_H

#include <stddef.h>

struct buf;
struct pg_rows;

enum column_kind {
	COLUMN_BIGINT,
	COLUMN_BOOL,
	COLUMN_ID, /* a bigint, as a string */
	COLUMN_INT,
	COLUMN_JSON, /* a text that is JSON already */
	COLUMN_TEXT,
	COLUMN_TIME, /* a bigint: microseconds since 1970 */
};

/* One column, and the member of its name. */
struct column {
	const char *name;
	enum column_kind kind;
};

/* Append these columns of the row as members, in their order; a null as null. */
void columns_put(struct buf *out, const struct pg_rows *rows, int row,
    const struct column *columns, size_t n);

#endif
