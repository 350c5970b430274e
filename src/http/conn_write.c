#include <event2/event.h>

#include "conn_inside.h"

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
	conn_charge(conn);
	reset_buf(&request->headers);
	reset_buf(&conn->wire.out);
	request->more = NULL;
	head_init(&request->head);
	conn->scan = (struct head_scan){ 0 };
	conn->has_skipped_line = false;
}

void
conn_linger(struct conn *conn)
{
	if (conn->wire.is_ended || wire_end(&conn->wire) != 0) {
		conn_drop(conn);
		return;
	}
	conn_move(conn, CONN_LINGER);
	conn_wait(conn, CROWD_OVER);
	conn_limit(conn, LIMIT_LINGER);
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
		conn_drop(conn);
	else
		wire_want_room(&conn->wire);
	buf_fini(&piece);
}

/* True when the answer is sent and the next request may be read. */
bool
conn_step_write(struct conn *conn)
{
	int sent = wire_send(&conn->wire);

	if (sent > 0) {
		conn_wait(conn, CROWD_SLOW);
		conn_limit(conn, LIMIT_WRITE);
		return false;
	}
	if (sent < 0) {
		conn_drop(conn);
		return false;
	}
	if (conn->request.more != NULL) {
		stream(conn);
		conn->limit = LIMIT_NONE; /* each piece has its own time */
		conn_limit(conn, LIMIT_WRITE);
		return false;
	}
	reset_request(conn);
	conn->limit = LIMIT_NONE;
	if (conn->closes || conn->server->is_draining) {
		conn_linger(conn);
		return false;
	}
	conn_move(conn, CONN_HEAD);
	conn_wait(conn, CROWD_IDLE);
	wire_read(&conn->wire, true);
	return true;
}
