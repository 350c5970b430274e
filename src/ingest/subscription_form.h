/* subscription_form: what a client asks for when it registers an endpoint, or
 * changes one. */

#ifndef INGEST_SUBSCRIPTION_FORM_H
#define INGEST_SUBSCRIPTION_FORM_H

#include <stddef.h>

#include "base/buf.h"
#include "core/sign.h"
#include "core/target.h"
#include "store/subscription.h"

struct err;

enum {
	FORM_POINTER_SIZE = 64,
	FORM_RATE_SIZE = 17,
};

struct subscription_form {
	struct subscription_fields fields; /* they point to what follows */
	struct target target;
	struct buf types; /* the event types, each NUL-terminated */
	const char *event_types[SUBSCRIPTION_TYPES_MAX];
	char rate[FORM_RATE_SIZE];
	struct sign_secret secret; /* of a new one: given, or made */
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

void subscription_form_fini(struct subscription_form *form);

#endif
