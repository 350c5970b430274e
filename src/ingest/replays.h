/* replays: the routes that send again, or give up, what is over. */

#ifndef INGEST_REPLAYS_H
#define INGEST_REPLAYS_H

struct call;

/* POST /v1/subscriptions/{id}/deliveries/{id}/retry, and .../discard: one dead
 * letter. */
void replays_retry(struct call *call);
void replays_discard(struct call *call);

/* POST /v1/subscriptions/{id}/retry-dead, and .../replay: in the background all
 * dead letters, and all events that the subscription matches. */
void replays_post_dead(struct call *call);
void replays_post_events(struct call *call);

/* GET /v1/subscriptions/{id}/replays: the newest first. */
void replays_list(struct call *call);

/* GET, DELETE /v1/subscriptions/{id}/replays/{id} */
void replays_get(struct call *call);
void replays_delete(struct call *call);

#endif
