/* routes: which handler answers which request, and the table of them. */

#ifndef INGEST_ROUTES_H
#define INGEST_ROUTES_H

#include <stddef.h>

struct route;

/* Where a route is counted; NULL is where those are that fit none. */
size_t routes_index(const struct route *route);

/* Its method and path as a label says them; NULL behind the last. */
const char *routes_method(size_t index);
const char *routes_path(size_t index);

#endif
