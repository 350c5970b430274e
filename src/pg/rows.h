/* rows: the answers of a batch, as the rest of the room sees them. */

#ifndef PG_ROWS_H
#define PG_ROWS_H

#include <libpq-fe.h>
#include <stddef.h>

#include "pg/row.h"

struct pg_rows {
	PGresult *result; /* NULL until it has come */
};

/* Room for `n` answers, ended by NULL; NULL if memory is short.  Freed with
 * pg_rows_free(). */
struct pg_rows **rows_new(size_t n);

#endif
