#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "wire.h"
#include "wire_tls.h"

enum { READ_SIZE = 16384 }; /* octets asked for at once */

void
wire_open(struct wire *wire, struct event_base *loop, int fd, SSL *ssl,
    void (*on_event)(int fd, short what, void *arg), void *arg)
{
	const int on = 1;

	wire->fd = fd;
	wire->ssl = ssl;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	event_assign(
	    &wire->readable, loop, fd, EV_READ | EV_PERSIST, on_event, arg);
	event_assign(&wire->writable, loop, fd, EV_WRITE, on_event, arg);
}

void
wire_close(struct wire *wire)
{
	if (wire->fd < 0)
		return;
	event_del(&wire->readable);
	event_del(&wire->writable);
	if (wire->ssl != NULL) {
		wire_tls_end(wire);
		SSL_free(wire->ssl);
		wire->ssl = NULL;
	}
	(void)close(wire->fd);
	wire->fd = -1;
}

void
wire_fini(struct wire *wire)
{
	/* Keys of clients, and secrets just made for them. */
	buf_wipe(&wire->in);
	buf_wipe(&wire->out);
}

void
wire_read(struct wire *wire, bool on)
{
	if (wire->is_reading == on || (on && wire->is_ended))
		return;
	wire->is_reading = on;
	if (!on) {
		event_del(&wire->readable);
		return;
	}
	event_add(&wire->readable, NULL);
	if (wire->ssl != NULL && wire_tls_has_more(wire))
		event_active(&wire->readable, EV_READ, 0);
}

size_t
wire_pending(const struct wire *wire)
{
	return wire->in.len - wire->in_at;
}

const char *
wire_unread(const struct wire *wire)
{
	return wire->in.len == 0 ? "" : wire->in.data + wire->in_at;
}

void
wire_use(struct wire *wire, size_t n)
{
	wire->in_at += n;
	if (wire->in_at == wire->in.len) {
		buf_clear(&wire->in);
		wire->in_at = 0;
	}
}

/* Move what is left to the front, so that the buffer need not grow. */
static void
pack(struct wire *wire)
{
	size_t left = wire_pending(wire);

	if (wire->in_at == 0)
		return;
	memmove(wire->in.data, wire->in.data + wire->in_at, left);
	wire->in.len = left;
	wire->in_at = 0;
}

static bool
is_passing(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static ssize_t
take(struct wire *wire, void *at, size_t n)
{
	return wire->ssl == NULL ? recv(wire->fd, at, n, 0)
	                         : wire_tls_recv(wire, at, n);
}

static ssize_t
give(struct wire *wire, const void *at, size_t n)
{
	return wire->ssl == NULL ? send(wire->fd, at, n, MSG_NOSIGNAL)
	                         : wire_tls_send(wire, at, n);
}

int
wire_receive(struct wire *wire, size_t limit)
{
	size_t room;
	ssize_t n;
	char *at;

	pack(wire);
	if (wire->in.len >= limit) {
		wire_read(wire, false);
		return 0;
	}
	room = limit - wire->in.len;
	if (room > READ_SIZE)
		room = READ_SIZE;
	at = buf_grow(&wire->in, room);
	if (at == NULL)
		return -1;
	n = take(wire, at, room);
	wire->in.len -= room - (n > 0 ? (size_t)n : 0);
	if (n < 0)
		return is_passing(errno) ? 0 : -1;
	if (n == 0) {
		wire_read(wire, false);
		wire->is_ended = true;
	}
	return 0;
}

int
wire_end(struct wire *wire)
{
	if (wire->ssl != NULL)
		wire_tls_end(wire);
	return shutdown(wire->fd, SHUT_WR);
}

int
wire_discard(struct wire *wire)
{
	char bytes[READ_SIZE];
	ssize_t n = recv(wire->fd, bytes, sizeof(bytes), 0);

	return n > 0 || (n < 0 && is_passing(errno)) ? 0 : -1;
}

void
wire_want_room(struct wire *wire)
{
	event_add(&wire->writable, NULL);
}

/* TLS may wait for something to read instead, and has armed what it needs. */
static int
want_room(struct wire *wire)
{
	if (wire->ssl != NULL)
		return 1;
	return event_add(&wire->writable, NULL) == 0 ? 1 : -1;
}

int
wire_send(struct wire *wire)
{
	ssize_t n;

	while (wire->out_at < wire->out.len) {
		n = give(wire, wire->out.data + wire->out_at,
		    wire->out.len - wire->out_at);
		if (n >= 0)
			wire->out_at += (size_t)n;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return want_room(wire);
		else if (errno != EINTR)
			return -1;
	}
	if (wire->ssl != NULL)
		wire_tls_resume(wire);
	wire->out_at = 0;
	buf_clear(&wire->out);
	return 0;
}
