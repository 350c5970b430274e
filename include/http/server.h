/*
 * server: HTTP/1.1 for strangers, on libevent, in the clear or over TLS.
 *
 * It reads requests itself over plain events, with a strict parser, because
 * evhttp takes what smuggling lives on, buffers without bounds and has no
 * total deadlines.  What reaches the handler is a whole, well-framed request;
 * everything else gets its 4xx or 5xx and a close.
 *
 * A request belongs to the server.  The handler answers it exactly once, then
 * or later, with request_reply(); until then it stays valid, also when its
 * client has gone.  After request_reply() it must not be touched.
 */

#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct buf;
struct err;
struct event_base;
struct server;
struct request;
struct tls;

/* Copied, but for `address`, which is read by server_open() only.  A limit of
 * time is for the whole of what it names: a drip does not extend it. */
struct server_conf {
	const char *address; /* numeric: "127.0.0.1" or "::1" */
	uint16_t port; /* 0: any free one */
	size_t max_head; /* bytes of request line and headers */
	size_t max_body; /* bytes; more is 413 before it is read */
	/* Bytes of memory that the bodies of all connections may take together,
	 * beside the 16 KiB that each connection may have for its own: where a
	 * request would take more, it is 503, or one that another address has,
	 * if that address has more than this one's. */
	size_t max_buffered;
	/* When so many are open, answers end their connections, and one that
	 * waits for its client goes to a newcomer: at once if most of them do,
	 * else after a second; of the address that has most such first.  Where
	 * there is none, newcomers wait in the kernel's queue. */
	int max_connections;
	int max_per_address; /* of them, for one address; a /64 is one */
	int max_requests; /* on one connection, which then ends */
	usec_t head_timeout; /* accept, or a later first byte, to end of head */
	usec_t body_timeout; /* end of head to end of body */
	usec_t idle_timeout; /* between requests */
	usec_t
	    write_timeout; /* an answer, once the client is slow to read it */
};

/* What the program is told, always from the loop. */
struct server_events {
	/*
	 * May be NULL.  Called once for each request when its head is whole and
	 * sound, and before any of its body is read or 100 Continue is sent.
	 * Returns how many bytes of body it may have, of max_body at most; more
	 * is 413.  Or it answers the request at once: then no body is read, the
	 * handler is not called, and what it returns does not matter.  If a
	 * body was to come, the connection is closed after that answer.
	 */
	size_t (*gate)(void *arg, struct request *);

	/*
	 * Called once for each request that was not refused, never from
	 * request_reply().  The method is one of GET, HEAD, POST, PUT, PATCH,
	 * DELETE and OPTIONS; a body with it, if any, is whole.  The next
	 * request of the same connection comes after this one's answer.
	 */
	void (*handler)(void *arg, struct request *);

	/*
	 * What the server itself has to refuse (400, 408, 411, 413, 414, 417,
	 * 431, 501, 503, 505) is answered by this, with request_reply() before
	 * it returns, so that every error has one form.  `detail` is a constant
	 * sentence.  The method and the path may be "" here.  The connection is
	 * closed after it.
	 */
	void (*error)(
	    void *arg, struct request *, int status, const char *detail);

	/*
	 * May be NULL.  A client failed at TLS, or was refused: `why` is a
	 * constant sentence.  It costs a stranger little to make this happen.
	 */
	void (*tls_failed)(void *arg, const char *peer, const char *why);
};

/* `events` is copied. */
int server_open(struct server **out, struct event_base *loop,
    const struct server_conf *conf, const struct server_events *events,
    void *arg, struct err *err);

/* Speak TLS on the connections to come; those that are open go on as they
 * began.  Takes `tls` over. */
void server_use_tls(struct server *server, struct tls *tls);

/* The port really listened on. */
uint16_t server_port(const struct server *server);

/*
 * Stop accepting; answer what is in hand with `Connection: close`.  `drained`
 * is called once, from the loop, when no connection is left.
 */
void server_drain(struct server *server, void (*drained)(void *arg), void *arg);

/*
 * Close every connection at once and free; requests not answered yet are no
 * longer valid.  Not to be called from a handler.  NULL does nothing.
 */
void server_close(struct server *server);

/*
 * The path is still escaped, begins with '/' and has no scheme or host, or is
 * "*" for OPTIONS; the query comes without '?', "" if none.  A header's value
 * by case-insensitive name, NULL if absent, the first if there are several; of
 * those request_next_header() has the one behind `value`, NULL behind the last.
 * Host, Authorization, Expect and what frames the body are never several.  A
 * value may hold octets over 0x7f, but no control other than tab.
 */
const char *request_method(const struct request *request);
const char *request_path(const struct request *request);
const char *request_query(const struct request *request);
const char *request_header(const struct request *request, const char *name);
const char *request_next_header(
    const struct request *request, const char *name, const char *value);
const void *request_body(const struct request *request, size_t *len);

/* The client's address and port as text. */
const char *request_peer(const struct request *request);

/* Add a header to the answer to come.  Name and value are copied; a control
 * character in the value becomes a space.  Date, Content-Type, Content-Length
 * and Connection are the server's own. */
void request_add_header(
    struct request *request, const char *name, const char *value);

/*
 * Answer.  `type` is the content type, NULL for no body; `body` is copied.  To
 * HEAD the same answer may be given: its body stays here.
 */
void request_reply(struct request *request, int status, const char *type,
    const void *body, size_t len);

/* Close the connection without an answer: for a receiver that misbehaves. */
void request_abort(struct request *request);

/* Append at least one octet to `out`; false ends the body with them. */
typedef bool request_more_fn(void *arg, struct buf *out);

/*
 * Answer with a body that is made while the client reads: `more` is called for
 * the next piece, from the loop and never from request_stream(), when the last
 * one is sent, and never again once the client has gone.  It is not called for HEAD, nor for HTTP/1.0,
 * which knows no chunks: these get no body.  The server does not end it to
 * drain.
 */
void request_stream(struct request *request, int status, const char *type,
    request_more_fn *more, void *arg);

/*
 * Be told, once and from the loop, if the client closes its side of the
 * connection before it has its answer.  `gone` may answer or abort; a client
 * that only said that it sends no more can still hear.
 */
void request_on_gone(
    struct request *request, void (*gone)(void *arg), void *arg);

/* Numbers for metrics: connections open now, requests being answered now. */
int server_connections(const struct server *server);
int server_requests(const struct server *server);

/* Connections that were given up for others. */
uint64_t server_given_up(const struct server *server);

/* What counts against max_buffered now. */
size_t server_buffered(const struct server *server);

#endif
