/* rfc3339: times as people and programs write them, RFC 3339. */

#ifndef CORE_RFC3339_H
#define CORE_RFC3339_H

#include <stddef.h>

#include "base/clock.h"

/*
 * The time that `text` names, since 1970: "2026-01-31T12:00:00Z",
 * "2026-01-31T14:00:00.250+02:00".  The date and the time of day are whole, the
 * offset is there, and a fraction of a second counts to the microsecond.  -1 if
 * it is anything else, or before 1970; so is a leap second.
 */
usec_t rfc3339_parse(const char *text, size_t len);

enum { RFC3339_SIZE = sizeof("2026-01-31T12:00:00.000000Z") };

/*
 * Write `time`, in years 1970 to 9999, in UTC and with `digits` of a second's
 * fraction, 1 to 6; the rest is cut.  Returns the length without the NUL.
 */
size_t rfc3339_print(char out[RFC3339_SIZE], usec_t time, int digits);

#endif
