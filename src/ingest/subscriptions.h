/* subscriptions: the routes under /v1/subscriptions that make and show. */

#ifndef INGEST_SUBSCRIPTIONS_H
#define INGEST_SUBSCRIPTIONS_H

#include <stdint.h>

struct call;
struct err;

/* POST /v1/subscriptions: register an endpoint.  Its secret is in this answer
 * and in no other. */
void subscriptions_post(struct call *call);

/* GET /v1/subscriptions?after=ID&limit=N */
void subscriptions_list(struct call *call);

/* GET /v1/subscriptions/{id} */
void subscriptions_get(struct call *call);

/* For the other routes of a subscription: its id in the path, -1 if it is none;
 * and to answer that there is none, or that a form was not taken. */
int64_t subscriptions_id(const struct call *call);
void subscriptions_missing(struct call *call);
void subscriptions_refuse_form(
    struct call *call, const char *pointer, const struct err *err);

#endif
