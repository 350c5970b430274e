/*
 * page: one page of a list.
 *
 * A page begins behind the row that the last one ended with, whose id the query
 * names, so it is stable while rows come and go.  `limit` bounds it.
 */

#ifndef INGEST_PAGE_H
#define INGEST_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct call;
struct err;
struct pg_rows;
struct query_item;

enum {
	PAGE_ITEMS = 2, /* its own, the first of all */
	PAGE_MAX = 200, /* rows */
};

struct page {
	int64_t from; /* where the last one ended; -1 for the first */
	int limit;
};

/*
 * Read the query of `call` into `n` items, of which the first PAGE_ITEMS are
 * made here and the others have their names; and keep the page in the call.
 * `cursor` is the name of what says where to begin.  ERR_REFUSED.
 */
int page_read(struct call *call, const char *cursor, struct query_item *items,
    size_t n, struct err *err);

/* Append a row as a JSON object, and say its id; false if it is no row. */
typedef bool page_put_fn(
    struct buf *out, const struct pg_rows *rows, int row, int64_t *id);

/* Append `"name":[...]` with the rows of the call's page.  Returns how many
 * they are; `*last` is the last one's id, and left alone if there is none. */
int page_put(struct buf *out, const struct call *call, const char *name,
    const struct pg_rows *rows, page_put_fn *put, int64_t *last);

/* Answer with them and `next_after`.  A row more than the page has, which was
 * asked for, says that there is a next one. */
void page_reply(struct call *call, const char *name, const struct pg_rows *rows,
    page_put_fn *put);

#endif
