/* subscription_json: a subscription as the API shows it. */

#ifndef INGEST_SUBSCRIPTION_JSON_H
#define INGEST_SUBSCRIPTION_JSON_H

struct buf;
struct call;
struct subscription;

/* Append its members, without braces. */
void subscription_json_put(
    struct buf *out, const struct subscription *subscription);

/* Answer 200 with it and its ETag. */
void subscription_json_reply(
    struct call *call, const struct subscription *subscription);

#endif
