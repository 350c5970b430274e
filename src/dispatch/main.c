/* dispatch: claims deliveries, sends them, and records what came of it. */

#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <openssl/rand.h>

#include "base/conf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/notify.h"
#include "dispatch/attempt.h"
#include "dispatch/claimer.h"
#include "dispatch/endpoints.h"
#include "dispatch/recorder.h"
#include "dispatch/worker.h"
#include "http/sender.h"
#include "store/chore.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Callbacks between two looks for what the database says. */
enum { REQUESTS_AT_ONCE = 16 };

/* After the grace, for what is left to be recorded. */
#define LAST_WAIT (5 * USEC_PER_SEC)

/* How old what is kept may become. */
#define MAX_AGE (USEC_PER_SEC * 3600 * 24 * 3650)

#define FIELD(name) .offset = offsetof(struct worker_conf, name)

static const struct conf_item items[] = {
	{ "allow_hosts", CONF_TEXT, false, FIELD(allow_hosts), .initial = "",
	    .help = "exact hosts, comma-separated, that may be internal" },
	{ "any_port", CONF_BOOL, false, FIELD(any_port), .initial = "false",
	    .help = "allow ports other than 443" },
	{ "backlog_old", CONF_TIME, false, FIELD(backlog_old), .initial = "1h",
	    .min = 0, .max = MAX_AGE,
	    .help = "tell of a backlog whose oldest waits so long; 0s: never" },
	{ "batch", CONF_INT, false, FIELD(batch), .initial = "500", .min = 1,
	    .max = 1000,
	    .help = "most lanes in one claim and outcomes in one record" },
	{ "ca_file", CONF_TEXT, false, FIELD(ca_file), .initial = "",
	    .help = "certificates to trust besides the system's" },
	{ "database", CONF_TEXT, true, FIELD(database), .initial = "",
	    .help = "PostgreSQL, as libpq takes it: host=... dbname=..." },
	{ "database_role", CONF_TEXT, false, FIELD(database_role),
	    .initial = "postrider_dispatch",
	    .help = "role to take on after connecting; empty for none" },
	{ "development", CONF_BOOL, false, FIELD(development),
	    .initial = "false",
	    .help = "allow http and loopback addresses: never in production" },
	{ "lease_margin", CONF_TIME, false, FIELD(lease_margin),
	    .initial = "10s", .min = 100 * USEC_PER_MS,
	    .max = 3600 * USEC_PER_SEC,
	    .help = "how long a lease outlives the longest attempt; a "
		    "transaction may take half of it" },
	{ "log_level", CONF_TEXT, false, FIELD(log_level), .initial = "info",
	    .help = "error, warn, info or debug" },
	{ "max_in_flight", CONF_INT, false, FIELD(max_in_flight),
	    .initial = "4000", .min = 1, .max = 100000,
	    .help = "most requests under way at once; a descriptor each" },
	{ "nameserver", CONF_TEXT, false, FIELD(nameserver), .initial = "",
	    .help = "address:port to ask instead of the system's" },
	{ "poll", CONF_TIME, false, FIELD(poll), .initial = "5s",
	    .min = 10 * USEC_PER_MS, .max = 3600 * USEC_PER_SEC,
	    .help = "look for work at least so often; covers a lost hint" },
	{ "retention_log", CONF_TIME, false, FIELD(retention_log),
	    .initial = "30d", .min = 0, .max = MAX_AGE,
	    .help = "keep deliveries and attempts so long; 0s: for ever" },
	{ "retention_payload", CONF_TIME, false, FIELD(retention_payload),
	    .initial = "7d", .min = 0, .max = MAX_AGE,
	    .help = "keep what was sent so long; 0s: for ever" },
	{ "retry_jitter", CONF_BOOL, false, FIELD(retry_jitter),
	    .initial = "true",
	    .help = "spread retries; off for reproducible runs" },
	{ "revoked_file", CONF_TEXT, false, FIELD(revoked_file), .initial = "",
	    .help = "SHA-256 fingerprints of certificates never to believe" },
	{ "secret_key_file", CONF_TEXT, false, FIELD(secret_key_file),
	    .initial = "", .help = "the keys that secrets are sealed under" },
	{ "shutdown_grace", CONF_TIME, false, FIELD(shutdown_grace),
	    .initial = "20s", .min = 0, .max = 3600 * USEC_PER_SEC,
	    .help = "how long requests may go on after SIGTERM" },
	{ .name = NULL },
};

struct program {
	struct worker worker;
	struct event *term, *interrupt, *grace;
	bool has_failed;
	bool is_last_wait;
};

int
worker_room(const struct worker *worker)
{
	int64_t room = worker->conf->max_in_flight - worker->held;

	return (int)(room < worker->conf->batch ? room : worker->conf->batch);
}

int
worker_room_max(const struct worker *worker)
{
	const struct worker_conf *conf = worker->conf;

	return (int)(conf->max_in_flight < conf->batch ? conf->max_in_flight
						       : conf->batch);
}

void
worker_freed(struct worker *worker)
{
	if (!worker->stopping) {
		if (worker->claimer != NULL)
			claimer_room(worker->claimer);
	} else if (worker->held == 0 && worker->claimer != NULL &&
		   claimer_is_idle(worker->claimer))
		(void)event_base_loopbreak(worker->loop);
}

void
worker_fail(struct worker *worker, const struct err *err)
{
	/* The worker is the program's first member. */
	struct program *program = (struct program *)(void *)worker;

	log_error("cannot go on", "error", err->text, NULL);
	program->has_failed = true;
	(void)event_base_loopbreak(worker->loop);
}

static void
on_grace(evutil_socket_t fd, short what, void *arg)
{
	struct program *program = arg;
	struct timeval wait = clock_timeval(LAST_WAIT);

	(void)fd;
	(void)what;
	if (program->is_last_wait) {
		log_warn(
		    "stopping with outcomes unrecorded: leases run out", NULL);
		(void)event_base_loopbreak(program->worker.loop);
		return;
	}
	program->is_last_wait = true;
	attempt_cancel_all(&program->worker);
	(void)event_add(program->grace, &wait);
}

static void
on_signal(evutil_socket_t signal, short what, void *arg)
{
	struct program *program = arg;
	struct worker *worker = &program->worker;
	struct timeval grace = clock_timeval(worker->conf->shutdown_grace);

	(void)signal;
	(void)what;
	if (worker->stopping) {
		log_warn("stopping at once", NULL);
		(void)event_base_loopbreak(worker->loop);
		return;
	}
	worker->stopping = true;
	notify_send("STOPPING=1");
	log_info("stopping: no new requests", NULL);
	(void)event_add(program->grace, &grace);
	claimer_stop(worker->claimer);
	worker_freed(worker);
}

static int
set_name(struct worker *worker, struct err *err)
{
	char host[64] = "";
	uint64_t random;

	if (gethostname(host, sizeof(host) - 1) != 0)
		return err_errno(err, ERR_BROKEN, "host name");
	if (RAND_bytes((unsigned char *)&random, sizeof(random)) != 1)
		return err_set(err, ERR_RETRY, "no randomness");
	/* Hosts and process ids repeat; the random part does not. */
	(void)snprintf(worker->name, sizeof(worker->name), "%s:%ld:%016" PRIx64,
	    host, (long)getpid(), random);
	return 0;
}

static int
open_signals(struct program *program, struct err *err)
{
	struct event_base *loop = program->worker.loop;

	program->term = evsignal_new(loop, SIGTERM, on_signal, program);
	program->interrupt = evsignal_new(loop, SIGINT, on_signal, program);
	program->grace = evtimer_new(loop, on_grace, program);
	if (program->term == NULL || program->interrupt == NULL ||
	    program->grace == NULL || event_add(program->term, NULL) != 0 ||
	    event_add(program->interrupt, NULL) != 0)
		return err_set(err, ERR_NOMEM, "signals");
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_errno(err, ERR_BROKEN, "signals");
	return 0;
}

static int
open_worker(struct worker *worker, struct err *err)
{
	const struct worker_conf *conf = worker->conf;

	if (seal_ring_read(&worker->ring, conf->secret_key_file, err) != 0 ||
	    set_name(worker, err) != 0 ||
	    endpoints_new(&worker->endpoints, err) != 0)
		return -1;
	if (sender_open(&worker->sender, worker->loop,
	        &(struct sender_conf){
	            .policy = {
	                .development = conf->development,
	                .any_port = conf->any_port,
	                .allow_hosts = conf->allow_hosts,
	            },
	            .max_in_flight = (int)conf->max_in_flight,
	            .ca_file = conf->ca_file,
	            .revoked_file = conf->revoked_file,
	            .nameserver = conf->nameserver,
	        },
	        err) != 0)
		return -1;
	if (recorder_open(&worker->recorder, worker, err) != 0)
		return -1;
	return claimer_open(&worker->claimer, worker, err);
}

/* In the order that frees users before what they use. */
static void
close_program(struct program *program)
{
	struct worker *worker = &program->worker;
	struct claimer *claimer = worker->claimer;

	worker->stopping = true;
	if (worker->recorder != NULL)
		attempt_cancel_all(worker);
	worker->claimer = NULL;
	claimer_close(claimer);
	recorder_close(worker->recorder);
	sender_close(worker->sender);
	endpoints_free(worker->endpoints);
	seal_ring_fini(&worker->ring);
	if (program->term != NULL)
		event_free(program->term);
	if (program->interrupt != NULL)
		event_free(program->interrupt);
	if (program->grace != NULL)
		event_free(program->grace);
	if (worker->loop != NULL)
		event_base_free(worker->loop);
}

/*
 * What the database says goes first, and is asked for after a few requests at the
 * most: else hundreds of answers would be read in one go and recorded in one go,
 * and whoever waits for the others would idle meanwhile.
 */
static struct event_base *
new_loop(void)
{
	struct event_config *config = event_config_new();
	struct event_base *loop = NULL;

	if (config == NULL)
		return NULL;
	if (event_config_set_max_dispatch_interval(
		config, NULL, REQUESTS_AT_ONCE, 1) == 0)
		loop = event_base_new_with_config(config);
	event_config_free(config);
	if (loop != NULL && event_base_priority_init(loop, 2) != 0) {
		event_base_free(loop);
		return NULL;
	}
	return loop;
}

static int
run(const struct worker_conf *conf)
{
	struct program program = { .worker.conf = conf };
	struct err err;
	int result = EXIT_FAILED;

	limits_raise_descriptors();
	if (conf->development)
		log_warn("development mode: http and loopback are open", NULL);
	program.worker.loop = new_loop();
	if (program.worker.loop == NULL)
		(void)err_set(&err, ERR_NOMEM, "event loop");
	else if (open_signals(&program, &err) == 0 &&
		 open_worker(&program.worker, &err) == 0) {
		if (event_base_dispatch(program.worker.loop) >= 0 &&
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
check_retention(const struct worker_conf *conf, struct err *err)
{
	usec_t payload = conf->retention_payload;
	usec_t log = conf->retention_log;

	if (payload != 0 && payload < CHORE_AGE_MIN)
		return err_set(err, ERR_REFUSED,
		    "retention_payload: want at least 1h, or 0s for ever");
	if (log != 0 && (payload == 0 || log < payload))
		return err_set(err, ERR_REFUSED,
		    "retention_log: want at least retention_payload, or 0s for "
		    "ever: a payload without its deliveries is of no use");
	return 0;
}

static int
check(const struct worker_conf *conf, struct err *err)
{
	if (conf->secret_key_file[0] == '\0')
		return err_set(err, ERR_REFUSED,
		    "secret_key_file is not set: it names the file that "
		    "`postrider keygen` made");
	if (log_level_parse(conf->log_level) < 0)
		return err_set(err, ERR_REFUSED,
		    "log_level: want error, warn, info or debug");
	if (check_retention(conf, err) != 0)
		return -1;
	/* Beside those in use, half as many that are kept for the next. */
	return limits_check_descriptors("max_in_flight",
	    conf->max_in_flight + conf->max_in_flight / 2, err);
}

int
main(int argc, char *argv[])
{
	struct worker_conf conf = { 0 };
	struct conf_args args = { 0 };
	struct err err;
	int result = EXIT_USAGE;

	if (conf_load(&conf, items, argc, argv, &args, &err) != 0)
		fprintf(stderr, "postrider-dispatch: %s\n", err.text);
	else if (args.help) {
		printf("usage: postrider-dispatch [-n] [--config FILE] "
		       "[--SETTING=VALUE ...]\n\n");
		conf_help(stdout, items);
		result = EXIT_FINE;
	} else if (args.version) {
		printf("postrider-dispatch " POSTRIDER_VERSION "\n");
		result = EXIT_FINE;
	} else if (check(&conf, &err) != 0)
		fprintf(stderr, "postrider-dispatch: %s\n", err.text);
	else if (args.check)
		result = EXIT_FINE;
	else {
		/* A claim that took longer would lease what may not be begun
		 * any more, and a record what has run out. */
		conf.statement_timeout = conf.lease_margin / 2;
		log_open("dispatch",
		    (enum log_level)log_level_parse(conf.log_level));
		result = run(&conf);
	}
	conf_fini(&conf, items);
	return result;
}
