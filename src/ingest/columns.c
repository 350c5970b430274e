#include "base/buf.h"
#include "columns.h"
#include "pg/row.h"
#include "put.h"

static void
put_column(struct buf *out, const struct pg_rows *rows, int row,
    const struct column *column)
{
	const char *name = column->name;

	switch (column->kind) {
	case COLUMN_BIGINT:
		put_number(out, name, pg_read_bigint(rows, row, name));
		break;
	case COLUMN_BOOL:
		put_bool(out, name, pg_read_bool(rows, row, name));
		break;
	case COLUMN_ID:
		put_id(out, name, pg_read_bigint(rows, row, name));
		break;
	case COLUMN_INT:
		put_number(out, name, pg_read_int(rows, row, name));
		break;
	case COLUMN_JSON:
		put_json(out, name, pg_read_text(rows, row, name));
		break;
	case COLUMN_TEXT:
		put_text(out, name, pg_read_text(rows, row, name));
		break;
	case COLUMN_TIME:
		put_time(out, name, pg_read_time(rows, row, name));
		break;
	}
}

void
columns_put(struct buf *out, const struct pg_rows *rows, int row,
    const struct column *columns, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int column = pg_column(rows, columns[i].name);

		if (pg_is_null(rows, row, column))
			put_json(out, columns[i].name, "null");
		else
			put_column(out, rows, row, &columns[i]);
	}
}
