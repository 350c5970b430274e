#include <string.h>

#include "base/err.h"
#include "send.h"

/* As blobs, for these libcurl compares before it uses a connection or a TLS
 * session again; not the key, but a key has its certificate. */
static CURLcode
set(CURL *easy, CURLoption option, const char *pem)
{
	struct curl_blob blob = { .flags = CURL_BLOB_NOCOPY };

	if (pem == NULL)
		return curl_easy_setopt(easy, option, NULL);
	blob.data = (void *)(uintptr_t)pem; /* libcurl only reads it */
	blob.len = strlen(pem);
	return curl_easy_setopt(easy, option, &blob);
}

static int
set_all(struct send *send, const struct send_tls *tls)
{
	CURL *easy = send->easy;

	send->tls = *tls;
	if (set(easy, CURLOPT_CAINFO_BLOB, tls->ca) == CURLE_OK &&
	    set(easy, CURLOPT_SSLCERT_BLOB, tls->certificate) == CURLE_OK &&
	    set(easy, CURLOPT_SSLKEY_BLOB, tls->key) == CURLE_OK)
		return 0;
	return -1;
}

int
send_tls_set(struct send *send, const struct send_tls *tls, struct err *err)
{
	if (tls == NULL || !send->site.is_https ||
	    (tls->ca == NULL && tls->certificate == NULL && tls->key == NULL))
		return 0;
	if ((tls->certificate == NULL) != (tls->key == NULL))
		return err_set(err, ERR_REFUSED,
		    "a client certificate and its key belong together");
	send->has_tls = true;
	if (set_all(send, tls) == 0)
		return 0;
	send_tls_clear(send);
	return err_set(err, ERR_NOMEM, "certificates");
}

void
send_tls_clear(struct send *send)
{
	static const struct send_tls none = { NULL, NULL, NULL };

	if (!send->has_tls)
		return;
	send->has_tls = false;
	(void)set_all(send, &none); /* it only frees */
}
