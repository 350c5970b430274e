#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/err.h"
#include "sockets.h"

enum { NBUCKETS = 4096, FIRST_SIZE = 64 };

struct known {
	LIST_ENTRY(known) entry; /* in its bucket */
	struct watch *watch; /* parked, or NULL */
	int fd;
	int local_port, remote_port;
	char local_ip[INET6_ADDRSTRLEN], remote_ip[INET6_ADDRSTRLEN];
};

LIST_HEAD(bucket, known);

struct sockets {
	struct bucket buckets[NBUCKETS]; /* by the local port */
	struct known **by_fd; /* NULL: not known */
	size_t size; /* of `by_fd` */
};

int
sockets_new(struct sockets **out, struct err *err)
{
	*out = calloc(1, sizeof(**out)); /* zeroed buckets are empty */
	return *out != NULL ? 0 : err_set(err, ERR_NOMEM, "sockets");
}

void
sockets_free(struct sockets *sockets)
{
	if (sockets == NULL)
		return;
	for (size_t fd = 0; fd < sockets->size; fd++)
		free(sockets->by_fd[fd]);
	free(sockets->by_fd);
	free(sockets);
}

/* See that `by_fd` has a place for `fd`. */
static int
grow(struct sockets *sockets, size_t fd)
{
	size_t size = sockets->size == 0 ? FIRST_SIZE : sockets->size;
	struct known **by_fd;

	if (fd < sockets->size)
		return 0;
	while (size <= fd)
		size *= 2;
	by_fd = realloc(sockets->by_fd, size * sizeof(struct known *));
	if (by_fd == NULL)
		return -1;
	for (size_t i = sockets->size; i < size; i++)
		by_fd[i] = NULL;
	sockets->by_fd = by_fd;
	sockets->size = size;
	return 0;
}

void
sockets_add(struct sockets *sockets, int fd, const struct socket_ends *ends)
{
	struct known *known;

	if (fd < 0 || grow(sockets, (size_t)fd) != 0)
		return;
	(void)sockets_drop(sockets, fd);
	known = malloc(sizeof(*known));
	if (known == NULL)
		return;
	known->watch = NULL;
	known->fd = fd;
	known->local_port = ends->local_port;
	known->remote_port = ends->remote_port;
	(void)snprintf(
	    known->local_ip, sizeof(known->local_ip), "%s", ends->local_ip);
	(void)snprintf(
	    known->remote_ip, sizeof(known->remote_ip), "%s", ends->remote_ip);
	sockets->by_fd[fd] = known;
	LIST_INSERT_HEAD(&sockets->buckets[(size_t)ends->local_port % NBUCKETS],
	    known, entry);
}

static struct known *
find(const struct sockets *sockets, int fd)
{
	return fd < 0 || (size_t)fd >= sockets->size ? NULL
	                                             : sockets->by_fd[fd];
}

struct watch *
sockets_drop(struct sockets *sockets, int fd)
{
	struct watch *watch = sockets_unpark(sockets, fd);
	struct known *known = find(sockets, fd);

	if (known == NULL)
		return NULL;
	sockets->by_fd[fd] = NULL;
	LIST_REMOVE(known, entry);
	free(known);
	return watch;
}

bool
sockets_park(struct sockets *sockets, int fd, struct watch *watch)
{
	struct known *known = find(sockets, fd);

	if (known == NULL)
		return false;
	known->watch = watch;
	return true;
}

struct watch *
sockets_unpark(struct sockets *sockets, int fd)
{
	struct known *known = find(sockets, fd);
	struct watch *watch = known == NULL ? NULL : known->watch;

	if (known != NULL)
		known->watch = NULL;
	return watch;
}

static bool
is_between(const struct known *known, const struct socket_ends *ends)
{
	return known->local_port == ends->local_port &&
	       known->remote_port == ends->remote_port &&
	       strcmp(known->remote_ip, ends->remote_ip) == 0 &&
	       strcmp(known->local_ip, ends->local_ip) == 0;
}

bool
sockets_are_quiet(const struct sockets *sockets, const struct socket_ends *ends)
{
	const struct known *at;
	char octet;

	at = LIST_FIRST(&sockets->buckets[(size_t)ends->local_port % NBUCKETS]);
	while (at != NULL && !is_between(at, ends))
		at = LIST_NEXT(at, entry);
	/* An octet, the end, or an error: it is not for a request to come. */
	return at != NULL &&
	       recv(at->fd, &octet, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EWOULDBLOCK);
}
