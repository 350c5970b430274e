#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/notify.h"
#include "history.h"
#include "hook.h"
#include "http/server.h"
#include "pg/script.h"
#include "receipts.h"
#include "recorder.h"
#include "secrets.h"
#include "stmt.h"

enum { EXIT_USAGE = 2 };

enum {
	MAX_HEAD = 32 * 1024,
	MAX_BODY = 1024 * 1024,
	MAX_BUFFERED = 1024 * 1024 * 1024,
	MAX_CONNECTIONS = 16384, /* as far as descriptors allow */
	OTHER_FILES = 64, /* that are no clients' */
};

struct settings {
	char *database;
	char *listen_address;
	int64_t listen_port;
	char *log_level;
	char *secrets_file;
	usec_t tolerance;
};

#define FIELD(field) .name = #field, .offset = offsetof(struct settings, field)

static const struct conf_item items[] = {
	{ FIELD(database), .kind = CONF_TEXT, .is_secret = true,
	    .initial = "dbname=postrider_receiver",
	    .help = "the receiver's own database, as libpq takes it" },
	{ FIELD(listen_address), .kind = CONF_TEXT, .initial = "127.0.0.1",
	    .help = "address to listen on" },
	{ FIELD(listen_port), .kind = CONF_INT, .initial = "0", .min = 0,
	    .max = 65535, .help = "port to listen on; 0 for any free one" },
	{ FIELD(log_level), .kind = CONF_TEXT, .initial = "info",
	    .help = "error, warn, info or debug" },
	{ FIELD(secrets_file), .kind = CONF_TEXT, .initial = "",
	    .help = "lines `PATH SECRET`; read again when it changes" },
	{ FIELD(tolerance), .kind = CONF_TIME, .initial = "5m",
	    .min = USEC_PER_SEC, .max = 86400 * USEC_PER_SEC,
	    .help = "how far a signature's time may be from now" },
	{ .name = NULL },
};

struct program {
	struct settings settings;
	struct event_base *loop;
	struct event *term, *interrupt;
	struct history *history;
	struct recorder *recorder;
	struct receipts *receipts;
	struct secrets *secrets;
	struct hooks *hooks;
	struct server *server; /* once receipts can be kept */
	bool is_up, is_draining;
	int status; /* to exit with */
};

static void
stop(struct program *program, int status)
{
	program->status = status;
	(void)event_base_loopbreak(program->loop);
}

static void
take_health(struct program *program, struct request *request)
{
	if (recorder_is_ready(program->recorder))
		request_reply(request, 200, "text/plain", "ok\n", 3);
	else
		request_reply(request, 503, "text/plain", "no database\n", 12);
}

static void
on_request(void *arg, struct request *request)
{
	struct program *program = arg;
	const char *path = request_path(request);

	if (strcmp(path, "/healthz") == 0)
		take_health(program, request);
	else if (strncmp(path, "/receipts", 9) == 0)
		receipts_take(program->receipts, request);
	else
		hooks_take(program->hooks, request);
}

static void
on_error(void *arg, struct request *request, int status, const char *detail)
{
	(void)arg;
	request_reply(request, status, "text/plain", detail, strlen(detail));
}

/* As many clients as there can be descriptors for. */
static int
max_connections(void)
{
	struct rlimit limit;
	const rlim_t spare = OTHER_FILES, wanted = MAX_CONNECTIONS + spare;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return OTHER_FILES;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur =
		    limit.rlim_max < wanted ? limit.rlim_max : wanted;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted)
		return MAX_CONNECTIONS;
	return limit.rlim_cur > 2 * spare ? (int)(limit.rlim_cur - spare)
	                                  : OTHER_FILES;
}

static int
listen_now(struct program *program, struct err *err)
{
	const struct server_conf conf = {
		.address = program->settings.listen_address,
		.port = (uint16_t)program->settings.listen_port,
		.max_head = MAX_HEAD,
		.max_body = MAX_BODY,
		.max_buffered = MAX_BUFFERED,
		.max_connections = max_connections(),
		.max_per_address = INT_MAX,
		.max_requests = INT_MAX,
		.head_timeout = 10 * USEC_PER_SEC,
		.body_timeout = 30 * USEC_PER_SEC,
		.idle_timeout = 120 * USEC_PER_SEC,
		.write_timeout = 60 * USEC_PER_SEC,
	};
	const struct server_events events = { .handler = on_request,
		.error = on_error };
	char state[256], place[128];

	if (server_open(&program->server, program->loop, &conf, &events,
		program, err) != 0)
		return -1;
	(void)snprintf(place, sizeof(place), "%s:%d", conf.address,
	    server_port(program->server));
	(void)snprintf(
	    state, sizeof(state), "READY=1\nSTATUS=listening on %s", place);
	notify_send(state);
	log_info("listening", "address", place, NULL);
	return 0;
}

static void
on_up(void *arg)
{
	struct program *program = arg;
	struct err err;

	program->is_up = true;
	if (program->server != NULL) {
		log_info("receipts are kept again", NULL);
	} else if (!program->is_draining && listen_now(program, &err) != 0) {
		log_error("cannot start", "reason", err.text, NULL);
		stop(program, EXIT_FAILURE);
	}
}

static void
on_down(void *arg, const struct err *err)
{
	struct program *program = arg;

	if (program->server == NULL && err->code == ERR_BROKEN) {
		log_error("cannot start", "reason", err->text, NULL);
		stop(program, EXIT_FAILURE);
	} else if (program->is_up) {
		log_warn("receipts cannot be kept", "reason", err->text, NULL);
	}
	program->is_up = false;
}

static void
on_written(void *arg)
{
	stop(arg, EXIT_SUCCESS);
}

static void
on_drained(void *arg)
{
	struct program *program = arg;

	recorder_drain(program->recorder, on_written, program);
}

static void
on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct program *program = arg;

	(void)fd;
	(void)what;
	if (program->is_draining || program->server == NULL) {
		stop(program, EXIT_SUCCESS);
		return;
	}
	program->is_draining = true;
	notify_send("STOPPING=1\nSTATUS=draining");
	log_info("draining", NULL);
	server_drain(program->server, on_drained, program);
	hooks_drain(program->hooks);
}

static int
make_tables(const char *conninfo, struct err *err)
{
	struct script *script;
	int result;

	if (script_open(&script, conninfo, "postrider-receiver", err) != 0)
		return -1;
	result = script_run(script, schema_table[0].text, err);
	script_close(script);
	return result;
}

static int
open_loop(struct program *program, struct err *err)
{
	program->loop = event_base_new();
	if (program->loop == NULL)
		return err_set(err, ERR_NOMEM, "loop");
	program->term =
	    evsignal_new(program->loop, SIGTERM, on_signal, program);
	program->interrupt =
	    evsignal_new(program->loop, SIGINT, on_signal, program);
	if (program->term == NULL || program->interrupt == NULL ||
	    event_add(program->term, NULL) != 0 ||
	    event_add(program->interrupt, NULL) != 0)
		return err_set(err, ERR_NOMEM, "signals");
	return 0;
}

static int
open_keeping(struct program *program, struct err *err)
{
	const struct settings *settings = &program->settings;
	const struct recorder_conf conf = {
		.conninfo = settings->database,
		.history = program->history,
		.events = { .ready = on_up, .down = on_down },
		.arg = program,
	};

	if (recorder_open(&program->recorder, program->loop, &conf, err) != 0)
		return -1;
	return receipts_open(&program->receipts, program->loop,
	    settings->database, program->recorder, err);
}

static int
open_hooks(struct program *program, struct err *err)
{
	const struct hooks_conf conf = {
		.history = program->history,
		.recorder = program->recorder,
		.secrets = program->secrets,
		.tolerance = program->settings.tolerance,
	};

	return hooks_open(&program->hooks, program->loop, &conf, err);
}

/* The server follows when receipts can be kept: see on_up(). */
static int
program_open(struct program *program, struct err *err)
{
	const struct settings *settings = &program->settings;

	if (make_tables(settings->database, err) != 0 ||
	    open_loop(program, err) != 0 ||
	    history_new(&program->history, err) != 0 ||
	    secrets_open(&program->secrets, settings->secrets_file, err) != 0 ||
	    open_keeping(program, err) != 0)
		return -1;
	return open_hooks(program, err);
}

static void
program_close(struct program *program)
{
	server_close(program->server);
	receipts_close(program->receipts);
	recorder_close(program->recorder);
	hooks_close(program->hooks);
	secrets_close(program->secrets);
	history_free(program->history);
	if (program->term != NULL)
		event_free(program->term);
	if (program->interrupt != NULL)
		event_free(program->interrupt);
	if (program->loop != NULL)
		event_base_free(program->loop);
	libevent_global_shutdown();
}

static int
run(struct program *program)
{
	struct err err;

	log_open("receiver",
	    (enum log_level)log_level_parse(program->settings.log_level));
	program->status = EXIT_FAILURE;
	if (program_open(program, &err) != 0) {
		log_error("cannot start", "reason", err.text, NULL);
	} else if (event_base_dispatch(program->loop) != 0) {
		log_error("the loop has ended", NULL);
		program->status = EXIT_FAILURE;
	}
	program_close(program);
	return program->status;
}

static int
check(const struct settings *settings, struct err *err)
{
	if (log_level_parse(settings->log_level) >= 0)
		return 0;
	return err_set(
	    err, ERR_REFUSED, "log_level: want error, warn, info or debug");
}

static void
print_help(void)
{
	(void)printf(
	    "usage: postrider-receiver [-n] [--config FILE] "
	    "[--SETTING=VALUE...]\n\n"
	    "The fault-injecting receiver of webhooks.  Its endpoints:\n"
	    "/normal /response-loss /rejected /flaky?fail=N "
	    "/slow?ms=M /never /endless\n"
	    "/redirect /throttle /gone /status/NNN; "
	    "then /receipts tells what came.\n\n");
	conf_help(stdout, items);
}

int
main(int argc, char *argv[])
{
	struct program program = { .status = EXIT_SUCCESS };
	struct conf_args args;
	struct err err;

	if (conf_load(&program.settings, items, argc, argv, &args, &err) != 0) {
		(void)fprintf(stderr, "postrider-receiver: %s\n", err.text);
		program.status = EXIT_USAGE;
	} else if (args.help) {
		print_help();
	} else if (args.version) {
		(void)puts("postrider-receiver " POSTRIDER_VERSION);
	} else if (check(&program.settings, &err) != 0) {
		(void)fprintf(stderr, "postrider-receiver: %s\n", err.text);
		program.status = EXIT_USAGE;
	} else if (!args.check) {
		program.status = run(&program);
	}
	conf_fini(&program.settings, items);
	return program.status;
}
