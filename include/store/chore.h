/*
 * chore: what a dispatcher does now and then, in small steps.
 *
 * Each step is one short transaction, the whole of a batch.  Its last answer
 * has one row, which chore_read() takes.  Any number of dispatchers may be at
 * it at once.
 */

#ifndef STORE_CHORE_H
#define STORE_CHORE_H

#include "base/clock.h"

struct pg_batch;
struct pg_rows;

struct chore_step {
	int did; /* how much; 0: nothing */
	usec_t next_in; /* until there is more to do; -1: nothing is known */
};

/* Cancel what deleted subscriptions have unfinished. */
void chore_cancel(struct pg_batch *batch);

/* Forget payloads, and the log, of events that are over for `age`, at least
 * CHORE_AGE_MIN. */
#define CHORE_AGE_MIN (3600 * USEC_PER_SEC)
void chore_forget_payload(struct pg_batch *batch, usec_t age);
void chore_forget_log(struct pg_batch *batch, usec_t age);

/*
 * Tell whoever subscribed to it what happened: operational events.  `old` is from
 * which age of its oldest waiting delivery on a backlog is old; 0: none is.
 */
void chore_tell(struct pg_batch *batch, usec_t old);

/* Count attempts into the history, and forget what of it is old. */
void chore_history(struct pg_batch *batch);

void chore_read(const struct pg_rows *rows, struct chore_step *out);

#endif
