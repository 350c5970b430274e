#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/filter.h"
#include "subscription_form_fields.h"

#define WORD_CHARACTERS                                                        \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

enum {
	DAY_MS = 86400000,
};

int
form_refuse(struct form_reading *r, const char *what)
{
	return err_set(r->err, ERR_REFUSED, "%s", what);
}

int
form_fail_at(struct form_reading *r, const char *name)
{
	return form_fail(r->pointer, name, r->err);
}

int
form_take_text(
    struct form_reading *r, struct buf *out, const struct json_slice *value)
{
	size_t before = out->len;

	if (value->kind != JSON_STRING)
		return form_refuse(r, "must be a string");
	json_unescape(out, value);
	buf_add(out, "", 1);
	if (out->failed)
		return err_set(r->err, ERR_NOMEM, "out of memory");
	if (strlen(out->data + before) != out->len - before - 1)
		return form_refuse(r, "must not have control characters");
	return 0;
}

static int
take_url(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct buf url = { 0 };
	int rc = form_take_text(r, &url, value);

	(void)field;
	if (rc == 0)
		rc = target_parse(
		    &r->out->target, url.data, url.len - 1, r->policy, r->err);
	if (rc == 0)
		r->out->fields.url = r->out->target.url;
	buf_fini(&url);
	return rc;
}

/* "*", or words with dots between them, of which the last may be "*". */
static bool
is_pattern(const char *text)
{
	for (;; text++) {
		size_t n = strspn(text, WORD_CHARACTERS);

		if (n == 0 && strcmp(text, "*") == 0)
			return true;
		text += n;
		if (n == 0 || (*text != '.' && *text != '\0'))
			return false;
		if (*text == '\0')
			return true;
	}
}

static int
take_type(struct form_reading *r, const struct json_slice *value)
{
	struct buf *types = &r->out->types;
	size_t before = types->len;
	const char *type;

	if (r->out->fields.nevent_types++ == SUBSCRIPTION_TYPES_MAX)
		return form_refuse(r, "must not be more than 100");
	if (form_take_text(r, types, value) != 0)
		return -1;
	type = types->data + before;
	if (types->len - before - 1 > SUBSCRIPTION_PATTERN_MAX ||
	    !is_pattern(type))
		return form_refuse(r,
		    "must be types such as \"order.paid\", prefixes such as "
		    "\"order.*\", or \"*\"");
	return 0;
}

static int
take_types(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct subscription_fields *fields = &r->out->fields;
	struct json_slice item;
	size_t pos = 0;
	const char *type;

	(void)field;
	if (value->kind != JSON_ARRAY)
		return form_refuse(r, "must be an array of strings");
	while (json_next_element(value, &pos, &item))
		if (take_type(r, &item) != 0)
			return -1;
	if (fields->nevent_types == 0)
		return form_refuse(
		    r, "must name at least one; \"*\" is all types");
	/* Now the texts stay where they are. */
	type = r->out->types.data;
	for (size_t i = 0; i < fields->nevent_types; i++) {
		r->out->event_types[i] = type;
		type += strlen(type) + 1;
	}
	fields->event_types = r->out->event_types;
	return 0;
}

static int
take_filter(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct subscription_fields *fields = &r->out->fields;
	struct buf *filter = &r->out->filter;

	(void)field;
	if (value->kind == JSON_NULL) {
		fields->filter = "";
		return 0;
	}
	if (form_take_text(r, filter, value) != 0)
		return -1;
	fields->filter = filter->data;
	return filter_check(
	    &fields->filter_weight, filter->data, filter->len - 1, r->err);
}

static int
take_word(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	const char *const *word = field->words;

	while (*word != NULL &&
	       !(value->kind == JSON_STRING && json_is(value, *word)))
		word++;
	if (*word == NULL)
		return err_set(r->err, ERR_REFUSED, "must be \"%s\" or \"%s\"",
		    field->words[0], field->words[1]);
	memcpy((char *)&r->out->fields + field->offset, word, sizeof(*word));
	return 0;
}

static int
take_bool(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	int is_true = value->kind == JSON_BOOL && value->at[0] == 't';

	if (value->kind != JSON_BOOL)
		return form_refuse(r, "must be true or false");
	memcpy(
	    (char *)&r->out->fields + field->offset, &is_true, sizeof(is_true));
	return 0;
}

static int
take_number(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	int number;

	if (form_number(&number, field->min, field->max, value, r->err) != 0)
		return -1;
	memcpy(
	    (char *)&r->out->fields + field->offset, &number, sizeof(number));
	return 0;
}

/* Kept as it was written: the database reads it. */
static int
take_rate(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	char *rate = r->out->rate;
	double number = 0;

	(void)field;
	if (value->kind == JSON_NUMBER && value->len < FORM_RATE_SIZE)
		memcpy(rate, value->at, value->len);
	if (rate[strspn(rate, "0123456789.")] == '\0')
		number = strtod(rate, NULL);
	if (value->kind != JSON_NULL && !(number >= 0.001 && number <= 10000))
		return form_refuse(r,
		    "must be a number from 0.001 to 10000, in at most 16 "
		    "digits and without an exponent, or null for no limit");
	r->out->fields.rate_per_second = rate;
	return 0;
}

static const char *const orderings[] = { "asset", "none", NULL };
static const char *const deaths[] = { "skip", "hold", NULL };

#define FORM(member)                                                           \
	.name = #member, .offset = offsetof(struct subscription_fields, member)
#define NUMBER(least, most) .take = take_number, .min = (least), .max = (most)

static const struct form_field fields[] = {
	{ FORM(circuit_after), NUMBER(0, 10000) },
	{ .name = "ed25519_signature", .take = form_take_ed25519 },
	{ .name = "event_types", .take = take_types },
	{ .name = "filter", .take = take_filter },
	{ .name = "headers", .take = form_take_headers },
	{ FORM(max_attempts), NUMBER(1, INT_MAX) },
	{ FORM(max_in_flight), NUMBER(1, 10000) },
	{ FORM(older_signature), .take = take_bool },
	{ FORM(on_dead), .take = take_word, .words = deaths },
	{ FORM(ordering), .take = take_word, .words = orderings },
	{ .name = "rate_per_second", .take = take_rate },
	{ FORM(retry_base_ms), NUMBER(1, DAY_MS) },
	{ FORM(retry_cap_ms), NUMBER(1, DAY_MS) },
	{ .name = "secret", .take = form_take_secret, .is_fixed = true },
	{ .name = "secret_headers", .take = form_take_secret_headers },
	{ .name = "signing_key", .take = form_take_signing_key },
	{ FORM(timeout_ms), NUMBER(100, 60000) },
	{ .name = "tls_ca", .take = form_take_ca },
	{ .name = "tls_certificate", .take = form_take_certificate },
	{ .name = "tls_key", .take = form_take_tls_key },
	{ .name = "url", .take = take_url },
};

enum { NFIELDS = sizeof(fields) / sizeof(fields[0]) };

static int
refuse_member(struct form_reading *r)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < NFIELDS; i++)
		if (!r->is_change || !fields[i].is_fixed)
			buf_printf(&names, "%s%s", names.len == 0 ? "" : ", ",
			    fields[i].name);
	(void)err_set(r->err, ERR_REFUSED, "unknown member: %s %s",
	    r->is_change ? "what can be changed is" : "a subscription has",
	    buf_text(&names));
	buf_fini(&names);
	return -1;
}

static int
take_member(struct form_reading *r, bool seen[NFIELDS],
    const struct json_slice *key, const struct json_slice *value)
{
	size_t i = 0;

	while (i < NFIELDS && !json_is(key, fields[i].name))
		i++;
	if (i == NFIELDS || (r->is_change && fields[i].is_fixed))
		return refuse_member(r);
	if (seen[i]) {
		(void)form_refuse(r, "must not be repeated");
		return form_fail_at(r, fields[i].name);
	}
	seen[i] = true;
	if (fields[i].take(r, &fields[i], value) != 0)
		return form_fail_at(r, fields[i].name);
	return 0;
}

static int
read_members(struct form_reading *r, const char *text, size_t len)
{
	struct json_slice whole, key, value;
	bool seen[NFIELDS] = { false };
	size_t pos = 0;

	*r->out = (struct subscription_form){
		.fields = {
			.older_signature = -1,
			.max_attempts = -1,
			.max_in_flight = -1,
			.retry_base_ms = -1,
			.retry_cap_ms = -1,
			.timeout_ms = -1,
			.circuit_after = -1,
			.filter_weight = -1,
		},
	};
	r->pointer[0] = '\0';
	if (json_check(&whole, text, len, r->err) != 0)
		return -1;
	if (whole.kind != JSON_OBJECT)
		return form_refuse(r, "a subscription must be a JSON object");
	while (json_next_member(&whole, &pos, &key, &value))
		if (take_member(r, seen, &key, &value) != 0)
			return -1;
	return 0;
}

/* What no field can say alone. */
static int
judge(struct form_reading *r)
{
	const struct subscription_fields *f = &r->out->fields;

	if (f->retry_cap_ms > 0 && f->retry_base_ms > f->retry_cap_ms) {
		(void)form_refuse(r, "must not be above retry_cap_ms");
		return form_fail_at(r, "retry_base_ms");
	}
	if (form_judge_headers(r) != 0)
		return -1;
	return form_judge_credentials(r);
}

/* What a new one cannot do without. */
static int
complete(struct form_reading *r)
{
	struct subscription_fields *f = &r->out->fields;

	if (f->url == NULL) {
		(void)form_refuse(r, "is required");
		return form_fail_at(r, "url");
	}
	if (f->nevent_types == 0) {
		r->out->event_types[0] = "*";
		f->event_types = r->out->event_types;
		f->nevent_types = 1;
	}
	if (r->out->secret.len == 0)
		return sign_secret_new(&r->out->secret, r->err);
	return 0;
}

int
subscription_form_read(struct subscription_form *out, const char *text,
    size_t len, const struct target_policy *policy,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	struct form_reading r = { out, false, policy, pointer, err };

	if (read_members(&r, text, len) != 0 || judge(&r) != 0)
		return -1;
	return complete(&r);
}

int
subscription_form_read_change(struct subscription_form *out, const char *text,
    size_t len, const struct target_policy *policy,
    char pointer[FORM_POINTER_SIZE], struct err *err)
{
	struct form_reading r = { out, true, policy, pointer, err };

	if (read_members(&r, text, len) != 0)
		return -1;
	return judge(&r);
}

void
subscription_form_fini(struct subscription_form *form)
{
	buf_fini(&form->types);
	buf_fini(&form->filter);
	buf_fini(&form->headers.text);
	buf_wipe(&form->secret_headers.text);
	buf_fini(&form->headers_json);
	sign_secret_fini(&form->secret);
	sign_key_fini(&form->signing_key);
	buf_fini(&form->tls_ca);
	buf_fini(&form->tls_certificate);
	buf_wipe(&form->tls_key);
}
