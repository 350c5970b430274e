#include <stdint.h>
#include <stdlib.h>

#include <event2/event.h>

#include "base/err.h"
#include "ingest.h"
#include "scribe.h"
#include "writer.h"

/* A batch: enough to share a commit well, small enough to be quick. */
enum {
	BATCH_EVENTS = 500,
	BATCH_BYTES = 4 << 20,
	ENOUGH_BESIDE = 24, /* requests, beside a batch that has just begun */
};

/* Most batches are over by then. */
#define SOON (5 * USEC_PER_MS)

/* A batch that is under way for so long hangs on something: nothing waits for
 * it. */
#define PATIENCE (50 * USEC_PER_MS)

struct writer {
	struct ingest *ingest;
	struct event *turn;
	struct parcels queue;
	size_t nparcels, nevents, bytes; /* in the queue */
	size_t nscribes;
	struct scribe **scribes;
};

static void
enter(struct writer *writer, const struct parcel *parcel)
{
	writer->nparcels++;
	writer->nevents += parcel->n;
	writer->bytes += parcel->bytes;
}

static void
leave(struct writer *writer, struct parcel *parcel)
{
	TAILQ_REMOVE(&writer->queue, parcel, link);
	writer->nparcels--;
	writer->nevents -= parcel->n;
	writer->bytes -= parcel->bytes;
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval again = clock_timeval(SOON);
	struct writer *writer = arg;

	(void)fd;
	(void)what;
	for (size_t i = 0; i < writer->nscribes; i++)
		scribe_turn(writer->scribes[i]);
	/* Without memory for a timer the next event, or answer, looks again. */
	if (writer->nparcels > 0)
		(void)event_add(writer->turn, &again);
}

void
writer_wake(struct writer *writer)
{
	/* All that this turn of the loop reads is in the batch. */
	event_active(writer->turn, EV_TIMEOUT, 0);
}

int
writer_open(struct writer **out, struct ingest *ingest, struct err *err)
{
	struct writer *writer = calloc(1, sizeof(*writer));
	size_t n = (size_t)ingest->conf->writers;

	if (writer == NULL)
		return err_set(err, ERR_NOMEM, "writer");
	writer->ingest = ingest;
	TAILQ_INIT(&writer->queue);
	writer->turn = event_new(ingest->loop, -1, 0, on_turn, writer);
	writer->scribes = calloc(n, sizeof(struct scribe *));
	if (writer->turn == NULL || writer->scribes == NULL) {
		(void)err_set(err, ERR_NOMEM, "writer");
		goto fail;
	}
	for (; writer->nscribes < n; writer->nscribes++)
		if (scribe_open(&writer->scribes[writer->nscribes], ingest,
			writer, err) != 0)
			goto fail;
	*out = writer;
	return 0;

fail:
	writer_close(writer);
	return -1;
}

void
writer_close(struct writer *writer)
{
	if (writer == NULL)
		return;
	while (writer->scribes != NULL && writer->nscribes > 0)
		scribe_close(writer->scribes[--writer->nscribes]);
	writer_lost(writer);
	free(writer->scribes);
	if (writer->turn != NULL)
		event_free(writer->turn);
	free(writer);
}

int
writer_submit(struct writer *writer, struct parcel *parcel, struct err *err)
{
	const struct ingest_conf *conf = writer->ingest->conf;

	if (writer_connections(writer) == 0)
		return err_set(err, ERR_RETRY, "the database is away");
	if (writer->nevents + parcel->n > (size_t)conf->max_queued_events ||
	    writer->bytes + parcel->bytes > (size_t)conf->max_queued_bytes)
		return err_set(err, ERR_RETRY, "too many events wait");
	parcel->is_alone = false;
	parcel->tries = 0;
	TAILQ_INSERT_TAIL(&writer->queue, parcel, link);
	enter(writer, parcel);
	writer_wake(writer);
	return 0;
}

int
writer_connections(const struct writer *writer)
{
	int n = 0;

	for (size_t i = 0; i < writer->nscribes; i++)
		n += scribe_is_up(writer->scribes[i]);
	return n;
}

size_t
writer_queued(const struct writer *writer)
{
	return writer->nevents;
}

size_t
writer_queued_bytes(const struct writer *writer)
{
	return writer->bytes;
}

static bool
wants_own_batch(const struct parcel *parcel)
{
	return parcel->is_unit || parcel->is_alone;
}

/* A batch has a cost whatever is in it: one that is not full, and smaller than
 * each of those under way, waits for more, or for one of these to end, a moment at
 * most.  So does a small one, beside one that will soon end. */
static bool
is_worth_a_batch(const struct writer *writer)
{
	size_t least = 0, n;

	for (size_t i = 0; i < writer->nscribes; i++) {
		n = scribe_carries(writer->scribes[i], PATIENCE);
		if (n < ENOUGH_BESIDE &&
		    scribe_carries(writer->scribes[i], SOON) > 0)
			n = ENOUGH_BESIDE;
		if (n > 0 && (least == 0 || n < least))
			least = n;
	}
	return writer->nparcels >= least || writer->nevents >= BATCH_EVENTS ||
	       writer->bytes >= BATCH_BYTES;
}

size_t
writer_take(struct writer *writer, struct parcels *out)
{
	struct parcel *parcel;
	size_t n = 0, nevents = 0, bytes = 0;

	if (!is_worth_a_batch(writer))
		return 0;
	while ((parcel = TAILQ_FIRST(&writer->queue)) != NULL) {
		if (n > 0 && (wants_own_batch(parcel) ||
				 nevents + parcel->n > BATCH_EVENTS ||
				 bytes + parcel->bytes > BATCH_BYTES))
			break;
		leave(writer, parcel);
		TAILQ_INSERT_TAIL(out, parcel, link);
		n++;
		nevents += parcel->n;
		bytes += parcel->bytes;
		if (wants_own_batch(parcel))
			break;
	}
	return n;
}

void
writer_return(struct writer *writer, struct parcels *parcels)
{
	struct parcel *parcel;

	while ((parcel = TAILQ_LAST(parcels, parcels)) != NULL) {
		TAILQ_REMOVE(parcels, parcel, link);
		TAILQ_INSERT_HEAD(&writer->queue, parcel, link);
		enter(writer, parcel);
	}
	if (writer_connections(writer) == 0)
		writer_lost(writer);
	else
		writer_wake(writer);
}

void
writer_lost(struct writer *writer)
{
	struct parcel *parcel;
	struct err err;

	if (writer_connections(writer) > 0)
		return;
	(void)err_set(&err, ERR_RETRY, "the database is away");
	while ((parcel = TAILQ_FIRST(&writer->queue)) != NULL) {
		leave(writer, parcel);
		parcel->done(parcel->arg, &err);
	}
}
