#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

enum { KEEP_SIZE = 16384 }; /* of a buffer, from one request to the next */

#define BIT(s) (1u << (s))

/* From each state, the states it may move to. */
static const unsigned allowed[] = {
	[CONN_HEAD] = BIT(CONN_BODY) | BIT(CONN_ANSWERING) | BIT(CONN_DEAD),
	[CONN_BODY] = BIT(CONN_ANSWERING) | BIT(CONN_DEAD),
	[CONN_ANSWERING] = BIT(CONN_WRITING) | BIT(CONN_GONE) | BIT(CONN_DEAD),
	[CONN_WRITING] = BIT(CONN_HEAD) | BIT(CONN_LINGER) | BIT(CONN_DEAD),
	[CONN_LINGER] = BIT(CONN_DEAD),
	[CONN_GONE] = BIT(CONN_DEAD),
	[CONN_DEAD] = 0,
};

/* The only place `state` is written. */
static void
move(struct conn *conn, enum conn_state next)
{
	assert(allowed[conn->state] & BIT(next));
	conn->state = next;
}

/* Start the clock for a phase, unless it is running for it already: what a
 * client sends never moves a limit. */
static void
set_limit(struct conn *conn, enum conn_limit limit)
{
	if (conn->limit == limit)
		return;
	conn->limit = limit;
	if (limit != LIMIT_NONE)
		event_add(&conn->timer, conn->server->limits[limit]);
}

/* Close the socket.  The request, if one is in hand, stays. */
static void
drop(struct conn *conn)
{
	if (conn->state == CONN_GONE || conn->state == CONN_DEAD)
		return;
	event_del(&conn->timer);
	wire_close(&conn->wire);
	move(conn, conn->state == CONN_ANSWERING ? CONN_GONE : CONN_DEAD);
}

void
conn_free(struct conn *conn)
{
	struct server *server = conn->server;

	event_del(&conn->timer);
	wire_close(&conn->wire);
	wire_fini(&conn->wire);
	buf_wipe(&conn->request.text);
	buf_wipe(&conn->request.body);
	buf_wipe(&conn->request.headers);
	TAILQ_REMOVE(&server->conns, conn, link);
	free(conn);
	server_conn_freed(server);
}

static void
reap(struct conn *conn)
{
	if (conn->state == CONN_DEAD && !conn->in_turn)
		conn_free(conn);
}

static void
hand_over(struct conn *conn)
{
	move(conn, CONN_ANSWERING);
	set_limit(conn, LIMIT_NONE);
	conn->server->requests++;
}

/* Answer in the handler's stead, then close: where the next request would
 * begin is not known, or not to be trusted. */
static void
refuse(struct conn *conn, int status, const char *detail)
{
	struct server *server = conn->server;

	conn->closes = true;
	hand_over(conn);
	server->error(server->arg, &conn->request, status, detail);
	assert(conn->state != CONN_ANSWERING);
}

/* The body is not whole.  Can it still become so? */
static void
want_body(struct conn *conn)
{
	if (conn->request.body.failed)
		drop(conn);
	else if (conn->wire.is_ended)
		refuse(conn, 400, "the request ends before its body does");
}

static void
dispatch(struct conn *conn)
{
	struct server *server = conn->server;

	if (conn->request.body.failed) {
		drop(conn);
		return;
	}
	hand_over(conn);
	server->handler(server->arg, &conn->request);
}

/* The client waits for leave to send its body, unless it did not wait. */
static int
send_continue(struct conn *conn)
{
	if (!conn->request.head.expects_continue ||
	    wire_pending(&conn->wire) > 0)
		return 0;
	buf_puts(&conn->wire.out, "HTTP/1.1 100 Continue\r\n\r\n");
	return conn->wire.out.failed || wire_send(&conn->wire) < 0 ? -1 : 0;
}

static void
begin_body(struct conn *conn)
{
	const struct head *head = &conn->request.head;

	if (!head->is_chunked && head->length == 0) {
		dispatch(conn);
		return;
	}
	if (head->length > conn->server->conf.max_body) {
		refuse(conn, 413, "the body is too large");
		return;
	}
	move(conn, CONN_BODY);
	wire_read(&conn->wire, true);
	conn->chunk = (struct chunk){ 0 };
	if (send_continue(conn) < 0)
		drop(conn);
}

static void
take_head(struct conn *conn)
{
	struct request *request = &conn->request;
	struct refusal refusal;

	buf_add(&request->text, wire_unread(&conn->wire), conn->scan.at);
	wire_use(&conn->wire, conn->scan.at);
	if (request->text.failed) {
		drop(conn);
		return;
	}
	refusal =
	    head_parse(&request->head, request->text.data, request->text.len);
	conn->closes = request->head.closes;
	if (refusal.status != 0)
		refuse(conn, refusal.status, refusal.detail);
	else
		begin_body(conn);
}

/* RFC 9112 2.2: one empty line before a request line is let pass. */
static void
skip_line(struct conn *conn)
{
	if (conn->has_skipped_line || wire_pending(&conn->wire) < 2 ||
	    memcmp(wire_unread(&conn->wire), "\r\n", 2) != 0)
		return;
	conn->has_skipped_line = true;
	wire_use(&conn->wire, 2);
}

static void
await_head(struct conn *conn)
{
	if (wire_pending(&conn->wire) > 0)
		set_limit(conn, LIMIT_HEAD);
	else if (conn->limit == LIMIT_NONE)
		set_limit(conn, LIMIT_IDLE);
}

/* The head is not whole.  Can it still become so? */
static void
want_head(struct conn *conn)
{
	if (wire_pending(&conn->wire) >= conn->server->conf.max_head) {
		if (conn->scan.line == 0)
			refuse(conn, 414, "the request line is too long");
		else
			refuse(conn, 431, "the headers are too large");
	} else if (!conn->wire.is_ended) {
		await_head(conn);
	} else if (wire_pending(&conn->wire) > 0) {
		refuse(conn, 400, "the request ends before its headers do");
	} else {
		drop(conn);
	}
}

static bool
step_head(struct conn *conn)
{
	enum head_found found = HEAD_MORE;

	skip_line(conn);
	if (wire_pending(&conn->wire) > 0)
		found = head_scan(&conn->scan, wire_unread(&conn->wire),
		    wire_pending(&conn->wire));
	switch (found) {
	case HEAD_MORE:
		want_head(conn);
		break;
	case HEAD_WHOLE:
		take_head(conn);
		break;
	case HEAD_BAD:
		refuse(conn, 400, "a control character, or half a CRLF");
		break;
	}
	return conn->state != CONN_HEAD;
}

/* Move what came from `in` to the body. True if that is all of it. */
static bool
take_body(struct conn *conn, struct refusal *refusal)
{
	struct request *request = &conn->request;
	size_t n = wire_pending(&conn->wire), left;
	bool is_whole;

	if (request->head.is_chunked) {
		*refusal = chunk_read(&conn->chunk, wire_unread(&conn->wire), n,
		    &n, &request->body, conn->server->conf.max_body);
		is_whole = conn->chunk.state == CHUNK_END;
	} else {
		left = (size_t)request->head.length - request->body.len;
		n = n < left ? n : left;
		buf_add(&request->body, wire_unread(&conn->wire), n);
		is_whole = n == left;
	}
	wire_use(&conn->wire, n);
	return is_whole;
}

static bool
step_body(struct conn *conn)
{
	struct refusal refusal = ACCEPTED;
	bool is_whole;

	set_limit(conn, LIMIT_BODY);
	is_whole = take_body(conn, &refusal);
	if (refusal.status != 0)
		refuse(conn, refusal.status, refusal.detail);
	else if (is_whole)
		dispatch(conn);
	else
		want_body(conn);
	return conn->state != CONN_BODY;
}

static void
reset_buf(struct buf *buf)
{
	if (buf->cap > KEEP_SIZE)
		buf_wipe(buf);
	else
		buf_clear(buf);
}

static void
reset_request(struct conn *conn)
{
	struct request *request = &conn->request;

	reset_buf(&request->text);
	reset_buf(&request->body);
	reset_buf(&request->headers);
	reset_buf(&conn->wire.out);
	request->more = NULL;
	head_init(&request->head);
	conn->scan = (struct head_scan){ 0 };
	conn->has_skipped_line = false;
}

static void
linger(struct conn *conn)
{
	if (conn->wire.is_ended || shutdown(conn->wire.fd, SHUT_WR) != 0) {
		drop(conn);
		return;
	}
	move(conn, CONN_LINGER);
	set_limit(conn, LIMIT_LINGER);
	wire_use(&conn->wire, wire_pending(&conn->wire));
	wire_read(&conn->wire, true);
}

/* Make the next piece of a streamed answer.  It is sent in another turn of the
 * loop, or a client that reads fast would have us for itself. */
static void
stream(struct conn *conn)
{
	struct request *request = &conn->request;
	struct buf *out = &conn->wire.out;
	struct buf piece = { 0 };
	bool is_last = !request->more(request->more_arg, &piece);

	if (piece.len > 0) {
		buf_printf(out, "%zx\r\n", piece.len);
		buf_add(out, piece.data, piece.len);
		buf_puts(out, "\r\n");
	}
	if (is_last) {
		buf_puts(out, "0\r\n\r\n");
		request->more = NULL;
	}
	if (piece.failed || out->failed)
		drop(conn);
	else
		wire_want_room(&conn->wire);
	buf_fini(&piece);
}

/* True when the answer is sent and the next request may be read. */
static bool
step_write(struct conn *conn)
{
	int sent = wire_send(&conn->wire);

	if (sent > 0) {
		set_limit(conn, LIMIT_WRITE);
		return false;
	}
	if (sent < 0) {
		drop(conn);
		return false;
	}
	if (conn->request.more != NULL) {
		stream(conn);
		conn->limit = LIMIT_NONE; /* each piece has its own time */
		set_limit(conn, LIMIT_WRITE);
		return false;
	}
	reset_request(conn);
	conn->limit = LIMIT_NONE;
	if (conn->closes || conn->server->is_draining) {
		linger(conn);
		return false;
	}
	move(conn, CONN_HEAD);
	wire_read(&conn->wire, true);
	return true;
}

/* Take one step. True if another may follow. */
static bool
step(struct conn *conn)
{
	switch (conn->state) {
	case CONN_HEAD:
		return step_head(conn);
	case CONN_BODY:
		return step_body(conn);
	case CONN_WRITING:
		return step_write(conn);
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
conn_answered(struct conn *conn)
{
	conn->server->requests--;
	conn->request.gone = NULL;
	move(conn, conn->state == CONN_GONE ? CONN_DEAD : CONN_WRITING);
	if (conn->in_turn)
		return;
	/* The handler must not be called from here: a request that is waiting
	 * gets its turn from the loop. */
	if (conn->state == CONN_WRITING && step_write(conn)) {
		await_head(conn);
		if (wire_pending(&conn->wire) > 0 || conn->wire.is_ended)
			event_active(&conn->wire.readable, EV_READ, 0);
	}
	reap(conn);
}

void
conn_abort(struct conn *conn)
{
	conn->server->requests--;
	conn->request.gone = NULL;
	drop(conn);
	move(conn, CONN_DEAD);
	reap(conn);
}

void
conn_close_idle(struct conn *conn)
{
	if (conn->state == CONN_HEAD && wire_pending(&conn->wire) == 0) {
		drop(conn);
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

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	if ((what & EV_READ ? receive(conn) : go_on_sending(conn)) != 0)
		drop(conn);
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
	conn->in_turn = true;
	if (limit == LIMIT_BODY || (limit == LIMIT_HEAD && conn->scan.at > 0))
		refuse(conn, 408, "the request did not come in time");
	else if (limit != LIMIT_NONE)
		drop(conn);
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

void
conn_open(struct server *server, int fd, const struct sockaddr *peer)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL) {
		(void)close(fd);
		return;
	}
	conn->server = server;
	conn->request.conn = conn;
	head_init(&conn->request.head);
	name_peer(conn, peer);
	wire_open(&conn->wire, server->loop, fd, on_event, conn);
	event_assign(&conn->timer, server->loop, -1, 0, on_timer, conn);
	TAILQ_INSERT_TAIL(&server->conns, conn, link);
	server->connections++;
	set_limit(conn, LIMIT_HEAD);
	wire_read(&conn->wire, true);
}
