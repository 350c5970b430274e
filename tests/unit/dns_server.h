/*
 * dns_server: a name server on the loop, for tests: UDP and TCP on one port.
 *
 * A table says what each name has; a name that is not in it does not exist.
 */

#ifndef TESTS_DNS_SERVER_H
#define TESTS_DNS_SERVER_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "dns_packet.h"

enum { DNS_RECORDS_MAX = 40, DNS_CONNECTIONS_MAX = 8 };

struct dns_server;

/* An answer that is not due yet. */
struct dns_late {
	LIST_ENTRY(dns_late) entry;
	struct dns_server *server;
	struct event *timer;
	struct sockaddr_in to;
	struct buf answer;
};

struct dns_server {
	const struct dns_record *records;
	struct event_base *loop;
	int fd, tcp, other;
	struct event *on_udp, *on_tcp;
	struct event *connections[DNS_CONNECTIONS_MAX];
	LIST_HEAD(, dns_late) late;
	struct sockaddr_in at;
	char address[32]; /* as resolver_open() takes it */
	int questions, tcp_questions;
	int asked[DNS_RECORDS_MAX][2]; /* each record, by family */
};

static void
dns_send(int fd, const struct sockaddr_in *to, const struct buf *answer)
{
	if (sendto(fd, answer->data, answer->len, 0,
		(const struct sockaddr *)to, sizeof(*to)) < 0)
		abort();
}

static void
dns_late_free(struct dns_late *late)
{
	LIST_REMOVE(late, entry);
	event_free(late->timer);
	buf_fini(&late->answer);
	free(late);
}

static void
dns_on_late(evutil_socket_t fd, short what, void *arg)
{
	struct dns_late *late = arg;

	(void)fd;
	(void)what;
	dns_send(late->server->fd, &late->to, &late->answer);
	dns_late_free(late);
}

static void
dns_send_late(struct dns_server *server, const struct sockaddr_in *to,
    const struct buf *answer, int ms)
{
	const struct timeval wait = { ms / 1000, ms % 1000 * 1000 };
	struct dns_late *late = calloc(1, sizeof(*late));

	if (late == NULL)
		abort();
	late->server = server;
	late->to = *to;
	buf_add(&late->answer, answer->data, answer->len);
	late->timer = evtimer_new(server->loop, dns_on_late, late);
	LIST_INSERT_HEAD(&server->late, late, entry);
	(void)event_add(late->timer, &wait);
}

/* Count the question, and make the answer. */
static void
dns_make(struct buf *out, struct dns_server *server,
    const struct dns_question *question)
{
	const struct dns_record *record =
	    dns_find(server->records, question->name);
	int times = 0;

	if (record != NULL)
		times = ++server->asked[record - server->records]
		                       [question->type == DNS_AAAA];
	dns_answer(out, server->records, question, times);
}

static void
dns_make_udp(struct dns_server *server, const struct dns_question *question,
    const struct sockaddr_in *from)
{
	const struct dns_record *record =
	    dns_find(server->records, question->name);
	enum dns_trick trick = dns_trick_of(record, question->type);
	struct buf out = { 0 };

	if (trick > DNS_HONEST && trick < DNS_SILENT) {
		dns_spoof(&out, question, trick);
		dns_send(trick == DNS_WRONG_SOURCE ? server->other : server->fd,
		    from, &out);
	}
	dns_make(&out, server, question);
	if (out.len > 0 && question->type == DNS_AAAA && record != NULL &&
	    record->delay_ms > 0)
		dns_send_late(server, from, &out, record->delay_ms);
	else if (out.len > 0)
		dns_send(server->fd, from, &out);
	buf_fini(&out);
}

static void
dns_on_udp(evutil_socket_t fd, short what, void *arg)
{
	struct dns_server *server = arg;
	struct dns_question question;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	unsigned char octets[DNS_UDP_MAX];
	ssize_t len = recvfrom(
	    fd, octets, sizeof(octets), 0, (struct sockaddr *)&from, &from_len);

	(void)what;
	if (len < DNS_HEADER ||
	    dns_read(&question, octets, (size_t)len, false) != 0)
		return;
	server->questions++;
	dns_make_udp(server, &question, &from);
}

/* A question a read is enough for tests on one machine. */
static void
dns_on_stream(evutil_socket_t fd, short what, void *arg)
{
	struct dns_server *server = arg;
	struct dns_question question;
	struct buf out = { 0 };
	unsigned char octets[2 * DNS_UDP_MAX], head[2];
	ssize_t len = recv(fd, octets, sizeof(octets), 0);
	size_t at = 0, size;

	(void)what;
	for (; len - (ssize_t)at > DNS_HEADER + 2; at += size + 2) {
		size = (size_t)(octets[at] << 8 | octets[at + 1]);
		if (at + 2 + size > (size_t)len ||
		    dns_read(&question, octets + at + 2, size, true) != 0)
			break;
		server->tcp_questions++;
		dns_make(&out, server, &question);
		head[0] = (unsigned char)(out.len >> 8);
		head[1] = (unsigned char)out.len;
		if (out.len > 0 && (send(fd, head, 2, MSG_MORE) != 2 ||
				       send(fd, out.data, out.len, 0) < 0))
			abort();
	}
	buf_fini(&out);
	for (int i = 0; len <= 0 && i < DNS_CONNECTIONS_MAX; i++)
		if (server->connections[i] != NULL &&
		    event_get_fd(server->connections[i]) == fd) {
			event_free(server->connections[i]);
			server->connections[i] = NULL;
			(void)close(fd);
		}
}

static void
dns_on_tcp(evutil_socket_t fd, short what, void *arg)
{
	struct dns_server *server = arg;
	int stream = accept(fd, NULL, NULL), i = 0;

	(void)what;
	while (i < DNS_CONNECTIONS_MAX && server->connections[i] != NULL)
		i++;
	if (stream < 0 || i == DNS_CONNECTIONS_MAX)
		abort();
	server->connections[i] = event_new(
	    server->loop, stream, EV_READ | EV_PERSIST, dns_on_stream, server);
	(void)event_add(server->connections[i], NULL);
}

static int
dns_bind(int fd, struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);

	if (fd < 0 || bind(fd, (const struct sockaddr *)at, len) != 0)
		return -1;
	return getsockname(fd, (struct sockaddr *)at, &len);
}

/* At an address of loopback and a port, 0 for any. */
static int
dns_open_at(struct dns_server *server, struct event_base *loop,
    const struct dns_record *records, struct sockaddr_in at)
{
	struct sockaddr_in other = at;
	char text[INET_ADDRSTRLEN];

	*server = (struct dns_server){ .records = records, .loop = loop };
	LIST_INIT(&server->late);
	other.sin_port = 0;
	server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	server->other = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (dns_bind(server->tcp, &at) != 0 || listen(server->tcp, 8) != 0 ||
	    dns_bind(server->fd, &at) != 0 ||
	    dns_bind(server->other, &other) != 0) {
		(void)close(server->tcp);
		(void)close(server->fd);
		(void)close(server->other);
		return -1;
	}
	(void)inet_ntop(AF_INET, &at.sin_addr, text, sizeof(text));
	server->at = at;
	(void)snprintf(server->address, sizeof(server->address), "%s:%u", text,
	    (unsigned)ntohs(at.sin_port));
	server->on_udp = event_new(
	    loop, server->fd, EV_READ | EV_PERSIST, dns_on_udp, server);
	server->on_tcp = event_new(
	    loop, server->tcp, EV_READ | EV_PERSIST, dns_on_tcp, server);
	(void)event_add(server->on_udp, NULL);
	return event_add(server->on_tcp, NULL);
}

static int
dns_open(struct dns_server *server, struct event_base *loop,
    const struct dns_record *records)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* A port that is free for TCP may be taken for UDP. */
	for (int tries = 0; tries < 16; tries++)
		if (dns_open_at(server, loop, records, at) == 0)
			return 0;
	return -1;
}

static void
dns_close(struct dns_server *server)
{
	event_free(server->on_udp);
	event_free(server->on_tcp);
	while (!LIST_EMPTY(&server->late))
		dns_late_free(LIST_FIRST(&server->late));
	for (int i = 0; i < DNS_CONNECTIONS_MAX; i++)
		if (server->connections[i] != NULL) {
			(void)close(event_get_fd(server->connections[i]));
			event_free(server->connections[i]);
		}
	(void)close(server->fd);
	(void)close(server->tcp);
	(void)close(server->other);
}

#endif
