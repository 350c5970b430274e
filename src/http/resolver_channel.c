#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/err.h"
#include "resolver_channel.h"

enum {
	CLASS_IN = 1, /* RFC 1035 section 3.2.4 */
	TYPE_A = 1,
	TYPE_AAAA = 28, /* RFC 3596 */
	FIRST_WAIT_MS = 500, /* doubled each time round the servers */
	TRIES = 4, /* of each server: 7.5 s for one of them */
};

/* A socket of c-ares: it opens and closes them as it likes. */
struct resolver_socket {
	LIST_ENTRY(resolver_socket) entry;
	struct resolver_channel *channel;
	struct event event;
	ares_socket_t fd;
};

/* Wake when c-ares has to; or go, if there is nothing left to do. */
static void
go_on(struct resolver_channel *channel)
{
	struct timeval wait;

	if (channel->is_retired && channel->questions == 0) {
		resolver_channel_close(channel);
		return;
	}
	if (ares_timeout(channel->ares, NULL, &wait) != NULL)
		(void)event_add(&channel->timer, &wait);
	else
		(void)event_del(&channel->timer);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_channel *channel = arg;

	(void)fd;
	(void)what;
	ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	go_on(channel);
}

/* c-ares may close the socket, which frees what this is called for. */
static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_socket *socket = arg;
	struct resolver_channel *channel = socket->channel;

	ares_process_fd(channel->ares, what & EV_READ ? fd : ARES_SOCKET_BAD,
	    what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	go_on(channel);
}

static struct resolver_socket *
find_socket(struct resolver_channel *channel, ares_socket_t fd)
{
	struct resolver_socket *socket;

	LIST_FOREACH (socket, &channel->sockets, entry)
		if (socket->fd == fd)
			return socket;
	socket = calloc(1, sizeof(*socket));
	if (socket == NULL)
		return NULL; /* unwatched: its questions time out */
	socket->channel = channel;
	socket->fd = fd;
	(void)event_assign(
	    &socket->event, channel->loop, fd, 0, on_ready, socket);
	LIST_INSERT_HEAD(&channel->sockets, socket, entry);
	return socket;
}

/* What c-ares wants to know of `fd` from now on; nothing: it closes it. */
static void
on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct resolver_channel *channel = arg;
	struct resolver_socket *socket = find_socket(channel, fd);
	short what =
	    (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));

	if (socket == NULL)
		return;
	(void)event_del(&socket->event);
	if (what == 0) {
		LIST_REMOVE(socket, entry);
		free(socket);
		return;
	}
	(void)event_assign(&socket->event, channel->loop, fd,
	    (short)(what | EV_PERSIST), on_ready, socket);
	(void)event_add(&socket->event, NULL);
}

/* What is asked is the name as it stands: ares_query() knows neither search
 * domains nor aliases. */
static int
init(struct resolver_channel *channel, const struct resolver_servers *servers,
    struct err *err)
{
	/* An option may not be const. */
	char *path = strdup(servers->resolv_conf);
	struct ares_options options = {
		.timeout = FIRST_WAIT_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket,
		.sock_state_cb_data = channel,
		.resolvconf_path = path,
		.udp_port = servers->port,
		.tcp_port = servers->port,
	};
	int status = ARES_ENOMEM;

	if (path != NULL)
		status = ares_init_options(&channel->ares, &options,
		    ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NOROTATE |
			ARES_OPT_SOCK_STATE_CB | ARES_OPT_RESOLVCONF |
			ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT);
	free(path);
	if (status == ARES_SUCCESS)
		return 0;
	channel->ares = NULL;
	return err_set(err, status == ARES_ENOMEM ? ERR_NOMEM : ERR_BROKEN,
	    "c-ares does not start: %s", ares_strerror(status));
}

/* The first goes behind the last, `times` over. */
static struct ares_addr_port_node *
turn(struct ares_addr_port_node *list, int times)
{
	for (; times > 0 && list->next != NULL; times--) {
		struct ares_addr_port_node *first = list, *last = list;

		while (last->next != NULL)
			last = last->next;
		list = first->next;
		first->next = NULL;
		last->next = first;
	}
	return list;
}

static int
set_first(struct resolver_channel *channel, int first, struct err *err)
{
	struct ares_addr_port_node *list = NULL;
	int status = ares_get_servers_ports(channel->ares, &list);

	if (status != ARES_SUCCESS || list == NULL)
		return err_set(err, ERR_BROKEN, "there are no name servers");
	for (const struct ares_addr_port_node *at = list; at != NULL;
	     at = at->next)
		channel->servers++;
	if (first % channel->servers != 0) {
		list = turn(list, first % channel->servers);
		status = ares_set_servers_ports(channel->ares, list);
	}
	ares_free_data(list);
	if (status == ARES_SUCCESS)
		return 0;
	return err_set(err, ERR_NOMEM, "name servers");
}

static int
set_servers(struct resolver_channel *channel,
    const struct resolver_servers *servers, struct err *err)
{
	if (servers->list[0] != '\0' &&
	    ares_set_servers_ports_csv(channel->ares, servers->list) !=
		ARES_SUCCESS)
		return err_set(err, ERR_REFUSED,
		    "the name server must be address:port, not \"%s\"",
		    servers->list);
	return set_first(channel, servers->first, err);
}

int
resolver_channel_open(struct resolver_channel_list *channels,
    struct event_base *loop, const struct resolver_servers *servers,
    struct err *err)
{
	struct resolver_channel *channel;

	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return err_set(err, ERR_NOMEM, "resolver");
	channel->loop = loop;
	LIST_INIT(&channel->sockets);
	LIST_INSERT_HEAD(channels, channel, entry);
	(void)evtimer_assign(&channel->timer, loop, on_timer, channel);
	if (init(channel, servers, err) == 0 &&
	    set_servers(channel, servers, err) == 0)
		return 0;
	resolver_channel_close(channel);
	return -1;
}

void
resolver_channel_close(struct resolver_channel *channel)
{
	LIST_REMOVE(channel, entry);
	(void)event_del(&channel->timer);
	if (channel->ares != NULL)
		ares_destroy(channel->ares); /* closes the sockets, too */
	free(channel);
}

void
resolver_channel_retire(struct resolver_channel *channel)
{
	channel->is_retired = true;
	if (channel->questions == 0)
		resolver_channel_close(channel);
}

static void
on_answer(void *arg, int status, int timeouts, unsigned char *octets, int len)
{
	struct resolver_question *question = arg;
	const struct resolver_answer answer = { status, timeouts, octets, len };

	question->channel->questions--;
	question->on_answer(question, &answer);
}

void
resolver_channel_ask(struct resolver_channel *channel, const char *name,
    struct resolver_question *question)
{
	int type = question->family == AF_INET ? TYPE_A : TYPE_AAAA;

	question->channel = channel;
	channel->questions++;
	ares_query(channel->ares, name, CLASS_IN, type, on_answer, question);
	go_on(channel);
}
