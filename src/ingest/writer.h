/*
 * writer: events from many requests into the database, many in a transaction.
 *
 *	request --> parcel --> queue --> scribe --> database
 *	request --> parcel --/      \--> scribe --/
 *
 * A scribe has one connection and carries one batch at a time.  What arrives
 * while all are busy is the next batch: so commits are shared under load, and
 * no timer holds up an event when there is none.  Since a batch costs much
 * whatever is in it, none begins that is not full and has fewer parcels than
 * each of those under way; when one of these ends, or hangs, it does.  A parcel
 * of one event never suffers from its neighbours: if the database refuses a
 * batch, each is tried alone.  A parcel that is a unit has a transaction of its
 * own, and is kept as a whole or not at all.
 *
 * The queue is bounded, and empty while the database is away: then a parcel is
 * turned back at once.
 */

#ifndef INGEST_WRITER_H
#define INGEST_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "store/outbox.h"

struct err;
struct ingest;
struct parcel;
struct writer;

/*
 * Called once, from the loop.  With `err` nothing of the parcel was kept, save
 * with ERR_UNKNOWN, where nobody knows.  Without, its events have their
 * outcomes; a unit was kept if each is accepted or repeated, else nothing of
 * it was.
 */
typedef void parcel_done_fn(void *arg, const struct err *err);

struct parcel {
	/* The caller's, to stay until `done`. */
	struct outbox_event *events;
	size_t n;
	size_t bytes; /* of memory that they hold, for the queue's limit */
	bool is_unit; /* all or nothing */
	parcel_done_fn *done;
	void *arg;

	/* The writer's. */
	TAILQ_ENTRY(parcel) link;
	bool is_alone; /* it was in a batch that was refused */
	int tries;
};

TAILQ_HEAD(parcels, parcel);

int writer_open(struct writer **out, struct ingest *ingest, struct err *err);

/* The `done` of all that is here is called, with an error.  NULL is fine. */
void writer_close(struct writer *writer);

/* Take `parcel` in.  ERR_RETRY: the queue is full, or the database is away;
 * then `done` is never called. */
int writer_submit(
    struct writer *writer, struct parcel *parcel, struct err *err);

/* Connections that are up; events that wait, and the bytes they hold. */
int writer_connections(const struct writer *writer);
size_t writer_queued(const struct writer *writer);
size_t writer_queued_bytes(const struct writer *writer);

/* For scribes: move the next batch to `out`, which is empty, and return how many
 * parcels it has; put one back in front; look for idle scribes at the end of
 * this turn of the loop; a connection has gone. */
size_t writer_take(struct writer *writer, struct parcels *out);
void writer_return(struct writer *writer, struct parcels *parcels);
void writer_wake(struct writer *writer);
void writer_lost(struct writer *writer);

#endif
