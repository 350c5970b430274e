/* ingest: what the whole program shares. */

#ifndef INGEST_INGEST_H
#define INGEST_INGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/seal.h"
#include "core/target.h"
#include "metrics.h"
#include "store/session.h"

struct auth;
struct desk;
struct err;
struct event_base;
struct server;
struct subscription_tests;
struct writer;

/* The settings, as the table in main.c names them. */
struct ingest_conf {
	char *allow_hosts;
	bool any_port;
	usec_t body_timeout;
	char *database;
	char *database_role;
	bool development;
	usec_t head_timeout;
	usec_t idle_timeout;
	char *listen_address;
	int64_t listen_port;
	char *log_level;
	int64_t max_batch_bytes;
	int64_t max_body_bytes_total;
	int64_t max_connections;
	int64_t max_connections_per_address;
	int64_t max_queued_bytes;
	int64_t max_queued_events;
	int64_t max_requests_per_connection;
	int64_t max_requests_per_key;
	bool plain_http;
	char *secret_key_file;
	usec_t statement_timeout;
	char *tls_certificate;
	char *tls_client_ca;
	char *tls_key;
	int64_t writers;
};

struct ingest {
	const struct ingest_conf *conf;
	struct event_base *loop;
	struct server *server;
	struct target_policy policy;
	struct seal_ring ring; /* the first one seals secrets */
	struct desk *desk;
	struct subscription_tests *tests;
	struct writer *writer;
	struct auth *auth;
	struct metrics metrics;
	usec_t certificate_expires_at; /* since 1970; 0 without TLS */
	bool is_stopping;
};

/* True if events can be accepted and administration answered. */
bool ingest_is_ready(const struct ingest *ingest);

/* How to reach the database, as `application`. */
struct session_conf ingest_session_conf(
    const struct ingest *ingest, const char *application);

/* A connection has come, with a schema that we know; or has gone. */
void ingest_session_up(struct ingest *ingest);
void ingest_session_down(struct ingest *ingest, const struct err *err);

/* Nothing but a person can mend this: end the program. */
void ingest_fail(struct ingest *ingest, const struct err *err);

#endif
