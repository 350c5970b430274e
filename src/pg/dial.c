#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "dial.h"
#include "error.h"

struct dial {
	struct event_base *loop;
	usec_t timeout;
	PGconn *conn;
	struct event *io; /* what libpq waits for */
	dial_done_fn *done;
	void *arg;
};

static int
check(const char *conninfo, struct err *err)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);

	/* Its message quotes the string, where a password may stand. */
	if (options == NULL)
		return err_set(err, ERR_BROKEN,
		    "the database's connection string cannot be read");
	PQconninfoFree(options);
	return 0;
}

PGconn *
dial_begin(const struct dial_to *to, struct err *err)
{
	char timeout_ms[24];
	/* What stands before `dbname` can be overridden in the string. */
	const char *const names[] = { "application_name", "keepalives",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
		"tcp_user_timeout", "dbname", "client_encoding", NULL };
	const char *const values[] = { to->application, "1", "10", "5", "3",
		timeout_ms, to->conninfo, "UTF8", NULL };
	PGconn *conn;

	if (check(to->conninfo, err) != 0)
		return NULL;
	(void)snprintf(timeout_ms, sizeof(timeout_ms), "%lld",
	    (long long)(to->timeout / USEC_PER_MS));
	conn = PQconnectStartParams(names, values, 1);
	if (conn == NULL) {
		(void)err_set(err, ERR_NOMEM, "connection");
		return NULL;
	}
	(void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
	(void)PQsetNoticeReceiver(conn, to->notice, to->notice_arg);
	if (PQstatus(conn) == CONNECTION_BAD) {
		(void)error_of_dial(conn, err);
		PQfinish(conn);
		return NULL;
	}
	return conn;
}

static void
stop_waiting(struct dial *dial)
{
	if (dial->io != NULL)
		event_free(dial->io);
	dial->io = NULL;
}

void
dial_cancel(struct dial *dial)
{
	if (dial == NULL)
		return;
	stop_waiting(dial);
	PQfinish(dial->conn);
	free(dial);
}

static void
finish(struct dial *dial, const struct err *err)
{
	dial_done_fn *done = dial->done;
	void *arg = dial->arg;
	PGconn *conn = NULL;

	if (err == NULL) {
		conn = dial->conn;
		dial->conn = NULL;
	}
	dial_cancel(dial);
	done(arg, conn, err);
}

static void on_io(evutil_socket_t fd, short what, void *arg);

static int
await(struct dial *dial, short what, struct err *err)
{
	struct timeval tv = clock_timeval(dial->timeout);

	dial->io =
	    event_new(dial->loop, PQsocket(dial->conn), what, on_io, dial);
	if (dial->io == NULL || event_add(dial->io, &tv) != 0)
		return err_set(err, ERR_NOMEM, "connection");
	return 0;
}

static void
on_io(evutil_socket_t fd, short what, void *arg)
{
	struct dial *dial = arg;
	PostgresPollingStatusType next;
	struct err err;
	int failed = -1;

	(void)fd;
	/* Before the poll, which may close the socket and take another. */
	stop_waiting(dial);
	next = (what & EV_TIMEOUT) ? PGRES_POLLING_FAILED
	                           : PQconnectPoll(dial->conn);
	if (next == PGRES_POLLING_OK) {
		finish(dial, NULL);
		return;
	}
	if (what & EV_TIMEOUT)
		(void)err_set(&err, ERR_RETRY,
		    "cannot connect: no answer within %lld ms",
		    (long long)(dial->timeout / USEC_PER_MS));
	else if (next == PGRES_POLLING_READING)
		failed = await(dial, EV_READ, &err);
	else if (next == PGRES_POLLING_WRITING)
		failed = await(dial, EV_WRITE, &err);
	else
		(void)error_of_dial(dial->conn, &err);
	if (failed)
		finish(dial, &err);
}

int
dial_start(struct dial **out, struct event_base *loop, const struct dial_to *to,
    dial_done_fn *done, void *arg, struct err *err)
{
	struct dial *dial = calloc(1, sizeof(*dial));

	if (dial == NULL)
		return err_set(err, ERR_NOMEM, "connection");
	dial->loop = loop;
	dial->timeout = to->timeout;
	dial->done = done;
	dial->arg = arg;
	dial->conn = dial_begin(to, err);
	if (dial->conn == NULL || await(dial, EV_WRITE, err) != 0)
		goto fail;
	*out = dial;
	return 0;

fail:
	dial_cancel(dial);
	return -1;
}
