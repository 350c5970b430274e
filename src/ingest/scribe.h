/*
 * scribe: one connection of the writer, and the batch that it carries.
 *
 *	IDLE --take--> ASKING --> WRITING --------> IDLE
 *	                 |           |  unit: ENDING --^
 *	                 +-----------+------+  failed: tried again, or answered
 *
 * ASKING needs no transaction.  WRITING is one, from BEGIN to COMMIT in one
 * trip; for a unit the end waits until it is known that each of its events is
 * fine.  If this process or the connection dies at any point, the database
 * keeps all of the transaction or nothing.
 */

#ifndef INGEST_SCRIBE_H
#define INGEST_SCRIBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct err;
struct ingest;
struct scribe;
struct writer;

int scribe_open(struct scribe **out, struct ingest *ingest,
    struct writer *writer, struct err *err);

/* The `done` of what it carries is called with ERR_UNKNOWN.  NULL is fine. */
void scribe_close(struct scribe *scribe);

bool scribe_is_up(const struct scribe *scribe);

/* How many parcels it carries, and not for longer; 0: none. */
size_t scribe_carries(const struct scribe *scribe, usec_t at_most_for);

/* If it is idle, begin with the next batch. */
void scribe_turn(struct scribe *scribe);

#endif
