/* rotation_form: what a client asks for when it rotates a secret, or a signing
 * key. */

#ifndef INGEST_ROTATION_FORM_H
#define INGEST_ROTATION_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/sign.h"
#include "core/sign_key.h"
#include "form.h"

struct err;

enum {
	ROTATION_OVERLAP = 86400, /* seconds, where none are given */
	ROTATION_OVERLAP_MAX = 2592000,
};

struct rotation_form {
	bool is_key;
	bool is_given; /* it is not made here */
	struct sign_secret secret; /* or, */
	struct sign_key key; /* given, or made */
	int overlap_seconds;
};

/*
 * Read a form: of a signing key's rotation, or of a secret's.  ERR_REFUSED says
 * what is wrong; `pointer` receives the JSON pointer of the field at fault, ""
 * for the whole.  Call rotation_form_fini() in either case.
 */
int rotation_form_read(struct rotation_form *out, bool is_key, const char *text,
    size_t len, char pointer[FORM_POINTER_SIZE], struct err *err);

void rotation_form_fini(struct rotation_form *form);

#endif
