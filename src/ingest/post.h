/*
 * post: the events of one request, on their way to the writer and back.
 *
 * The events' data lends from the request's body, which stays until the answer.
 */

#ifndef INGEST_POST_H
#define INGEST_POST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "core/envelope.h"
#include "writer.h"

struct call;
struct err;
struct post;

/* Answers the call; the post is freed when it returns. */
typedef void post_done_fn(struct post *post, const struct err *err);

struct post {
	struct call *call;
	struct parcel parcel;
	size_t room; /* for events */
	struct envelope *envelopes;
	struct outbox_event *events;
	size_t n;
	struct buf bodies; /* one behind the other */
	post_done_fn *done;
};

/* Room for `room` events. */
int post_new(
    struct post **out, struct call *call, size_t room, struct err *err);

/* NULL is fine. */
void post_free(struct post *post);

/* Parse one event and keep it; `pointer` as for envelope_parse(). */
int post_add(struct post *post, const char *text, size_t len,
    char pointer[ENVELOPE_POINTER_SIZE], struct err *err);

/* Hand them to the writer; `as_unit`: all or nothing.  On failure `done` is not
 * called, and the post is still the caller's. */
int post_submit(
    struct post *post, bool as_unit, post_done_fn *done, struct err *err);

#endif
