/* send_options: libcurl's options that are the same for every send. */

#ifndef HTTP_SEND_OPTIONS_H
#define HTTP_SEND_OPTIONS_H

#include <curl/curl.h>

struct err;
struct send;

enum send_option_kind {
	OPTION_NUMBER,
	OPTION_TEXT,
	OPTION_BYTES,
	OPTION_SOCKET,
	OPTION_CLOSE,
	OPTION_RESOLVER,
	OPTION_CONTEXT,
	OPTION_REQUEST,
	OPTION_SEND, /* the send itself */
	OPTION_SOCKETS, /* what it shares with others */
};

struct send_option {
	const char *name; /* NULL ends a table */
	CURLoption id;
	enum send_option_kind kind;
	union {
		long number;
		const char *text;
		curl_write_callback bytes;
		curl_opensocket_callback socket;
		curl_closesocket_callback close;
		curl_resolver_start_callback resolver;
		curl_ssl_ctx_callback context;
		curl_prereq_callback request;
	} value;
};

extern const struct send_option send_options[];

/* Set all of `options` on the send's easy handle.  ERR_BROKEN names the first
 * that libcurl does not take. */
int send_options_set(
    struct send *send, const struct send_option *options, struct err *err);

#endif
