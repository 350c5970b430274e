#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ingest.h"
#include "scribe.h"
#include "writer.h"

enum {
	TRIES_MAX = 5, /* of a batch that met another transaction */
	UNIT_DELIVERIES_MAX = 100000,
};

struct scribe {
	struct ingest *ingest;
	struct writer *writer;
	struct session *session;
	struct parcels carried;
	size_t ncarried; /* 0: idle */
	usec_t began_at; /* on clock_now() */
	struct outbox *outbox; /* what it carries, in the store's words */
	struct outbox_memory *memory;
};

static void
on_ready(void *arg)
{
	struct scribe *scribe = arg;

	ingest_session_up(scribe->ingest);
	writer_wake(scribe->writer);
}

static void
on_down(void *arg, const struct err *err)
{
	struct scribe *scribe = arg;

	ingest_session_down(scribe->ingest, err);
	writer_lost(scribe->writer);
}

static void
on_failed(void *arg, const struct err *err)
{
	struct scribe *scribe = arg;

	ingest_fail(scribe->ingest, err);
}

int
scribe_open(struct scribe **out, struct ingest *ingest, struct writer *writer,
    struct err *err)
{
	const struct session_events events = {
		.ready = on_ready,
		.down = on_down,
		.failed = on_failed,
	};
	struct scribe *scribe = calloc(1, sizeof(*scribe));
	struct session_conf conf;

	if (scribe == NULL)
		return err_set(err, ERR_NOMEM, "scribe");
	scribe->ingest = ingest;
	scribe->writer = writer;
	TAILQ_INIT(&scribe->carried);
	conf = ingest_session_conf(ingest, "postrider-ingest writer");
	if (outbox_memory_new(&scribe->memory, err) != 0 ||
	    session_open(&scribe->session, ingest->loop, &conf, &events, scribe,
		err) != 0) {
		outbox_memory_free(scribe->memory);
		free(scribe);
		return -1;
	}
	*out = scribe;
	return 0;
}

bool
scribe_is_up(const struct scribe *scribe)
{
	return session_is_up(scribe->session);
}

size_t
scribe_carries(const struct scribe *scribe, usec_t at_most_for)
{
	return clock_now() - scribe->began_at < at_most_for ? scribe->ncarried
	                                                    : 0;
}

static bool
is_unit(const struct scribe *scribe)
{
	return TAILQ_FIRST(&scribe->carried)->is_unit;
}

/* Put the batch down: from here on the scribe is idle, and whoever is told may
 * come with the next. */
static void
put_down(struct scribe *scribe, struct parcels *carried)
{
	TAILQ_INIT(carried);
	TAILQ_CONCAT(carried, &scribe->carried, link);
	scribe->ncarried = 0;
	outbox_close(scribe->outbox);
	scribe->outbox = NULL;
	writer_wake(scribe->writer);
}

static void
tell(struct parcels *parcels, const struct err *err)
{
	struct parcel *parcel;

	while ((parcel = TAILQ_FIRST(parcels)) != NULL) {
		TAILQ_REMOVE(parcels, parcel, link);
		parcel->done(parcel->arg, err);
	}
}

void
scribe_close(struct scribe *scribe)
{
	struct parcels carried;
	struct err err;

	if (scribe == NULL)
		return;
	session_close(scribe->session);
	(void)err_set(&err, ERR_UNKNOWN, "stopped at once");
	put_down(scribe, &carried);
	tell(&carried, &err);
	outbox_memory_free(scribe->memory);
	free(scribe);
}

/* Another transaction was in the way: a deadlock, or it has just accepted an id
 * of ours. */
static bool
met_another(const struct err *err)
{
	return err->code != ERR_UNKNOWN &&
	       (strncmp(err->sqlstate, "40", 2) == 0 ||
		   strcmp(err->sqlstate, "23505") == 0);
}

/* Nothing of the batch was kept, or nobody knows. */
static void
fail(struct scribe *scribe, const struct err *err)
{
	struct parcel *first = TAILQ_FIRST(&scribe->carried), *parcel;
	bool is_shared = TAILQ_NEXT(first, link) != NULL;
	bool again = met_another(err) && first->tries < TRIES_MAX;
	bool apart = err->code == ERR_REFUSED && is_shared;
	struct parcels carried;

	scribe->ingest->metrics.failed_batches++;
	put_down(scribe, &carried);
	if (!again && !apart) {
		tell(&carried, err);
		return;
	}
	TAILQ_FOREACH (parcel, &carried, link) {
		parcel->tries += again;
		parcel->is_alone |= apart;
	}
	writer_return(scribe->writer, &carried);
}

static bool
is_for_later(const struct parcel *parcel)
{
	for (size_t i = 0; i < parcel->n; i++)
		if (parcel->events[i].outcome == OUTBOX_LATER)
			return true;
	return false;
}

static void
finish(struct scribe *scribe)
{
	struct parcels carried, later;
	struct parcel *parcel, *next;

	put_down(scribe, &carried);
	TAILQ_INIT(&later);
	for (parcel = TAILQ_FIRST(&carried); parcel != NULL; parcel = next) {
		next = TAILQ_NEXT(parcel, link);
		if (!is_for_later(parcel))
			continue;
		TAILQ_REMOVE(&carried, parcel, link);
		TAILQ_INSERT_TAIL(&later, parcel, link);
	}
	if (!TAILQ_EMPTY(&later))
		writer_return(scribe->writer, &later);
	/* The database has work while the answers are sent. */
	scribe_turn(scribe);
	tell(&carried, NULL);
}

/* NULL if memory is short: then what it carries has failed. */
static struct pg_batch *
new_batch(struct scribe *scribe)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		(void)err_set(&err, ERR_NOMEM, "batch");
		fail(scribe, &err);
	}
	return batch;
}

static void
submit(struct scribe *scribe, struct pg_batch *batch, pg_done_fn *done)
{
	struct err err;

	if (session_submit(scribe->session, batch, done, scribe, &err) != 0)
		fail(scribe, &err);
}

/* Is there anything in the unit that keeps it from being kept? */
static bool
unit_is_fine(const struct scribe *scribe)
{
	const struct parcel *unit = TAILQ_FIRST(&scribe->carried);

	for (size_t i = 0; i < unit->n; i++)
		switch (unit->events[i].outcome) {
		case OUTBOX_OPEN:
		case OUTBOX_ACCEPTED:
		case OUTBOX_REPEATED:
			break;
		case OUTBOX_LATER:
		case OUTBOX_REVOKED:
		case OUTBOX_NOBODY:
		case OUTBOX_CONFLICT:
			return false;
		}
	return true;
}

static void begin(struct scribe *scribe, bool guesses);

static void
on_written(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct scribe *scribe = arg;

	if (err != NULL) {
		fail(scribe, err);
		return;
	}
	if (outbox_settle(scribe->outbox, rows))
		finish(scribe);
	else
		begin(scribe, false);
}

static void
write_batch(struct scribe *scribe)
{
	struct pg_batch *batch = new_batch(scribe);
	struct err err;

	if (batch == NULL)
		return;
	if (outbox_write(scribe->outbox, batch, &err) == 0) {
		submit(scribe, batch, on_written);
		return;
	}
	pg_batch_free(batch);
	fail(scribe, &err);
}

/* A unit cannot be parted: one that is too large would be tried for ever. */
static int
check_unit(const struct scribe *scribe, struct err *err)
{
	size_t n = outbox_deliveries(scribe->outbox);

	if (n > UNIT_DELIVERIES_MAX)
		return err_set(err, ERR_REFUSED,
		    "%zu deliveries in one transaction, of at most %d", n,
		    UNIT_DELIVERIES_MAX);
	return 0;
}

/* Nothing was written yet: an answer that was lost leaves no question open. */
static void
fail_reading(struct scribe *scribe, const struct err *err)
{
	struct err wrong = *err;

	if (wrong.code == ERR_UNKNOWN)
		wrong.code = ERR_RETRY;
	fail(scribe, &wrong);
}

static void
write_what_is_fine(struct scribe *scribe)
{
	struct err wrong;

	if (is_unit(scribe) && check_unit(scribe, &wrong) != 0)
		fail(scribe, &wrong);
	else
		write_batch(scribe);
}

static void
on_filtered(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct scribe *scribe = arg;
	struct err wrong;

	if (err == NULL && outbox_filtered(scribe->outbox, rows, &wrong) != 0)
		err = &wrong;
	if (err != NULL)
		fail_reading(scribe, err);
	else
		write_what_is_fine(scribe);
}

static void
filter_batch(struct scribe *scribe)
{
	struct pg_batch *batch = new_batch(scribe);
	struct err err;

	if (batch == NULL)
		return;
	if (outbox_filter(scribe->outbox, batch, &err) == 0) {
		submit(scribe, batch, on_filtered);
		return;
	}
	pg_batch_free(batch);
	fail(scribe, &err);
}

static size_t
max_deliveries(const struct scribe *scribe)
{
	return is_unit(scribe) ? SIZE_MAX : OUTBOX_DELIVERIES_MAX;
}

/* What becomes of each is decided, but for filters. */
static void
go_on(struct scribe *scribe)
{
	if (outbox_count(scribe->outbox) == 0 ||
	    (is_unit(scribe) && !unit_is_fine(scribe)))
		finish(scribe);
	else if (outbox_has_filters(scribe->outbox))
		filter_batch(scribe);
	else
		write_what_is_fine(scribe);
}

static void
on_learned(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct scribe *scribe = arg;
	struct err wrong;

	if (err == NULL && outbox_learn(scribe->outbox, rows,
			       max_deliveries(scribe), &wrong) != 0)
		err = &wrong;
	if (err != NULL) {
		fail_reading(scribe, err);
		return;
	}
	outbox_remember(scribe->outbox, scribe->memory);
	go_on(scribe);
}

static int
open_outbox(struct scribe *scribe, struct err *err)
{
	struct outbox_event *events[OUTBOX_EVENTS_MAX];
	struct parcel *parcel;
	size_t n = 0;

	TAILQ_FOREACH (parcel, &scribe->carried, link)
		for (size_t i = 0; i < parcel->n; i++)
			events[n++] = &parcel->events[i];
	return outbox_open(&scribe->outbox, events, n, err);
}

static void
ask(struct scribe *scribe)
{
	struct pg_batch *batch = new_batch(scribe);

	if (batch == NULL)
		return;
	outbox_ask(scribe->outbox, batch);
	submit(scribe, batch, on_learned);
}

/* As a rule it is known where events of a type go: then one trip will do. */
static void
begin(struct scribe *scribe, bool guesses)
{
	struct err err;

	outbox_close(scribe->outbox);
	scribe->outbox = NULL;
	if (open_outbox(scribe, &err) != 0)
		fail(scribe, &err);
	else if (!guesses || !outbox_guess(scribe->outbox, scribe->memory,
				 max_deliveries(scribe)))
		ask(scribe);
	else if (is_unit(scribe) && !unit_is_fine(scribe))
		begin(scribe, false); /* nothing is refused by a guess */
	else
		go_on(scribe);
}

void
scribe_turn(struct scribe *scribe)
{
	if (scribe->ncarried > 0 || !session_is_up(scribe->session))
		return;
	scribe->ncarried = writer_take(scribe->writer, &scribe->carried);
	if (scribe->ncarried == 0)
		return;
	scribe->began_at = clock_now();
	scribe->ingest->metrics.batches++;
	begin(scribe, true);
}
