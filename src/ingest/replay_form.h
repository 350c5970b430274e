/* replay_form: which time a client wants replayed, and how fast. */

#ifndef INGEST_REPLAY_FORM_H
#define INGEST_REPLAY_FORM_H

#include <stddef.h>

#include "form.h"
#include "store/replay.h"

struct err;

/*
 * Read the form of an order whose `what` is set.  ERR_REFUSED says what is
 * wrong; `pointer` receives the JSON pointer of the field at fault, "" for the
 * whole.
 */
int replay_form_read(struct replay_order *order, const char *text, size_t len,
    char pointer[FORM_POINTER_SIZE], struct err *err);

#endif
