#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/err.h"
#include "core/envelope.h"
#include "core/rfc3339.h"

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define ID_CHARACTERS LETTERS DIGITS "_:-"
#define TYPE_CHARACTERS LETTERS DIGITS "_-"
#define OWN_TYPES "postrider." /* migrations/0013_operations.sql */

enum {
	ID_RANDOM = 16, /* bytes in an id of our own making */
	NUMBER_MAX = 19, /* digits of INT64_MAX */
	BODY_BESIDES =
	    256, /* of a body without its data, unless names are long */
	NAME_SHOWN = 32, /* bytes of a stranger's name in an error */
};

/* The control characters of Unicode: U+0000-001F, U+007F and U+0080-009F. */
static bool
has_control(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;

	for (size_t i = 0; i < len; i++) {
		if (at[i] < ' ' || at[i] == 0x7f)
			return true;
		if (at[i] == 0xc2 && i + 1 < len && at[i + 1] < 0xa0)
			return true;
	}
	return false;
}

/* Copy what the string `value` stands for to `out`, of `max` + 1 bytes. */
static int
copy_text(
    char *out, size_t max, const struct json_slice *value, struct err *err)
{
	struct buf text = { 0 };
	int rc = 0;

	if (value->kind != JSON_STRING)
		return err_set(err, ERR_REFUSED, "must be a string");
	json_unescape(&text, value);
	if (text.failed) {
		rc = err_set(err, ERR_NOMEM, "out of memory");
	} else if (text.len == 0 || text.len > max) {
		rc = err_set(
		    err, ERR_REFUSED, "must be 1 to %zu bytes long", max);
	} else if (has_control(text.data, text.len)) {
		rc = err_set(
		    err, ERR_REFUSED, "must not have control characters");
	} else {
		memcpy(out, text.data, text.len);
		out[text.len] = '\0';
	}
	buf_fini(&text);
	return rc;
}

static int
take_id(struct envelope *out, const struct json_slice *value, struct err *err)
{
	if (copy_text(out->id, ENVELOPE_ID_MAX, value, err) != 0)
		return -1;
	if (out->id[strspn(out->id, ID_CHARACTERS)] != '\0')
		return err_set(err, ERR_REFUSED,
		    "may have only letters, digits, \"_\", \":\" and \"-\"");
	return 0;
}

static bool
is_dotted(const char *type)
{
	for (;; type++) {
		size_t n = strspn(type, TYPE_CHARACTERS);

		type += n;
		if (n == 0 || (*type != '.' && *type != '\0'))
			return false;
		if (*type == '\0')
			return true;
	}
}

static int
take_type(struct envelope *out, const struct json_slice *value, struct err *err)
{
	if (copy_text(out->type, ENVELOPE_TYPE_MAX, value, err) != 0)
		return -1;
	if (!is_dotted(out->type))
		return err_set(err, ERR_REFUSED,
		    "must be words of letters, digits, \"_\" and \"-\" with "
		    "dots between them");
	if (strncmp(out->type, OWN_TYPES, strlen(OWN_TYPES)) == 0)
		return err_set(err, ERR_REFUSED,
		    "must not begin with \"" OWN_TYPES
		    "\": such events are Postrider's own");
	return 0;
}

static int
take_asset(
    struct envelope *out, const struct json_slice *value, struct err *err)
{
	if (value->kind == JSON_NULL)
		return 0;
	return copy_text(out->asset, ENVELOPE_ASSET_MAX, value, err);
}

static int
take_data(struct envelope *out, const struct json_slice *value, struct err *err)
{
	(void)err;
	out->data = *value;
	return 0;
}

/* A positive decimal number as it is printed, or 0. */
static int64_t
parse_subscription(const char *text)
{
	long long id;

	if (*text == '0' || text[strspn(text, DIGITS)] != '\0')
		return 0;
	errno = 0;
	id = strtoll(text, NULL, 10);
	return errno == 0 ? id : 0;
}

/* Keep the ids sorted, and each once. */
static void
add_subscription(struct envelope *out, int64_t id)
{
	int64_t *ids = out->subscriptions;
	size_t at = out->nsubscriptions;

	while (at > 0 && ids[at - 1] > id)
		at--;
	if (at > 0 && ids[at - 1] == id)
		return;
	memmove(
	    ids + at + 1, ids + at, (out->nsubscriptions - at) * sizeof(*ids));
	ids[at] = id;
	out->nsubscriptions++;
}

static int
take_subscription(
    struct envelope *out, const struct json_slice *value, struct err *err)
{
	char text[NUMBER_MAX + 1] = "";
	int64_t id = 0;

	if (copy_text(text, NUMBER_MAX, value, err) == 0)
		id = parse_subscription(text);
	else if (err->code == ERR_NOMEM)
		return -1;
	if (id == 0)
		return err_set(err, ERR_REFUSED,
		    "must be ids as strings of digits, such as \"17\"");
	add_subscription(out, id);
	return 0;
}

static int
take_subscriptions(
    struct envelope *out, const struct json_slice *value, struct err *err)
{
	struct json_slice item;
	size_t pos = 0, n = 0;

	if (value->kind != JSON_ARRAY)
		return err_set(err, ERR_REFUSED, "must be an array");
	while (json_next_element(value, &pos, &item)) {
		if (++n > ENVELOPE_SUBSCRIPTIONS_MAX)
			return err_set(err, ERR_REFUSED,
			    "must not be more than %d",
			    ENVELOPE_SUBSCRIPTIONS_MAX);
		if (take_subscription(out, &item, err) != 0)
			return -1;
	}
	/* To read none as all would send to those who were not named. */
	if (n == 0)
		return err_set(err, ERR_REFUSED,
		    "must name at least one; leave it out for all that match");
	return 0;
}

static const struct field {
	const char *name;
	bool is_required;
	int (*take)(struct envelope *out, const struct json_slice *value,
	    struct err *err);
} fields[] = {
	{ "id", false, take_id },
	{ "type", true, take_type },
	{ "asset", false, take_asset },
	{ "data", true, take_data },
	{ "subscriptions", false, take_subscriptions },
};

enum { NFIELDS = sizeof(fields) / sizeof(fields[0]) };

/* One event being read. */
struct reading {
	struct envelope *out;
	char *pointer;
	bool seen[NFIELDS];
	struct err *err;
};

/* A stranger's name is shown short, and in harmless characters. */
static int
refuse_unknown(const struct json_slice *key, struct err *err)
{
	char shown[NAME_SHOWN + 1] = "";
	size_t len = key->len - 2;

	for (size_t i = 0; i < len && i < NAME_SHOWN; i++) {
		char c = key->at[i + 1];

		shown[i] = c >= ' ' && c < 0x7f ? c : '?';
	}
	return err_set(err, ERR_REFUSED,
	    "unknown member \"%s%s\": an event has id, type, asset, data and "
	    "subscriptions",
	    shown, len > NAME_SHOWN ? "..." : "");
}

/* Say in which field what `err` holds is. */
static int
fail_at(struct reading *r, const struct field *field)
{
	(void)snprintf(r->pointer, ENVELOPE_POINTER_SIZE, "/%s", field->name);
	return err_wrap(r->err, "%s", field->name);
}

static int
take_member(struct reading *r, const struct json_slice *key,
    const struct json_slice *value)
{
	size_t i = 0;

	while (i < NFIELDS && !json_is(key, fields[i].name))
		i++;
	if (i == NFIELDS)
		return refuse_unknown(key, r->err);
	if (r->seen[i]) {
		(void)err_set(r->err, ERR_REFUSED, "must not be repeated");
		return fail_at(r, &fields[i]);
	}
	r->seen[i] = true;
	if (fields[i].take(r->out, value, r->err) != 0)
		return fail_at(r, &fields[i]);
	return 0;
}

static int
take_members(struct reading *r, const struct json_slice *whole)
{
	struct json_slice key, value;
	size_t pos = 0;

	if (whole->kind != JSON_OBJECT)
		return err_set(
		    r->err, ERR_REFUSED, "an event must be a JSON object");
	while (json_next_member(whole, &pos, &key, &value))
		if (take_member(r, &key, &value) != 0)
			return -1;
	for (size_t i = 0; i < NFIELDS; i++) {
		if (r->seen[i] || !fields[i].is_required)
			continue;
		(void)err_set(r->err, ERR_REFUSED, "is required");
		return fail_at(r, &fields[i]);
	}
	return 0;
}

/* Each part is JSON, so that no two contents make one text. */
static void
put_content(struct buf *out, const struct envelope *envelope)
{
	buf_puts(out, "[");
	json_quote(out, envelope->type, strlen(envelope->type));
	buf_puts(out, ",");
	json_quote(out, envelope->asset, strlen(envelope->asset));
	buf_puts(out, ",");
	json_canonical(out, &envelope->data);
	for (size_t i = 0; i < envelope->nsubscriptions; i++)
		buf_printf(out, ",%" PRId64, envelope->subscriptions[i]);
	buf_puts(out, "]");
}

static int
make_fingerprint(struct envelope *envelope, struct err *err)
{
	struct buf text = { 0 };
	int rc = 0;

	buf_reserve(&text, BODY_BESIDES + envelope->data.len);
	put_content(&text, envelope);
	if (text.failed)
		rc = err_set(err, ERR_NOMEM, "out of memory");
	else if (EVP_Digest(text.data, text.len, envelope->fingerprint, NULL,
		     EVP_sha256(), NULL) != 1)
		rc = err_set(err, ERR_RETRY, "SHA-256 failed");
	buf_fini(&text);
	return rc;
}

int
envelope_parse(struct envelope *out, const char *text, size_t len,
    char pointer[ENVELOPE_POINTER_SIZE], struct err *err)
{
	char unwanted[ENVELOPE_POINTER_SIZE];
	struct reading r = {
		.out = out,
		.pointer = pointer != NULL ? pointer : unwanted,
		.err = err,
	};
	struct json_slice whole;

	*out = (struct envelope){ 0 };
	r.pointer[0] = '\0';
	if (json_check(&whole, text, len, err) != 0 ||
	    take_members(&r, &whole) != 0)
		return -1;
	return make_fingerprint(out, err);
}

int
envelope_make_id(struct envelope *envelope, struct err *err)
{
	unsigned char random[ID_RANDOM];
	char *at = envelope->id;

	if (RAND_bytes(random, sizeof(random)) != 1)
		return err_set(err, ERR_RETRY, "no randomness for an id");
	at = stpcpy(at, "evt_");
	for (size_t i = 0; i < sizeof(random); i++, at += 2)
		(void)snprintf(at, 3, "%02x", random[i]);
	return 0;
}

static void
put_time(struct buf *out, usec_t timestamp)
{
	char text[RFC3339_SIZE];

	buf_puts(out, "\"");
	buf_add(out, text, rfc3339_print(text, timestamp, 3));
	buf_puts(out, "\"");
}

void
envelope_body(
    struct buf *out, const struct envelope *envelope, usec_t timestamp)
{
	buf_reserve(out, BODY_BESIDES + envelope->data.len);
	buf_puts(out, "{\"id\":");
	json_quote(out, envelope->id, strlen(envelope->id));
	buf_puts(out, ",\"type\":");
	json_quote(out, envelope->type, strlen(envelope->type));
	if (envelope->asset[0] != '\0') {
		buf_puts(out, ",\"asset\":");
		json_quote(out, envelope->asset, strlen(envelope->asset));
	}
	buf_puts(out, ",\"timestamp\":");
	put_time(out, timestamp);
	buf_puts(out, ",\"data\":");
	buf_add(out, envelope->data.at, envelope->data.len);
	buf_puts(out, "}");
}
