/*
 * send: one request on its way, as the files of the sender share it.
 *
 *	        addresses               an answer, or an end
 *	LOOKUP -----------> TRANSFER ------------------------> IDLE
 *	   |                                                    ^
 *	   +------------- no address, refused, too late --------+
 *
 * A send is kept and used again, with its easy handle, on which all that never
 * changes was set once.
 */

#ifndef HTTP_SEND_H
#define HTTP_SEND_H

#include <stdbool.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event_struct.h>

#include "base/buf.h"
#include "http/resolver.h"
#include "http/sender.h"
#include "multi.h"
#include "own_address.h"

enum send_state { SEND_IDLE, SEND_LOOKUP, SEND_TRANSFER };

/* Why we made libcurl stop; its own error then says nothing of use. */
enum send_stop {
	SEND_GOES_ON,
	SEND_STOP_REFUSED, /* an address that the policy forbids */
	SEND_STOP_LATE, /* past `not_after` */
	SEND_STOP_TWICE, /* it was about to send the request again */
	SEND_STOP_HEADER, /* too much header */
	SEND_STOP_BODY, /* too much body */
	SEND_STOP_INTERIM, /* too many 1xx, or a 101 */
};

struct send {
	LIST_ENTRY(send) entry; /* in the sender's `busy` or `idle` */
	struct sender *sender;
	const struct target_policy *policy;
	struct own_address *own;
	CURL *easy;
	struct multi *multi; /* of TRANSFER */
	enum send_state state;
	struct lookup *lookup;
	struct event deadline;
	send_done_fn *done;
	void *arg;

	/* The request. */
	struct target_site site;
	struct buf header_text; /* the lines, each ended by a NUL */
	struct buf header_nodes; /* struct curl_slist, one a line */
	struct buf pin_text;
	struct curl_slist pin; /* the addresses for CURLOPT_RESOLVE */
	const void *body;
	size_t len;
	usec_t started, timeout, not_after;

	/* The answer so far. */
	enum send_stop stop;
	const char *refusal; /* of SEND_STOP_REFUSED, a constant */
	int requests; /* sends begun on a connection: 0 or 1 */
	int interim;
	int status;
	bool header_ended; /* the empty line after the headers has come */
	usec_t retry_after;
	size_t header_bytes, body_bytes;
	char remote[64];
	struct buf excerpt; /* its first SEND_EXCERPT_MAX octets */
	char error[CURL_ERROR_SIZE];
};

/* send_options.c: what is the same for every send. */

/* Make the easy handle.  ERR_BROKEN names an option that cannot be set. */
int send_options_set(struct send *send, struct err *err);

/* send_headers.c */

/* Copy `headers` in libcurl's form.  ERR_REFUSED for what would change the
 * request's frame or split it. */
int send_headers_copy(
    struct send *send, const char *const *headers, struct err *err);

/* The list for libcurl; valid until the next copy. */
struct curl_slist *send_headers_list(struct send *send);

/* send_guard.c: what libcurl asks on the way.  They never call it back. */

/* NULL if `address` may be connected to, else why not. */
const char *send_refuses(
    const struct send *send, const struct sockaddr *address);

curl_socket_t send_guard_socket(
    void *arg, curlsocktype purpose, struct curl_sockaddr *address);
int send_guard_resolver(void *resolver, void *reserved, void *arg);
int send_guard_request(void *arg, char *remote_ip, char *local_ip,
    int remote_port, int local_port);
size_t send_guard_header(char *line, size_t size, size_t n, void *arg);
size_t send_guard_body(char *bytes, size_t size, size_t n, void *arg);

/* send_result.c */

/* Say how the transfer ended that libcurl ended with `code`. */
void send_result_fill(
    struct send_result *out, const struct send *send, CURLcode code);

/* The same for an end that libcurl had no part in. */
void send_result_end(struct send_result *out, const struct send *send,
    enum send_end end, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
