/*
 * clock: the two clocks of a host.
 *
 * Durable time is the database's.  These serve durations inside one process
 * and the timestamp of a signature.
 */

#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct timeval;

/* Microseconds; a duration or a point on one of the clocks below. */
typedef int64_t usec_t;

#define USEC_PER_MS ((usec_t)1000)
#define USEC_PER_SEC ((usec_t)1000000)

/* Since boot, suspension included: never goes back.  For durations. */
usec_t clock_now(void);

/* Since 1970-01-01 UTC.  For timestamps that others read. */
usec_t clock_wall(void);

/* `duration` as libevent takes it; negative becomes zero. */
struct timeval clock_timeval(usec_t duration);

#endif
