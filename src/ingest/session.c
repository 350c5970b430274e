#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "ingest.h"
#include "session.h"
#include "store/schema.h"
#include "store/stmt.h"

#define RECONNECT_MIN (100 * USEC_PER_MS)
#define RECONNECT_MAX (2 * USEC_PER_SEC)

struct session {
	struct ingest *ingest;
	struct pg *pg;
	char application[64];
	bool is_up; /* connected, and the schema is known */
	struct session_events events;
	void *arg;
};

/* Every statement has its index: a plan by chance of fresh statistics must
 * never scan a table that grows. */
static const struct pg_setting settings[] = {
	{ "enable_seqscan", "off" },
	{ "enable_hashjoin", "off" },
	{ "enable_mergejoin", "off" },
	{ "plan_cache_mode", "force_generic_plan" },
	{ "jit", "off" },
	{ NULL, NULL },
};

static void on_ready(void *arg);

static void
on_schema(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct session *session = arg;
	struct err wrong;

	if (err != NULL) {
		if (!pg_is_ready(session->pg))
			return; /* it comes again, and asks again */
		if (err->code == ERR_RETRY)
			on_ready(session);
		else
			ingest_fail(session->ingest, err);
		return;
	}
	if (schema_check(rows[0], &wrong) != 0) {
		ingest_fail(session->ingest, &wrong);
		return;
	}
	session->is_up = true;
	ingest_session_up(session->ingest);
	session->events.ready(session->arg);
}

static void
on_ready(void *arg)
{
	struct session *session = arg;
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		(void)err_set(&err, ERR_NOMEM, "schema check");
		ingest_fail(session->ingest, &err);
		return;
	}
	pg_call(batch, STMT_SCHEMA_VERSION);
	if (pg_submit(session->pg, batch, on_schema, session, &err) != 0)
		ingest_fail(session->ingest, &err);
}

static void
on_down(void *arg, const struct err *err)
{
	struct session *session = arg;
	bool was_up = session->is_up;
	struct err why = *err;

	session->is_up = false;
	if (err->code == ERR_BROKEN && !was_up) {
		schema_explain(&why);
		ingest_fail(session->ingest, &why);
		return;
	}
	ingest_session_down(session->ingest, err);
	if (was_up)
		session->events.down(session->arg);
}

int
session_open(struct session **out, struct ingest *ingest, const char *purpose,
    const struct session_events *events, void *arg, struct err *err)
{
	const struct pg_events pg_events = { .ready = on_ready,
		.down = on_down };
	struct session *session = calloc(1, sizeof(*session));
	struct pg_conf conf;

	if (session == NULL)
		return err_set(err, ERR_NOMEM, "session");
	session->ingest = ingest;
	session->events = *events;
	session->arg = arg;
	(void)snprintf(session->application, sizeof(session->application),
	    "postrider-ingest %s", purpose);
	conf = (struct pg_conf){
		.conninfo = ingest->conf->database,
		.application = session->application,
		.role = ingest->conf->database_role,
		.channel = "",
		.statements = stmt_table,
		.settings = settings,
		.statement_timeout = ingest->conf->statement_timeout,
		.reconnect_min = RECONNECT_MIN,
		.reconnect_max = RECONNECT_MAX,
	};
	if (pg_open(&session->pg, ingest->loop, &conf, &pg_events, session,
		err) != 0) {
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
session_is_up(const struct session *session)
{
	return session->is_up;
}

int
session_submit(struct session *session, struct pg_batch *batch,
    pg_done_fn *done, void *arg, struct err *err)
{
	return pg_submit(session->pg, batch, done, arg, err);
}
