#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/retry_after.h"
#include "send.h"

enum { RETRY_AFTER_TEXT = 64 }; /* longer than any form of it */

static int
stop(struct send *send, enum send_stop why)
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
	(void)stop(send, SEND_STOP_REFUSED);
	return true;
}

/* The last place before a packet leaves. */
curl_socket_t
send_guard_socket(
    void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	if (purpose != CURLSOCKTYPE_IPCXN || is_refused(arg, &address->addr))
		return CURL_SOCKET_BAD;
	return socket(address->family, address->socktype | SOCK_CLOEXEC,
	    address->protocol);
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
	struct send *send = arg;
	union resolver_address address;

	(void)local_ip;
	(void)local_port;
	if (send->requests > 0) {
		(void)stop(send, SEND_STOP_TWICE);
		return CURL_PREREQFUNC_ABORT;
	}
	if (!read_ip(&address, remote_ip) || is_refused(send, &address.any))
		return CURL_PREREQFUNC_ABORT;
	(void)snprintf(send->remote, sizeof(send->remote),
	    address.any.sa_family == AF_INET ? "%s:%d" : "[%s]:%d", remote_ip,
	    remote_port);
	if (clock_now() > send->not_after) {
		(void)stop(send, SEND_STOP_LATE);
		return CURL_PREREQFUNC_ABORT;
	}
	send->requests++;
	return CURL_PREREQFUNC_OK;
}

/* "HTTP/1.1 503 Why" */
static int
parse_status(const char *line, size_t len)
{
	const char *at = memchr(line, ' ', len);
	int status = 0;

	if (at == NULL || (size_t)(line + len - at) < 4)
		return 0;
	for (int i = 1; i <= 3; i++) {
		if (at[i] < '0' || at[i] > '9')
			return 0;
		status = status * 10 + (at[i] - '0');
	}
	return status;
}

/* The first line of all, and the first after an interim response; one further
 * down is a header with an odd name. */
static bool
is_status_line(const struct send *send, const char *line, size_t len)
{
	bool is_first = send->header_bytes == len;

	return (is_first || (send->header_ended && send->status < 200)) &&
	       len >= 5 && memcmp(line, "HTTP/", 5) == 0;
}

/* A response begins; what came before it was an interim one. */
static int
begin_response(struct send *send, const char *line, size_t len)
{
	send->status = parse_status(line, len);
	send->header_ended = false;
	send->retry_after = -1;
	if (send->status == 101)
		return stop(send, SEND_STOP_INTERIM);
	if (send->status < 200 && ++send->interim > SEND_INTERIM_MAX)
		return stop(send, SEND_STOP_INTERIM);
	return 0;
}

/* Two that differ: the longer wait harms nobody. */
static void
read_retry_after(struct send *send, const char *value, size_t len)
{
	char text[RETRY_AFTER_TEXT];
	usec_t wait;

	while (len > 0 && strchr(" \t\r\n", value[len - 1]) != NULL)
		len--;
	while (len > 0 && (*value == ' ' || *value == '\t')) {
		value++;
		len--;
	}
	if (len >= sizeof(text))
		return;
	memcpy(text, value, len);
	text[len] = '\0';
	wait = retry_after_parse(text, clock_wall());
	if (wait > send->retry_after)
		send->retry_after = wait;
}

size_t
send_guard_header(char *line, size_t size, size_t n, void *arg)
{
	static const char name[] = "retry-after:";
	struct send *send = arg;
	size_t len = size * n;

	send->header_bytes += len;
	if (send->header_bytes > SEND_HEADER_MAX) {
		(void)stop(send, SEND_STOP_HEADER);
		return 0;
	}
	if (is_status_line(send, line, len) &&
	    begin_response(send, line, len) != 0)
		return 0;
	if (len <= 2 && (*line == '\r' || *line == '\n'))
		send->header_ended = true;
	if (len >= sizeof(name) &&
	    strncasecmp(line, name, sizeof(name) - 1) == 0)
		read_retry_after(
		    send, line + sizeof(name) - 1, len - (sizeof(name) - 1));
	return len;
}

size_t
send_guard_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct send *send = arg;
	size_t len = size * n;
	size_t room = SEND_EXCERPT_MAX - send->excerpt.len;

	buf_add(&send->excerpt, bytes, len < room ? len : room);
	send->body_bytes += len;
	if (send->body_bytes <= SEND_BODY_MAX)
		return len;
	(void)stop(send, SEND_STOP_BODY);
	return 0;
}
