#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "pg/pg.h"
#include "session.h"
#include "store/audit.h"
#include "store/schema.h"
#include "store/stmt.h"

static const usec_t patience = 10 * USEC_PER_SEC;

enum { SOURCE_SIZE = 256 };

/* Who runs this, on which host: for the audit. */
static void
print_source(char out[SOURCE_SIZE])
{
	struct passwd entry, *user = NULL;
	char texts[4096]; /* without room for its texts a user has no name */
	char host[128] = "";

	if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0')
		(void)snprintf(host, sizeof(host), "somewhere");
	if (getpwuid_r(getuid(), &entry, texts, sizeof(texts), &user) == 0 &&
	    user != NULL)
		(void)snprintf(
		    out, SOURCE_SIZE, "%.100s@%s", user->pw_name, host);
	else
		(void)snprintf(
		    out, SOURCE_SIZE, "%lu@%s", (unsigned long)getuid(), host);
}

/* Check that the schema is ours, and say who we are. */
static int
begin(struct pg *pg, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	char source[SOURCE_SIZE];
	int status;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "schema");
	pg_call(batch, STMT_SCHEMA_VERSION);
	print_source(source);
	audit_from_session(batch, source);
	if (pg_run(pg, batch, &rows, err) != 0) {
		schema_explain(err);
		return -1;
	}
	status = schema_check(rows[0], err);
	pg_rows_free(rows);
	return status;
}

int
session_open(
    struct session *session, const struct settings *settings, struct err *err)
{
	const struct pg_events events = { 0 };
	const struct pg_conf conf = {
		.conninfo = settings->database,
		.application = "postrider",
		.role = settings->database_role,
		.channel = "",
		.statements = stmt_table,
		.statement_timeout = patience,
		.reconnect_min = USEC_PER_SEC / 10,
		.reconnect_max = USEC_PER_SEC,
	};

	*session = (struct session){ 0 };
	session->loop = event_base_new();
	if (session->loop == NULL)
		return err_set(err, ERR_NOMEM, "event loop");
	if (pg_open(&session->pg, session->loop, &conf, &events, NULL, err) !=
		0 ||
	    pg_wait_ready(session->pg, patience, err) != 0) {
		schema_explain(err);
		return err_wrap(err, "database");
	}
	return begin(session->pg, err);
}

void
session_close(struct session *session)
{
	pg_close(session->pg);
	if (session->loop != NULL)
		event_base_free(session->loop);
	libevent_global_shutdown();
	*session = (struct session){ 0 };
}
