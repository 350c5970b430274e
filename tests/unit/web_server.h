/*
 * web_server: a scripted receiver on the loop, for tests.
 *
 * It reads whole requests and lets `answer` do with each what it likes.
 */

#ifndef TESTS_WEB_SERVER_H
#define TESTS_WEB_SERVER_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <openssl/ssl.h>

struct web;

struct web_conn {
	LIST_ENTRY(web_conn) entry;
	struct web *web;
	struct bufferevent *bev;
	struct event *timer; /* of web_drip() */
	int requests;
};

typedef void web_answer_fn(struct web_conn *conn);

struct web {
	struct event_base *loop;
	struct evconnlistener *listener;
	SSL_CTX *tls; /* NULL: plain */
	unsigned port;
	const char *greeting; /* said at once, before any request; or NULL */
	bool is_shut; /* every connection is closed at its first octet */
	web_answer_fn *answer;
	const char *text; /* what web_text() and others say */
	size_t len;
	const char *more; /* what web_flood() says again and again */
	int connections, requests;
	char last[4096]; /* the newest request */
	LIST_HEAD(, web_conn) conns;
};

static void
web_drop(struct web_conn *conn)
{
	LIST_REMOVE(conn, entry);
	if (conn->timer != NULL)
		event_free(conn->timer);
	bufferevent_free(conn->bev);
	free(conn);
}

/* Write the text and keep the connection. */
static inline void
web_text(struct web_conn *conn)
{
	(void)bufferevent_write(conn->bev, conn->web->text, conn->web->len);
}

static void
web_on_flushed(struct bufferevent *bev, void *arg)
{
	(void)bev;
	web_drop(arg);
}

static void web_on_event(struct bufferevent *bev, short what, void *arg);

/* Write the text and close. */
static inline void
web_text_close(struct web_conn *conn)
{
	bufferevent_setcb(conn->bev, NULL, web_on_flushed, web_on_event, conn);
	web_text(conn);
}

static inline void
web_hang(struct web_conn *conn)
{
	(void)conn;
}

static inline void
web_close_unanswered(struct web_conn *conn)
{
	web_drop(conn);
}

static void
web_on_hungry(struct bufferevent *bev, void *arg)
{
	struct web_conn *conn = arg;

	for (int i = 0; i < 64; i++)
		(void)bufferevent_write(
		    bev, conn->web->more, strlen(conn->web->more));
}

/* Write the text, and then without end. */
static inline void
web_flood(struct web_conn *conn)
{
	bufferevent_setcb(conn->bev, NULL, web_on_hungry, web_on_event, conn);
	web_text(conn);
}

static void
web_on_drip(evutil_socket_t fd, short what, void *arg)
{
	struct web_conn *conn = arg;

	(void)fd;
	(void)what;
	(void)bufferevent_write(conn->bev, "x", 1);
}

/* Write the text, and then an octet now and then. */
static inline void
web_drip(struct web_conn *conn)
{
	static const struct timeval pause = { 0, 5000 };

	web_text(conn);
	conn->timer =
	    event_new(conn->web->loop, -1, EV_PERSIST, web_on_drip, conn);
	(void)event_add(conn->timer, &pause);
}

static void
web_on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		web_drop(arg);
}

/* Octets of the first request in `input`, 0 if it is not whole yet. */
static size_t
web_request_len(struct evbuffer *input)
{
	struct evbuffer_ptr end = evbuffer_search(input, "\r\n\r\n", 4, NULL);
	struct evbuffer_ptr at =
	    evbuffer_search(input, "Content-Length: ", 16, NULL);
	char digits[16] = "";
	size_t len;

	if (end.pos < 0)
		return 0;
	len = (size_t)end.pos + 4;
	if (at.pos >= 0 && at.pos < end.pos) {
		(void)evbuffer_ptr_set(input, &at, 16, EVBUFFER_PTR_ADD);
		(void)evbuffer_copyout_from(
		    input, &at, digits, sizeof(digits) - 1);
		len += strtoul(digits, NULL, 10);
	}
	return evbuffer_get_length(input) >= len ? len : 0;
}

static void
web_on_read(struct bufferevent *bev, void *arg)
{
	struct web_conn *conn = arg;
	struct web *web = conn->web;
	struct evbuffer *input = bufferevent_get_input(bev);
	size_t len = web_request_len(input);
	ev_ssize_t kept;

	if (web->is_shut) {
		web_drop(conn);
		return;
	}
	if (len == 0)
		return;
	kept = evbuffer_copyout(input, web->last,
	    len < sizeof(web->last) ? len : sizeof(web->last) - 1);
	web->last[kept < 0 ? 0 : kept] = '\0';
	(void)evbuffer_drain(input, len);
	web->requests++;
	conn->requests++;
	web->answer(conn);
}

static void
web_on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *address, int len, void *arg)
{
	struct web *web = arg;
	struct web_conn *conn = calloc(1, sizeof(*conn));

	(void)listener;
	(void)address;
	(void)len;
	web->connections++;
	if (conn == NULL)
		abort();
	conn->web = web;
	conn->bev =
	    web->tls == NULL
		? bufferevent_socket_new(web->loop, fd, BEV_OPT_CLOSE_ON_FREE)
		: bufferevent_openssl_socket_new(web->loop, fd,
		      SSL_new(web->tls), BUFFEREVENT_SSL_ACCEPTING,
		      BEV_OPT_CLOSE_ON_FREE);
	LIST_INSERT_HEAD(&web->conns, conn, entry);
	bufferevent_setcb(conn->bev, web_on_read, NULL, web_on_event, conn);
	(void)bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	if (web->greeting != NULL)
		(void)bufferevent_write(
		    conn->bev, web->greeting, strlen(web->greeting));
}

static int
web_open(struct web *web, struct event_base *loop)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	*web = (struct web){ .loop = loop, .answer = web_hang };
	LIST_INIT(&web->conns);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	web->listener = evconnlistener_new_bind(loop, web_on_accept, web,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 1024,
	    (const struct sockaddr *)&at, (int)len);
	if (web->listener == NULL ||
	    getsockname(evconnlistener_get_fd(web->listener),
		(struct sockaddr *)&at, &len) != 0)
		return -1;
	web->port = ntohs(at.sin_port);
	return 0;
}

/* Stop to listen; connections stay. */
static void
web_deaf(struct web *web)
{
	if (web->listener != NULL)
		evconnlistener_free(web->listener);
	web->listener = NULL;
}

static void
web_close(struct web *web)
{
	web_deaf(web);
	while (!LIST_EMPTY(&web->conns))
		web_drop(LIST_FIRST(&web->conns));
	if (web->tls != NULL)
		SSL_CTX_free(web->tls);
}

/* Say `text` on the newest connection, unasked, until it is out. */
static inline void
web_speak_up(struct web *web, const char *text)
{
	struct web_conn *conn = LIST_FIRST(&web->conns);
	struct evbuffer *out = bufferevent_get_output(conn->bev);

	(void)bufferevent_write(conn->bev, text, strlen(text));
	while (evbuffer_get_length(out) > 0)
		(void)event_base_loop(web->loop, EVLOOP_ONCE);
}

/* The text may hold a NUL. */
static inline void
web_says_bytes(
    struct web *web, web_answer_fn *answer, const char *text, size_t len)
{
	web->answer = answer;
	web->text = text;
	web->len = len;
}

static inline void
web_says(struct web *web, web_answer_fn *answer, const char *text)
{
	web->answer = answer;
	web->text = text;
	web->len = strlen(text);
}

#endif
