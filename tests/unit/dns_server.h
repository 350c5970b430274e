/*
 * dns_server: a name server on the loop, for tests.
 *
 * A table says what each name has; a name that is not in it does not exist.
 */

#ifndef TESTS_DNS_SERVER_H
#define TESTS_DNS_SERVER_H

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>

struct dns_record {
	const char *name; /* NULL ends */
	const char *a[40]; /* IPv4 addresses, NULL ends */
	const char *aaaa[8];
	const char *cname;
	int error; /* DNS_ERR_*, instead of an answer */
	int is_silent_a, is_silent_aaaa; /* never answers */
};

struct dns_server {
	const struct dns_record *records;
	struct evdns_server_port *port;
	int fd;
	char address[32]; /* as resolver_open() takes it */
	int questions;
};

static const struct dns_record *
dns_find(const struct dns_server *server, const char *name)
{
	const struct dns_record *at = server->records;

	while (at->name != NULL && strcasecmp(at->name, name) != 0)
		at++;
	return at->name != NULL ? at : NULL;
}

static void
dns_add(struct evdns_server_request *request, const char *name,
    const struct dns_record *record, int type)
{
	unsigned char octets[16];

	if (record->cname != NULL)
		(void)evdns_server_request_add_cname_reply(
		    request, name, record->cname, 60);
	for (int i = 0; type == EVDNS_TYPE_A && record->a[i] != NULL; i++) {
		(void)inet_pton(AF_INET, record->a[i], octets);
		(void)evdns_server_request_add_a_reply(
		    request, name, 1, octets, 60);
	}
	for (int i = 0; type == EVDNS_TYPE_AAAA && record->aaaa[i] != NULL;
	     i++) {
		(void)inet_pton(AF_INET6, record->aaaa[i], octets);
		(void)evdns_server_request_add_aaaa_reply(
		    request, name, 1, octets, 60);
	}
}

static void
dns_on_request(struct evdns_server_request *request, void *arg)
{
	struct dns_server *server = arg;
	const struct evdns_server_question *question = request->questions[0];
	const struct dns_record *record = dns_find(server, question->name);
	int is_a = question->type == EVDNS_TYPE_A;

	server->questions++;
	if (record == NULL) {
		(void)evdns_server_request_respond(request, DNS_ERR_NOTEXIST);
		return;
	}
	if (is_a ? record->is_silent_a : record->is_silent_aaaa) {
		(void)evdns_server_request_drop(request);
		return;
	}
	dns_add(request, question->name, record, question->type);
	(void)evdns_server_request_respond(request, record->error);
}

static int
dns_open(struct dns_server *server, struct event_base *loop,
    const struct dns_record *records)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	*server = (struct dns_server){ .records = records };
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (server->fd < 0 ||
	    bind(server->fd, (const struct sockaddr *)&at, len) != 0 ||
	    getsockname(server->fd, (struct sockaddr *)&at, &len) != 0)
		return -1;
	(void)snprintf(server->address, sizeof(server->address), "127.0.0.1:%u",
	    (unsigned)ntohs(at.sin_port));
	server->port = evdns_add_server_port_with_base(
	    loop, server->fd, 0, dns_on_request, server);
	return server->port != NULL ? 0 : -1;
}

static void
dns_close(struct dns_server *server)
{
	evdns_close_server_port(server->port); /* closes the socket as well */
}

#endif
