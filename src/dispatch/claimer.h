/*
 * claimer: a dispatcher's passes over the queue, on one connection.
 *
 *	         +--------------------------- idle <-----------------+
 *	         | notified, timer, place free                       |
 *	         v                                                   |
 *	reclaim, wake, take turns, claim lanes --> load endpoints, bodies
 *	         |                        |
 *	         +-- nobody's turn        +-- nothing claimed --> rest turns
 *
 * A pass is one transaction in one batch: no lock is held while an answer
 * travels, nor by a dispatcher that is frozen.  One batch is in flight at a
 * time; what is to be done next is decided anew after each, in claimer.c's
 * step().  A pass that found turns is followed by another at once.
 */

#ifndef DISPATCH_CLAIMER_H
#define DISPATCH_CLAIMER_H

#include <stdbool.h>

#include "base/clock.h"

struct attempt;
struct claimer;
struct err;
struct worker;

int claimer_open(struct claimer **out, struct worker *worker, struct err *err);

/* Free it with the attempts that wait in it.  NULL is fine. */
void claimer_close(struct claimer *claimer);

/* Look at the queue within `wait`: there will be work. */
void claimer_look(struct claimer *claimer, usec_t wait);

/* Outcomes were recorded, or could not be: there may be more to claim. */
void claimer_recorded(struct claimer *claimer);

/* There is room again: go on with a pass that waits for it. */
void claimer_room(struct claimer *claimer);

/* Start an attempt once its endpoint is known. */
void claimer_start(struct claimer *claimer, struct attempt *attempt);

/* Claim nothing more; give back what has not been started. */
void claimer_stop(struct claimer *claimer);

/* No answer is to come that could bring leases. */
bool claimer_is_idle(const struct claimer *claimer);

#endif
