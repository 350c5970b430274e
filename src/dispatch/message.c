#include <assert.h>
#include <string.h>

#include "core/sign.h"
#include "dispatch/message.h"
#include "store/endpoint.h"
#include "store/lane.h"

enum { DIGITS = 20 }; /* of any int64_t */

/* Where each header begins, while the text may still move. */
struct offsets {
	size_t at[MESSAGE_HEADERS];
	size_t n;
};

/* `name` with what stands between it and the value. */
static void
begin(struct message *out, struct offsets *offsets, const char *name)
{
	assert(offsets->n < MESSAGE_HEADERS - 1);
	offsets->at[offsets->n++] = out->text.len;
	buf_puts(&out->text, name);
}

static void
end(struct message *out)
{
	buf_add(&out->text, "", 1);
}

static void
add(struct message *out, struct offsets *offsets, const char *name,
    const char *value)
{
	begin(out, offsets, name);
	buf_puts(&out->text, value);
	end(out);
}

/* None is below zero. */
static void
add_number(struct message *out, struct offsets *offsets, const char *name,
    int64_t value)
{
	char digits[DIGITS];
	size_t at = sizeof(digits);

	assert(value >= 0);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	begin(out, offsets, name);
	buf_add(&out->text, digits + at, sizeof(digits) - at);
	end(out);
}

/* One signature a valid secret.  Returns how many there are. */
static size_t
sign_with_secrets(struct buf *text, struct endpoint *endpoint,
    const struct lane_lease *lease, int64_t timestamp, usec_t now)
{
	size_t n = 0;

	for (size_t i = 0; i < endpoint->nsecrets; i++) {
		struct endpoint_secret *secret = &endpoint->secrets[i];

		if (secret->valid_until <= now)
			continue;
		if (n++ > 0)
			buf_puts(text, " ");
		sign_standard(text, &secret->secret, lease->event_id, timestamp,
		    lease->body, lease->len);
	}
	return n;
}

static void
sign_with_keys(struct buf *text, const struct endpoint *endpoint,
    const struct lane_lease *lease, int64_t timestamp, usec_t now)
{
	for (size_t i = 0; i < endpoint->nkeys; i++) {
		const struct endpoint_key *key = &endpoint->keys[i];

		if (key->valid_until <= now)
			continue;
		buf_puts(text, " ");
		sign_key_sign(text, &key->key, lease->event_id, timestamp,
		    lease->body, lease->len);
	}
}

/*
 * As Standard Webhooks has it: all in one header, with blanks between.  Those
 * of secrets come first, of each kind the newest first.  Returns how many
 * secrets signed.
 */
static size_t
add_signatures(struct message *out, struct offsets *offsets,
    struct endpoint *endpoint, const struct lane_lease *lease,
    int64_t timestamp, usec_t now)
{
	size_t n;

	begin(out, offsets, "webhook-signature: ");
	n = sign_with_secrets(&out->text, endpoint, lease, timestamp, now);
	sign_with_keys(&out->text, endpoint, lease, timestamp, now);
	end(out);
	return n;
}

static void
add_older(struct message *out, struct offsets *offsets,
    struct endpoint *endpoint, const struct lane_lease *lease,
    int64_t timestamp)
{
	add(out, offsets, "X-Event-ID: ", lease->event_id);
	add_number(out, offsets, "X-Webhook-Timestamp: ", timestamp);
	begin(out, offsets, "X-Webhook-Signature: ");
	sign_older(&out->text, &endpoint->secrets[0].secret, timestamp,
	    lease->body, lease->len);
	end(out);
}

/* Those of the subscription. */
static void
add_own(struct message *out, struct offsets *offsets,
    const struct endpoint *endpoint)
{
	size_t base = out->text.len;
	size_t at = 0;

	assert(offsets->n + (size_t)endpoint->nheaders < MESSAGE_HEADERS);
	buf_add(&out->text, endpoint->headers.data, endpoint->headers.len);
	while (at < endpoint->headers.len) {
		offsets->at[offsets->n++] = base + at;
		at += strlen(endpoint->headers.data + at) + 1;
	}
}

int
message_write(struct message *out, struct endpoint *endpoint,
    const struct lane_lease *lease, usec_t wall, usec_t now)
{
	int64_t timestamp = wall / USEC_PER_SEC;
	struct offsets offsets = { 0 };
	size_t signatures;

	*out = (struct message){ 0 };
	add(out, &offsets, "Content-Type: ", "application/json");
	add(out, &offsets, "User-Agent: ", "postrider/" POSTRIDER_VERSION);
	add(out, &offsets, "webhook-id: ", lease->event_id);
	add_number(out, &offsets, "webhook-timestamp: ", timestamp);
	signatures =
	    add_signatures(out, &offsets, endpoint, lease, timestamp, now);
	if (lease->delivery_id != 0)
		add_number(
		    out, &offsets, "postrider-position: ", lease->delivery_id);
	add_number(out, &offsets, "postrider-attempt: ", lease->attempt);
	if (endpoint->older_signature)
		add_older(out, &offsets, endpoint, lease, timestamp);
	add_own(out, &offsets, endpoint);
	if (out->text.failed || signatures == 0)
		return -1;
	for (size_t i = 0; i < offsets.n; i++)
		out->headers[i] = out->text.data + offsets.at[i];
	return 0;
}

void
message_fini(struct message *message)
{
	buf_wipe(&message->text);
}
