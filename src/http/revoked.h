/*
 * revoked: certificates that the operator takes back.
 *
 * A list of SHA-256 fingerprints in a file, one a line, as `openssl x509
 * -noout -fingerprint -sha256` prints them or as 64 hexadecimal digits with
 * or without colons; `#` begins a comment.  Neither revocation lists nor OCSP
 * are asked: most authorities publish none any more, and a look-up would be
 * one more request that an attacker could steer or stop.
 */

#ifndef HTTP_REVOKED_H
#define HTTP_REVOKED_H

#include <stdbool.h>

#include <openssl/x509.h>

struct err;
struct revoked;

/* ERR_BROKEN names the line that cannot be read.  "" makes an empty list. */
int revoked_read(struct revoked **out, const char *path, struct err *err);

/* NULL is fine. */
void revoked_free(struct revoked *revoked);

/* Whether `chain` holds one of the list; one that cannot be told counts. */
bool revoked_has_any(
    const struct revoked *revoked, const STACK_OF(X509) * chain);

#endif
