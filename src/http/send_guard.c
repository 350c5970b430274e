#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "send.h"

int
send_stop(struct send *send, enum send_stop why)
{
	if (send->stop == SEND_GOES_ON)
		send->stop = why;
	return 1;
}

const char *
send_refuses(const struct send *send, const struct sockaddr *address)
{
	const struct target_site *site = &send->site;
	const char *why = target_refuses(site, send->policy, address);

	if (why != NULL || site->is_loopback || site->is_allowed_host)
		return why;
	if (own_address_has(send->own, address))
		return "an address of this machine";
	return NULL;
}

static bool
is_refused(struct send *send, const struct sockaddr *address)
{
	const char *why = send_refuses(send, address);

	if (why == NULL)
		return false;
	send->refusal = why;
	(void)send_stop(send, SEND_STOP_REFUSED);
	return true;
}

/* The last place before a packet leaves. */
curl_socket_t
send_guard_socket(
    void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct send *send = arg;
	int fd;

	if (purpose != CURLSOCKTYPE_IPCXN || is_refused(send, &address->addr))
		return CURL_SOCKET_BAD;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
	    address->protocol);
	send->fds[address->family == AF_INET6] = fd;
	if (send->marks[MARK_SOCKET] == 0)
		send->marks[MARK_SOCKET] = clock_now();
	return fd;
}

int
send_guard_close(void *sockets, curl_socket_t fd)
{
	struct watch *watch = sockets_drop(sockets, fd);

	if (watch != NULL)
		multi_forget(watch);
	return close(fd);
}

/* libcurl's own resolver is for literals alone; names come with addresses. */
int
send_guard_resolver(void *resolver, void *reserved, void *arg)
{
	const struct send *send = arg;

	(void)resolver;
	(void)reserved;
	return send->site.is_literal ? 0 : 1;
}

/* Called for each new connection, before its handshake. */
CURLcode
send_guard_tls(CURL *easy, void *context, void *arg)
{
	struct send *send = arg;

	(void)easy;
	send->marks[MARK_TLS] = clock_now();
	trust_apply(send->trust, context, send->tls.ca != NULL);
	return CURLE_OK;
}

/* Octets that OpenSSL has read off the socket, and libcurl not off OpenSSL. */
static bool
has_rest(CURL *easy)
{
	struct curl_tlssessioninfo *session = NULL;

	return curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) ==
	           CURLE_OK &&
	       session != NULL && session->internals != NULL &&
	       SSL_has_pending(session->internals) == 1;
}

/* A connection that is used for the first time is noted, and one that is used
 * again is looked at. */
static bool
is_spoilt(struct send *send, const struct socket_ends *ends, bool is_v6)
{
	if (send->marks[MARK_SOCKET] != 0) {
		sockets_add(send->sockets, send->fds[is_v6], ends);
		return false;
	}
	return !sockets_are_quiet(send->sockets, ends) ||
	       (send->site.is_https && has_rest(send->easy));
}

static bool
read_ip(union resolver_address *out, const char *text)
{
	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		return true;
	}
	out->v6.sin6_family = AF_INET6;
	return inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
}

/*
 * Called each time that a request is about to be written, on a new connection
 * or an old one.  libcurl would write it again, unasked, when an old one
 * closes without an answer; the receiver may have acted on the first.
 */
int
send_guard_request(
    void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
	const struct socket_ends ends = { .local_ip = local_ip,
		.local_port = local_port,
		.remote_ip = remote_ip,
		.remote_port = remote_port };
	struct send *send = arg;
	union resolver_address address;
	usec_t now = clock_now();
	bool is_v6;

	if (send->requests > 0) {
		(void)send_stop(send, SEND_STOP_TWICE);
		return CURL_PREREQFUNC_ABORT;
	}
	if (!read_ip(&address, remote_ip) || is_refused(send, &address.any))
		return CURL_PREREQFUNC_ABORT;
	is_v6 = address.any.sa_family == AF_INET6;
	if (is_spoilt(send, &ends, is_v6)) {
		(void)send_stop(send, SEND_STOP_SPOILT);
		return CURL_PREREQFUNC_ABORT;
	}
	(void)snprintf(send->remote, sizeof(send->remote),
	    is_v6 ? "[%s]:%d" : "%s:%d", remote_ip, remote_port);
	if (now > send->not_after) {
		(void)send_stop(send, SEND_STOP_LATE);
		return CURL_PREREQFUNC_ABORT;
	}
	send->marks[MARK_REQUEST] = now;
	send->requests++;
	return CURL_PREREQFUNC_OK;
}
