/* key_form: what a client wants a new key, or a new tenant, to be. */

#ifndef INGEST_KEY_FORM_H
#define INGEST_KEY_FORM_H

#include <stddef.h>

#include "base/buf.h"
#include "form.h"
#include "store/key.h"

struct err;

struct key_form {
	struct buf role, tenant, name; /* what the order lends */
	struct key_order order;
};

/*
 * Read a form; there can be such a key.  ERR_REFUSED says what is wrong, and
 * `pointer` receives the JSON pointer of the field at fault, "" for the whole.
 * Call key_form_fini() in either case.
 */
int key_form_read(struct key_form *out, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err);
void key_form_fini(struct key_form *form);

/* The same for the name of a tenant, the only member of its form. */
int key_form_read_tenant(struct buf *name, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err);

#endif
