/* subscription_form_fields: a subscription's form being read, for the files
 * that take its fields. */

#ifndef INGEST_SUBSCRIPTION_FORM_FIELDS_H
#define INGEST_SUBSCRIPTION_FORM_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/json.h"
#include "subscription_form.h"

/* One form being read. */
struct form_reading {
	struct subscription_form *out;
	bool is_change;
	const struct target_policy *policy;
	char *pointer;
	struct err *err;
};

struct form_field;
typedef int form_take_fn(struct form_reading *r, const struct form_field *field,
    const struct json_slice *value);

struct form_field {
	const char *name;
	form_take_fn *take;
	size_t offset; /* of a number or a word among the fields */
	int min, max;
	const char *const *words; /* that it may be, ended by NULL */
	bool is_fixed; /* once it is made */
};

/* Refuse what is read, in these words. */
int form_refuse(struct form_reading *r, const char *what);

/* Say in which field what the error holds is. */
int form_fail_at(struct form_reading *r, const char *name);

/* Append the text of a string with a NUL; there is none inside. */
int form_take_text(
    struct form_reading *r, struct buf *out, const struct json_slice *value);

/* The takers of headers and credentials, and what none of them can say alone;
 * then what is to be made is made. */
form_take_fn form_take_headers;
form_take_fn form_take_secret_headers;
form_take_fn form_take_secret;
form_take_fn form_take_ed25519;
form_take_fn form_take_signing_key;
form_take_fn form_take_ca;
form_take_fn form_take_certificate;
form_take_fn form_take_tls_key;
int form_judge_headers(struct form_reading *r);
int form_judge_credentials(struct form_reading *r);

#endif
