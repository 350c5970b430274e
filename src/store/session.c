#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "store/schema.h"
#include "store/secret.h"
#include "store/session.h"
#include "store/stmt.h"

#define RECONNECT_MIN (100 * USEC_PER_MS)
#define RECONNECT_MAX (2 * USEC_PER_SEC)

struct session {
	struct pg *pg;
	char application[64];
	bool is_up;
	bool was_up; /* at some time: later trouble will pass */
	const struct seal_ring *ring;
	struct session_events events;
	void *arg;
};

/* Every statement has its index: a plan by chance of fresh statistics must
 * never scan a table that grows.  A bitmap scan would not mark dead entries. */
static const struct pg_setting settings[] = {
	{ "enable_seqscan", "off" },
	{ "enable_bitmapscan", "off" },
	{ "enable_hashjoin", "off" },
	{ "enable_mergejoin", "off" },
	{ "plan_cache_mode", "force_generic_plan" },
	{ "jit", "off" },
	{ NULL, NULL },
};

static void on_ready(void *arg);

/* Keys that came later are another's to miss: what is sent is asked one by
 * one. */
static bool
asks_keys(const struct session *session)
{
	return session->ring != NULL && !session->was_up;
}

/* The answers to the questions of a connection that has come. */
enum { READY_SCHEMA, READY_KEYS };

static int
check(
    const struct session *session, struct pg_rows *const *rows, struct err *err)
{
	if (schema_check(rows[READY_SCHEMA], err) != 0)
		return -1;
	return asks_keys(session) ? secret_check_keys(rows[READY_KEYS], err)
	                          : 0;
}

static void
on_answer(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct session *session = arg;
	struct err wrong;

	if (err != NULL) {
		if (!pg_is_ready(session->pg))
			return; /* it comes again, and asks again */
		if (err->code == ERR_RETRY) {
			on_ready(session);
			return;
		}
		wrong = *err;
		schema_explain(&wrong);
		session->events.failed(session->arg, &wrong);
		return;
	}
	if (check(session, rows, &wrong) != 0) {
		session->events.failed(session->arg, &wrong);
		return;
	}
	session->is_up = true;
	session->was_up = true;
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
		session->events.failed(session->arg, &err);
		return;
	}
	pg_call(batch, STMT_SCHEMA_VERSION);
	if (asks_keys(session))
		secret_ask_keys(batch, session->ring);
	if (pg_submit(session->pg, batch, on_answer, session, &err) != 0)
		session->events.failed(session->arg, &err);
}

static void
on_down(void *arg, const struct err *err)
{
	struct session *session = arg;
	struct err why = *err;

	session->is_up = false;
	if (err->code == ERR_BROKEN && !session->was_up) {
		schema_explain(&why);
		session->events.failed(session->arg, &why);
		return;
	}
	session->events.down(session->arg, err);
}

static void
on_notified(void *arg, bool has_text)
{
	struct session *session = arg;

	if (session->is_up)
		session->events.notified(session->arg, has_text);
}

int
session_open(struct session **out, struct event_base *loop,
    const struct session_conf *conf, const struct session_events *events,
    void *arg, struct err *err)
{
	const struct pg_events pg_events = {
		.ready = on_ready,
		.down = on_down,
		.notified = events->notified == NULL ? NULL : on_notified,
	};
	struct session *session = calloc(1, sizeof(*session));

	if (session == NULL)
		return err_set(err, ERR_NOMEM, "session");
	session->events = *events;
	session->arg = arg;
	session->ring = conf->ring;
	(void)snprintf(session->application, sizeof(session->application), "%s",
	    conf->application);
	if (pg_open(&session->pg, loop,
		&(struct pg_conf){
		    .conninfo = conf->database,
		    .application = session->application,
		    .role = conf->role,
		    .channel = conf->channel,
		    .statements = stmt_table,
		    .settings = settings,
		    .statement_timeout = conf->statement_timeout,
		    .reconnect_min = RECONNECT_MIN,
		    .reconnect_max = RECONNECT_MAX,
		},
		&pg_events, session, err) != 0) {
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

bool
session_is_ready(const struct session *session)
{
	return session->is_up && pg_is_ready(session->pg);
}

int
session_submit(struct session *session, struct pg_batch *batch,
    pg_done_fn *done, void *arg, struct err *err)
{
	return pg_submit(session->pg, batch, done, arg, err);
}
