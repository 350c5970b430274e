#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/log.h"
#include "core/address.h"
#include "core/rfc3339.h"
#include "gate.h"
#include "http/server.h"
#include "http/tls.h"
#include "ingest.h"
#include "listener.h"

enum { MAX_HEAD = 16384 };

#define WRITE_TIMEOUT (30 * USEC_PER_SEC)
#define SAY_EVERY (10 * USEC_PER_SEC)

static bool
has_tls(const struct ingest_conf *conf)
{
	return conf->tls_certificate[0] != '\0';
}

static int
read_tls(struct tls **out, const struct ingest_conf *conf, struct err *err)
{
	const struct tls_files files = { .certificate = conf->tls_certificate,
		.key = conf->tls_key,
		.client_ca = conf->tls_client_ca };

	return tls_read(out, &files, err);
}

/* What is no address is refused when it is listened on. */
static bool
is_loopback(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	const char *why;

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return address_judge((struct sockaddr *)&in, &why) ==
		       ADDRESS_LOOPBACK;
	if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		return address_judge((struct sockaddr *)&in6, &why) ==
		       ADDRESS_LOOPBACK;
	return true;
}

int
listener_check(const struct ingest_conf *conf, struct err *err)
{
	struct tls *tls;

	if (has_tls(conf) != (conf->tls_key[0] != '\0'))
		return err_set(err, ERR_REFUSED,
		    "tls_certificate and tls_key belong together: one of them "
		    "is not set");
	if (!has_tls(conf) && conf->tls_client_ca[0] != '\0')
		return err_set(err, ERR_REFUSED,
		    "tls_client_ca: only over TLS can clients show "
		    "certificates: set tls_certificate and tls_key as well");
	if (!has_tls(conf) && !conf->plain_http &&
	    !is_loopback(conf->listen_address))
		return err_set(err, ERR_REFUSED,
		    "listen_address: on %s keys would cross the network in "
		    "the clear: set tls_certificate and tls_key, or "
		    "plain_http=true where a proxy or a private network takes "
		    "care of that",
		    conf->listen_address);
	if (!has_tls(conf))
		return 0;
	if (read_tls(&tls, conf, err) != 0)
		return -1;
	tls_free(tls);
	return 0;
}

/* At most one line in ten seconds, however many fail. */
static void
on_tls_failed(void *arg, const char *peer, const char *why)
{
	static usec_t said_at;
	static uint64_t unsaid;
	struct ingest *ingest = arg;
	usec_t now = clock_now();
	char others[24];

	ingest->metrics.tls_failures++;
	if (said_at != 0 && now - said_at < SAY_EVERY) {
		unsaid++;
		return;
	}
	(void)snprintf(others, sizeof(others), "%" PRIu64, unsaid);
	log_info("a client failed at TLS", "peer", peer, "error", why,
	    "others_since_last", others, NULL);
	said_at = now;
	unsaid = 0;
}

/* Take `tls` over, and say until when it is good. */
static void
use_tls(struct ingest *ingest, struct tls *tls, const char *message)
{
	char expires[RFC3339_SIZE];

	ingest->certificate_expires_at = tls_expires_at(tls);
	(void)rfc3339_print(expires, ingest->certificate_expires_at, 1);
	log_info(message, "tls_certificate", ingest->conf->tls_certificate,
	    "expires", expires, NULL);
	server_use_tls(ingest->server, tls);
}

static int64_t
max_per_address(const struct ingest_conf *conf)
{
	return conf->max_connections_per_address > 0
	           ? conf->max_connections_per_address
	           : conf->max_connections + 1;
}

static int
open_server(struct ingest *ingest, struct err *err)
{
	const struct ingest_conf *conf = ingest->conf;
	const struct server_conf server = {
		.address = conf->listen_address,
		.port = (uint16_t)conf->listen_port,
		.max_head = MAX_HEAD,
		.max_body = (size_t)conf->max_batch_bytes,
		.max_buffered = (size_t)conf->max_body_bytes_total,
		.max_connections = (int)conf->max_connections,
		.max_per_address = (int)max_per_address(conf),
		.max_requests = (int)conf->max_requests_per_connection,
		.head_timeout = conf->head_timeout,
		.body_timeout = conf->body_timeout,
		.idle_timeout = conf->idle_timeout,
		.write_timeout = WRITE_TIMEOUT,
	};
	const struct server_events events = { .gate = gate_check,
		.handler = gate_handle,
		.error = gate_refuse,
		.tls_failed = on_tls_failed };

	return server_open(
	    &ingest->server, ingest->loop, &server, &events, ingest, err);
}

int
listener_open(struct ingest *ingest, struct err *err)
{
	struct tls *tls = NULL;

	if (has_tls(ingest->conf) && read_tls(&tls, ingest->conf, err) != 0)
		return -1;
	if (open_server(ingest, err) != 0) {
		tls_free(tls);
		return -1;
	}
	if (tls != NULL)
		use_tls(ingest, tls, "certificate read");
	return 0;
}

void
listener_reload(struct ingest *ingest)
{
	struct tls *tls;
	struct err err;

	if (!has_tls(ingest->conf))
		log_info(
		    "nothing to read again: tls_certificate is not set", NULL);
	else if (read_tls(&tls, ingest->conf, &err) != 0)
		log_error("the old certificate stays: the new one is no good",
		    "error", err.text, NULL);
	else
		use_tls(ingest, tls, "certificate read again");
}
