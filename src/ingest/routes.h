/* routes: which handler answers which request. */

#ifndef INGEST_ROUTES_H
#define INGEST_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

struct call;
struct request;
struct route;

/* What struct server_events wants; `arg` is the struct ingest. */
size_t routes_gate(void *arg, struct request *request);
void routes_handle(void *arg, struct request *request);
void routes_refuse(
    void *arg, struct request *request, int status, const char *detail);

/* Where a route is counted; NULL is where those are that fit none. */
size_t routes_index(const struct route *route);

/* Its method and path as a label says them; NULL behind the last. */
const char *routes_method(size_t index);
const char *routes_path(size_t index);

#endif
