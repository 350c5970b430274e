/*
 * subscription_changes: the routes that change a subscription.
 *
 * With an If-Match a change is made only to the version that its client has
 * read; else it is 412.  Each answers with the subscription as it is then.
 */

#ifndef INGEST_SUBSCRIPTION_CHANGES_H
#define INGEST_SUBSCRIPTION_CHANGES_H

struct call;

/* PATCH /v1/subscriptions/{id}: what is left out stays as it is. */
void subscription_changes_patch(struct call *call);

/* POST /v1/subscriptions/{id}/pause, resume, disable, enable */
void subscription_changes_pause(struct call *call);
void subscription_changes_resume(struct call *call);
void subscription_changes_disable(struct call *call);
void subscription_changes_enable(struct call *call);

/* DELETE /v1/subscriptions/{id}: answers 204. */
void subscription_changes_delete(struct call *call);

#endif
