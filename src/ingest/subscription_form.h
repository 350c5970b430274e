/* subscription_form: what a client asks for when it registers an endpoint, or
 * changes one. */

#ifndef INGEST_SUBSCRIPTION_FORM_H
#define INGEST_SUBSCRIPTION_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "core/header.h"
#include "core/sign.h"
#include "core/sign_key.h"
#include "core/target.h"
#include "form.h"
#include "store/subscription.h"

struct err;
struct sealed;

enum { FORM_RATE_SIZE = 17 };

struct form_header {
	const char *name; /* in lower case */
	const char *value;
};

struct form_headers {
	bool is_given; /* though there may be none */
	struct form_header list[HEADER_COUNT_MAX];
	size_t n;
	size_t octets; /* of all names and values */
	struct buf text; /* where they stand */
};

enum form_switch { FORM_AS_IT_IS, FORM_OFF, FORM_ON };

struct subscription_form {
	struct subscription_fields fields; /* they point to what follows */
	struct target target;
	struct buf types; /* the event types, each NUL-terminated */
	const char *event_types[SUBSCRIPTION_TYPES_MAX];
	struct buf filter; /* with a NUL, if given */
	char rate[FORM_RATE_SIZE];
	struct form_headers headers, secret_headers;
	struct buf headers_json;
	struct sign_secret secret; /* of a new one: given, or made */
	enum form_switch ed25519;
	struct sign_key signing_key; /* if it is on: given, or made */
	bool is_key_given;
	struct buf tls_ca, tls_certificate, tls_key; /* with a NUL, if given */
};

/*
 * Read and judge a form: for a new one, or for a change of one, in which
 * nothing is required.  ERR_REFUSED says what is wrong; `pointer` receives the
 * JSON pointer of the field at fault, "" for the whole.  The form is not to be
 * moved.  Call subscription_form_fini() in either case.
 */
int subscription_form_read(struct subscription_form *out, const char *text,
    size_t len, const struct target_policy *policy,
    char pointer[FORM_POINTER_SIZE], struct err *err);
int subscription_form_read_change(struct subscription_form *out,
    const char *text, size_t len, const struct target_policy *policy,
    char pointer[FORM_POINTER_SIZE], struct err *err);

/* Add the secrets of the form to `sealed`, which lends from it. */
int subscription_form_seal(const struct subscription_form *form,
    struct sealed *sealed, struct err *err);

void subscription_form_fini(struct subscription_form *form);

#endif
