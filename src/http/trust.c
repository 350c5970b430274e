#include <stdlib.h>

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "revoked.h"
#include "trust.h"

struct trust {
	X509_STORE *store;
	struct revoked *revoked;
};

static int
add_file(X509_STORE *store, const char *file, struct err *err)
{
	if (X509_STORE_load_file(store, file) == 1)
		return 0;
	ERR_clear_error();
	return err_set(
	    err, ERR_BROKEN, "%s holds no certificates that can be read", file);
}

/* Without it every https delivery would fail, one by one. */
static int
add_system(X509_STORE *store, bool is_needed, struct err *err)
{
	const char *file = curl_version_info(CURLVERSION_NOW)->cainfo;

	if (file == NULL || add_file(store, file, err) == 0 || !is_needed)
		return 0;
	return err_wrap(
	    err, "the system's trust store (Debian: install ca-certificates)");
}

static int
open_store(struct trust *trust, const struct trust_conf *conf, struct err *err)
{
	trust->store = X509_STORE_new();
	/* What libcurl sets on a store of its own. */
	if (trust->store == NULL ||
	    X509_STORE_set_flags(trust->store,
		X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN) != 1)
		return err_set(err, ERR_NOMEM, "certificates");
	if (add_system(trust->store, conf->needs_system, err) != 0)
		return -1;
	return conf->ca_file[0] == '\0'
	           ? 0
	           : add_file(trust->store, conf->ca_file, err);
}

int
trust_open(struct trust **out, const struct trust_conf *conf, struct err *err)
{
	struct trust *trust = calloc(1, sizeof(*trust));

	if (trust == NULL)
		return err_set(err, ERR_NOMEM, "trust");
	if (open_store(trust, conf, err) != 0 ||
	    revoked_read(&trust->revoked, conf->revoked_file, err) != 0) {
		trust_close(trust);
		return -1;
	}
	*out = trust;
	return 0;
}

void
trust_close(struct trust *trust)
{
	if (trust == NULL)
		return;
	X509_STORE_free(trust->store);
	revoked_free(trust->revoked);
	free(trust);
}

/* What OpenSSL would do, and then the operator's own list. */
static int
verify(X509_STORE_CTX *chain, void *arg)
{
	const struct trust *trust = arg;

	if (X509_verify_cert(chain) != 1)
		return 0;
	if (!revoked_has_any(trust->revoked, X509_STORE_CTX_get0_chain(chain)))
		return 1;
	X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REVOKED);
	return 0;
}

void
trust_apply(struct trust *trust, SSL_CTX *context, bool has_own)
{
	if (!has_own)
		SSL_CTX_set1_cert_store(context, trust->store);
	SSL_CTX_set_cert_verify_callback(context, verify, trust);
}
