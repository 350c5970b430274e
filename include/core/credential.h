/*
 * credential: PEM texts that a subscription brings for TLS: authorities to
 * trust, and a certificate with its key to show.
 *
 * Checked when they are registered, so that a typing error is not found by the
 * first delivery.  Nobody is ever asked for a passphrase.
 */

#ifndef CORE_CREDENTIAL_H
#define CORE_CREDENTIAL_H

#include <stddef.h>

struct err;

enum {
	CREDENTIAL_CHAIN_MAX = 65536, /* octets of certificates in PEM */
	CREDENTIAL_KEY_MAX = 16384, /* and of a key */
};

/*
 * Check authorities to trust: certificates, one or more, and nothing else.
 * ERR_REFUSED says what is wrong, as the next does.
 */
int credential_check_ca(const char *pem, size_t len, struct err *err);

/*
 * Check a certificate, which others that it was signed with may follow, and its
 * private key: not encrypted; RSA of at least 2048 bits, ECDSA or Ed25519.
 */
int credential_check_pair(const char *certificate, size_t certificate_len,
    const char *key, size_t key_len, struct err *err);

#endif
