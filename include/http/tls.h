/*
 * tls: what a server shows of itself over TLS, and asks of its clients.
 *
 * TLS 1.2 or later with forward secrecy, HTTP/1.1 alone, no renegotiation.
 * OpenSSL writes to sockets that may be closed: the program ignores SIGPIPE.
 */

#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/clock.h"

struct err;
struct tls;

struct tls_files {
	const char *certificate; /* PEM: its own, then those above it */
	const char *key; /* PEM, not encrypted, and private */
	/* PEM: each client has to show a certificate that leads to one of
	 * these, anew on each connection.  "": clients are not asked. */
	const char *client_ca;
};

/* Read them.  ERR_BROKEN says which file is wrong, and how. */
int tls_read(struct tls **out, const struct tls_files *files, struct err *err);

/* NULL does nothing. */
void tls_free(struct tls *tls);

/* When the certificate expires, since 1970. */
usec_t tls_expires_at(const struct tls *tls);

#endif
