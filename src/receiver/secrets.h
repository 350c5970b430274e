/*
 * secrets: a file that says which secret belongs to which endpoint.
 *
 * Lines `PATH SECRET`; empty ones and those with `#` in front are comments.
 * PATH is a prefix of whole segments: /normal is for /normal and /normal/a.
 * The longest prefix counts, and of equal ones the last.  A secret is known
 * only after its endpoint was registered, so the file is read again whenever
 * it has changed; that it is not there yet is no error.
 */

#ifndef RECEIVER_SECRETS_H
#define RECEIVER_SECRETS_H

struct err;
struct secrets;
struct verify_secret;

/* `file` is kept, not copied; "" for none.  Nothing is read yet. */
int secrets_open(struct secrets **out, const char *file, struct err *err);

/* Wipe and free.  NULL is fine. */
void secrets_close(struct secrets *secrets);

/*
 * Read the file if it has changed since the last time.  On failure, told once
 * for each change, what was read before stays; the error names the line.
 */
int secrets_refresh(struct secrets *secrets, struct err *err);

/* The secret of `path`, valid until the next refresh; NULL if none is known. */
const struct verify_secret *secrets_find(
    const struct secrets *secrets, const char *path);

#endif
