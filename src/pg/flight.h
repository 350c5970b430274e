/*
 * flight: a batch that has been sent, until its answers are in.
 *
 * It has one outcome, that of its first error: the server skips what follows up to
 * the next sync, which is the batch's end or its commit.  Nothing here waits.
 */

#ifndef PG_FLIGHT_H
#define PG_FLIGHT_H

#include <libpq-fe.h>

#include "base/err.h"
#include "batch.h"

struct flight {
	struct pg_batch *batch; /* NULL while nothing is in flight */
	const struct embedded *statements;
	bool *prepared; /* of those, on this connection */
	struct pg_rows **rows; /* one a call, ended by NULL */
	size_t op; /* the one whose answer is awaited */
	size_t call; /* how many of those before it were calls */
	bool has_result; /* of `op` or the sync; its NULL is due */
	bool is_unsure; /* committed, without the standbys' word */
	bool is_committed; /* what failed since has not undone it */
	bool failed; /* `err` has the first error */
	bool is_fatal; /* and the server hung up with it */
	struct err err;
};

enum flight_step { FLIGHT_ON, FLIGHT_LANDED, FLIGHT_LOST };

/*
 * Take over `batch` and hand it to libpq; what it calls for the first time on
 * this connection is prepared, and is kept in `prepared`.  Returns -1 if memory is short
 * before anything was sent: then the batch is freed.  An error while sending
 * is kept in the flight, with is_fatal set: the connection is of no more use.
 */
int flight_start(struct flight *flight, PGconn *conn, struct pg_batch *batch,
    const struct embedded *statements, bool *prepared, struct err *err);

/*
 * Take what PQgetResult() gave, NULL included.  LANDED: the sync came, `failed`
 * tells how it went.  LOST: no more answers will come, `*why` says why.
 */
enum flight_step flight_take(
    struct flight *flight, PGresult *result, struct err *why);

/*
 * The outcome of a flight whose connection was lost, because of `*why`: 0 if
 * all was answered that matters, else -1 with `*err` filled; ERR_UNKNOWN if it
 * may have been committed.
 */
int flight_lost(
    const struct flight *flight, const struct err *why, struct err *err);

/* Free what it holds, and zero it. */
void flight_fini(struct flight *flight);

#endif
