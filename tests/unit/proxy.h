/*
 * proxy: stand between a client and a server's socket, on the same loop, and
 * be the network that fails.
 */

#ifndef PROXY_H
#define PROXY_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct proxy {
	struct event_base *loop;
	struct evconnlistener *listener; /* NULL while the server is away */
	char folder[64]; /* where clients find its socket */
	char path[96];
	char server[128]; /* path of the server's socket */
	struct bufferevent *client, *upstream; /* the newest connection */
	bool is_frozen; /* nothing passes, and nobody is told */
	const char *cut_answer; /* hang up on an answer with this in it */
	int connections;
};

static inline void
proxy_hang_up(struct proxy *proxy)
{
	if (proxy->client != NULL)
		bufferevent_free(proxy->client);
	if (proxy->upstream != NULL)
		bufferevent_free(proxy->upstream);
	proxy->client = proxy->upstream = NULL;
}

static inline bool
proxy_holds(struct evbuffer *bytes, const char *text)
{
	return text != NULL &&
	       evbuffer_search(bytes, text, strlen(text), NULL).pos >= 0;
}

static inline void
proxy_from_client(struct bufferevent *client, void *arg)
{
	struct proxy *proxy = arg;
	struct evbuffer *bytes = bufferevent_get_input(client);

	if (proxy->is_frozen)
		return;
	(void)bufferevent_write_buffer(proxy->upstream, bytes);
}

static inline void
proxy_from_server(struct bufferevent *upstream, void *arg)
{
	struct proxy *proxy = arg;
	struct evbuffer *bytes = bufferevent_get_input(upstream);

	if (proxy->is_frozen)
		return;
	if (proxy_holds(bytes, proxy->cut_answer)) {
		proxy->cut_answer = NULL;
		proxy_hang_up(proxy);
		return;
	}
	(void)bufferevent_write_buffer(proxy->client, bytes);
}

/* One side has hung up: the other gets what was still meant for it. */
static inline void
proxy_on_end(struct bufferevent *end, short what, void *arg)
{
	struct proxy *proxy = arg;
	struct bufferevent *other =
	    end == proxy->client ? proxy->upstream : proxy->client;
	struct evbuffer *rest = bufferevent_get_output(other);

	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	(void)evbuffer_unfreeze(rest, 1);
	(void)evbuffer_write(rest, bufferevent_getfd(other));
	proxy_hang_up(proxy);
}

static inline void
proxy_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int len, void *arg)
{
	struct proxy *proxy = arg;
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	(void)listener;
	(void)from;
	(void)len;
	proxy_hang_up(proxy);
	proxy->connections++;
	proxy->client =
	    bufferevent_socket_new(proxy->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	proxy->upstream =
	    bufferevent_socket_new(proxy->loop, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(
	    proxy->client, proxy_from_client, NULL, proxy_on_end, proxy);
	bufferevent_setcb(
	    proxy->upstream, proxy_from_server, NULL, proxy_on_end, proxy);
	(void)snprintf(
	    to.sun_path, sizeof(to.sun_path), "%.100s", proxy->server);
	(void)bufferevent_enable(proxy->client, EV_READ | EV_WRITE);
	if (bufferevent_socket_connect(
		proxy->upstream, (const struct sockaddr *)&to, sizeof(to)) == 0)
		(void)bufferevent_enable(proxy->upstream, EV_READ | EV_WRITE);
}

/* The server goes away, and comes back. */
static inline void
proxy_stop(struct proxy *proxy)
{
	proxy_hang_up(proxy);
	if (proxy->listener != NULL)
		evconnlistener_free(proxy->listener);
	proxy->listener = NULL;
	(void)unlink(proxy->path);
}

static inline int
proxy_start(struct proxy *proxy)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "%s", proxy->path);
	proxy->listener = evconnlistener_new_bind(proxy->loop, proxy_on_accept,
	    proxy, LEV_OPT_CLOSE_ON_FREE, 16, (const struct sockaddr *)&at,
	    sizeof(at));
	return proxy->listener == NULL ? -1 : 0;
}

static inline int
proxy_open(struct proxy *proxy, struct event_base *loop, const char *server)
{
	/* A client may be gone when its answer comes. */
	(void)signal(SIGPIPE, SIG_IGN);
	*proxy = (struct proxy){ .loop = loop };
	(void)snprintf(
	    proxy->folder, sizeof(proxy->folder), "/tmp/test_pg.XXXXXX");
	if (mkdtemp(proxy->folder) == NULL)
		return -1;
	(void)snprintf(proxy->path, sizeof(proxy->path), "%s/.s.PGSQL.5432",
	    proxy->folder);
	(void)snprintf(proxy->server, sizeof(proxy->server), "%s", server);
	return proxy_start(proxy);
}

static inline void
proxy_close(struct proxy *proxy)
{
	proxy_stop(proxy);
	(void)rmdir(proxy->folder);
}

#endif
