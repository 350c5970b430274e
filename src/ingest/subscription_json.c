#include <string.h>

#include "base/buf.h"
#include "call.h"
#include "core/json.h"
#include "core/sign.h"
#include "core/sign_key.h"
#include "etag.h"
#include "put.h"
#include "store/subscription.h"
#include "subscription_json.h"

static const char signing[] =
    "Each request is signed by the Standard Webhooks scheme: the header "
    "webhook-signature has, for each secret that is valid, \"v1,\" and the "
    "base64 of HMAC-SHA256, under the bytes that follow \"whsec_\" as base64, "
    "over \"{webhook-id}.{webhook-timestamp}.{body}\" with the body's bytes "
    "as they came. Compute it, compare it in constant time, and refuse what "
    "does not match. Refuse too what has a webhook-timestamp more than five "
    "minutes off your clock: the signature stays valid for ever, so without "
    "that check whoever once saw a request could send it to you again.";
static const char signing_keys[] =
    " For each signing key it also has \"v1a,\" and the base64 of an Ed25519 "
    "signature over the same, which the public key verifies: the 32 bytes that "
    "follow \"whpk_\" as base64. Whoever verifies that way cannot sign, and "
    "needs neither the secret nor the signing key.";
/* It is short, so that it is read; the tests run it. */
static const char example[] =
    "import base64, hashlib, hmac, time\n"
    "\n"
    "def verify(secret, headers, body):  # body: the bytes as they came\n"
    "    sent = headers[\"webhook-timestamp\"]\n"
    "    if abs(time.time() - int(sent)) > 300:\n"
    "        raise ValueError(\"too old, or of the future\")\n"
    "    key = base64.b64decode(secret[len(\"whsec_\"):])\n"
    "    signed = f'{headers[\"webhook-id\"]}.{sent}.'.encode() + body\n"
    "    digest = hmac.new(key, signed, hashlib.sha256).digest()\n"
    "    wanted = b\"v1,\" + base64.b64encode(digest)\n"
    "    given = headers[\"webhook-signature\"].encode().split()\n"
    "    if not any(hmac.compare_digest(wanted, one) for one in given):\n"
    "        raise ValueError(\"not signed with this secret\")\n";
static const char once[] = " What is secret is shown in this answer only.";

static const char *
or_null(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

static void
put_limits(struct buf *out, const struct subscription *s)
{
	put_bool(out, "older_signature", s->older_signature);
	put_number(out, "max_attempts", s->max_attempts);
	put_number(out, "max_in_flight", s->max_in_flight);
	put_number(out, "retry_base_ms", s->retry_base_ms);
	put_number(out, "retry_cap_ms", s->retry_cap_ms);
	put_number(out, "timeout_ms", s->timeout_ms);
	put_json(out, "rate_per_second",
	    s->rate_per_second[0] == '\0' ? "null" : s->rate_per_second);
	put_number(out, "circuit_after", s->circuit_after);
}

static void
put_credentials(struct buf *out, const struct subscription *s)
{
	put_json(out, "headers", s->headers);
	put_json(out, "secret_headers", s->secret_headers);
	put_bool(out, "ed25519_signature", strcmp(s->public_keys, "[]") != 0);
	put_json(out, "public_keys", s->public_keys);
	put_text(out, "tls_ca", or_null(s->tls_ca));
	put_text(out, "tls_certificate", or_null(s->tls_certificate));
}

void
subscription_json_put(struct buf *out, const struct subscription *s)
{
	put_id(out, "id", s->id);
	put_text(out, "url", s->url);
	put_json(out, "event_types", s->event_types);
	put_text(out, "filter", or_null(s->filter));
	put_text(out, "state", s->state);
	put_text(out, "state_reason", or_null(s->state_reason));
	put_text(out, "ordering", s->ordering);
	put_text(out, "on_dead", s->on_dead);
	put_limits(out, s);
	put_credentials(out, s);
	put_time(out, "created_at", s->created_at);
	put_time(out, "updated_at", s->updated_at);
}

static void
put_secret(struct buf *out, const char *name, struct buf *secret)
{
	put_name(out, name);
	json_quote(out, secret->data, secret->len);
	out->failed |= secret->failed;
	buf_wipe(secret);
}

void
subscription_json_put_secrets(struct buf *out, const struct sign_secret *secret,
    const struct sign_key *key)
{
	struct buf text = { 0 }, explained = { 0 };

	if (secret != NULL) {
		sign_secret_print(&text, secret);
		put_secret(out, "secret", &text);
	}
	if (key != NULL) {
		sign_key_print(&text, key);
		put_secret(out, "signing_key", &text);
	}
	buf_puts(&explained, signing);
	buf_puts(&explained, key == NULL ? "" : signing_keys);
	buf_puts(&explained, once);
	put_text(out, "signing", buf_text(&explained));
	if (secret != NULL)
		put_text(out, "verification_example", example);
	buf_fini(&explained);
}

void
subscription_json_answer(struct call *call, int status,
    const struct subscription *s, struct buf *more)
{
	struct buf body = { 0 };

	buf_puts(&body, "{");
	subscription_json_put(&body, s);
	buf_add(&body, more->data, more->len);
	buf_puts(&body, "}");
	body.failed |= more->failed;
	buf_wipe(more);
	etag_add(call->request, s->version);
	call_json(call, status, &body);
}

void
subscription_json_reply(struct call *call, const struct subscription *s)
{
	struct buf nothing = { 0 };

	subscription_json_answer(call, 200, s, &nothing);
}
