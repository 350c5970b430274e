#include "base/buf.h"
#include "call.h"
#include "change.h"
#include "problem.h"
#include "put.h"
#include "subscription_json.h"
#include "subscriptions.h"

/* Half a change of the waits does not fit the other half. */
static void
refuse_waits(const struct change *change, const struct subscription *now)
{
	bool has_base = change->form.fields.retry_base_ms >= 0;

	if (has_base)
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

/* The headers of one kind do not fit those of the other. */
static void
refuse_headers(const struct change *change, const char *why)
{
	bool is_secret = change->form.secret_headers.is_given;

	problem_reply_at(change->call, 422,
	    is_secret ? "/secret_headers" : "/headers", "%s: %s",
	    is_secret ? "secret_headers" : "headers", why);
}

/* A change that is refused because of how the subscription is now. */
static void
refuse(const struct change *change, const struct subscription_outcome *outcome)
{
	switch (outcome->refusal) {
	case SUBSCRIPTION_NOT_REFUSED:
	case SUBSCRIPTION_IN_STATE:
		problem_reply(change->call, 409, "it is %s: %s it first",
		    outcome->now.state,
		    change->move == SUBSCRIPTION_ENABLE ? "resume" : "enable");
		break;
	case SUBSCRIPTION_WAITS:
		refuse_waits(change, &outcome->now);
		break;
	case SUBSCRIPTION_HEADER_TWICE:
		refuse_headers(change,
		    "a name must not be among headers and secret_headers");
		break;
	case SUBSCRIPTION_HEADER_COUNT:
		refuse_headers(
		    change, "with the others they would be more than 32");
		break;
	case SUBSCRIPTION_HEADER_TOTAL:
		refuse_headers(change,
		    "with the others they would be longer than 8192 octets");
		break;
	case SUBSCRIPTION_HAS_KEY:
		problem_reply_at(change->call, 422, "/signing_key",
		    "signing_key: it has one already, which "
		    "rotate-signing-key replaces");
		break;
	case SUBSCRIPTION_HAS_NO_KEY:
		problem_reply(change->call, 409,
		    "it has no signing key: change it to "
		    "\"ed25519_signature\": true");
		break;
	}
}

static void
reply_rotated(
    const struct change *change, const struct subscription_outcome *outcome)
{
	const struct rotation_form *form = &change->rotation;
	struct buf more = { 0 };

	put_time(&more, "old_expires_at", outcome->old_until);
	subscription_json_put_secrets(&more,
	    form->is_key ? NULL : &form->secret,
	    form->is_key ? &form->key : NULL);
	subscription_json_answer(change->call, 200, &outcome->now, &more);
}

static void
reply_changed(
    const struct change *change, const struct subscription_outcome *outcome)
{
	struct buf more = { 0 };

	switch (change->kind) {
	case CHANGE_PATCH:
		if (outcome->has_new_key)
			subscription_json_put_secrets(
			    &more, NULL, &change->form.signing_key);
		break;
	case CHANGE_MOVE:
		if (change->move != SUBSCRIPTION_DELETE)
			break;
		call_answer(change->call, 204, NULL, &more);
		return;
	case CHANGE_ROTATION:
		reply_rotated(change, outcome);
		return;
	}
	subscription_json_answer(change->call, 200, &outcome->now, &more);
}

void
change_reply(const struct change *change, struct pg_rows *const *rows)
{
	struct subscription_outcome outcome;

	subscription_changed(&outcome, rows);
	switch (outcome.answer) {
	case SUBSCRIPTION_CHANGED:
		reply_changed(change, &outcome);
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
		refuse(change, &outcome);
		break;
	}
}
