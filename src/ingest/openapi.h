/* openapi: the description of this API, src/ingest/openapi.json. */

#ifndef INGEST_OPENAPI_H
#define INGEST_OPENAPI_H

struct call;

/* GET /openapi.json: the file as it is.  A client that has it already, and says
 * so in If-None-Match, is answered 304. */
void openapi_get(struct call *call);

#endif
