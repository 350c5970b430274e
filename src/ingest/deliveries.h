/* deliveries: the route that shows one delivery, with all that was tried. */

#ifndef INGEST_DELIVERIES_H
#define INGEST_DELIVERIES_H

struct call;

/* GET /v1/subscriptions/{id}/deliveries/{id}: without the payload, but with what
 * was kept of each answer. */
void deliveries_get(struct call *call);

#endif
