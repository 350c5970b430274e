#include <stdbool.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/err.h"
#include "core/credential.h"

enum { RSA_BITS_MIN = 2048, LABEL = 64 };

/* A PEM text that is read block by block. */
struct reader {
	BIO *bio;
	const char *what; /* what the text is, for people */
	int ncertificates;
};

/* Never ask on the terminal: what is encrypted does not open. */
static int
no_passphrase(char *out, int size, int is_write, void *arg)
{
	(void)out;
	(void)size;
	(void)is_write;
	(void)arg;
	return -1;
}

static int
check_len(const char *what, size_t len, size_t max, struct err *err)
{
	if (len > max)
		return err_set(
		    err, ERR_REFUSED, "%s: over %zu bytes", what, max);
	return 0;
}

/* Behind the last block PEM_read says that no other begins. */
static bool
is_at_end(void)
{
	unsigned long code = ERR_peek_last_error();

	return ERR_GET_LIB(code) == ERR_LIB_PEM &&
	       ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

/* The next certificate: 1; 0 at the end; -1. */
static int
next_certificate(X509 **out, struct reader *reader, struct err *err)
{
	char *name = NULL, *header = NULL;
	unsigned char *data = NULL;
	const unsigned char *at;
	long len;
	int result = -1;

	*out = NULL;
	ERR_clear_error();
	if (PEM_read_bio(reader->bio, &name, &header, &data, &len) != 1) {
		if (is_at_end() && reader->ncertificates > 0)
			return 0;
		return err_set(err, ERR_REFUSED, "%s: want %s in PEM",
		    reader->what,
		    reader->ncertificates > 0 ? "nothing but certificates"
					      : "a certificate");
	}
	at = data;
	if (strcmp(name, PEM_STRING_X509) != 0)
		(void)err_set(err, ERR_REFUSED,
		    "%s: want certificates alone, and this has a %.*s",
		    reader->what, LABEL, name);
	else if ((*out = d2i_X509(NULL, &at, len)) == NULL || at != data + len)
		(void)err_set(err, ERR_REFUSED,
		    "%s: certificate %d cannot be read", reader->what,
		    reader->ncertificates + 1);
	else {
		reader->ncertificates++;
		result = 1;
	}
	OPENSSL_free(name);
	OPENSSL_free(header);
	OPENSSL_clear_free(data, (size_t)len);
	return result;
}

/* Read all, and keep the first in `leaf`, which may be NULL. */
static int
read_certificates(
    X509 **leaf, const char *what, const char *pem, size_t len, struct err *err)
{
	struct reader reader = { .what = what };
	X509 *certificate;
	int result = -1;

	if (check_len(what, len, CREDENTIAL_CHAIN_MAX, err) != 0)
		return -1;
	reader.bio = BIO_new_mem_buf(pem, (int)len);
	if (reader.bio == NULL)
		return err_set(err, ERR_NOMEM, "%s", what);
	while ((result = next_certificate(&certificate, &reader, err)) > 0) {
		if (leaf != NULL && *leaf == NULL)
			*leaf = certificate;
		else
			X509_free(certificate);
	}
	X509_free(result < 0 ? certificate : NULL);
	BIO_free(reader.bio);
	ERR_clear_error();
	return result;
}

int
credential_check_ca(const char *pem, size_t len, struct err *err)
{
	return read_certificates(NULL, "tls_ca", pem, len, err);
}

/* One key and nothing else, or NULL. */
static EVP_PKEY *
read_key(const char *pem, size_t len)
{
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	EVP_PKEY *key = NULL, *other;

	if (bio == NULL)
		return NULL;
	key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	other = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	if (other != NULL) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	EVP_PKEY_free(other);
	BIO_free(bio);
	return key;
}

static const char *
key_fault(const EVP_PKEY *key)
{
	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		return EVP_PKEY_get_bits(key) < RSA_BITS_MIN
		           ? "an RSA key of less than 2048 bits"
		           : NULL;
	case EVP_PKEY_EC:
	case EVP_PKEY_ED25519:
		return NULL;
	default:
		return "a key of a kind that is none of RSA, ECDSA and Ed25519";
	}
}

static int
check_pair(const X509 *leaf, const EVP_PKEY *key, struct err *err)
{
	const char *fault;

	if (key == NULL)
		return err_set(err, ERR_REFUSED,
		    "tls_key: want one private key in PEM, not encrypted");
	fault = key_fault(key);
	if (fault != NULL)
		return err_set(err, ERR_REFUSED, "tls_key: %s", fault);
	if (X509_check_private_key(leaf, key) != 1)
		return err_set(err, ERR_REFUSED,
		    "tls_key: not the key of the first certificate in "
		    "tls_certificate");
	return 0;
}

int
credential_check_pair(const char *certificate, size_t certificate_len,
    const char *key, size_t key_len, struct err *err)
{
	X509 *leaf = NULL;
	EVP_PKEY *pkey = NULL;
	int result = -1;

	if (check_len("tls_key", key_len, CREDENTIAL_KEY_MAX, err) == 0 &&
	    read_certificates(&leaf, "tls_certificate", certificate,
		certificate_len, err) == 0) {
		pkey = read_key(key, key_len);
		result = check_pair(leaf, pkey, err);
	}
	EVP_PKEY_free(pkey);
	X509_free(leaf);
	ERR_clear_error();
	return result;
}
