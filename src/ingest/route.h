/* route: one row of the table in routes.c, for routes.c and gate.c. */

#ifndef INGEST_ROUTE_H
#define INGEST_ROUTE_H

#include <stdbool.h>

struct buf;
struct call;

/* What a route gives whose answers differ, whatever a client accepts. */
#define ROUTE_ANY_TYPE "*/*"

struct route {
	const char *method;
	const char *path; /* {id}, or {asset}: one segment; twice at most */
	void (*handle)(struct call *call);
	const char *type; /* of the body that it takes; NULL for none */
	const char *gives; /* the type of its answer; NULL is JSON */
	unsigned roles; /* who may; 0: everybody, without a key */
	bool has_query; /* the handler reads it; else there may be none */
	bool is_fresh; /* the key is looked up each time */
	bool is_large; /* its body may have max_batch_bytes */
};

/* Set the route of `call`, whose request is set, and the ids in its path; NULL
 * if it fits none. */
void routes_find(struct call *call);

/* Append the methods for which there is a route at `path`, as Allow has them.
 * False if there is none. */
bool routes_allow(struct buf *out, const char *path);

#endif
