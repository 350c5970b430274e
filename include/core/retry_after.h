/* retry_after: the Retry-After header, RFC 9110 section 10.2.3. */

#ifndef CORE_RETRY_AFTER_H
#define CORE_RETRY_AFTER_H

#include "base/clock.h"

#define RETRY_AFTER_MAX (86400 * USEC_PER_SEC) /* the longest believed */

/*
 * How long `value` asks to wait, seen from `now` on the wall clock: seconds
 * (a fraction is rounded up) or one of the three forms of HTTP-date.  Clamped
 * to 0..RETRY_AFTER_MAX; a date in the past is 0.  -1 if it is neither.
 */
usec_t retry_after_parse(const char *value, usec_t now);

#endif
