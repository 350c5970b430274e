/*
 * pace: how often, and of how much at once, for a dispatcher that has much to do.
 *
 * A transaction has a cost of its own, whatever is in it.  Small ones after each
 * other, on many dispatchers, would take the processors from the requests that
 * they wait for.
 */

#ifndef DISPATCH_PACE_H
#define DISPATCH_PACE_H

#include "base/clock.h"

/* Of `most` lanes that a transaction can ever have, how many make one that is no
 * small one. */
int pace_enough(int most);

/*
 * How long not to begin the next transaction of a kind, unless there is enough for
 * it, after one that took so long for so few `lanes`.  What comes meanwhile shares
 * one.  Small transactions take half of the time at most, and less of it where
 * there was no `room` for more, since all that can be in flight is.
 */
usec_t pace_rest(usec_t took, int lanes, int most, int room);

/*
 * How many turns the next pass takes, at most `most`, if one of so many has
 * `found` lanes for `room`: fewer, if those will fill it too, or more.  Each has a
 * cost of its own, and other dispatchers cannot have it meanwhile.
 */
int pace_turns(int turns, int most, int room, int found);

#endif
