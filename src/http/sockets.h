/*
 * sockets: those of libcurl's connections, from the first request to the
 * close, so that one can be asked whether anything came that nobody asked for.
 *
 * libcurl uses a connection again on which octets wait.  They may be a second
 * answer to the last request, or a proxy's 408 to a connection that was idle
 * too long; libcurl would take them for the answer to the next request.
 *
 * libcurl tells between which ends a connection runs, not on which socket: so
 * it is found by its ends.
 */

#ifndef HTTP_SOCKETS_H
#define HTTP_SOCKETS_H

#include <stdbool.h>

struct err;
struct sockets;
struct watch;

/* As libcurl writes them. */
struct socket_ends {
	const char *local_ip;
	const char *remote_ip;
	int local_port;
	int remote_port;
};

int sockets_new(struct sockets **out, struct err *err);

/* All connections have been closed.  NULL is fine. */
void sockets_free(struct sockets *sockets);

/* Remember that `fd` runs between `ends`.  Out of memory it is not. */
void sockets_add(
    struct sockets *sockets, int fd, const struct socket_ends *ends);

/* Forget `fd`, which may be unknown, before it is closed.  Returns the watch
 * that was left with it, or NULL. */
struct watch *sockets_drop(struct sockets *sockets, int fd);

/* Leave a watch with `fd` while it rests: true if `fd` is known, and so will be
 * dropped before it is closed. */
bool sockets_park(struct sockets *sockets, int fd, struct watch *watch);

/* Take the watch back that was left with `fd`; NULL if there is none. */
struct watch *sockets_unpark(struct sockets *sockets, int fd);

/* Whether the connection between `ends` is open and nothing has come on it
 * that was not read.  What is not known is not. */
bool sockets_are_quiet(
    const struct sockets *sockets, const struct socket_ends *ends);

#endif
