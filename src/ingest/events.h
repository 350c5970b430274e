/* events: the routes under /v1/events. */

#ifndef INGEST_EVENTS_H
#define INGEST_EVENTS_H

struct buf;
struct call;
struct outbox_event;

/* POST /v1/events: one event. */
void events_post(struct call *call);

/* POST /v1/events/batch: one event a line, all or nothing. */
void events_post_batch(struct call *call);

/* GET /v1/events/{id}: an event, with its deliveries. */
void events_get(struct call *call);

/* GET /v1/events/{id}/payload: what is sent of it, byte for byte, as long as it is
 * kept. */
void events_get_payload(struct call *call);

/* Append the members that say that an event is accepted: id, accepted_at,
 * deliveries. */
void events_put_accepted(struct buf *out, const struct outbox_event *ev);

#endif
