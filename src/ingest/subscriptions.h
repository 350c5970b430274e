/* subscriptions: the routes under /v1/subscriptions that make and show. */

#ifndef INGEST_SUBSCRIPTIONS_H
#define INGEST_SUBSCRIPTIONS_H

struct call;

/* POST /v1/subscriptions: register an endpoint.  Its secret is in this answer
 * and in no other. */
void subscriptions_post(struct call *call);

/* GET /v1/subscriptions?after=ID&limit=N */
void subscriptions_list(struct call *call);

/* GET /v1/subscriptions/{id} */
void subscriptions_get(struct call *call);

/* For the other routes of a subscription: answer that there is none. */
void subscriptions_missing(struct call *call);

#endif
