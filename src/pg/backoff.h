/* backoff: how long to wait before the next try to connect. */

#ifndef PG_BACKOFF_H
#define PG_BACKOFF_H

#include <stdint.h>

#include "base/clock.h"

/*
 * A wait from `min` up to a limit that doubles with each of the `tries` made,
 * up to `max`; `dice`, any number, picks it.  Many hosts that lost their server
 * at once do not come back at once.
 */
usec_t backoff_wait(int tries, usec_t min, usec_t max, uint64_t dice);

#endif
