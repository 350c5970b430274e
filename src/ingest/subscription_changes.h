/*
 * subscription_changes: the routes that change a subscription.
 *
 * With an If-Match a change is made only to the version that its client has
 * read; else it is 412.  Each answers with the subscription as it is then.
 */

#ifndef INGEST_SUBSCRIPTION_CHANGES_H
#define INGEST_SUBSCRIPTION_CHANGES_H

struct call;

/* PATCH /v1/subscriptions/{id}: what is left out stays as it is.  A signing key
 * that it makes is in its answer and in no other. */
void subscription_changes_patch(struct call *call);

/* POST /v1/subscriptions/{id}/pause, resume, disable, enable */
void subscription_changes_pause(struct call *call);
void subscription_changes_resume(struct call *call);
void subscription_changes_disable(struct call *call);
void subscription_changes_enable(struct call *call);

/* POST /v1/subscriptions/{id}/rotate-secret, rotate-signing-key: a new one, in
 * this answer and in no other, beside which the old ones sign for a while. */
void subscription_changes_rotate_secret(struct call *call);
void subscription_changes_rotate_key(struct call *call);

/* DELETE /v1/subscriptions/{id}: answers 204. */
void subscription_changes_delete(struct call *call);

#endif
