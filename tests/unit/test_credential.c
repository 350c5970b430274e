#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/credential.h"

#define DAY (24L * 3600)

/* A self-signed certificate and its key, as objects and in PEM. */
struct identity {
	EVP_PKEY *key;
	X509 *certificate;
	char *key_pem, *certificate_pem, *encrypted_pem;
};

/* What is written to `bio`, as a text. */
static char *
take(BIO *bio)
{
	char *data, *text;
	size_t len = (size_t)BIO_get_mem_data(bio, &data);

	text = calloc(1, len + 1);
	assert_non_null(text);
	memcpy(text, data, len);
	BIO_free(bio);
	return text;
}

static char *
print_key(EVP_PKEY *key, const char *passphrase)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_int_equal(1,
	    PEM_write_bio_PKCS8PrivateKey(bio, key,
		passphrase == NULL ? NULL : EVP_aes_128_cbc(), passphrase,
		passphrase == NULL ? 0 : (int)strlen(passphrase), NULL, NULL));
	return take(bio);
}

static struct identity
identity_of(EVP_PKEY *key, const EVP_MD *digest)
{
	struct identity made = { .key = key };
	BIO *bio = BIO_new(BIO_s_mem());

	assert_non_null(key);
	made.certificate = X509_new();
	assert_non_null(made.certificate);
	(void)X509_gmtime_adj(X509_getm_notBefore(made.certificate), 0);
	(void)X509_gmtime_adj(X509_getm_notAfter(made.certificate), DAY);
	(void)X509_set_pubkey(made.certificate, key);
	assert_true(X509_sign(made.certificate, key, digest) > 0);
	assert_int_equal(1, PEM_write_bio_X509(bio, made.certificate));
	made.certificate_pem = take(bio);
	made.key_pem = print_key(key, NULL);
	made.encrypted_pem = print_key(key, "secret");
	return made;
}

static void
identity_fini(struct identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
	free(identity->key_pem);
	free(identity->certificate_pem);
	free(identity->encrypted_pem);
}

static struct identity
ec(void)
{
	return identity_of(EVP_EC_gen("P-256"), EVP_sha256());
}

static struct identity
rsa(unsigned int bits)
{
	return identity_of(EVP_RSA_gen(bits), EVP_sha256());
}

static struct identity
ed25519(void)
{
	return identity_of(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), NULL);
}

/* `fault` is part of what is said; NULL: it is fine. */
static void
check_ca(const char *pem, const char *fault)
{
	struct err err = { 0 };
	int result = credential_check_ca(pem, strlen(pem), &err);

	print_message("%s: %s\n", fault == NULL ? "fine" : fault, err.text);
	assert_int_equal(result, fault == NULL ? 0 : -1);
	if (fault == NULL)
		return;
	assert_int_equal(err.code, ERR_REFUSED);
	assert_non_null(strstr(err.text, fault));
}

static void
check_pair(const char *certificate, const char *key, const char *fault)
{
	struct err err = { 0 };
	int result = credential_check_pair(
	    certificate, strlen(certificate), key, strlen(key), &err);

	print_message("%s: %s\n", fault == NULL ? "fine" : fault, err.text);
	assert_int_equal(result, fault == NULL ? 0 : -1);
	if (fault == NULL)
		return;
	assert_int_equal(err.code, ERR_REFUSED);
	assert_non_null(strstr(err.text, fault));
}

static char *
join(const char *a, const char *b)
{
	struct buf text = { 0 };
	char *joined;

	buf_puts(&text, a);
	buf_puts(&text, b);
	joined = strdup(buf_text(&text));
	assert_non_null(joined);
	buf_fini(&text);
	return joined;
}

static void
check_joined_ca(const char *a, const char *b, const char *fault)
{
	char *joined = join(a, b);

	check_ca(joined, fault);
	free(joined);
}

static void
test_authorities_are_certificates_and_nothing_else(void **state)
{
	struct identity one = ec(), two = ed25519();

	(void)state;
	check_ca(one.certificate_pem, NULL);
	check_joined_ca(one.certificate_pem, two.certificate_pem, NULL);
	check_joined_ca("# Our own authority\n", one.certificate_pem, NULL);
	check_ca("", "want a certificate in PEM");
	check_ca("no PEM", "want a certificate in PEM");
	check_ca(one.key_pem, "PRIVATE KEY");
	check_joined_ca(one.certificate_pem, one.key_pem, "PRIVATE KEY");
	check_joined_ca(one.certificate_pem,
	    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	    "certificate 2 cannot be read");
	check_joined_ca(one.certificate_pem,
	    "-----BEGIN CERTIFICATE-----\nAAAA\n", "nothing but certificates");
	identity_fini(&one);
	identity_fini(&two);
}

static void
test_authorities_have_a_limit(void **state)
{
	struct identity one = ec();
	struct buf text = { 0 };
	struct err err;

	(void)state;
	while (text.len + strlen(one.certificate_pem) <= CREDENTIAL_CHAIN_MAX)
		buf_puts(&text, one.certificate_pem);
	assert_int_equal(credential_check_ca(text.data, text.len, &err), 0);
	buf_puts(&text, one.certificate_pem);
	assert_int_equal(credential_check_ca(text.data, text.len, &err), -1);
	assert_non_null(strstr(err.text, "over 65536 bytes"));
	buf_fini(&text);
	identity_fini(&one);
}

static void
test_a_pair_is_a_certificate_and_its_own_key(void **state)
{
	struct identity one = ec(), two = ec(), three = ed25519();
	char *chain = join(one.certificate_pem, two.certificate_pem);
	char *keys = join(one.key_pem, two.key_pem);

	(void)state;
	check_pair(one.certificate_pem, one.key_pem, NULL);
	check_pair(three.certificate_pem, three.key_pem, NULL);
	check_pair(chain, one.key_pem, NULL);
	check_pair(
	    one.certificate_pem, two.key_pem, "not the key of the first");
	check_pair(chain, two.key_pem, "not the key of the first");
	check_pair(one.certificate_pem, three.key_pem, "not the key of");
	check_pair(one.certificate_pem, keys, "one private key");
	check_pair(one.certificate_pem, "", "one private key");
	check_pair(one.certificate_pem, one.certificate_pem, "private key");
	check_pair(one.key_pem, one.key_pem, "tls_certificate: want");
	check_pair("", one.key_pem, "tls_certificate: want a certificate");
	free(chain);
	free(keys);
	identity_fini(&one);
	identity_fini(&two);
	identity_fini(&three);
}

/* Were it asked for, the test would wait for its terminal. */
static void
test_nobody_is_asked_for_a_passphrase(void **state)
{
	struct identity one = ec();

	(void)state;
	check_pair(one.certificate_pem, one.encrypted_pem, "not encrypted");
	identity_fini(&one);
}

static void
test_keys_are_strong_and_of_a_usual_kind(void **state)
{
	struct identity weak = rsa(1024), fine = rsa(2048);
	struct identity other =
	    identity_of(EVP_PKEY_Q_keygen(NULL, NULL, "ED448"), NULL);

	(void)state;
	check_pair(fine.certificate_pem, fine.key_pem, NULL);
	check_pair(weak.certificate_pem, weak.key_pem, "less than 2048 bits");
	check_pair(other.certificate_pem, other.key_pem, "none of RSA, ECDSA");
	identity_fini(&weak);
	identity_fini(&fine);
	identity_fini(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_authorities_are_certificates_and_nothing_else),
		cmocka_unit_test(test_authorities_have_a_limit),
		cmocka_unit_test(test_a_pair_is_a_certificate_and_its_own_key),
		cmocka_unit_test(test_nobody_is_asked_for_a_passphrase),
		cmocka_unit_test(test_keys_are_strong_and_of_a_usual_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
