/*
 * conn: one client's connection to the server.
 *
 *	     whole head        whole body       request_reply()
 *	HEAD ---------> BODY -----------> ANSWERING -------> WRITING
 *	 ^ |                               ^  |              |  |
 *	 | +--- no body, or refused -------+  | client gone  |  | close
 *	 |                                    v              |  v
 *	 |                                   GONE            | LINGER
 *	 +----------------- answer sent ---------------------+
 *
 * A request lives in its connection, and a connection whose request is in
 * the handler's hands outlives its socket (GONE).  What comes meanwhile is
 * read up to the size of a head, then no more.  The handler is called from a
 * socket's event, never from request_reply().  The gate is asked between HEAD
 * and BODY; what it refuses goes straight to WRITING.
 *
 * After an answer that ends the connection, what the client still sends is
 * thrown away for a while (LINGER): closing at once would reset the
 * connection, and the answer could be lost on its way.  So it is after the
 * alert that ends a failed TLS handshake, which is a part of HEAD.
 *
 * An answer that is streamed stays in WRITING, a piece a turn of the loop.
 */

#ifndef HTTP_CONN_H
#define HTTP_CONN_H

#include <arpa/inet.h>
#include <sys/queue.h>
#include <time.h>

#include "base/buf.h"
#include "chunk.h"
#include "crowd.h"
#include "head.h"
#include "http/server.h"
#include "wire.h"

struct sockaddr;

enum conn_state {
	CONN_HEAD,
	CONN_GATE, /* the program looks at the head; never between events */
	CONN_BODY,
	CONN_ANSWERING,
	CONN_WRITING,
	CONN_LINGER,
	CONN_GONE,
	CONN_DEAD, /* to be freed at the end of the turn */
};

/* What the timer stands for. */
enum conn_limit {
	LIMIT_NONE, /* it may still run out, and then means nothing */
	LIMIT_IDLE,
	LIMIT_HEAD,
	LIMIT_BODY,
	LIMIT_WRITE,
	LIMIT_LINGER,
	LIMIT_COUNT,
};

struct request {
	struct conn *conn;
	struct head head; /* its texts are in `text` */
	struct buf text;
	struct buf body;
	struct buf headers; /* of the answer to come */
	request_more_fn *more; /* the rest of the answer; NULL if none */
	void *more_arg;
	void (*gone)(void *arg); /* NULL if nobody asked, or it was told */
	void *gone_arg;
};

struct conn {
	struct server *server;
	TAILQ_ENTRY(conn) link;
	TAILQ_ENTRY(conn) large_link; /* while it holds memory, by `guest` */
	struct crowd_guest guest;
	enum conn_state state;
	enum conn_limit limit;
	bool in_turn; /* turn() is at work, and goes on by itself */
	bool closes; /* after the answer in hand */
	bool has_skipped_line;
	struct wire wire;
	struct event timer;
	struct head_scan scan;
	struct chunk chunk;
	size_t max_body; /* of the request in hand, as the gate said */
	int taken; /* requests so far */
	struct request request;
	char peer[INET6_ADDRSTRLEN + sizeof("[]:65535")];
};

struct evconnlistener;

struct server {
	struct event_base *loop;
	struct server_conf conf;
	struct tls *tls; /* for connections to come; NULL: in the clear */
	struct evconnlistener *listener;
	struct event retry; /* accepting, when there may be room again */
	struct event drained;
	const struct timeval *limits[LIMIT_COUNT];
	struct server_events events;
	void *arg;
	void (*on_drained)(void *arg);
	void *drained_arg;
	TAILQ_HEAD(conn_list, conn) conns;
	struct conn_list large; /* those with a part of `buffered`, by age */
	struct crowd *crowd;
	uint64_t given_up; /* connections, for others */
	int connections;
	int requests;
	size_t buffered; /* memory of bodies that are larger than most */
	bool is_short; /* of descriptors, or was just now */
	bool is_draining;
	uint16_t port;
	time_t date; /* what `date_line` says */
	char date_line[64]; /* "Date: ...\r\n" */
};

/* Take over `fd`; if memory is short it is closed, and NULL. */
struct conn *conn_open(
    struct server *server, int fd, const struct sockaddr *peer);

/* Free it whatever its state. */
void conn_free(struct conn *conn);

/* Close it if no byte of a request has come. */
void conn_close_idle(struct conn *conn);

/* The request in hand has its answer in `wire.out`; or is to have none. */
void conn_answered(struct conn *conn);
void conn_abort(struct conn *conn);

/* All connections are taken, and others may wait for one. */
bool server_is_full(const struct server *server);

/* Who waits, or the number of connections, may be another. */
void server_review(struct server *server);

/* To be called when a connection has been freed. */
void server_conn_freed(struct server *server);

/* The header line with the present time. */
const char *server_date(struct server *server);

#endif
