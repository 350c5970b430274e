#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/credential.h"
#include "store/sealed.h"
#include "subscription_form_fields.h"

int
form_take_secret(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct buf text = { 0 };
	int rc = form_take_text(r, &text, value);

	(void)field;
	if (rc == 0)
		rc = sign_secret_parse(
		    &r->out->secret, text.data, text.len - 1, r->err);
	buf_wipe(&text);
	return rc;
}

int
form_take_ed25519(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	(void)field;
	if (value->kind != JSON_BOOL)
		return form_refuse(r, "must be true or false");
	r->out->ed25519 = value->at[0] == 't' ? FORM_ON : FORM_OFF;
	return 0;
}

int
form_take_signing_key(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	struct buf text = { 0 };
	int rc = form_take_text(r, &text, value);

	(void)field;
	if (rc == 0)
		rc = sign_key_parse(
		    &r->out->signing_key, text.data, text.len - 1, r->err);
	r->out->is_key_given = rc == 0;
	buf_wipe(&text);
	return rc;
}

/* Null is "". */
static int
take_pem(
    struct form_reading *r, struct buf *out, const struct json_slice *value)
{
	if (value->kind != JSON_NULL) {
		if (form_take_text(r, out, value) != 0)
			return -1;
		return out->len > 1 ? 0
		                    : form_refuse(r, "must be PEM, or null");
	}
	buf_add(out, "", 1);
	return out->failed ? err_set(r->err, ERR_NOMEM, "out of memory") : 0;
}

int
form_take_ca(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	(void)field;
	if (take_pem(r, &r->out->tls_ca, value) != 0)
		return -1;
	r->out->fields.tls_ca = r->out->tls_ca.data;
	return 0;
}

int
form_take_certificate(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	(void)field;
	if (take_pem(r, &r->out->tls_certificate, value) != 0)
		return -1;
	r->out->fields.tls_certificate = r->out->tls_certificate.data;
	return 0;
}

int
form_take_tls_key(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value)
{
	(void)field;
	return take_pem(r, &r->out->tls_key, value);
}

static int
judge_pair(struct form_reading *r, const struct buf *certificate,
    const struct buf *key)
{
	bool is_key;

	if (certificate->len > 1 && key->len > 1) {
		if (credential_check_pair(certificate->data,
			certificate->len - 1, key->data, key->len - 1,
			r->err) == 0)
			return 0;
		is_key = strncmp(r->err->text, "tls_key", 7) == 0;
	} else if (certificate->len == key->len) {
		return 0; /* neither is given, or both are null */
	} else {
		is_key = certificate->len > key->len;
		(void)err_set(r->err, ERR_REFUSED,
		    "tls_%s: must be given together with tls_%s, or both null",
		    is_key ? "key" : "certificate",
		    is_key ? "certificate" : "key");
	}
	(void)snprintf(r->pointer, FORM_POINTER_SIZE, "/tls_%s",
	    is_key ? "key" : "certificate");
	return -1;
}

static int
judge_ca(struct form_reading *r, const struct buf *ca)
{
	if (ca->len <= 1 ||
	    credential_check_ca(ca->data, ca->len - 1, r->err) == 0)
		return 0;
	(void)snprintf(r->pointer, FORM_POINTER_SIZE, "/tls_ca");
	return -1;
}

int
form_judge_credentials(struct form_reading *r)
{
	struct subscription_form *form = r->out;

	if (judge_ca(r, &form->tls_ca) != 0 ||
	    judge_pair(r, &form->tls_certificate, &form->tls_key) != 0)
		return -1;
	if (form->is_key_given && form->ed25519 != FORM_ON) {
		(void)form_refuse(
		    r, "goes with \"ed25519_signature\": true alone");
		return form_fail_at(r, "signing_key");
	}
	if (form->ed25519 == FORM_ON && !form->is_key_given)
		return sign_key_new(&form->signing_key, r->err);
	return 0;
}

int
subscription_form_seal(const struct subscription_form *form,
    struct sealed *sealed, struct err *err)
{
	const struct form_headers *headers = &form->secret_headers;
	const struct sign_secret *secret = &form->secret;

	if (secret->len > 0 && sealed_add(sealed, SECRET_SIGNING, NULL,
				   secret->bytes, secret->len, err) != 0)
		return -1;
	if (form->ed25519 == FORM_ON &&
	    sealed_add_key(sealed, &form->signing_key, err) != 0)
		return -1;
	if (form->tls_key.len > 1 &&
	    sealed_add(sealed, SECRET_TLS_KEY, NULL, form->tls_key.data,
		form->tls_key.len - 1, err) != 0)
		return -1;
	for (size_t i = 0; i < headers->n; i++) {
		const struct form_header *header = &headers->list[i];

		if (sealed_add(sealed, SECRET_HEADER, header->name,
			header->value, strlen(header->value), err) != 0)
			return -1;
	}
	return 0;
}
