/* etag: versions as HTTP has them (RFC 9110, 8.8.3 and 13.1.1). */

#ifndef INGEST_ETAG_H
#define INGEST_ETAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct request;

enum { ETAG_MAX = 8 };

/* Which versions an If-Match allows. */
struct etag_match {
	bool is_any; /* there was none, or it was "*" */
	int64_t versions[ETAG_MAX];
	size_t nversions;
};

/* Read the If-Match of a request.  ERR_REFUSED if it is none; a tag that never
 * was one of ours allows nothing. */
int etag_read(
    struct etag_match *out, const struct request *request, struct err *err);

/* Add an ETag to the answer to come. */
void etag_add(struct request *request, int64_t version);

#endif
