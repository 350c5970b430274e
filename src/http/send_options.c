#include "base/err.h"
#include "send.h"
#include "send_options.h"

/* clang-format off */
#define N(id, v) { #id, id, OPTION_NUMBER, { .number = (v) } }
#define T(id, v) { #id, id, OPTION_TEXT, { .text = (v) } }
#define B(id, v) { #id, id, OPTION_BYTES, { .bytes = (v) } }
#define ME(id) { #id, id, OPTION_SEND, { .number = 0 } }

/* Much of it is libcurl's default today: it
 * stands here so that it is so tomorrow as well. */
const struct send_option send_options[] = {
	/* Nothing from the environment, nor from earlier answers. */
	T(CURLOPT_PROXY, ""),
	T(CURLOPT_NOPROXY, "*"),
	N(CURLOPT_NETRC, CURL_NETRC_IGNORED),
	T(CURLOPT_COOKIEFILE, NULL),
	N(CURLOPT_HSTS_CTRL, 0),
	N(CURLOPT_FOLLOWLOCATION, 0),
	N(CURLOPT_AUTOREFERER, 0),
	T(CURLOPT_DOH_URL, NULL),
	N(CURLOPT_DISALLOW_USERNAME_IN_URL, 1),

	/* One plain protocol. */
	T(CURLOPT_PROTOCOLS_STR, "http,https"),
	T(CURLOPT_REDIR_PROTOCOLS_STR, "https"),
	N(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1),
	N(CURLOPT_HTTP09_ALLOWED, 0),
	N(CURLOPT_POST, 1),
	N(CURLOPT_PATH_AS_IS, 1),
	T(CURLOPT_USERAGENT, NULL),

	/* The answer, as it comes. */
	T(CURLOPT_ACCEPT_ENCODING, NULL),
	N(CURLOPT_HTTP_CONTENT_DECODING, 0),

	/* Each send has both as long as it lasts, the second if it is https.
	 * Answers are short, and so are most requests. */
	N(CURLOPT_BUFFERSIZE, 4L * 1024),
	N(CURLOPT_UPLOAD_BUFFERSIZE, 16L * 1024),

	/* TLS with the name verified; for whom it trusts see trust.h.  Without
	 * a passphrase libcurl crashes on a key that is encrypted, and OpenSSL
	 * asks for one on the terminal. */
	N(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2),
	N(CURLOPT_SSL_VERIFYPEER, 1),
	N(CURLOPT_SSL_VERIFYHOST, 2),
	T(CURLOPT_CAINFO, NULL),
	T(CURLOPT_CAPATH, NULL),
	T(CURLOPT_SSLCERTTYPE, "PEM"),
	T(CURLOPT_SSLKEYTYPE, "PEM"),
	T(CURLOPT_KEYPASSWD, ""),

	/* Never a signal, never a wait for a thread. */
	N(CURLOPT_NOSIGNAL, 1),
	N(CURLOPT_QUICK_EXIT, 1),

	/* Addresses are given with each send: they are used at once and then
	 * forgotten.  Not 1: an age of a second may be two ticks apart. */
	N(CURLOPT_DNS_CACHE_TIMEOUT, 5),
	/* Less than the 5 s after which many servers close: a connection that
	 * closes as it is used again costs an attempt. */
	N(CURLOPT_MAXAGE_CONN, 4),

	/* The guards. */
	{ "CURLOPT_OPENSOCKETFUNCTION", CURLOPT_OPENSOCKETFUNCTION,
	    OPTION_SOCKET, { .socket = send_guard_socket } },
	{ "CURLOPT_CLOSESOCKETFUNCTION", CURLOPT_CLOSESOCKETFUNCTION,
	    OPTION_CLOSE, { .close = send_guard_close } },
	{ "CURLOPT_RESOLVER_START_FUNCTION", CURLOPT_RESOLVER_START_FUNCTION,
	    OPTION_RESOLVER, { .resolver = send_guard_resolver } },
	{ "CURLOPT_SSL_CTX_FUNCTION", CURLOPT_SSL_CTX_FUNCTION,
	    OPTION_CONTEXT, { .context = send_guard_tls } },
	{ "CURLOPT_PREREQFUNCTION", CURLOPT_PREREQFUNCTION, OPTION_REQUEST,
	    { .request = send_guard_request } },
	B(CURLOPT_HEADERFUNCTION, send_answer_header),
	B(CURLOPT_WRITEFUNCTION, send_answer_body),
	ME(CURLOPT_OPENSOCKETDATA),
	{ "CURLOPT_CLOSESOCKETDATA", CURLOPT_CLOSESOCKETDATA, OPTION_SOCKETS,
	    { .number = 0 } },
	ME(CURLOPT_RESOLVER_START_DATA),
	ME(CURLOPT_SSL_CTX_DATA),
	ME(CURLOPT_PREREQDATA),
	ME(CURLOPT_HEADERDATA),
	ME(CURLOPT_WRITEDATA),
	ME(CURLOPT_PRIVATE),
	{ .name = NULL },
};
/* clang-format on */

static CURLcode
set(struct send *send, const struct send_option *option)
{
	CURL *easy = send->easy;
	CURLoption id = option->id;

	switch (option->kind) {
	case OPTION_NUMBER:
		return curl_easy_setopt(easy, id, option->value.number);
	case OPTION_TEXT:
		return curl_easy_setopt(easy, id, option->value.text);
	case OPTION_BYTES:
		return curl_easy_setopt(easy, id, option->value.bytes);
	case OPTION_SOCKET:
		return curl_easy_setopt(easy, id, option->value.socket);
	case OPTION_CLOSE:
		return curl_easy_setopt(easy, id, option->value.close);
	case OPTION_RESOLVER:
		return curl_easy_setopt(easy, id, option->value.resolver);
	case OPTION_CONTEXT:
		return curl_easy_setopt(easy, id, option->value.context);
	case OPTION_REQUEST:
		return curl_easy_setopt(easy, id, option->value.request);
	case OPTION_SEND:
		return curl_easy_setopt(easy, id, (void *)send);
	case OPTION_SOCKETS:
		return curl_easy_setopt(easy, id, (void *)send->sockets);
	}
	return CURLE_UNKNOWN_OPTION;
}

int
send_options_set(
    struct send *send, const struct send_option *options, struct err *err)
{
	for (const struct send_option *at = options; at->name != NULL; at++) {
		CURLcode code = set(send, at);

		if (code != CURLE_OK)
			return err_set(err, ERR_BROKEN,
			    "libcurl does not take %s: %s", at->name,
			    curl_easy_strerror(code));
	}
	return 0;
}
