/* subscription_json: a subscription as the API shows it. */

#ifndef INGEST_SUBSCRIPTION_JSON_H
#define INGEST_SUBSCRIPTION_JSON_H

struct buf;
struct call;
struct sign_key;
struct sign_secret;
struct subscription;

/* Append its members, without braces, behind the opening one. */
void subscription_json_put(
    struct buf *out, const struct subscription *subscription);

/* Append further members: what is shown once, NULL for none, and how to verify
 * what is signed with it. */
void subscription_json_put_secrets(struct buf *out,
    const struct sign_secret *secret, const struct sign_key *key);

/* Answer with it, its ETag, and `more` members, which are used up and wiped. */
void subscription_json_answer(struct call *call, int status,
    const struct subscription *subscription, struct buf *more);

/* Answer 200 with it and its ETag. */
void subscription_json_reply(
    struct call *call, const struct subscription *subscription);

#endif
