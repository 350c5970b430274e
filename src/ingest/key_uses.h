/*
 * key_uses: when keys were last used, kept cheaply.
 *
 * A look-up of a key says whether its last use is worth writing down anew, which
 * is so every few minutes.  Those that are gather for a second and are written
 * together, beside all that is accepted and answered.  What gets lost on the way
 * is noted again by the next look-up.
 */

#ifndef INGEST_KEY_USES_H
#define INGEST_KEY_USES_H

#include <stdint.h>

struct err;
struct ingest;
struct key_uses;

int key_uses_open(
    struct key_uses **out, struct ingest *ingest, struct err *err);

/* After the desk, which tells when nothing is under way any more.  NULL is
 * fine. */
void key_uses_close(struct key_uses *uses);

/* The key was used, and that is worth writing down. */
void key_uses_note(struct key_uses *uses, int64_t key_id);

#endif
