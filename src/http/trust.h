/*
 * trust: whom TLS believes.
 *
 * Certificates are read once, when the program starts, and shared by all
 * connections.  libcurl would read them again for each multi, and a day later,
 * while the loop stands still.
 */

#ifndef HTTP_TRUST_H
#define HTTP_TRUST_H

#include <stdbool.h>

#include <curl/curl.h>
#include <openssl/types.h>

struct err;

/*
 * Read the system's trust store, and `file` besides it unless that is "".
 * ERR_BROKEN if either cannot be read; without `needs_system` the system's may
 * be missing.  Free it with X509_STORE_free().
 */
int trust_read(
    X509_STORE **out, bool needs_system, const char *file, struct err *err);

/* Make `easy` believe `trust`, which outlives it, and nothing else. */
int trust_set(CURL *easy, X509_STORE *trust, struct err *err);

#endif
