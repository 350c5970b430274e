/* deliveries: the routes that show deliveries: the log, and one with all that was
 * tried. */

#ifndef INGEST_DELIVERIES_H
#define INGEST_DELIVERIES_H

struct call;

/* GET /v1/subscriptions/{id}/deliveries/{id}: without the payload, but with what
 * was kept of each answer. */
void deliveries_get(struct call *call);

/* GET /v1/subscriptions/{id}/deliveries?state=&type=&asset=&event=&since=&until=
 * &limit=&after=: a page of the log, the newest first, without payloads. */
void deliveries_list(struct call *call);

#endif
