/*
 * trust: whom TLS believes.
 *
 * Certificates are read once, when the program starts, and shared by all
 * connections.  libcurl would read them again for each multi, and a day later,
 * while the loop stands still.
 *
 * A send with an authority of its own is another matter.  libcurl uses a
 * connection or a TLS session again only for the same CURLOPT_CAINFO_BLOB,
 * but it does not see what a callback does: such trust must go through that
 * option, and the shared store must not be touched, or libcurl would add the
 * authority to it.
 */

#ifndef HTTP_TRUST_H
#define HTTP_TRUST_H

#include <stdbool.h>

#include <openssl/types.h>

struct err;
struct trust;

struct trust_conf {
	bool needs_system; /* else the system's store may be missing */
	const char *ca_file; /* besides it; "" for none */
	const char *revoked_file; /* see revoked.h; "" for none */
};

/* ERR_BROKEN if what it needs cannot be read. */
int trust_open(
    struct trust **out, const struct trust_conf *conf, struct err *err);

/* NULL is fine. */
void trust_close(struct trust *trust);

/*
 * Let connections of `context` believe `trust`, which outlives them, and
 * nothing else; with `has_own` what `context` believes stays, but what is
 * revoked is refused all the same.
 */
void trust_apply(struct trust *trust, SSL_CTX *context, bool has_own);

#endif
