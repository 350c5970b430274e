#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "backoff.h"
#include "dial.h"
#include "error.h"
#include "flight.h"
#include "inside.h"
#include "setup.h"

enum state {
	WAITING, /* until the next try to connect */
	CONNECTING,
	SETTING_UP,
	READY,
	BUSY,
	GIVEN_UP,
	NSTATES
};

#define BIT(s) (1u << (s))

/* From each state, the states it may move to. */
static const unsigned allowed[NSTATES] = {
	[WAITING] = BIT(CONNECTING) | BIT(WAITING) | BIT(GIVEN_UP),
	[CONNECTING] = BIT(SETTING_UP) | BIT(WAITING) | BIT(GIVEN_UP),
	[SETTING_UP] = BIT(READY) | BIT(WAITING) | BIT(GIVEN_UP),
	[READY] = BIT(BUSY) | BIT(WAITING),
	[BUSY] = BIT(READY) | BIT(WAITING),
	[GIVEN_UP] = 0,
};

struct pg {
	struct event_base *loop;
	struct pg_conf conf;
	struct pg_events events;
	void *arg;

	enum state state;
	struct dial *dial; /* in CONNECTING */
	PGconn *conn; /* from SETTING_UP on */
	struct event *io; /* readable */
	struct event *out; /* writable, while libpq has bytes to send */
	struct event *timer; /* the deadline, or the next try to connect */

	bool *prepared; /* which of the statements are, on `conn` */
	struct flight flight; /* in SETTING_UP, BUSY */
	pg_done_fn *done; /* in BUSY */
	void *done_arg;
	struct pg_rows ***keep; /* where the caller wants the rows, or NULL */

	int tries; /* to connect, since it was last ready */
	bool was_ready;
	bool is_dying; /* the end of the stream has been seen */
	struct err trouble; /* why it was last lost */

	bool is_inside; /* an event callback of ours */
	bool is_closing;
};

/* The only place `state` is written. */
static void
move(struct pg *pg, enum state next)
{
	assert(allowed[pg->state] & BIT(next));
	pg->state = next;
}

static void
set_timer(struct pg *pg, usec_t wait)
{
	struct timeval tv = clock_timeval(wait);

	(void)event_add(pg->timer, &tv);
}

static void
free_event(struct event **event)
{
	if (*event != NULL)
		event_free(*event);
	*event = NULL;
}

static void
hang_up(struct pg *pg)
{
	/* First the events: the kernel forgets a closed descriptor, libevent
	 * does not. */
	free_event(&pg->io);
	free_event(&pg->out);
	dial_cancel(pg->dial);
	pg->dial = NULL;
	PQfinish(pg->conn);
	pg->conn = NULL;
	pg->is_dying = false;
}

static void
destroy(struct pg *pg)
{
	hang_up(pg);
	free_event(&pg->timer);
	flight_fini(&pg->flight);
	free(pg->prepared);
	free(pg);
}

/* The end of an event callback.  An owner may have closed us in it: then what
 * was left to do has been done in silence. */
static void
leave(struct pg *pg)
{
	pg->is_inside = false;
	if (pg->is_closing)
		destroy(pg);
}

void
pg_close(struct pg *pg)
{
	if (pg == NULL)
		return;
	pg->is_closing = true;
	if (!pg->is_inside)
		destroy(pg);
}

/* The end of a batch; `*err` is NULL after a success. */
static void
tell_done(struct pg *pg, struct flight *flight, const struct err *err)
{
	struct pg_rows ***keep = pg->keep;

	pg->keep = NULL;
	if (!pg->is_closing)
		pg->done(pg->done_arg, err == NULL ? flight->rows : NULL, err);
	if (keep != NULL && err == NULL) {
		*keep = flight->rows;
		flight->rows = NULL;
	}
	flight_fini(flight);
}

static void
wait_to_dial(struct pg *pg)
{
	uint64_t dice;

	evutil_secure_rng_get_bytes(&dice, sizeof(dice));
	set_timer(pg, backoff_wait(pg->tries, pg->conf.reconnect_min,
			  pg->conf.reconnect_max, dice));
	pg->tries += pg->tries < 64;
}

/* Drop the connection because of `*why`, and see to the next. */
static void
lose(struct pg *pg, const struct err *why)
{
	struct flight flight = pg->flight;
	bool has_caller = pg->state == BUSY;
	bool failed = true;
	struct err err;

	pg->trouble = *why;
	if (flight.failed && flight.is_fatal)
		pg->trouble = flight.err; /* the server's last words */
	if (has_caller)
		failed = flight_lost(&flight, why, &err) != 0;
	pg->flight = (struct flight){ 0 };
	hang_up(pg);
	if (pg->trouble.code == ERR_BROKEN && !pg->was_ready) {
		move(pg, GIVEN_UP);
		(void)event_del(pg->timer);
	} else {
		move(pg, WAITING);
		wait_to_dial(pg);
	}

	if (has_caller)
		tell_done(pg, &flight, failed ? &err : NULL);
	else
		flight_fini(&flight);
	if (!pg->is_closing && pg->events.down != NULL)
		pg->events.down(pg->arg, &pg->trouble);
}

/* Hand libpq's bytes to the kernel, as far as it takes them. */
static void
push(struct pg *pg)
{
	int left = PQflush(pg->conn);

	if (left == 1)
		(void)event_add(pg->out, NULL);
	/* libpq reads while it cannot write, so that the answers may be here
	 * already, and no event would tell. */
	if (left < 0 || !PQisBusy(pg->conn))
		event_active(pg->io, EV_READ, 0);
}

/* Send `batch`, which is taken over, and set its deadline. */
static int
start(struct pg *pg, struct pg_batch *batch, struct err *err)
{
	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "batch");
	if (flight_start(&pg->flight, pg->conn, batch, pg->conf.statements,
		pg->prepared, err) != 0)
		return -1;
	set_timer(pg, pg->conf.statement_timeout);
	/* Half a batch has no end: let on_io() find the end of the stream. */
	if (pg->flight.failed)
		(void)shutdown(PQsocket(pg->conn), SHUT_RDWR);
	push(pg);
	return 0;
}

/* A connection is set up. */
static void
become_ready(struct pg *pg)
{
	flight_fini(&pg->flight);
	(void)event_del(pg->timer);
	move(pg, READY);
	pg->tries = 0;
	pg->was_ready = true;
	if (!pg->is_closing && pg->events.ready != NULL)
		pg->events.ready(pg->arg);
}

/* A batch is over; `failure` is NULL after a success. */
static void
finish(struct pg *pg, const struct err *failure)
{
	struct flight flight = pg->flight;

	pg->flight = (struct flight){ 0 };
	(void)event_del(pg->timer);
	move(pg, READY);
	tell_done(pg, &flight, failure);
}

/* All answers of what was in flight are in.  Returns -1 if the connection is of
 * no more use. */
static int
landed(struct pg *pg, struct err *err)
{
	bool failed = pg->flight.failed;
	struct err failure = pg->flight.err;

	if (pg->state == BUSY) {
		finish(pg, failed ? &failure : NULL);
		return 0;
	}
	if (failed) {
		*err = failure;
		/* A setting, role or statement: no input can mend it. */
		if (err->code == ERR_REFUSED)
			err->code = ERR_BROKEN;
		return -1;
	}
	become_ready(pg);
	return 0;
}

/* Take the answers that are here; returns as landed() does. */
static int
take_answers(struct pg *pg, struct err *err)
{
	while (pg->flight.batch != NULL && !PQisBusy(pg->conn)) {
		switch (flight_take(&pg->flight, PQgetResult(pg->conn), err)) {
		case FLIGHT_ON:
			break;
		case FLIGHT_LANDED:
			if (landed(pg, err) != 0)
				return -1;
			break;
		case FLIGHT_LOST:
			return -1;
		}
	}
	return 0;
}

static bool
take_notifications(struct pg *pg, bool *has_text)
{
	bool came = false;

	*has_text = false;
	for (PGnotify *n; (n = PQnotifies(pg->conn)) != NULL; PQfreemem(n)) {
		came = true;
		*has_text |= n->extra[0] != '\0';
	}
	return came;
}

static void
on_io(evutil_socket_t fd, short what, void *arg)
{
	struct pg *pg = arg;
	struct err why;
	bool is_lost, notified, has_text;

	(void)fd;
	pg->is_inside = true;
	pg->is_dying = (what & EV_READ) && PQconsumeInput(pg->conn) != 1;
	/* PQconsumeInput() has flushed; `out` then stays as it was set. */
	if ((what & EV_WRITE) && !pg->is_dying && PQflush(pg->conn) == 1)
		(void)event_add(pg->out, NULL);
	/* What came before the end still counts. */
	is_lost = take_answers(pg, &why) != 0;
	if (pg->is_dying && !is_lost)
		is_lost = error_of_connection(pg->conn, &why) != 0;
	notified = take_notifications(pg, &has_text);
	if (is_lost)
		lose(pg, &why);
	if (notified && !pg->is_closing && pg->events.notified != NULL)
		pg->events.notified(pg->arg, has_text);
	leave(pg);
}

static void
on_notice(void *arg, const PGresult *notice)
{
	struct pg *pg = arg;
	const char *from = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);

	/* A commit whose wait for the standbys was cut short succeeds, with a
	 * warning that only its origin tells from others. */
	if (from != NULL && strcmp(from, "SyncRepWaitForLSN") == 0)
		pg->flight.is_unsure = true;
}

static size_t
count_statements(const struct pg_conf *conf)
{
	size_t n = 0;

	while (conf->statements != NULL && conf->statements[n].name != NULL)
		n++;
	return n;
}

/* The socket is connected and we are known: make it ours. */
static int
set_up(struct pg *pg, struct err *err)
{
	int fd = PQsocket(pg->conn);

	move(pg, SETTING_UP);
	memset(pg->prepared, 0, count_statements(&pg->conf));
	pg->io = event_new(pg->loop, fd, EV_READ | EV_PERSIST, on_io, pg);
	pg->out = event_new(pg->loop, fd, EV_WRITE, on_io, pg);
	if (pg->io == NULL || pg->out == NULL ||
	    event_priority_set(pg->io, 0) != 0 ||
	    event_priority_set(pg->out, 0) != 0 || event_add(pg->io, NULL) != 0)
		return err_set(err, ERR_NOMEM, "connection");
	if (PQsetnonblocking(pg->conn, 1) != 0 ||
	    PQenterPipelineMode(pg->conn) != 1)
		return error_of_connection(pg->conn, err);
	return start(pg, setup_new(pg->conn, &pg->conf), err);
}

static void
on_dialled(void *arg, PGconn *conn, const struct err *why)
{
	struct pg *pg = arg;
	struct err err;

	pg->is_inside = true;
	pg->dial = NULL;
	pg->conn = conn;
	if (conn == NULL)
		lose(pg, why);
	else if (set_up(pg, &err) != 0)
		lose(pg, &err);
	leave(pg);
}

static int
dial(struct pg *pg, struct err *err)
{
	const struct dial_to to = {
		.conninfo = pg->conf.conninfo,
		.application = pg->conf.application,
		.timeout = pg->conf.statement_timeout,
		.notice = on_notice,
		.notice_arg = pg,
	};

	move(pg, CONNECTING);
	return dial_start(&pg->dial, pg->loop, &to, on_dialled, pg, err);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct pg *pg = arg;
	struct err err;

	(void)fd;
	(void)what;
	pg->is_inside = true;
	if (pg->state != WAITING)
		(void)err_set(&err, ERR_RETRY,
		    "the database has not answered within %lld ms",
		    (long long)(pg->conf.statement_timeout / USEC_PER_MS));
	if (pg->state != WAITING || dial(pg, &err) != 0)
		lose(pg, &err);
	leave(pg);
}

int
pg_open(struct pg **out, struct event_base *loop, const struct pg_conf *conf,
    const struct pg_events *events, void *arg, struct err *err)
{
	struct pg *pg = calloc(1, sizeof(*pg));

	if (pg == NULL)
		return err_set(err, ERR_NOMEM, "connection");
	pg->loop = loop;
	pg->conf = *conf;
	if (events != NULL)
		pg->events = *events;
	pg->arg = arg;
	pg->prepared = calloc(count_statements(conf) + 1, sizeof(bool));
	pg->timer = evtimer_new(loop, on_timer, pg);
	if (pg->prepared == NULL || pg->timer == NULL) {
		destroy(pg);
		return err_set(err, ERR_NOMEM, "connection");
	}
	/* From the loop, so that nothing is told before we return. */
	set_timer(pg, 0);
	*out = pg;
	return 0;
}

bool
pg_is_ready(const struct pg *pg)
{
	return pg->state == READY && !pg->is_dying && !pg->is_closing;
}

int
pg_submit(struct pg *pg, struct pg_batch *batch, pg_done_fn *done, void *arg,
    struct err *err)
{
	if (!pg_is_ready(pg)) {
		pg_batch_free(batch);
		return err_set(err, ERR_RETRY, "the database is not ready");
	}
	if (start(pg, batch, err) != 0)
		return -1;
	move(pg, BUSY);
	pg->done = done;
	pg->done_arg = arg;
	return 0;
}

struct event_base *
pg_loop(const struct pg *pg)
{
	return pg->loop;
}

const struct err *
pg_trouble(const struct pg *pg)
{
	return &pg->trouble;
}

bool
pg_gave_up(const struct pg *pg)
{
	return pg->state == GIVEN_UP;
}

void
pg_keep_rows(struct pg *pg, struct pg_rows ***out)
{
	pg->keep = out;
}
