/*
 * server_world: a server with its clients on one loop, for its tests.
 *
 * Nothing waits by the clock but for the server's own limits.
 */

#ifndef SERVER_WORLD_H
#define SERVER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/server.h"

enum { CLIENTS = 4, HELD = 8, BIG = 16 << 20, ROOM = 16384 };

#define HOST "Host: a\r\n"
#define POST "POST /echo HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
#define SECOND "GET /second HTTP/1.1\r\n" HOST

struct client {
	struct event *readable;
	struct buf in;
	bool is_ended, is_reset;
	int fd;
};

struct world {
	struct event_base *loop;
	struct server *server;
	struct client clients[CLIENTS];
	struct request *held[HELD]; /* requests to /hold */
	int nheld;
	int gated, handled, refused, drained;
	size_t buffered; /* when the last was refused */
	bool is_late;
	struct event *guard;
	char *big;
};

/* Turn the loop until it is so; a guard of five seconds fails the test. */
#define until(w, condition)                                                    \
	while (!(condition)) {                                                 \
		assert_false((w)->is_late);                                    \
		event_base_loop((w)->loop, EVLOOP_ONCE);                       \
	}

static inline void
on_guard(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;

	(void)fd;
	(void)what;
	w->is_late = true;
}

static inline void
handle(void *arg, struct request *request)
{
	struct world *w = arg;
	const char *path = request_path(request);
	const void *body;
	char text[128];
	size_t len;

	w->handled++;
	body = request_body(request, &len);
	if (strcmp(path, "/echo") == 0) {
		request_reply(request, 200, "text/plain", body, len);
	} else if (strcmp(path, "/hold") == 0) {
		assert_true(w->nheld < HELD);
		w->held[w->nheld++] = request;
	} else if (strcmp(path, "/big") == 0) {
		request_reply(request, 200, "text/plain", w->big, BIG);
	} else if (strcmp(path, "/abort") == 0) {
		request_abort(request);
	} else if (strcmp(path, "/none") == 0) {
		request_add_header(request, "X-Made-Of", "a\r\nInjected: b");
		request_reply(request, 204, NULL, NULL, 0);
	} else {
		(void)snprintf(text, sizeof(text), "%s %s %s",
		    request_method(request), path, request_query(request));
		request_reply(request, 200, "text/plain", text, strlen(text));
	}
}

static inline void
explain(void *arg, struct request *request, int status, const char *detail)
{
	struct world *w = arg;

	w->refused++;
	w->buffered = server_buffered(w->server);
	request_reply(request, status, "text/plain", detail, strlen(detail));
}

static const struct server_events events = { .handler = handle,
	.error = explain };

static inline void
open_server(struct world *w, const struct server_conf *wanted,
    const struct server_events *told)
{
	struct server_conf conf = *wanted;
	struct err err;

	conf.address = "127.0.0.1";
	conf.max_head = 4096;
	conf.max_body = 65536;
	if (conf.max_buffered == 0)
		conf.max_buffered = 1 << 20;
	if (conf.max_connections == 0)
		conf.max_connections = 100;
	if (conf.max_per_address == 0)
		conf.max_per_address = 100;
	if (conf.max_requests == 0)
		conf.max_requests = 1000000;
	if (conf.head_timeout == 0)
		conf.head_timeout = 60 * USEC_PER_SEC;
	if (conf.body_timeout == 0)
		conf.body_timeout = 60 * USEC_PER_SEC;
	if (conf.idle_timeout == 0)
		conf.idle_timeout = 60 * USEC_PER_SEC;
	if (conf.write_timeout == 0)
		conf.write_timeout = 60 * USEC_PER_SEC;
	assert_int_equal(
	    0, server_open(&w->server, w->loop, &conf, told, w, &err));
}

static inline void
start(struct world *w, const struct server_conf *wanted)
{
	open_server(w, wanted, &events);
}

static inline int
set_up(void **state)
{
	static struct world world;
	const struct timeval patience = { .tv_sec = 5 };
	struct world *w = &world;

	memset(w, 0, sizeof(*w));
	w->loop = event_base_new();
	w->guard = evtimer_new(w->loop, on_guard, w);
	evtimer_add(w->guard, &patience);
	for (int i = 0; i < CLIENTS; i++)
		w->clients[i].fd = -1;
	*state = w;
	return 0;
}

static inline void
leave(struct client *c)
{
	if (c->fd < 0)
		return;
	event_free(c->readable);
	(void)close(c->fd);
	buf_fini(&c->in);
	*c = (struct client){ .fd = -1 };
}

static inline int
tear_down(void **state)
{
	struct world *w = *state;

	server_close(w->server);
	for (int i = 0; i < CLIENTS; i++)
		leave(&w->clients[i]);
	event_free(w->guard);
	event_base_free(w->loop);
	free(w->big);
	return 0;
}

static inline void
on_client(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	char bytes[ROOM];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	(void)what;
	if (n > 0) {
		buf_add(&c->in, bytes, (size_t)n);
		return;
	}
	c->is_ended = n == 0;
	c->is_reset = n < 0;
	event_del(c->readable);
}

/* A client at the address 127.0.0.`from`. */
static inline struct client *
join_from(struct world *w, int i, uint32_t from)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(server_port(w->server)) };
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct client *c = &w->clients[i];

	leave(c);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(c->fd >= 0);
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
	assert_int_equal(0, bind(c->fd, (struct sockaddr *)&own, sizeof(own)));
	assert_int_equal(0, connect(c->fd, (struct sockaddr *)&to, sizeof(to)));
	assert_int_equal(0, fcntl(c->fd, F_SETFL, O_NONBLOCK));
	c->readable =
	    event_new(w->loop, c->fd, EV_READ | EV_PERSIST, on_client, c);
	event_add(c->readable, NULL);
	return c;
}

static inline struct client *
join(struct world *w, int i)
{
	return join_from(w, i, 1);
}

static inline void
put(struct client *c, const char *bytes, size_t len)
{
	assert_int_equal(len, send(c->fd, bytes, len, MSG_NOSIGNAL));
}

static inline void
say(struct client *c, const char *text)
{
	put(c, text, strlen(text));
}

static inline bool
heard(struct client *c, const char *text)
{
	return strstr(buf_text(&c->in), text) != NULL;
}

static inline int
count(struct client *c, const char *text)
{
	int n = 0;

	for (const char *p = buf_text(&c->in); (p = strstr(p, text)) != NULL;
	     p++)
		n++;
	return n;
}

/* The status of the first answer; 0 if none has come. */
static inline int
status(struct client *c)
{
	int value = 0;

	(void)sscanf(buf_text(&c->in), "HTTP/1.1 %d ", &value);
	return value;
}

static inline bool
is_over(const struct client *c)
{
	return c->is_ended || c->is_reset;
}

/* A client of its own goes and comes: all that lay ready has been seen. */
static inline void
barrier(struct world *w)
{
	struct client *c = join(w, CLIENTS - 1);

	say(c, "GET /barrier HTTP/1.1\r\n" HOST "\r\n");
	until(w, heard(c, "/barrier"));
	leave(c);
}

/* What /big answers with. */
static inline void
make_big(struct world *w)
{
	w->big = malloc(BIG);
	assert_non_null(w->big);
	memset(w->big, 'x', BIG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
