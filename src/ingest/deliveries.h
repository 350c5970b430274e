/* deliveries: the routes that show deliveries: the log, and one with all that was
 * tried. */

#ifndef INGEST_DELIVERIES_H
#define INGEST_DELIVERIES_H

struct buf;
struct call;
struct pg_rows;

/* GET /v1/subscriptions/{id}/deliveries/{id}: without the payload, but with what
 * was kept of each answer. */
void deliveries_get(struct call *call);

/* GET /v1/subscriptions/{id}/deliveries?state=&type=&asset=&event=&since=&until=
 * &limit=&after=: a page of the log, the newest first, without payloads. */
void deliveries_list(struct call *call);

/* Append what is known of one try to send, as members that follow another: from
 * the row's columns started_at to excerpt, and tried_status. */
void deliveries_put_try(struct buf *out, const struct pg_rows *rows, int row);

#endif
