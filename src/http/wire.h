/*
 * wire: a client's socket with what came and what is to go, in the clear or
 * over TLS (wire_tls).
 *
 * In the clear, two system calls a request: no descriptor is re-armed unless the client is
 * slower than we are.
 */

#ifndef HTTP_WIRE_H
#define HTTP_WIRE_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>

#include <openssl/types.h>

#include "base/buf.h"

struct wire {
	int fd; /* -1 when closed */
	bool is_reading; /* `readable` is added */
	bool is_ended; /* the client has sent its FIN */
	struct event readable, writable;
	struct buf in; /* octets from `in_at` on are not used yet */
	size_t in_at;
	struct buf out; /* octets from `out_at` on are not sent yet */
	size_t out_at;
	SSL *ssl; /* NULL in the clear */
	bool has_failed; /* TLS can say no more, nor hear */
	const char *failure; /* why, if that is worth telling */
};

/* Take over `fd`, and `ssl` on it unless NULL.  `wire` is zeroed, and does not
 * read yet. */
void wire_open(struct wire *wire, struct event_base *loop, int fd, SSL *ssl,
    void (*on_event)(int fd, short what, void *arg), void *arg);

/* Close the socket; the buffers stay. */
void wire_close(struct wire *wire);

/* Wipe and free the buffers, after wire_close(). */
void wire_fini(struct wire *wire);

/* Want to be told of more to read, or not. */
void wire_read(struct wire *wire, bool on);

/* Read once, up to `limit` octets in all; at the limit stop reading.  -1 when
 * the client is gone; its FIN sets `is_ended`. */
int wire_receive(struct wire *wire, size_t limit);

/* Say that no more will be sent.  -1 when the client is gone. */
int wire_end(struct wire *wire);

/* Read once and throw it away, undeciphered.  -1 when the client has closed. */
int wire_discard(struct wire *wire);

/* Send what is in `out`: 0 when all is sent; 1 when the client has to read
 * first: an event comes when it has; -1 when it is gone. */
int wire_send(struct wire *wire);

/* Want to be told, once, when there is room to send. */
void wire_want_room(struct wire *wire);

/* What came and is not used yet. */
size_t wire_pending(const struct wire *wire);
const char *wire_unread(const struct wire *wire);
void wire_use(struct wire *wire, size_t n);

#endif
