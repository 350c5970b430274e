#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "conn.h"
#include "http/tls.h"

#define RETRY_AFTER (100 * USEC_PER_MS) /* when there was no room */
#define PATIENCE USEC_PER_SEC /* with a client, while others wait */
#define LINGER_TIME (2 * USEC_PER_SEC)

bool
server_is_full(const struct server *server)
{
	return server->connections >= server->conf.max_connections;
}

/* A connection may be given up for a newcomer.  Where most are busy, one that
 * has just come or was just answered is about to ask, and newcomers do better
 * to queue; where most wait, somebody keeps them so. */
static bool
has_spare(const struct server *server)
{
	const struct crowd_guest *first = crowd_first(server->crowd);

	return first != NULL && (2 * crowd_waiting(server->crowd) >
					server->conf.max_connections ||
				    clock_now() - first->since >= PATIENCE);
}

/* Accept, or leave clients in the kernel's queue, and look again. */
void
server_review(struct server *server)
{
	const struct timeval wait = clock_timeval(RETRY_AFTER);

	if (server->listener == NULL)
		return;
	if (!server->is_short &&
	    (!server_is_full(server) || has_spare(server))) {
		evconnlistener_enable(server->listener);
		return;
	}
	evconnlistener_disable(server->listener);
	if (!evtimer_pending(&server->retry, NULL))
		evtimer_add(&server->retry, &wait);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	(void)fd;
	(void)what;
	server->is_short = false;
	server_review(server);
}

static struct conn *
conn_of(struct crowd_guest *guest)
{
	return (struct conn *)(void *)((char *)guest -
				       offsetof(struct conn, guest));
}

static void
give_up(struct server *server, struct crowd_guest *guest)
{
	server->given_up++;
	conn_free(conn_of(guest));
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *peer, int len, void *arg)
{
	struct server *server = arg;
	struct conn *conn;

	(void)listener;
	(void)len;
	if (server_is_full(server) && has_spare(server))
		give_up(server, crowd_first(server->crowd));
	/* One more than allowed, where the spare one found something to do. */
	if (server->connections > server->conf.max_connections) {
		(void)close(fd);
		return;
	}
	conn = conn_open(server, fd, peer);
	/* It may be the newcomer itself; all else of its address is busy. */
	if (conn != NULL &&
	    crowd_beside(&conn->guest) > server->conf.max_per_address)
		give_up(server, crowd_first_beside(&conn->guest));
	server_review(server);
}

/* Out of descriptors or memory: the listener stays readable, so going on at
 * once would spin. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	struct server *server = arg;

	(void)listener;
	server->is_short = true;
	server_review(server);
}

static void
on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct server *server = arg;

	(void)fd;
	(void)what;
	server->on_drained(server->drained_arg);
}

static void
check_drained(struct server *server)
{
	if (server->is_draining && server->connections == 0)
		event_active(&server->drained, EV_TIMEOUT, 0);
}

void
server_conn_freed(struct server *server)
{
	server->connections--;
	server_review(server);
	check_drained(server);
}

static int
parse_address(struct sockaddr_storage *out, const struct server_conf *conf)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(conf->port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
		.sin6_port = htons(conf->port) };

	if (inet_pton(AF_INET, conf->address, &in.sin_addr) == 1) {
		memcpy(out, &in, sizeof(in));
		return (int)sizeof(in);
	}
	if (inet_pton(AF_INET6, conf->address, &in6.sin6_addr) == 1) {
		memcpy(out, &in6, sizeof(in6));
		return (int)sizeof(in6);
	}
	return -1;
}

static uint16_t
bound_port(struct evconnlistener *listener)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t len = sizeof(bound);
	struct sockaddr_in in;

	if (getsockname(evconnlistener_get_fd(listener),
		(struct sockaddr *)&bound, &len) != 0)
		return 0;
	memcpy(&in, &bound, sizeof(in)); /* the port lies alike in both */
	return ntohs(in.sin_port);
}

static int
open_listener(struct server *server, struct err *err)
{
	const struct server_conf *conf = &server->conf;
	struct sockaddr_storage address = { 0 };
	int len = parse_address(&address, conf);

	if (len < 0)
		return err_set(err, ERR_REFUSED,
		    "%s is no address to listen on", conf->address);
	server->listener = evconnlistener_new_bind(server->loop, on_accept,
	    server,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
	    SOMAXCONN, (struct sockaddr *)&address, len);
	if (server->listener == NULL)
		return err_errno(err, ERR_RETRY, "cannot listen on %s port %d",
		    conf->address, conf->port);
	evconnlistener_set_error_cb(server->listener, on_accept_error);
	server->port = bound_port(server->listener);
	return 0;
}

/* Common timeouts are lists, not a heap: arming one is cheap. */
static int
open_limits(struct server *server, struct err *err)
{
	const struct server_conf *conf = &server->conf;
	const usec_t times[LIMIT_COUNT] = {
		[LIMIT_IDLE] = conf->idle_timeout,
		[LIMIT_HEAD] = conf->head_timeout,
		[LIMIT_BODY] = conf->body_timeout,
		[LIMIT_WRITE] = conf->write_timeout,
		[LIMIT_LINGER] = LINGER_TIME,
	};

	for (int i = LIMIT_IDLE; i < LIMIT_COUNT; i++) {
		const struct timeval tv = clock_timeval(times[i]);

		server->limits[i] =
		    event_base_init_common_timeout(server->loop, &tv);
		if (server->limits[i] == NULL)
			return err_set(err, ERR_NOMEM, "timeouts");
	}
	return 0;
}

int
server_open(struct server **out, struct event_base *loop,
    const struct server_conf *conf, const struct server_events *events,
    void *arg, struct err *err)
{
	struct server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return err_set(err, ERR_NOMEM, "server");
	server->loop = loop;
	server->conf = *conf;
	server->events = *events;
	server->arg = arg;
	TAILQ_INIT(&server->conns);
	TAILQ_INIT(&server->large);
	evtimer_assign(&server->retry, loop, on_retry, server);
	event_assign(&server->drained, loop, -1, 0, on_drained, server);
	if (crowd_open(&server->crowd, conf->max_connections, err) != 0 ||
	    open_limits(server, err) != 0 || open_listener(server, err) != 0)
		goto fail;
	*out = server;
	return 0;

fail:
	server_close(server);
	return err_wrap(err, "server");
}

void
server_use_tls(struct server *server, struct tls *tls)
{
	tls_free(server->tls);
	server->tls = tls;
}

uint16_t
server_port(const struct server *server)
{
	return server->port;
}

static void
stop_listening(struct server *server)
{
	if (server->listener != NULL)
		evconnlistener_free(server->listener);
	server->listener = NULL;
	event_del(&server->retry);
}

void
server_drain(struct server *server, void (*drained)(void *arg), void *arg)
{
	struct conn *conn, *next;

	assert(!server->is_draining);
	stop_listening(server);
	server->is_draining = true;
	server->on_drained = drained;
	server->drained_arg = arg;
	for (conn = TAILQ_FIRST(&server->conns); conn != NULL; conn = next) {
		next = TAILQ_NEXT(conn, link);
		conn_close_idle(conn);
	}
	check_drained(server);
}

void
server_close(struct server *server)
{
	struct conn *conn;

	if (server == NULL)
		return;
	stop_listening(server);
	while ((conn = TAILQ_FIRST(&server->conns)) != NULL)
		conn_free(conn);
	event_del(&server->drained);
	tls_free(server->tls);
	crowd_close(server->crowd);
	free(server);
}

int
server_connections(const struct server *server)
{
	return server->connections;
}

int
server_requests(const struct server *server)
{
	return server->requests;
}

uint64_t
server_given_up(const struct server *server)
{
	return server->given_up;
}

size_t
server_buffered(const struct server *server)
{
	return server->buffered;
}

const char *
server_date(struct server *server)
{
	time_t now = (time_t)(clock_wall() / USEC_PER_SEC);
	struct tm tm;

	if (now == server->date)
		return server->date_line;
	server->date = now;
	if (gmtime_r(&now, &tm) == NULL ||
	    strftime(server->date_line, sizeof(server->date_line),
		"Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm) == 0)
		server->date_line[0] = '\0';
	return server->date_line;
}
