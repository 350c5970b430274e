/* query: what stands behind the question mark of an address. */

#ifndef INGEST_QUERY_H
#define INGEST_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg_batch;

enum { QUERY_VALUE_MAX = 256 };

/* One `name=value` that may be given: without a space and in ASCII, or any
 * text. */
struct query_item {
	const char *name;
	bool is_text;
	bool is_given;
	char value[QUERY_VALUE_MAX + 1]; /* %XX undone */
};

/* Read `query` into the items whose names are set.  ERR_REFUSED if there is
 * anything else, or one twice. */
int query_read(
    struct query_item *items, size_t n, const char *query, struct err *err);

/* The value of an item that was given, else `*out` stays as it is: a number
 * from `min` to `max`; a time as RFC 3339 has it. */
int query_number(const struct query_item *item, int64_t min, int64_t max,
    int64_t *out, struct err *err);
int query_time(const struct query_item *item, usec_t *out, struct err *err);

/* Its text; NULL if it was not given. */
const char *query_text(const struct query_item *item);

/* Put a number that query_number() left below 0, if it was not given, into a
 * batch: null then. */
void query_put_id(struct pg_batch *batch, int64_t id);

#endif
