/* query: one parameter of a query string. */

#ifndef RECEIVER_QUERY_H
#define RECEIVER_QUERY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Write the value of the first parameter called `name`, unescaped, to `out` as
 * a string.  Returns 1 if it is there, 0 if not, -1 if it does not fit or is
 * not text.
 */
int query_text(char *out, size_t size, const char *query, const char *name);

/* The same for a whole number of 0 to `max`; `*out` is left alone unless 1. */
int query_number(
    int64_t *out, int64_t max, const char *query, const char *name);

#endif
