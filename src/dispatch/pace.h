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

/*
 * How long not to begin the next transaction of a kind, after one that took so
 * long for so few of the `most` lanes that it could ever have.  What comes
 * meanwhile shares one.  Small transactions take half of the time at most, and
 * less where there is little `room` for more than is in flight: then nothing is
 * idle meanwhile.
 */
usec_t pace_rest(usec_t took, int lanes, int most, int room);

/*
 * How many turns the next pass takes, at most `most`, if one of so many has
 * `found` lanes for `room`: fewer, if those will fill it too, or more.  Each has a
 * cost of its own, and other dispatchers cannot have it meanwhile.
 */
int pace_turns(int turns, int most, int room, int found);

#endif
