/* subscription_form: what a client asks for when it registers an endpoint. */

#ifndef INGEST_SUBSCRIPTION_FORM_H
#define INGEST_SUBSCRIPTION_FORM_H

#include <stddef.h>

#include "base/buf.h"
#include "core/sign.h"
#include "core/target.h"
#include "store/subscription.h"

struct err;

enum { FORM_POINTER_SIZE = 64 };

/* Of fields that were left out, texts are NULL and numbers 0. */
struct subscription_form {
	struct target target;
	struct buf types; /* the event types, each NUL-terminated */
	const char *event_types[SUBSCRIPTION_TYPES_MAX];
	size_t nevent_types;
	const char *ordering;
	const char *on_dead;
	bool older_signature;
	int max_attempts;
	int max_in_flight;
	int retry_base_ms;
	int retry_cap_ms;
	int timeout_ms;
	struct sign_secret secret; /* given, or made */
};

/*
 * Read and judge a form.  ERR_REFUSED says what is wrong; `pointer` receives
 * the JSON pointer of the field at fault, "" for the whole.  Call
 * subscription_form_fini() in either case.
 */
int subscription_form_read(struct subscription_form *out, const char *text,
    size_t len, const struct target_policy *policy,
    char pointer[FORM_POINTER_SIZE], struct err *err);

void subscription_form_fini(struct subscription_form *form);

#endif
