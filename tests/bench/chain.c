/*
 * chain: the least that lies between an event and its arrival.
 *
 *   chain CONNINFO RATE EVENTS
 *
 * One row of 1 KiB is inserted and committed with a notification; who listens
 * commits an update of it, and then sends it over a TCP connection.  Each waits
 * for the one before; one process does it all, with nothing to decide.  The
 * tables are limits.py's.  Prints how many milliseconds each took.
 */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <postgresql/libpq-fe.h>

enum { BODY = 1024 };

static const char accept_event[] =
    "WITH e AS ("
    "INSERT INTO bench_event (tenant_id, event_id, body)"
    " VALUES (1, gen_random_uuid(), $1::text::bytea) RETURNING event_no"
    "), d AS ("
    "INSERT INTO bench_delivery (event_no) SELECT event_no FROM e RETURNING id"
    ") SELECT pg_notify('bench', id::text) FROM d";

static const char lease[] =
    "UPDATE bench_delivery SET event_no = event_no WHERE id = $1::text::bigint";

static char body[BODY + 1];

static void
give_up(const char *why)
{
	(void)fprintf(stderr, "chain: %s\n", why);
	exit(1);
}

static double
now_ms(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void
wait_until(double at)
{
	double left = at - now_ms();

	if (left > 0)
		(void)poll(NULL, 0, (int)left);
}

static void
wait_readable(int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };

	if (poll(&wanted, 1, 10000) != 1)
		give_up("nothing came for ten seconds");
}

static void
call(PGconn *db, const char *statement, const char *parameter)
{
	PGresult *result = PQexecPrepared(
	    db, statement, parameter != NULL, &parameter, NULL, NULL, 0);

	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
	    PQresultStatus(result) != PGRES_TUPLES_OK)
		give_up(PQerrorMessage(db));
	PQclear(result);
}

static PGconn *
open_database(const char *conninfo)
{
	PGconn *db = PQconnectdb(conninfo);

	if (PQstatus(db) != CONNECTION_OK)
		give_up(PQerrorMessage(db));
	return db;
}

static void
prepare(PGconn *db, const char *name, const char *text)
{
	PGresult *result = PQprepare(db, name, text, 0, NULL);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		give_up(PQerrorMessage(db));
	PQclear(result);
}

/* Two ends of a TCP connection on this machine. */
static void
open_pair(int pair[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || pair[0] < 0 ||
	    bind(listener, (struct sockaddr *)&address, size) != 0 ||
	    listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
	    connect(pair[0], (struct sockaddr *)&address, size) != 0 ||
	    (pair[1] = accept(listener, NULL, NULL)) < 0)
		give_up("no connection to itself");
	(void)close(listener);
}

/* What to lease, for PQfreemem. */
static PGnotify *
wait_notified(PGconn *db)
{
	PGnotify *notify;

	while ((notify = PQnotifies(db)) == NULL) {
		wait_readable(PQsocket(db));
		if (PQconsumeInput(db) != 1)
			give_up(PQerrorMessage(db));
	}
	return notify;
}

static void
one(PGconn *writer, PGconn *reader, const int pair[2])
{
	char arrived[BODY];
	PGnotify *notify;
	size_t n = 0;
	ssize_t got;

	call(writer, "accept", body);
	notify = wait_notified(reader);
	call(reader, "lease", notify->extra);
	PQfreemem(notify);
	if (send(pair[0], body, BODY, 0) != BODY)
		give_up("not sent");
	while (n < BODY) {
		wait_readable(pair[1]);
		got = recv(pair[1], arrived + n, BODY - n, 0);
		if (got <= 0)
			give_up("not received");
		n += (size_t)got;
	}
}

int
main(int argc, char **argv)
{
	double rate = argc == 4 ? strtod(argv[2], NULL) : 0, due, began;
	long n = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
	PGconn *writer, *reader;
	int pair[2];

	if (rate <= 0 || n <= 0)
		give_up("usage: chain CONNINFO RATE EVENTS");
	(void)memset(body, 'x', BODY);
	writer = open_database(argv[1]);
	reader = open_database(argv[1]);
	prepare(writer, "accept", accept_event);
	prepare(reader, "listen", "LISTEN bench");
	prepare(reader, "lease", lease);
	call(reader, "listen", NULL);
	open_pair(pair);
	due = now_ms();
	for (; n > 0; n--) {
		due += 1e3 / rate;
		wait_until(due);
		began = now_ms();
		one(writer, reader, pair);
		(void)printf("%.3f\n", now_ms() - began);
	}
	PQfinish(writer);
	PQfinish(reader);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return 0;
}
