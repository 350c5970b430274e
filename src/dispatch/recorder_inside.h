/* recorder_inside: what the recorder*.c share. */

#ifndef DISPATCH_RECORDER_INSIDE_H
#define DISPATCH_RECORDER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "dispatch/attempt.h"
#include "dispatch/outage.h"
#include "dispatch/recorder.h"
#include "dispatch/timer.h"

struct pg_batch;
struct session;

struct recorder {
	struct worker *worker;
	struct session *session;
	struct outage outage;
	struct timer flush; /* runs from the loop, after what made outcomes */
	struct attempt_list waiting;
	int nwaiting;
	usec_t rests_until; /* no record before, if more is to come */
	/* The batch under way, and what is kept of each; conf->batch places. */
	struct attempt **in_hand;
	const struct delivery_outcome **outcomes;
	size_t nin_hand;
	bool is_short; /* the batch goes through delivery_taken() */
	bool is_urgent; /* all its lanes wait to go on */
	usec_t submitted_at;
	size_t suspects; /* of a batch refused: the first to wait go alone */
	bool is_failing; /* the last transaction did not go through */
};

/* How long to wait for outcomes to be recorded together. */
usec_t recorder_rest_left(const struct recorder *recorder);

/* Its lane waits to go on: a rest is not for it. */
bool recorder_is_urgent(
    const struct recorder *recorder, const struct attempt *attempt);

/* Not what delivery_taken() is for.  Until it is recorded, and for a moment, the
 * outcomes of its subscription are recorded together, in their order: failures in a
 * row are counted, and a success ends them. */
void recorder_complicate(struct attempt *attempt);

/* Take in hand the first that waits, and of the others those of its kind; during a
 * rest only those whose lanes go on.  False if there is none. */
bool recorder_take(struct recorder *recorder);

/* Add the calls that record what is in hand. */
void recorder_put(const struct recorder *recorder, struct pg_batch *batch);

#endif
