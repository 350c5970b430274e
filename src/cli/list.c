#include "base/err.h"
#include "list.h"
#include "pg/pg.h"
#include "pg/row.h"

/* Add a page, and move `*from` behind it. */
static int
add_page(struct pg *pg, const struct list *list, int64_t *from, struct out *out,
    struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "%s", list->what);
	list->ask(batch, list->arg, *from);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	*from = list->add(out, rows[0], list->arg);
	pg_rows_free(rows);
	return 0;
}

int
list_all(
    struct pg *pg, const struct list *list, struct out *out, struct err *err)
{
	int64_t from = 0;

	do {
		if (add_page(pg, list, &from, out, err) != 0)
			return -1;
	} while (from != 0);
	return 0;
}

int64_t
list_next(const struct pg_rows *rows, int64_t last)
{
	return pg_count(rows) == LIST_PAGE ? last : 0;
}
