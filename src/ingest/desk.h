/*
 * desk: one connection for all that is not an event on its way in, and the
 * bounded queue before it.
 */

#ifndef INGEST_DESK_H
#define INGEST_DESK_H

#include <stdbool.h>
#include <stddef.h>

#include "pg/pg.h"

struct desk;
struct err;
struct ingest;

int desk_open(struct desk **out, struct ingest *ingest, struct err *err);

/* The `done` of what waits is called with ERR_RETRY, that of what is under way
 * with ERR_UNKNOWN.  NULL is fine. */
void desk_close(struct desk *desk);

bool desk_is_up(const struct desk *desk);

/* Batches that wait. */
size_t desk_queued(const struct desk *desk);

/*
 * Send `batch` when its turn comes.  It is taken over in any case, and each is
 * a transaction of its own.  ERR_RETRY if the database is away or too many
 * wait; `done` is as for pg_submit().
 */
int desk_submit(struct desk *desk, struct pg_batch *batch, pg_done_fn *done,
    void *arg, struct err *err);

/* The same, before all others and however many wait: for one who has never more
 * than one batch here. */
int desk_submit_first(struct desk *desk, struct pg_batch *batch,
    pg_done_fn *done, void *arg, struct err *err);

#endif
