#include "base/err.h"
#include "send.h"

enum kind { NUMBER, TEXT, BYTES, SOCKET, RESOLVER, REQUEST, SELF };

struct option {
	const char *name;
	CURLoption id;
	enum kind kind;
	union {
		long number;
		const char *text;
		curl_write_callback bytes;
		curl_opensocket_callback socket;
		curl_resolver_start_callback resolver;
		curl_prereq_callback request;
	} value;
};

/* clang-format off */
#define N(id, v) { #id, id, NUMBER, { .number = (v) } }
#define T(id, v) { #id, id, TEXT, { .text = (v) } }
#define B(id, v) { #id, id, BYTES, { .bytes = (v) } }
#define ME(id) { #id, id, SELF, { .number = 0 } }

/* What is the same for every send.  Much of it is libcurl's default today: it
 * stands here so that it is so tomorrow as well. */
static const struct option options[] = {
	/* Nothing from the environment, nor from earlier answers. */
	T(CURLOPT_PROXY, ""),
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
	T(CURLOPT_USERAGENT, "Postrider/" POSTRIDER_VERSION),

	/* The answer, as it comes. */
	T(CURLOPT_ACCEPT_ENCODING, NULL),
	N(CURLOPT_HTTP_CONTENT_DECODING, 0),

	/* Each send has both as long as it lasts, the second if it is https.
	 * Answers are short, and so are most requests. */
	N(CURLOPT_BUFFERSIZE, 4L * 1024),
	N(CURLOPT_UPLOAD_BUFFERSIZE, 16L * 1024),

	/* TLS with the name verified; for whom it trusts see trust.h. */
	N(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2),
	N(CURLOPT_SSL_VERIFYPEER, 1),
	N(CURLOPT_SSL_VERIFYHOST, 2),
	T(CURLOPT_CAPATH, NULL),

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
	{ "CURLOPT_OPENSOCKETFUNCTION", CURLOPT_OPENSOCKETFUNCTION, SOCKET,
	    { .socket = send_guard_socket } },
	{ "CURLOPT_RESOLVER_START_FUNCTION", CURLOPT_RESOLVER_START_FUNCTION,
	    RESOLVER, { .resolver = send_guard_resolver } },
	{ "CURLOPT_PREREQFUNCTION", CURLOPT_PREREQFUNCTION, REQUEST,
	    { .request = send_guard_request } },
	B(CURLOPT_HEADERFUNCTION, send_guard_header),
	B(CURLOPT_WRITEFUNCTION, send_guard_body),
	ME(CURLOPT_OPENSOCKETDATA),
	ME(CURLOPT_RESOLVER_START_DATA),
	ME(CURLOPT_PREREQDATA),
	ME(CURLOPT_HEADERDATA),
	ME(CURLOPT_WRITEDATA),
	ME(CURLOPT_PRIVATE),
};
/* clang-format on */

static CURLcode
set(CURL *easy, const struct option *option, struct send *self)
{
	switch (option->kind) {
	case NUMBER:
		return curl_easy_setopt(easy, option->id, option->value.number);
	case TEXT:
		return curl_easy_setopt(easy, option->id, option->value.text);
	case BYTES:
		return curl_easy_setopt(easy, option->id, option->value.bytes);
	case SOCKET:
		return curl_easy_setopt(easy, option->id, option->value.socket);
	case RESOLVER:
		return curl_easy_setopt(
		    easy, option->id, option->value.resolver);
	case REQUEST:
		return curl_easy_setopt(
		    easy, option->id, option->value.request);
	case SELF:
		return curl_easy_setopt(easy, option->id, (void *)self);
	}
	return CURLE_UNKNOWN_OPTION;
}

int
send_options_set(struct send *send, struct err *err)
{
	send->easy = curl_easy_init();
	if (send->easy == NULL)
		return err_set(err, ERR_NOMEM, "an easy handle");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		CURLcode code = set(send->easy, &options[i], send);

		if (code != CURLE_OK)
			return err_set(err, ERR_BROKEN,
			    "libcurl does not take %s: %s", options[i].name,
			    curl_easy_strerror(code));
	}
	return 0;
}
