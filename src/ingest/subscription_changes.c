#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "etag.h"
#include "http/server.h"
#include "ingest.h"
#include "problem.h"
#include "store/subscription.h"
#include "subscription_changes.h"
#include "subscription_form.h"
#include "subscription_json.h"
#include "subscriptions.h"

/* One change under way. */
struct change {
	struct call *call;
	int64_t id;
	struct etag_match match;
	bool is_patch;
	struct subscription_form form; /* of a patch */
	enum subscription_move move; /* of all others */
};

static void
free_change(struct change *change)
{
	subscription_form_fini(&change->form);
	free(change);
}

/* A change that is refused because of how the subscription is now. */
static void
refuse(const struct change *change, const struct subscription *now)
{
	bool has_base = change->form.fields.retry_base_ms >= 0;

	if (!change->is_patch)
		problem_reply(change->call, 409, "it is %s: %s it first",
		    now->state,
		    change->move == SUBSCRIPTION_ENABLE ? "resume" : "enable");
	else if (has_base)
		problem_reply_at(change->call, 422, "/retry_base_ms",
		    "retry_base_ms: must not be above retry_cap_ms, which is "
		    "%d",
		    now->retry_cap_ms);
	else
		problem_reply_at(change->call, 422, "/retry_cap_ms",
		    "retry_cap_ms: must not be below retry_base_ms, which is "
		    "%d",
		    now->retry_base_ms);
}

static void
reply_changed(struct change *change, const struct subscription *now)
{
	struct buf nothing = { 0 };

	if (!change->is_patch && change->move == SUBSCRIPTION_DELETE)
		call_answer(change->call, 204, NULL, &nothing);
	else
		subscription_json_reply(change->call, now);
}

static void
reply(struct change *change, struct pg_rows *const *rows)
{
	struct subscription now = { 0 };

	switch (subscription_changed(&now, rows)) {
	case SUBSCRIPTION_CHANGED:
		reply_changed(change, &now);
		break;
	case SUBSCRIPTION_MISSING:
		subscriptions_missing(change->call);
		break;
	case SUBSCRIPTION_STALE:
		problem_reply(change->call, 412,
		    "it has changed since: read it again, and send the ETag of "
		    "that answer as If-Match");
		break;
	case SUBSCRIPTION_REFUSED:
		refuse(change, &now);
		break;
	}
}

static void
on_changed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct change *change = arg;

	if (err != NULL)
		problem_reply_err(change->call, err);
	else
		reply(change, rows);
	free_change(change);
}

static void
put_change(struct pg_batch *batch, const struct change *change)
{
	const struct call *call = change->call;
	const struct etag_match *match = &change->match;
	char actor[SUBSCRIPTIONS_ACTOR];
	const struct subscription_change which = {
		.tenant_id = call->key.tenant_id,
		.id = change->id,
		.actor = actor,
		.versions = match->is_any ? NULL : match->versions,
		.nversions = match->nversions,
	};

	subscriptions_actor(actor, call);
	if (change->is_patch)
		subscription_update(batch, &which, &change->form.fields);
	else
		subscription_move(batch, &which, change->move);
}

/* Takes over `change`. */
static void
submit(struct change *change)
{
	struct call *call = change->call;
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		free_change(change);
		return;
	}
	put_change(batch, change);
	if (desk_submit(call->ingest->desk, batch, on_changed, change, &err) ==
	    0)
		return;
	problem_reply_err(call, &err);
	free_change(change);
}

/* A change of what the path names; NULL if the call has been answered. */
static struct change *
begin(struct call *call)
{
	struct change *change = calloc(1, sizeof(*change));
	struct err err;

	if (change == NULL) {
		problem_reply(call, 503, "out of memory");
		return NULL;
	}
	change->call = call;
	change->id = subscriptions_id(call);
	if (change->id < 0)
		subscriptions_missing(call);
	else if (etag_read(&change->match, call->request, &err) != 0)
		problem_reply(call, 400, "%s", err.text);
	else
		return change;
	free(change);
	return NULL;
}

void
subscription_changes_patch(struct call *call)
{
	struct change *change = begin(call);
	char pointer[FORM_POINTER_SIZE];
	struct err err;
	const char *text;
	size_t len;

	if (change == NULL)
		return;
	text = request_body(call->request, &len);
	change->is_patch = true;
	if (subscription_form_read_change(&change->form, text, len,
		&call->ingest->policy, pointer, &err) != 0) {
		subscriptions_refuse_form(call, pointer, &err);
		free_change(change);
		return;
	}
	submit(change);
}

static void
move(struct call *call, enum subscription_move move)
{
	struct change *change = begin(call);

	if (change == NULL)
		return;
	change->move = move;
	submit(change);
}

void
subscription_changes_pause(struct call *call)
{
	move(call, SUBSCRIPTION_PAUSE);
}

void
subscription_changes_resume(struct call *call)
{
	move(call, SUBSCRIPTION_RESUME);
}

void
subscription_changes_disable(struct call *call)
{
	move(call, SUBSCRIPTION_DISABLE);
}

void
subscription_changes_enable(struct call *call)
{
	move(call, SUBSCRIPTION_ENABLE);
}

void
subscription_changes_delete(struct call *call)
{
	move(call, SUBSCRIPTION_DELETE);
}
