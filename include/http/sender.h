/*
 * sender: the signed POST, on libcurl's multi interface and the loop.
 *
 *	resolve -> check every address -> connect to a checked one -> check the
 *	socket's address -> check the lease -> send once -> read a bounded answer
 *
 * One send is at most one request on the wire: libcurl's silent second send
 * on a reused connection is stopped.  HTTP/1.1 only, no redirects, no proxy,
 * nothing from the environment or from earlier answers.  The whole of it, DNS
 * to last byte, is bounded by `timeout`.
 *
 * Connections are kept for a few seconds, and TLS sessions with them, for
 * sends to the same host with the same certificates.  Before one is used again
 * it is looked at: if anything came on it that nobody asked for, or its end, it
 * is closed, and the send goes on with another.
 *
 * What a receiver may do, and what that is:
 *
 *	any whole response, redirects included       SEND_ANSWERED
 *	bytes after its end, a body with 204 or 304  SEND_ANSWERED; they are
 *	                                             never read as an answer
 *	compressed, any octets in the body           SEND_ANSWERED, left as it is
 *	Content-Length beside chunks                 SEND_ANSWERED: chunks count
 *	cut short, no HTTP, HTTP/0.9, a 101,         SEND_BROKEN, with the
 *	NUL in a header, a header without a colon,   status if there was one
 *	bad chunks, a Content-Length that is no
 *	number or has two values,
 *	more header or body than is read (below),
 *	more than 8 interim responses
 *	closed after reading the request             SEND_BROKEN
 *	silence, or a drip of anything, until        SEND_TIMED_OUT, with the
 *	`timeout`                                    phase it was in
 *	no TLS 1.2, no certificate that we believe   SEND_TLS_FAILED, nothing
 *	for the name, one that was taken back        was sent
 *	wants a client's certificate, or another     SEND_TLS_FAILED; with TLS
 *	                                             1.3 it may have read the
 *	                                             request before it said so
 *	we: a key or certificate that cannot be used SEND_IMPOSSIBLE
 *
 * A 2xx whose body is cut short or too long is SEND_BROKEN: the answer never
 * came whole, so the receiver is asked again, and tells by the event's id that
 * it has it.
 *
 * Of an answer's headers those are kept that help a person to see who answered
 * and why: the content's type, length and encoding, date, location, allow,
 * retry-after, server, via, www-authenticate, and the ids that load balancers
 * and frameworks give a request.  Not Set-Cookie and the like: what is kept is
 * shown to people, and must hold no credential.
 */

#ifndef HTTP_SENDER_H
#define HTTP_SENDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/target.h"
#include "core/verdict.h"

struct err;
struct event_base;
struct sender;
struct send;

enum {
	SEND_HEADER_MAX = 64 * 1024, /* octets of all headers of an answer */
	SEND_BODY_MAX = 256 * 1024, /* octets of its body, as they come */
	SEND_INTERIM_MAX = 8, /* 1xx responses before the answer */
	SEND_EXCERPT_MAX = 1024, /* octets of the body that are kept */
	SEND_HEADERS_KEPT = 1024, /* octets of chosen headers that are kept */
};

struct sender_conf {
	struct target_policy policy; /* its texts outlive the sender */
	int max_in_flight; /* sends at once; sizes the connection cache */
	const char *ca_file; /* besides the system's trust store; "" for none */
	const char *revoked_file; /* fingerprints never to believe; "" */
	const char *nameserver; /* "address:port" instead of the system's; "" */
};

/* PEM texts, each NULL for none.  A key has its certificate. */
struct send_tls {
	const char *ca; /* whom to believe instead of the sender's own trust */
	const char *certificate; /* who we are, and its chain */
	const char *key;
};

/*
 * One request.  All of it is copied or used up by sender_start(), but `body`
 * and the texts of `tls`, which must stay valid until `done` or send_cancel().
 *
 * Host, Content-Length and the like are the client's own: such a header is
 * refused.  A Content-Type or User-Agent not given is not sent.
 */
struct send_args {
	const char *url;
	const char *const *headers; /* "Name: value", ended by NULL */
	const void *body;
	size_t len;
	usec_t timeout; /* DNS to last byte */
	usec_t not_after; /* on clock_now(): no request starts after this */
	const struct send_tls *tls; /* NULL: none of its own */
};

/* How long each phase took; -1 for one that did not come to be.  What was
 * under way when the send ended lasted until then.  A connection that is used
 * again has neither `connect` nor `tls`, an address no `dns`. */
struct send_timing {
	usec_t dns;
	usec_t connect;
	usec_t tls;
	usec_t wait; /* the request written, until an answer begins */
	usec_t receive;
};

/* Nothing came to be. */
#define SEND_NO_TIMING ((struct send_timing){ -1, -1, -1, -1, -1 })

struct send_result {
	enum send_end end;
	int status; /* of the last response seen, 0 if none */
	usec_t retry_after; /* clamped to 0..1 day; the longest if there are
	                       several; -1 if none or unreadable */
	usec_t duration; /* start to end */
	char remote[64]; /* address and port connected to, "" if none */
	char reason[256]; /* for people, one line; "" when answered */
	struct send_timing timing;
	char headers[SEND_HEADERS_KEPT + 1]; /* "name: value" lines, joined by
	                                        LF; "" if none */
	char excerpt[SEND_EXCERPT_MAX + 1]; /* the body's begin, made safe to
	                                       show; "" if none */
};

/* Called exactly once, from the loop, never from sender_start().  It may start
 * and cancel other sends, but not close the sender. */
typedef void send_done_fn(void *arg, const struct send_result *result);

/*
 * ERR_BROKEN, with its name, if any option of the client cannot be set: the
 * program must not start with a laxer one.  The process ignores SIGPIPE from
 * here on, and SSLKEYLOGFILE is taken out of its environment.
 */
int sender_open(struct sender **out, struct event_base *loop,
    const struct sender_conf *conf, struct err *err);

/*
 * Cancel what is in flight (no `done` is called) and free; not from within a
 * `done`.  NULL is fine.
 */
void sender_close(struct sender *sender);

/*
 * Begin a send.  On failure (-1) `done` is never called; ERR_REFUSED: this URL
 * or these headers can never be sent; ERR_RETRY: not now.
 */
int sender_start(struct send **out, struct sender *sender,
    const struct send_args *args, send_done_fn *done, void *arg,
    struct err *err);

/* Stop: `done` is not called.  The request may have reached the receiver. */
void send_cancel(struct send *send);

/* Sends begun and not done. */
int sender_in_flight(const struct sender *sender);

#endif
