/*
 * pg_world: a connection of the pg room, the proxy it goes through, and what
 * its owner was told.  POSTRIDER_TEST_PG is the conninfo of a database that may
 * be used freely; without it tests are skipped.
 */

#ifndef PG_WORLD_H
#define PG_WORLD_H

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "pg/script.h"
#include "proxy.h"

enum statement {
	ECHO,
	SPLIT,
	ADD,
	ADD_LATER,
	COUNT,
	NAP,
	PARSE,
	BACKEND,
	SHOW,
	BYTES,
	MEASURE,
	LIST,
};

#define STATEMENT(name, text)                                                  \
	{                                                                      \
		name, text, sizeof(text) - 1                                   \
	}

static const struct embedded statements[] = {
	STATEMENT("echo",
	    "SELECT $1::bool AS flag, $2::int AS small, $3::bigint AS big,"
	    " $4::text AS word, $5::bytea AS raw, $6::uuid AS id"),
	STATEMENT("split",
	    "SELECT coalesce(sum(n), 0)::bigint AS sum, count(*) AS all"
	    " FROM unnest($1::bigint[]) AS n"),
	STATEMENT("add", "INSERT INTO thing (id) VALUES ($1)"),
	STATEMENT("add_later", "INSERT INTO later (id) VALUES ($1)"),
	STATEMENT("count",
	    "SELECT (SELECT count(*) FROM thing) + (SELECT count(*) FROM later)"
	    " AS n"),
	STATEMENT("nap", "SELECT pg_sleep($1::int / 1000.0)::text AS nap"),
	STATEMENT("parse", "SELECT ($1::text)::int AS n"),
	STATEMENT("backend", "SELECT pg_backend_pid() AS pid"),
	STATEMENT("show", "SELECT current_setting($1::text) AS value"),
	STATEMENT("bytes", "SELECT $1::bytea AS raw"),
	STATEMENT("measure", "SELECT length($1::bytea) AS n"),
	STATEMENT("list", "SELECT * FROM thing"),
	{ NULL, NULL, 0 },
};

static const struct pg_setting settings[] = {
	{ "enable_seqscan", "off" },
	{ "plan_cache_mode", "force_generic_plan" },
	{ NULL, NULL },
};

struct world {
	struct event_base *loop;
	struct script *admin;
	struct proxy proxy;
	char conninfo[256];
	struct pg_conf conf;
	struct pg *pg;

	int readies, downs, notes, dones;
	bool has_text; /* of the last notes */
	struct err down; /* the last */
	bool failed; /* how the last batch ended */
	struct err err;
	bool closes; /* in the next callback */
};

static inline void
close_if_asked(struct world *w)
{
	if (!w->closes)
		return;
	pg_close(w->pg);
	w->pg = NULL;
}

static inline void
on_ready(void *arg)
{
	struct world *w = arg;

	w->readies++;
	close_if_asked(w);
}

static inline void
on_down(void *arg, const struct err *err)
{
	struct world *w = arg;

	w->downs++;
	w->down = *err;
	close_if_asked(w);
}

static inline void
on_note(void *arg, bool has_text)
{
	struct world *w = arg;

	w->notes++;
	w->has_text = has_text;
	close_if_asked(w);
}

static inline void
on_done(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct world *w = arg;

	w->dones++;
	w->failed = err != NULL;
	w->err = err != NULL ? *err : (struct err){ 0 };
	assert_true((rows == NULL) == w->failed);
	close_if_asked(w);
}

static const struct pg_events events = { on_ready, on_down, on_note };

/* Turn the loop until `*counter` has passed `value`. */
static inline void
until_more(struct world *w, const int *counter, int value, const char *what)
{
	usec_t end = clock_now() + 20 * USEC_PER_SEC;

	while (*counter <= value) {
		if (clock_now() > end)
			fail_msg("waited in vain: %s", what);
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	}
}

static inline void
admin_run(struct world *w, const char *sql)
{
	struct err err;

	if (script_run(w->admin, sql, &err) != 0)
		fail_msg("%s", err.text);
}

static inline void
keep_column(void *arg, const char *const *columns)
{
	(void)snprintf(arg, 128, "%s", columns[0]);
}

static inline void
admin_ask(struct world *w, const char *sql, char answer[128])
{
	struct err err;

	answer[0] = '\0';
	if (script_query(w->admin, sql, 0, NULL, keep_column, answer, &err) !=
	    0)
		fail_msg("%s", err.text);
}

static inline int
things(struct world *w)
{
	char answer[128];

	admin_ask(w, "SELECT count(*) FROM thing", answer);
	return (int)strtol(answer, NULL, 10);
}

/* Whether this backend waits for `event`, as pg_stat_activity calls it. */
static inline bool
waits_for(struct world *w, int pid, const char *event)
{
	char sql[128], answer[128];

	(void)snprintf(sql, sizeof(sql),
	    "SELECT coalesce(wait_event, '') FROM pg_stat_activity"
	    " WHERE pid = %d",
	    pid);
	admin_ask(w, sql, answer);
	return strcmp(answer, event) == 0;
}

static inline void
connect_world(struct world *w)
{
	struct err err;

	assert_int_equal(
	    0, pg_open(&w->pg, w->loop, &w->conf, &events, w, &err));
	if (pg_wait_ready(w->pg, 20 * USEC_PER_SEC, &err) != 0)
		fail_msg("%s", err.text);
}

/* An empty database, and a proxy before it that nobody has called yet. */
static inline int
set_up_world(void **state)
{
	const char *conninfo = getenv("POSTRIDER_TEST_PG");
	char server[128], name[128], user[128];
	struct world *w;
	struct err err;

	*state = NULL;
	if (conninfo == NULL)
		return 0;
	*state = w = calloc(1, sizeof(*w));
	w->loop = event_base_new();
	if (script_open(&w->admin, conninfo, "test_pg", &err) != 0)
		fail_msg("%s", err.text);
	admin_run(w, "SET client_min_messages = error;"
		     "DROP TABLE IF EXISTS thing, thing_away, later;"
		     "CREATE TABLE thing (id int PRIMARY KEY);"
		     "CREATE TABLE later (id int UNIQUE DEFERRABLE"
		     " INITIALLY DEFERRED)");
	admin_ask(w,
	    "SELECT split_part(current_setting('unix_socket_directories'),"
	    " ',', 1) || '/.s.PGSQL.' || current_setting('port')",
	    server);
	admin_ask(w, "SELECT current_database()", name);
	admin_ask(w, "SELECT session_user", user);
	assert_int_equal(0, proxy_open(&w->proxy, w->loop, server));
	(void)snprintf(w->conninfo, sizeof(w->conninfo),
	    "host=%s port=5432 dbname=%.60s user=%.60s", w->proxy.folder, name,
	    user);
	w->conf = (struct pg_conf){
		.conninfo = w->conninfo,
		.application = "test_pg",
		.role = "",
		.channel = "odd \"channel\"",
		.statements = statements,
		.settings = settings,
		.statement_timeout = 5 * USEC_PER_SEC,
		.reconnect_min = 5 * USEC_PER_MS,
		.reconnect_max = 50 * USEC_PER_MS,
	};
	return 0;
}

static inline int
tear_down_world(void **state)
{
	struct world *w = *state;

	if (w == NULL)
		return 0;
	pg_close(w->pg);
	proxy_close(&w->proxy);
	script_close(w->admin);
	event_base_free(w->loop);
	free(w);
	return 0;
}

/* The test's world, where there is a server. */
static inline struct world *
world(void **state)
{
	if (*state == NULL) {
		print_message("POSTRIDER_TEST_PG is not set\n");
		skip();
	}
	return *state;
}

static inline struct world *
connected(void **state)
{
	struct world *w = world(state);

	connect_world(w);
	return w;
}

static inline void
submit(struct world *w, struct pg_batch *batch)
{
	struct err err;

	if (pg_submit(w->pg, batch, on_done, w, &err) != 0)
		fail_msg("%s", err.text);
}

/* Submit, and wait for its end. */
static inline void
settle(struct world *w, struct pg_batch *batch)
{
	int dones = w->dones;

	submit(w, batch);
	until_more(w, &w->dones, dones, "the batch ends");
}

static inline void
call(struct pg_batch *batch, enum statement statement, int value)
{
	pg_call(batch, (int)statement);
	pg_int(batch, value);
}

/* A transaction that adds `id`, after a nap. */
static inline struct pg_batch *
add(int nap_ms, int id)
{
	struct pg_batch *batch = pg_batch_new();

	if (nap_ms > 0)
		call(batch, NAP, nap_ms);
	call(batch, ADD, id);
	return batch;
}

static inline int
backend(struct world *w)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;
	int pid;

	pg_call(batch, BACKEND);
	assert_int_equal(0, pg_run(w->pg, batch, &rows, &err));
	pid = pg_get_int(rows[0], 0, pg_column(rows[0], "pid"));
	pg_rows_free(rows);
	return pid;
}

static inline void
terminate(struct world *w, int pid)
{
	char sql[128];

	(void)snprintf(
	    sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", pid);
	admin_run(w, sql);
}

#define WORLD_TEST(name)                                                       \
	cmocka_unit_test_setup_teardown(name, set_up_world, tear_down_world)

#endif
