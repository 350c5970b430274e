/* accept: whether a client takes what it would be answered with (RFC 9110,
 * 12.5.1). */

#ifndef INGEST_ACCEPT_H
#define INGEST_ACCEPT_H

#include <stdbool.h>

struct request;

/*
 * True if the Accept of `request` lets it be answered with the media type
 * `type`, which has no parameters: of the ranges that fit, the most specific
 * one says so.  Without one, or with an empty one, all is taken.  Parameters
 * other than q do not matter.  Problems are sent whatever is accepted: a client
 * that cannot read one still has its status.
 */
bool accept_takes(const struct request *request, const char *type);

#endif
