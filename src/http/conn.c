#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "conn_inside.h"
#include "wire_tls.h"

#define BIT(s) (1u << (s))

/* From each state, the states it may move to. */
static const unsigned allowed[] = {
	[CONN_HEAD] = BIT(CONN_GATE) | BIT(CONN_BODY) | BIT(CONN_ANSWERING) |
	              BIT(CONN_LINGER) | BIT(CONN_DEAD),
	[CONN_GATE] = BIT(CONN_BODY) | BIT(CONN_ANSWERING) | BIT(CONN_WRITING) |
	              BIT(CONN_DEAD),
	[CONN_BODY] = BIT(CONN_ANSWERING) | BIT(CONN_DEAD),
	[CONN_ANSWERING] = BIT(CONN_WRITING) | BIT(CONN_GONE) | BIT(CONN_DEAD),
	[CONN_WRITING] = BIT(CONN_HEAD) | BIT(CONN_LINGER) | BIT(CONN_DEAD),
	[CONN_LINGER] = BIT(CONN_DEAD),
	[CONN_GONE] = BIT(CONN_DEAD),
	[CONN_DEAD] = 0,
};

void
conn_move(struct conn *conn, enum conn_state next)
{
	assert(allowed[conn->state] & BIT(next));
	conn->state = next;
}

void
conn_limit(struct conn *conn, enum conn_limit limit)
{
	if (conn->limit == limit)
		return;
	conn->limit = limit;
	if (limit != LIMIT_NONE)
		event_add(&conn->timer, conn->server->limits[limit]);
}

void
conn_wait(struct conn *conn, enum crowd_wait wait)
{
	crowd_wait(conn->server->crowd, &conn->guest, wait);
}

void
conn_drop(struct conn *conn)
{
	if (conn->state == CONN_GONE || conn->state == CONN_DEAD)
		return;
	event_del(&conn->timer);
	wire_close(&conn->wire);
	conn_move(conn, conn->state == CONN_ANSWERING ? CONN_GONE : CONN_DEAD);
}

void
conn_charge(struct conn *conn)
{
	struct server *server = conn->server;
	size_t cap = conn->request.body.cap, had = conn->guest.held;
	size_t has = cap > KEEP_SIZE ? cap : 0;

	if (had == 0 && has > 0)
		TAILQ_INSERT_TAIL(&server->large, conn, large_link);
	else if (had > 0 && has == 0)
		TAILQ_REMOVE(&server->large, conn, large_link);
	crowd_hold(&conn->guest, has);
	server->buffered -= had;
	server->buffered += has;
}

static void
free_body(struct conn *conn)
{
	buf_wipe(&conn->request.body);
	conn_charge(conn);
}

void
conn_free(struct conn *conn)
{
	struct server *server = conn->server;

	event_del(&conn->timer);
	wire_close(&conn->wire);
	wire_fini(&conn->wire);
	buf_wipe(&conn->request.text);
	free_body(conn);
	buf_wipe(&conn->request.headers);
	TAILQ_REMOVE(&server->conns, conn, link);
	crowd_leave(server->crowd, &conn->guest);
	free(conn);
	server_conn_freed(server);
}

static void
reap(struct conn *conn)
{
	if (conn->state == CONN_DEAD && !conn->in_turn)
		conn_free(conn);
}

void
conn_hand_over(struct conn *conn)
{
	conn_move(conn, CONN_ANSWERING);
	conn_limit(conn, LIMIT_NONE);
	conn_wait(conn, CROWD_BUSY);
	if (server_is_full(conn->server))
		server_review(conn->server);
	conn->server->requests++;
}

void
conn_refuse(struct conn *conn, int status, const char *detail)
{
	struct server *server = conn->server;

	conn->closes = true;
	free_body(conn);
	conn_hand_over(conn);
	server->events.error(server->arg, &conn->request, status, detail);
	assert(conn->state != CONN_ANSWERING);
}

/* Take one step. True if another may follow. */
static bool
step(struct conn *conn)
{
	switch (conn->state) {
	case CONN_HEAD:
		return conn_step_head(conn);
	case CONN_BODY:
		return conn_step_body(conn);
	case CONN_WRITING:
		return conn_step_write(conn);
	case CONN_GATE:
	case CONN_ANSWERING:
	case CONN_LINGER:
	case CONN_GONE:
	case CONN_DEAD:
		break;
	}
	return false;
}

static void
tell_gone(struct conn *conn)
{
	struct request *request = &conn->request;
	void (*gone)(void *arg) = request->gone;

	if (gone == NULL ||
	    (conn->state == CONN_ANSWERING && !conn->wire.is_ended))
		return;
	request->gone = NULL;
	gone(request->gone_arg);
}

static void
turn(struct conn *conn)
{
	conn->in_turn = true;
	tell_gone(conn);
	while (step(conn))
		continue;
	conn->in_turn = false;
	reap(conn);
}

void
conn_turn_away(struct conn *conn, int status, const char *detail)
{
	conn->in_turn = true;
	conn_refuse(conn, status, detail);
	turn(conn);
}

/* The program has done with the request. */
static void
take_back(struct conn *conn)
{
	if (conn->state != CONN_GATE)
		conn->server->requests--;
	conn->request.gone = NULL;
}

/* Send what is left from here, out of turn.  Neither the handler nor `more` may
 * be called now: both get their turn from the loop. */
static void
answer(struct conn *conn)
{
	if (conn->request.more != NULL) {
		wire_want_room(&conn->wire);
		conn_wait(conn, CROWD_SLOW);
		conn_limit(conn, LIMIT_WRITE);
	} else if (conn_step_write(conn)) {
		conn_await_head(conn);
		if (wire_pending(&conn->wire) > 0 || conn->wire.is_ended)
			event_active(&conn->wire.readable, EV_READ, 0);
	}
}

void
conn_answered(struct conn *conn)
{
	take_back(conn);
	conn_move(conn, conn->state == CONN_GONE ? CONN_DEAD : CONN_WRITING);
	if (conn->in_turn)
		return;
	if (conn->state == CONN_WRITING)
		answer(conn);
	reap(conn);
}

void
conn_abort(struct conn *conn)
{
	take_back(conn);
	conn_drop(conn);
	if (conn->state == CONN_GONE)
		conn_move(conn, CONN_DEAD);
	reap(conn);
}

void
conn_close_idle(struct conn *conn)
{
	if (conn->state == CONN_HEAD && wire_pending(&conn->wire) == 0) {
		conn_drop(conn);
		reap(conn);
	}
}

static int
receive(struct conn *conn)
{
	if (conn->state == CONN_LINGER)
		return wire_discard(&conn->wire);
	return wire_receive(&conn->wire, conn->server->conf.max_head);
}

/* An answer is sent by its step; what else may wait is a 100 Continue. */
static int
go_on_sending(struct conn *conn)
{
	if (conn->state == CONN_WRITING || wire_send(&conn->wire) >= 0)
		return 0;
	return -1;
}

/* The client has gone, or TLS has failed; then it may have an alert to read. */
static void
lose(struct conn *conn)
{
	const struct server *server = conn->server;
	const char *why = conn->wire.failure;

	conn->wire.failure = NULL; /* it is told once */
	if (why != NULL && server->events.tls_failed != NULL)
		server->events.tls_failed(server->arg, conn->peer, why);
	if (why != NULL && conn->state == CONN_HEAD)
		conn_linger(conn);
	else
		conn_drop(conn);
}

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	if ((what & EV_READ ? receive(conn) : go_on_sending(conn)) != 0)
		lose(conn);
	turn(conn);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;
	enum conn_limit limit = conn->limit;

	(void)fd;
	(void)what;
	conn->limit = LIMIT_NONE;
	if (limit == LIMIT_BODY || (limit == LIMIT_HEAD && conn->scan.at > 0)) {
		conn_turn_away(conn, 408, "the request did not come in time");
		return;
	}
	if (limit != LIMIT_NONE)
		conn_drop(conn);
	turn(conn);
}

static void
name_peer(struct conn *conn, const struct sockaddr *peer)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (peer->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, peer, sizeof(in6));
		(void)inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
		(void)snprintf(conn->peer, sizeof(conn->peer), "[%s]:%u", host,
		    ntohs(in6.sin6_port));
	} else {
		struct sockaddr_in in;

		memcpy(&in, peer, sizeof(in));
		(void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
		(void)snprintf(conn->peer, sizeof(conn->peer), "%s:%u", host,
		    ntohs(in.sin_port));
	}
}

/* A connection that is counted with its address and, if the server speaks TLS,
 * has that; NULL if memory is short. */
static struct conn *
new_conn(struct server *server, int fd, const struct sockaddr *peer, SSL **ssl)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	*ssl = NULL;
	if (conn == NULL)
		return NULL;
	if (server->tls != NULL) {
		*ssl = wire_tls_open(server->tls, fd);
		if (*ssl == NULL)
			goto fail;
	}
	if (crowd_enter(server->crowd, &conn->guest, peer) == 0)
		return conn;

fail:
	SSL_free(*ssl);
	free(conn);
	return NULL;
}

struct conn *
conn_open(struct server *server, int fd, const struct sockaddr *peer)
{
	SSL *ssl;
	struct conn *conn = new_conn(server, fd, peer, &ssl);

	if (conn == NULL) {
		(void)close(fd);
		return NULL;
	}
	conn->server = server;
	conn->request.conn = conn;
	head_init(&conn->request.head);
	name_peer(conn, peer);
	wire_open(&conn->wire, server->loop, fd, ssl, on_event, conn);
	event_assign(&conn->timer, server->loop, -1, 0, on_timer, conn);
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	server->connections++;
	conn_limit(conn, LIMIT_HEAD);
	wire_read(&conn->wire, true);
	return conn;
}
