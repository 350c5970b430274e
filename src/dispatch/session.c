#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/session.h"
#include "dispatch/worker.h"
#include "pg/pg.h"
#include "store/schema.h"
#include "store/stmt.h"

struct session {
	struct worker *worker;
	struct pg *pg;
	const char *purpose;
	char application[64];
	bool is_known; /* the schema, on this connection */
	bool was_known; /* on some connection: later trouble will pass */
	bool is_down; /* and that was said */
	usec_t said_at;
	session_fn *ready;
	session_fn *notified;
	void *arg;
};

/* Every statement has its index; a plan by chance of fresh statistics must
 * never scan a queue. */
static const struct pg_setting settings[] = {
	{ "enable_seqscan", "off" },
	{ "enable_bitmapscan", "off" },
	{ "enable_hashjoin", "off" },
	{ "enable_mergejoin", "off" },
	{ "plan_cache_mode", "force_generic_plan" },
	{ "jit", "off" },
	{ NULL, NULL },
};

static void
on_schema(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct session *session = arg;
	struct err wrong;

	if (err != NULL) {
		session_trouble(session, err);
		return; /* the connection comes again by itself */
	}
	if (schema_check(rows[0], &wrong) != 0) {
		worker_fail(session->worker, &wrong);
		return;
	}
	if (session->is_down)
		log_info("database is back", "for", session->purpose, NULL);
	session->is_down = false;
	session->is_known = true;
	session->was_known = true;
	session->ready(session->arg);
}

static void
on_ready(void *arg)
{
	struct session *session = arg;
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	session->is_known = false;
	if (batch == NULL) {
		(void)err_set(&err, ERR_NOMEM, "schema check");
		worker_fail(session->worker, &err);
		return;
	}
	pg_call(batch, STMT_SCHEMA_VERSION);
	if (pg_submit(session->pg, batch, on_schema, session, &err) != 0)
		session_trouble(session, &err);
}

static void
on_down(void *arg, const struct err *err)
{
	struct session *session = arg;

	session->is_known = false;
	if (err->code == ERR_BROKEN && !session->was_known) {
		struct err why = *err;

		schema_explain(&why);
		worker_fail(session->worker, &why);
		return;
	}
	if (!session->is_down)
		log_warn("database is away, trying again", "for",
		    session->purpose, "error", err->text, NULL);
	session->is_down = true;
}

static void
on_notified(void *arg)
{
	struct session *session = arg;

	if (session->is_known && session->notified != NULL)
		session->notified(session->arg);
}

int
session_open(struct session **out, struct worker *worker, const char *purpose,
    session_fn *ready, session_fn *notified, void *arg, struct err *err)
{
	const struct worker_conf *conf = worker->conf;
	struct session *session = calloc(1, sizeof(*session));

	if (session == NULL)
		return err_set(err, ERR_NOMEM, "session");
	*session = (struct session){
		.worker = worker,
		.purpose = purpose,
		.ready = ready,
		.notified = notified,
		.arg = arg,
	};
	(void)snprintf(session->application, sizeof(session->application),
	    "postrider-dispatch %s", purpose);
	if (pg_open(&session->pg, worker->loop,
		&(struct pg_conf){
		    .conninfo = conf->database,
		    .application = session->application,
		    .role = conf->database_role,
		    .channel = notified == NULL ? "" : "postrider_work",
		    .statements = stmt_table,
		    .settings = settings,
		    .statement_timeout = conf->statement_timeout,
		    .reconnect_min = 100 * USEC_PER_MS,
		    .reconnect_max = 5 * USEC_PER_SEC,
		},
		&(struct pg_events){
		    .ready = on_ready,
		    .down = on_down,
		    .notified = on_notified,
		},
		session, err) != 0) {
		free(session);
		return -1;
	}
	*out = session;
	return 0;
}

void
session_close(struct session *session)
{
	if (session == NULL)
		return;
	pg_close(session->pg);
	free(session);
}

bool
session_is_ready(const struct session *session)
{
	return session->is_known && pg_is_ready(session->pg);
}

struct pg *
session_pg(struct session *session)
{
	return session->pg;
}

void
session_trouble(struct session *session, const struct err *err)
{
	usec_t now = clock_now();

	if (session->is_down ||
	    (session->said_at > 0 && now - session->said_at < USEC_PER_SEC))
		return;
	session->said_at = now;
	log_warn("a transaction failed", "for", session->purpose, "error",
	    err->text, NULL);
}
