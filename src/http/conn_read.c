#include <event2/event.h>
#include <string.h>

#include "conn_inside.h"

/* The body is not whole.  Can it still become so? */
static void
want_body(struct conn *conn)
{
	if (conn->request.body.failed)
		conn_drop(conn);
	else if (conn->wire.is_ended)
		conn_refuse(conn, 400, "the request ends before its body does");
}

static void
dispatch(struct conn *conn)
{
	struct server *server = conn->server;

	if (conn->request.body.failed) {
		conn_drop(conn);
		return;
	}
	conn_hand_over(conn);
	server->events.handler(server->arg, &conn->request);
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

static bool
has_body(const struct head *head)
{
	return head->is_chunked || head->length > 0;
}

/* Let the program look at the head.  False if it has answered. */
static bool
pass_gate(struct conn *conn)
{
	const struct server *server = conn->server;
	bool closes = conn->closes;
	size_t max;

	conn->max_body = server->conf.max_body;
	if (server->events.gate == NULL)
		return true;
	conn_move(conn, CONN_GATE);
	/* What would come behind an answer now is the body. */
	conn->closes = closes || has_body(&conn->request.head);
	max = server->events.gate(server->arg, &conn->request);
	if (conn->state != CONN_GATE)
		return false;
	conn->closes = closes;
	if (max < conn->max_body)
		conn->max_body = max;
	return true;
}

static void
begin_body(struct conn *conn)
{
	const struct head *head = &conn->request.head;

	if (!pass_gate(conn))
		return;
	if (!has_body(head)) {
		dispatch(conn);
		return;
	}
	if (head->length > conn->max_body) {
		conn_refuse(conn, 413, "the body is too large");
		return;
	}
	conn_move(conn, CONN_BODY);
	conn_wait(conn, CROWD_SLOW);
	wire_read(&conn->wire, true);
	conn->chunk = (struct chunk){ 0 };
	if (send_continue(conn) < 0)
		conn_drop(conn);
}

static void
take_head(struct conn *conn)
{
	struct request *request = &conn->request;
	struct refusal refusal;

	buf_add(&request->text, wire_unread(&conn->wire), conn->scan.at);
	wire_use(&conn->wire, conn->scan.at);
	if (request->text.failed) {
		conn_drop(conn);
		return;
	}
	refusal =
	    head_parse(&request->head, request->text.data, request->text.len);
	/* While others wait for a connection nobody keeps one. */
	conn->closes = request->head.closes ||
	               ++conn->taken >= conn->server->conf.max_requests ||
	               server_is_full(conn->server);
	if (refusal.status != 0)
		conn_refuse(conn, refusal.status, refusal.detail);
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

void
conn_await_head(struct conn *conn)
{
	if (wire_pending(&conn->wire) > 0) {
		conn_wait(conn, CROWD_SLOW);
		conn_limit(conn, LIMIT_HEAD);
	} else if (conn->limit == LIMIT_NONE) {
		conn_limit(conn, LIMIT_IDLE);
	}
}

/* The head is not whole.  Can it still become so? */
static void
want_head(struct conn *conn)
{
	if (wire_pending(&conn->wire) >= conn->server->conf.max_head) {
		if (conn->scan.line == 0)
			conn_refuse(conn, 414, "the request line is too long");
		else
			conn_refuse(conn, 431, "the headers are too large");
	} else if (!conn->wire.is_ended) {
		conn_await_head(conn);
	} else if (wire_pending(&conn->wire) > 0) {
		conn_refuse(
		    conn, 400, "the request ends before its headers do");
	} else {
		conn_drop(conn);
	}
}

bool
conn_step_head(struct conn *conn)
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
		conn_refuse(conn, 400, "a control character, or half a CRLF");
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
		    &n, &request->body, conn->max_body);
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

/* Whose body has to go when there is no room: of the address that has most the
 * oldest, or this one, unless another address has more than its own. */
static struct conn *
find_greedy(struct conn *conn)
{
	struct conn *greedy = conn, *other;

	TAILQ_FOREACH (other, &conn->server->large, large_link)
		if (other->state == CONN_BODY &&
		    crowd_held_beside(&other->guest) >
			crowd_held_beside(&greedy->guest))
			greedy = other;
	return greedy;
}

static struct refusal
make_room(struct conn *conn)
{
	static const struct refusal no_room = { 503,
		"too many bodies are being read" };
	const struct server *server = conn->server;

	while (server->buffered > server->conf.max_buffered) {
		struct conn *greedy = find_greedy(conn);

		if (greedy == conn)
			return no_room;
		conn_turn_away(greedy, no_room.status, no_room.detail);
	}
	return ACCEPTED;
}

bool
conn_step_body(struct conn *conn)
{
	struct refusal refusal = ACCEPTED;
	bool is_whole;

	conn_limit(conn, LIMIT_BODY);
	is_whole = take_body(conn, &refusal);
	conn_charge(conn);
	if (refusal.status == 0)
		refusal = make_room(conn);
	if (refusal.status != 0)
		conn_refuse(conn, refusal.status, refusal.detail);
	else if (is_whole)
		dispatch(conn);
	else
		want_body(conn);
	return conn->state != CONN_BODY;
}
