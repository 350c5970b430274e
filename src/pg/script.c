#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "dial.h"
#include "error.h"
#include "pg/script.h"

/* For a person at a terminal, or a service's start. */
static const usec_t connect_timeout = 10 * USEC_PER_SEC;

enum { MAX_COLUMNS = 64 };

struct script {
	PGconn *conn;
};

/* What a script lets the server say is of no use to its caller. */
static void
ignore_notice(void *arg, const PGresult *notice)
{
	(void)arg;
	(void)notice;
}

static int
await(PGconn *conn, short what, struct err *err)
{
	struct pollfd fd = { .fd = PQsocket(conn), .events = what };

	if (poll(&fd, 1, (int)(connect_timeout / USEC_PER_MS)) > 0)
		return 0;
	return err_set(err, ERR_RETRY, "cannot connect: no answer");
}

static int
connect_to(PGconn *conn, struct err *err)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	while (next != PGRES_POLLING_OK) {
		if (next == PGRES_POLLING_FAILED)
			return error_of_dial(conn, err);
		if (await(conn,
			next == PGRES_POLLING_READING ? POLLIN : POLLOUT,
			err) != 0)
			return -1;
		next = PQconnectPoll(conn);
	}
	return 0;
}

int
script_open(struct script **out, const char *conninfo, const char *application,
    struct err *err)
{
	const struct dial_to to = {
		.conninfo = conninfo,
		.application = application,
		.timeout = connect_timeout,
		.notice = ignore_notice,
	};
	struct script *script = calloc(1, sizeof(*script));

	if (script == NULL)
		return err_set(err, ERR_NOMEM, "connection");
	script->conn = dial_begin(&to, err);
	if (script->conn == NULL || connect_to(script->conn, err) != 0)
		goto fail;
	*out = script;
	return 0;

fail:
	script_close(script);
	return -1;
}

void
script_close(struct script *script)
{
	if (script == NULL)
		return;
	PQfinish(script->conn);
	free(script);
}

/* The line of `sql` that the error is in, where the server knows: it counts
 * characters of UTF-8 from 1.  0 if it does not. */
static int
error_line(const PGresult *result, const char *sql)
{
	const char *field =
	    PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);
	long left = field == NULL ? 0 : strtol(field, NULL, 10);
	int line = left > 0;

	for (const char *p = sql; *p != '\0' && left > 1; p++) {
		line += *p == '\n';
		left -= (p[1] & 0xc0) != 0x80;
	}
	return line;
}

/* Take a result over, and free it if it is an error. */
static int
check(struct script *script, PGresult *result, const char *sql, struct err *err)
{
	char place[32] = "script";
	int line;

	switch (PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
	case PGRES_EMPTY_QUERY:
		return 0;
	default:
		break;
	}
	line = error_line(result, sql);
	if (line > 0)
		(void)snprintf(place, sizeof(place), "line %d", line);
	(void)error_of_result(result, place, true, err);
	PQclear(result);
	/* Leave no transaction behind that takes no more statements. */
	if (PQtransactionStatus(script->conn) == PQTRANS_INERROR)
		PQclear(PQexec(script->conn, "ROLLBACK"));
	return -1;
}

int
script_run(struct script *script, const char *sql, struct err *err)
{
	PGresult *result = PQexec(script->conn, sql);

	if (check(script, result, sql, err) != 0)
		return -1;
	PQclear(result);
	return 0;
}

int
script_query(struct script *script, const char *sql, int nparams,
    const char *const *params, void (*row)(void *, const char *const *),
    void *arg, struct err *err)
{
	const char *columns[MAX_COLUMNS];
	PGresult *result = PQexecParams(
	    script->conn, sql, nparams, NULL, params, NULL, NULL, 0);

	if (check(script, result, sql, err) != 0)
		return -1;
	for (int i = 0; row != NULL && i < PQntuples(result); i++) {
		for (int j = 0; j < PQnfields(result) && j < MAX_COLUMNS; j++)
			columns[j] = PQgetisnull(result, i, j)
			                 ? NULL
			                 : PQgetvalue(result, i, j);
		row(arg, columns);
	}
	PQclear(result);
	return 0;
}
