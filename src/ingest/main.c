/* ingest: takes events over HTTP, and answers when they are kept. */

#include <signal.h>
#include <stddef.h>
#include <stdio.h>

#include <event2/event.h>

#include "auth.h"
#include "base/conf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/notify.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "listener.h"
#include "rate.h"
#include "subscription_tests.h"
#include "writer.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

enum {
	MIN_BATCH_BYTES = 65536, /* a single event has to fit */
	QUEUED_BESIDES = 4194304, /* by a batch, besides its bodies */
};

#define TIMEOUT_MIN (100 * USEC_PER_MS)
#define TIMEOUT_MAX (3600 * USEC_PER_SEC)

#define FIELD(name) .offset = offsetof(struct ingest_conf, name)

static const struct conf_item items[] = {
	{ "allow_hosts", CONF_TEXT, false, FIELD(allow_hosts), .initial = "",
	    .help = "exact hosts, comma-separated, that may be internal" },
	{ "any_port", CONF_BOOL, false, FIELD(any_port), .initial = "false",
	    .help = "allow ports other than 443 in a subscription's URL" },
	{ "body_timeout", CONF_TIME, false, FIELD(body_timeout),
	    .initial = "30s", .min = TIMEOUT_MIN, .max = TIMEOUT_MAX,
	    .help = "all of a body has to come within this" },
	{ "database", CONF_TEXT, true, FIELD(database), .initial = "",
	    .help = "PostgreSQL, as libpq takes it: host=... dbname=..." },
	{ "database_role", CONF_TEXT, false, FIELD(database_role),
	    .initial = "postrider_ingest",
	    .help = "role to take on after connecting; empty for none" },
	{ "development", CONF_BOOL, false, FIELD(development),
	    .initial = "false",
	    .help = "allow http and loopback addresses: never in production" },
	{ "head_timeout", CONF_TIME, false, FIELD(head_timeout),
	    .initial = "10s", .min = TIMEOUT_MIN, .max = TIMEOUT_MAX,
	    .help = "a handshake and all headers have to come within this" },
	{ "idle_timeout", CONF_TIME, false, FIELD(idle_timeout),
	    .initial = "75s", .min = TIMEOUT_MIN, .max = TIMEOUT_MAX,
	    .help = "close a connection that asks for nothing this long" },
	{ "listen_address", CONF_TEXT, false, FIELD(listen_address),
	    .initial = "127.0.0.1", .help = "address to listen on" },
	{ "listen_port", CONF_INT, false, FIELD(listen_port), .initial = "8080",
	    .min = 0, .max = 65535,
	    .help = "port to listen on; 0 for any that is free" },
	{ "log_level", CONF_TEXT, false, FIELD(log_level), .initial = "info",
	    .help = "error, warn, info or debug" },
	{ "max_batch_bytes", CONF_INT, false, FIELD(max_batch_bytes),
	    .initial = "8388608", .min = MIN_BATCH_BYTES, .max = 67108864,
	    .help = "largest body of POST /v1/events/batch" },
	{ "max_body_bytes_total", CONF_INT, false, FIELD(max_body_bytes_total),
	    .initial = "134217728", .min = 2 * MIN_BATCH_BYTES,
	    .max = 17179869184,
	    .help = "memory of large request bodies; beyond it they are 503" },
	{ "max_connections", CONF_INT, false, FIELD(max_connections),
	    .initial = "1000", .min = 1, .max = 100000,
	    .help = "connections at once; then idle ones make room" },
	{ "max_connections_per_address", CONF_INT, false,
	    FIELD(max_connections_per_address), .initial = "0", .min = 0,
	    .max = 100000, .help = "of one client; 0 for no such limit" },
	{ "max_queued_bytes", CONF_INT, false, FIELD(max_queued_bytes),
	    .initial = "134217728", .min = 1048576, .max = 17179869184,
	    .help = "memory of events that wait for the database" },
	{ "max_queued_events", CONF_INT, false, FIELD(max_queued_events),
	    .initial = "10000", .min = 1000, .max = 1000000,
	    .help = "events that wait for the database; more are 503" },
	{ "max_requests_per_connection", CONF_INT, false,
	    FIELD(max_requests_per_connection), .initial = "10000", .min = 1,
	    .max = 1000000000, .help = "then it is closed" },
	{ "max_requests_per_key", CONF_INT, false, FIELD(max_requests_per_key),
	    .initial = "0", .min = 0, .max = RATE_MAX,
	    .help = "a second; more are 429; 0 for no such limit" },
	{ "plain_http", CONF_BOOL, false, FIELD(plain_http), .initial = "false",
	    .help = "allow HTTP without TLS beyond loopback" },
	{ "secret_key_file", CONF_TEXT, false, FIELD(secret_key_file),
	    .initial = "", .help = "the keys that secrets are sealed under" },
	{ "statement_timeout", CONF_TIME, false, FIELD(statement_timeout),
	    .initial = "10s", .min = 100 * USEC_PER_MS,
	    .max = 600 * USEC_PER_SEC,
	    .help = "give up on a transaction after this" },
	{ "tls_certificate", CONF_TEXT, false, FIELD(tls_certificate),
	    .initial = "",
	    .help = "PEM, with those above it: speak TLS, and only TLS" },
	{ "tls_client_ca", CONF_TEXT, false, FIELD(tls_client_ca),
	    .initial = "",
	    .help = "PEM: every client needs a certificate from these" },
	{ "tls_key", CONF_TEXT, false, FIELD(tls_key), .initial = "",
	    .help = "PEM: the key of tls_certificate" },
	{ "writers", CONF_INT, false, FIELD(writers), .initial = "2", .min = 1,
	    .max = 16, .help = "database connections that write events" },
	{ .name = NULL },
};

struct program {
	struct ingest ingest;
	struct event *term, *interrupt, *hangup;
	int sessions, up; /* connections, and those that are up */
	bool was_ready;
	bool is_away; /* and that was said */
	bool has_failed;
};

/* The ingest is the program's first member. */
static struct program *
program_of(struct ingest *ingest)
{
	return (struct program *)(void *)ingest;
}

bool
ingest_is_ready(const struct ingest *ingest)
{
	return desk_is_up(ingest->desk) &&
	       writer_connections(ingest->writer) > 0;
}

static void
say_ready(struct program *program)
{
	const struct ingest *ingest = &program->ingest;
	char state[160], port[8];

	(void)snprintf(port, sizeof(port), "%d", server_port(ingest->server));
	(void)snprintf(state, sizeof(state),
	    "READY=1\nSTATUS=listening on %s:%s", ingest->conf->listen_address,
	    port);
	notify_send(state);
	log_info("ready", "address", ingest->conf->listen_address, "port", port,
	    NULL);
	program->was_ready = true;
}

struct session_conf
ingest_session_conf(const struct ingest *ingest, const char *application)
{
	return (struct session_conf){
		.database = ingest->conf->database,
		.role = ingest->conf->database_role,
		.application = application,
		.channel = "",
		.ring = &ingest->ring,
		.statement_timeout = ingest->conf->statement_timeout,
	};
}

void
ingest_session_up(struct ingest *ingest)
{
	struct program *program = program_of(ingest);

	if (++program->up < program->sessions)
		return;
	if (program->is_away)
		log_info("the database is back", NULL);
	program->is_away = false;
	if (!program->was_ready)
		say_ready(program);
}

void
ingest_session_down(struct ingest *ingest, const struct err *err)
{
	struct program *program = program_of(ingest);

	if (!program->is_away)
		log_warn("the database is away, trying again", "error",
		    err->text, NULL);
	program->is_away = true;
}

void
ingest_fail(struct ingest *ingest, const struct err *err)
{
	struct program *program = program_of(ingest);

	if (!program->has_failed)
		log_error("cannot go on", "error", err->text, NULL);
	program->has_failed = true;
	(void)event_base_loopbreak(ingest->loop);
}

static void
on_drained(void *arg)
{
	struct ingest *ingest = arg;

	(void)event_base_loopbreak(ingest->loop);
}

/* Every request in hand is answered, so the writer is empty when no connection
 * is left. */
static void
on_stop(evutil_socket_t signal, short what, void *arg)
{
	struct ingest *ingest = arg;

	(void)signal;
	(void)what;
	if (ingest->is_stopping) {
		log_warn("stopping at once", NULL);
		(void)event_base_loopbreak(ingest->loop);
		return;
	}
	ingest->is_stopping = true;
	notify_send("STOPPING=1");
	log_info("stopping: answering what is in hand", NULL);
	subscription_tests_stop(ingest->tests);
	server_drain(ingest->server, on_drained, ingest);
}

static void
on_reload(evutil_socket_t signal, short what, void *arg)
{
	(void)signal;
	(void)what;
	listener_reload(arg);
}

static int
open_signals(struct program *program, struct err *err)
{
	struct ingest *ingest = &program->ingest;

	program->term = evsignal_new(ingest->loop, SIGTERM, on_stop, ingest);
	program->interrupt =
	    evsignal_new(ingest->loop, SIGINT, on_stop, ingest);
	program->hangup = evsignal_new(ingest->loop, SIGHUP, on_reload, ingest);
	if (program->term == NULL || program->interrupt == NULL ||
	    program->hangup == NULL || event_add(program->term, NULL) != 0 ||
	    event_add(program->interrupt, NULL) != 0 ||
	    event_add(program->hangup, NULL) != 0)
		return err_set(err, ERR_NOMEM, "signals");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_errno(err, ERR_BROKEN, "signals");
	return 0;
}

static int
open_ingest(struct ingest *ingest, struct err *err)
{
	if (seal_ring_read(&ingest->ring, ingest->conf->secret_key_file, err) !=
		0 ||
	    auth_open(&ingest->auth, ingest, err) != 0 ||
	    subscription_tests_open(&ingest->tests, ingest, err) != 0 ||
	    desk_open(&ingest->desk, ingest, err) != 0 ||
	    writer_open(&ingest->writer, ingest, err) != 0)
		return -1;
	return listener_open(ingest, err);
}

/* Who is still in hand after a second signal is told by the writer, the desk
 * and the tests, so these come before the server. */
static void
close_program(struct program *program)
{
	struct ingest *ingest = &program->ingest;

	writer_close(ingest->writer);
	desk_close(ingest->desk);
	subscription_tests_close(ingest->tests);
	auth_close(ingest->auth);
	server_close(ingest->server);
	seal_ring_fini(&ingest->ring);
	if (program->term != NULL)
		event_free(program->term);
	if (program->interrupt != NULL)
		event_free(program->interrupt);
	if (program->hangup != NULL)
		event_free(program->hangup);
	if (ingest->loop != NULL)
		event_base_free(ingest->loop);
	libevent_global_shutdown();
}

static int
run(const struct ingest_conf *conf)
{
	struct program program = {
		.ingest = {
			.conf = conf,
			.policy = {
				.development = conf->development,
				.any_port = conf->any_port,
				.allow_hosts = conf->allow_hosts,
			},
		},
		.sessions = (int)conf->writers + 1,
	};
	struct ingest *ingest = &program.ingest;
	struct err err;
	int result = EXIT_FAILED;

	limits_raise_descriptors();
	if (conf->development)
		log_warn("development mode: http and loopback are open", NULL);
	ingest->loop = event_base_new();
	if (ingest->loop == NULL)
		(void)err_set(&err, ERR_NOMEM, "event loop");
	else if (open_signals(&program, &err) == 0 &&
		 open_ingest(ingest, &err) == 0) {
		if (event_base_dispatch(ingest->loop) >= 0 &&
		    !program.has_failed)
			result = EXIT_FINE;
		close_program(&program);
		return result;
	}
	log_error("cannot start", "error", err.text, NULL);
	close_program(&program);
	return result;
}

static int
check(const struct ingest_conf *conf, struct err *err)
{
	if (conf->secret_key_file[0] == '\0')
		return err_set(err, ERR_REFUSED,
		    "secret_key_file is not set: it names the file that "
		    "`postrider keygen` made");
	/* A buffer may be twice what is in it. */
	if (conf->max_body_bytes_total < 2 * conf->max_batch_bytes)
		return err_set(err, ERR_REFUSED,
		    "max_body_bytes_total: want at least twice "
		    "max_batch_bytes");
	/* Or the largest batch would never find room. */
	if (conf->max_queued_bytes < 4 * conf->max_batch_bytes + QUEUED_BESIDES)
		return err_set(err, ERR_REFUSED,
		    "max_queued_bytes: want at least four times "
		    "max_batch_bytes and 4 MiB, which a batch may take while "
		    "it waits");
	if (log_level_parse(conf->log_level) < 0)
		return err_set(err, ERR_REFUSED,
		    "log_level: want error, warn, info or debug");
	if (limits_check_descriptors(
		"max_connections", conf->max_connections, err) != 0)
		return -1;
	return listener_check(conf, err);
}

int
main(int argc, char *argv[])
{
	struct ingest_conf conf = { 0 };
	struct conf_args args = { 0 };
	struct err err;
	int result = EXIT_USAGE;

	if (conf_load(&conf, items, argc, argv, &args, &err) != 0) {
		(void)fprintf(stderr, "postrider-ingest: %s\n", err.text);
	} else if (args.help) {
		(void)printf("usage: postrider-ingest [-n] [--config FILE] "
			     "[--SETTING=VALUE ...]\n\n");
		conf_help(stdout, items);
		result = EXIT_FINE;
	} else if (args.version) {
		(void)printf("postrider-ingest " POSTRIDER_VERSION "\n");
		result = EXIT_FINE;
	} else if (check(&conf, &err) != 0) {
		(void)fprintf(stderr, "postrider-ingest: %s\n", err.text);
	} else if (args.check) {
		result = EXIT_FINE;
	} else {
		log_open(
		    "ingest", (enum log_level)log_level_parse(conf.log_level));
		result = run(&conf);
	}
	conf_fini(&conf, items);
	return result;
}
