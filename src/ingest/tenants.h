/* tenants: the routes under /v1/tenants, for operators. */

#ifndef INGEST_TENANTS_H
#define INGEST_TENANTS_H

struct call;

/* GET /v1/tenants?after=ID&limit=N */
void tenants_list(struct call *call);

/* GET /v1/tenants/{id} */
void tenants_get(struct call *call);

/* POST /v1/tenants */
void tenants_post(struct call *call);

#endif
