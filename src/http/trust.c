#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "trust.h"

static int
add_file(X509_STORE *trust, const char *file, struct err *err)
{
	if (X509_STORE_load_file(trust, file) == 1)
		return 0;
	ERR_clear_error();
	return err_set(
	    err, ERR_BROKEN, "%s holds no certificates that can be read", file);
}

/* Without it every https delivery would fail, one by one. */
static int
add_system(X509_STORE *trust, bool is_needed, struct err *err)
{
	const char *file = curl_version_info(CURLVERSION_NOW)->cainfo;

	if (file == NULL || add_file(trust, file, err) == 0 || !is_needed)
		return 0;
	return err_wrap(
	    err, "the system's trust store (Debian: install ca-certificates)");
}

int
trust_read(
    X509_STORE **out, bool needs_system, const char *file, struct err *err)
{
	X509_STORE *trust = X509_STORE_new();

	/* What libcurl sets on a store of its own. */
	if (trust == NULL ||
	    X509_STORE_set_flags(trust,
		X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN) != 1) {
		(void)err_set(err, ERR_NOMEM, "certificates");
		goto fail;
	}
	if (add_system(trust, needs_system, err) != 0 ||
	    (file[0] != '\0' && add_file(trust, file, err) != 0))
		goto fail;

	*out = trust;
	return 0;

fail:
	X509_STORE_free(trust);
	return -1;
}

/* Called by libcurl for each connection, before its handshake. */
static CURLcode
on_context(CURL *easy, void *context, void *trust)
{
	(void)easy;
	SSL_CTX_set1_cert_store(context, trust);
	return CURLE_OK;
}

int
trust_set(CURL *easy, X509_STORE *trust, struct err *err)
{
	if (curl_easy_setopt(easy, CURLOPT_CAINFO, NULL) == CURLE_OK &&
	    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, on_context) ==
		CURLE_OK &&
	    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, trust) == CURLE_OK)
		return 0;
	return err_set(
	    err, ERR_BROKEN, "libcurl does not take CURLOPT_SSL_CTX_FUNCTION");
}
