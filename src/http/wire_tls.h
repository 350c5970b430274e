/*
 * wire_tls: a client's socket, with TLS between it and the wire's buffers.
 *
 * OpenSSL reads and writes the socket itself.  The handshake is a part of the
 * first read.  As recv() and send(), with what OpenSSL waits for armed: after
 * -1, errno is EAGAIN if more may come, else the connection is over.
 */

#ifndef HTTP_WIRE_TLS_H
#define HTTP_WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <openssl/types.h>

struct tls;
struct wire;

/* For a connection that a client has just made; NULL if memory is short.  It
 * keeps what it needs of `tls`. */
SSL *wire_tls_open(const struct tls *tls, int fd);

/* 0: the client has said that no more comes.  A socket that just ends is a
 * failure: somebody else may have cut it. */
ssize_t wire_tls_recv(struct wire *wire, void *at, size_t n);
ssize_t wire_tls_send(struct wire *wire, const void *at, size_t n);

/* More has come than was read: there will be no event for it. */
bool wire_tls_has_more(const struct wire *wire);

/* After an event for room to send: let a read go on that waited for it. */
void wire_tls_resume(struct wire *wire);

/* Say that no more comes, unless that was said or cannot be. */
void wire_tls_end(struct wire *wire);

#endif
