#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "call.h"
#include "ingest.h"
#include "post.h"

int
post_new(struct post **out, struct call *call, size_t room, struct err *err)
{
	struct post *post = calloc(1, sizeof(*post));

	if (post == NULL)
		return err_set(err, ERR_NOMEM, "post");
	post->call = call;
	post->room = room;
	post->envelopes = calloc(room, sizeof(*post->envelopes));
	post->events = calloc(room, sizeof(*post->events));
	if (post->envelopes == NULL || post->events == NULL) {
		post_free(post);
		return err_set(err, ERR_NOMEM, "post");
	}
	*out = post;
	return 0;
}

void
post_free(struct post *post)
{
	if (post == NULL)
		return;
	free(post->envelopes);
	free(post->events);
	buf_fini(&post->bodies);
	free(post);
}

/* Where the bodies begin is known when the last is in. */
static void
keep(struct post *post, const struct envelope *envelope, size_t len)
{
	post->events[post->n++] = (struct outbox_event){
		.key_id = post->call->key.id,
		.tenant_id = post->call->key.tenant_id,
		.id = envelope->id,
		.type = envelope->type,
		.asset = envelope->asset[0] == '\0' ? NULL : envelope->asset,
		.named = envelope->subscriptions,
		.nnamed = envelope->nsubscriptions,
		.fingerprint = envelope->fingerprint,
		.len = len,
	};
}

int
post_add(struct post *post, const char *text, size_t len,
    char pointer[ENVELOPE_POINTER_SIZE], struct err *err)
{
	struct envelope *envelope = &post->envelopes[post->n];
	size_t before = post->bodies.len;

	if (envelope_parse(envelope, text, len, pointer, err) != 0)
		return -1;
	if (envelope->id[0] == '\0' && envelope_make_id(envelope, err) != 0)
		return -1;
	envelope_body(&post->bodies, envelope, clock_wall());
	if (post->bodies.failed)
		return err_set(err, ERR_NOMEM, "body");
	keep(post, envelope, post->bodies.len - before);
	return 0;
}

/* Of a unit that was not kept nothing counts. */
static bool
is_kept(const struct post *post)
{
	for (size_t i = 0; post->parcel.is_unit && i < post->n; i++)
		if (post->events[i].outcome != OUTBOX_ACCEPTED &&
		    post->events[i].outcome != OUTBOX_REPEATED)
			return false;
	return true;
}

static void
count(const struct post *post)
{
	struct metrics *metrics = &post->call->ingest->metrics;

	for (size_t i = 0; i < post->n; i++) {
		const struct outbox_event *ev = &post->events[i];

		metrics->accepted += ev->outcome == OUTBOX_ACCEPTED;
		metrics->repeated += ev->outcome == OUTBOX_REPEATED;
		if (ev->outcome == OUTBOX_ACCEPTED)
			metrics->deliveries += (uint64_t)ev->fan_out;
	}
}

static void
on_done(void *arg, const struct err *err)
{
	struct post *post = arg;

	if (err == NULL && is_kept(post))
		count(post);
	post->done(post, err);
	post_free(post);
}

int
post_submit(
    struct post *post, bool as_unit, post_done_fn *done, struct err *err)
{
	const char *body = post->bodies.data;

	for (size_t i = 0; i < post->n; i++) {
		post->events[i].body = body;
		body += post->events[i].len;
	}
	post->done = done;
	post->parcel = (struct parcel){
		.events = post->events,
		.n = post->n,
		.bytes = sizeof(*post) + 2 * post->bodies.cap +
		         post->room *
		             (sizeof(*post->envelopes) + sizeof(*post->events)),
		.is_unit = as_unit,
		.done = on_done,
		.arg = post,
	};
	return writer_submit(post->call->ingest->writer, &post->parcel, err);
}
