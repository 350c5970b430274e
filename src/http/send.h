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
#include "sockets.h"
#include "trust.h"

enum send_state { SEND_IDLE, SEND_LOOKUP, SEND_TRANSFER };

/* What a send passes on its way, in this order; some it does not. */
enum send_mark {
	MARK_START,
	MARK_FOUND, /* the name server's answer */
	MARK_SOCKET, /* the first address is connected to */
	MARK_TLS, /* the handshake begins */
	MARK_REQUEST, /* the request is written */
	MARK_ANSWER, /* the newest status line has come */
	MARK_END, /* never: it is over when the result is made */
	MARK_COUNT
};

/* Why we made libcurl stop; its own error then says nothing of use. */
enum send_stop {
	SEND_GOES_ON,
	SEND_STOP_REFUSED, /* an address that the policy forbids */
	SEND_STOP_LATE, /* past `not_after` */
	SEND_STOP_TWICE, /* it was about to send the request again */
	SEND_STOP_SPOILT, /* something came on a connection at rest */
	SEND_STOP_HEADER, /* too much header */
	SEND_STOP_BODY, /* too much body */
	SEND_STOP_INTERIM, /* too many 1xx, or a 101 */
	SEND_STOP_STATUS, /* a status line that is none */
	SEND_STOP_LENGTH, /* its length cannot be told */
};

struct send {
	LIST_ENTRY(send) entry; /* in the sender's `busy` or `idle` */
	struct sender *sender;
	const struct target_policy *policy;
	struct own_address *own;
	struct sockets *sockets;
	struct trust *trust;
	CURL *easy;
	struct multi *multi; /* of TRANSFER */
	enum send_state state;
	struct lookup *lookup;
	struct event deadline;
	send_done_fn *done;
	void *arg;

	/* The request. */
	struct buf url; /* as given, with its NUL; empty: none that was good */
	struct target_site site;
	struct buf header_text; /* the lines, each ended by a NUL */
	struct buf header_nodes; /* struct curl_slist, one a line */
	struct buf pin_text;
	struct curl_slist pin; /* the addresses for CURLOPT_RESOLVE */
	const void *body;
	size_t len;
	usec_t timeout, not_after;
	struct send_tls tls;
	bool has_tls; /* `easy` holds blobs of the send's own */

	/* The answer so far. */
	usec_t marks[MARK_COUNT]; /* 0: not passed */
	int fds[2]; /* the newest socket of IPv4, of IPv6 */
	enum send_stop stop;
	const char *refusal; /* of SEND_STOP_REFUSED, a constant */
	int requests; /* sends begun on a connection: 0 or 1 */
	int interim;
	int status;
	bool header_ended; /* the empty line after the headers has come */
	usec_t retry_after;
	long long length; /* as its Content-Length says; -1 if it does not */
	size_t header_bytes, body_bytes;
	char remote[64];
	struct buf kept; /* the headers that are kept, as in the result */
	struct buf excerpt; /* its first SEND_EXCERPT_MAX octets */
	char error[CURL_ERROR_SIZE];
};

/* send_headers.c */

/* Copy `headers` in libcurl's form.  ERR_REFUSED for what would change the
 * request's frame or split it. */
int send_headers_copy(
    struct send *send, const char *const *headers, struct err *err);

/* The list for libcurl; valid until the next copy. */
struct curl_slist *send_headers_list(struct send *send);

/* send_guard.c: what libcurl asks on the way.  They start nothing there. */

/* Stop the transfer: the first reason counts.  Returns 1. */
int send_stop(struct send *send, enum send_stop why);

/* NULL if `address` may be connected to, else why not. */
const char *send_refuses(
    const struct send *send, const struct sockaddr *address);

curl_socket_t send_guard_socket(
    void *arg, curlsocktype purpose, struct curl_sockaddr *address);
int send_guard_close(void *sockets, curl_socket_t fd);
int send_guard_resolver(void *resolver, void *reserved, void *arg);
CURLcode send_guard_tls(CURL *easy, void *context, void *arg);
int send_guard_request(void *arg, char *remote_ip, char *local_ip,
    int remote_port, int local_port);

/* send_answer.c: what comes back, as libcurl hands it over. */

/* Before the first answer, and before each that follows an interim one. */
void send_answer_reset(struct send *send);

size_t send_answer_header(char *line, size_t size, size_t n, void *arg);
size_t send_answer_body(char *bytes, size_t size, size_t n, void *arg);

/* send_tls.c */

/* Give libcurl a send's own certificates.  ERR_REFUSED for half a pair. */
int send_tls_set(
    struct send *send, const struct send_tls *tls, struct err *err);

/* Take them back, before the texts go. */
void send_tls_clear(struct send *send);

/* send_result.c */

/* Say how the transfer ended that libcurl ended with `code`. */
void send_result_fill(
    struct send_result *out, const struct send *send, CURLcode code);

/* The same for an end that libcurl had no part in. */
void send_result_end(struct send_result *out, const struct send *send,
    enum send_end end, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
