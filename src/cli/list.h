/* list: all that there is of something, asked for page by page. */

#ifndef CLI_LIST_H
#define CLI_LIST_H

#include <stdint.h>

struct err;
struct out;
struct pg;
struct pg_batch;
struct pg_rows;

enum { LIST_PAGE = 200 }; /* rows */

struct list {
	const char *what; /* for an error: "keys" */
	/* Ask for the page from `from` on, where the last one said that it
	 * goes on; 0 for the first. */
	void (*ask)(struct pg_batch *batch, void *arg, int64_t from);
	/* Add its rows, and say where it goes on; 0 if that was all. */
	int64_t (*add)(struct out *out, const struct pg_rows *rows, void *arg);
	void *arg;
};

int list_all(
    struct pg *pg, const struct list *list, struct out *out, struct err *err);

/* Where to go on behind a page that ends with the id `last`: a full one may not
 * be the last. */
int64_t list_next(const struct pg_rows *rows, int64_t last);

#endif
