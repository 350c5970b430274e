/*
 * claimer: a dispatcher's passes over the queue, on one connection.
 *
 *	         +--------------------------- idle <-----------------+
 *	         | notified, timer, place free                       |
 *	         v                                                   |
 *	reclaim, wake, take turns, claim lanes --> load endpoints
 *	         |                        |
 *	         +-- nobody's turn        +-- nothing claimed --> rest turns
 *
 * A pass is one transaction in one batch: no lock is held while an answer
 * travels, nor by a dispatcher that is frozen.  One batch is in flight at a
 * time; what is to be done next is decided anew after each, in claimer_step().
 * A pass is followed by another if that would find more, at once or, if there was
 * little room, after a rest (pace.h).
 */

#ifndef DISPATCH_CLAIMER_H
#define DISPATCH_CLAIMER_H

#include <stdbool.h>

#include "base/clock.h"

struct claimer;
struct err;
struct lane_lease;
struct pg_rows;
struct worker;

int claimer_open(struct claimer **out, struct worker *worker, struct err *err);

/* Free it with the attempts that wait in it.  NULL is fine. */
void claimer_close(struct claimer *claimer);

/* In `wait` something falls due: wake its turn then, and claim it. */
void claimer_due(struct claimer *claimer, usec_t wait);

/* Outcomes were recorded, or could not be: there may be more to claim. */
void claimer_recorded(struct claimer *claimer);

/* There is room again: go on with a pass that waits for it. */
void claimer_room(struct claimer *claimer);

/*
 * Attempt what has just been leased, once its endpoint is known: `row` of the
 * answer to lane_bodies() is its body.  A lease whose body is another's is given
 * back.
 */
void claimer_begin(struct claimer *claimer, struct lane_lease *lease,
    const struct pg_rows *bodies, int row, usec_t leased_at);

/* Claim nothing more; give back what has not been started. */
void claimer_stop(struct claimer *claimer);

/* No answer is to come that could bring leases. */
bool claimer_is_idle(const struct claimer *claimer);

#endif
