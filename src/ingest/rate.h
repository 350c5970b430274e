/*
 * rate: how often each key may ask.
 *
 * A key has a bucket that holds a second's worth of requests, kept as one time:
 * when it will be full again.  A full one needs no memory.  There is room for
 * some thousand keys that asked within the last second; beyond that the one
 * that is full soonest is forgotten, which lets it ask too much, not too little.
 */

#ifndef INGEST_RATE_H
#define INGEST_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

enum { RATE_SETS = 512, RATE_WAYS = 8, RATE_MAX = 1000000 };

/* Zeroed to begin with. */
struct rate {
	struct rate_bucket {
		int64_t key_id;
		int64_t full_at; /* nanoseconds */
	} buckets[RATE_SETS][RATE_WAYS];
};

/* Take one of this key's `per_second`, 1 to RATE_MAX; false if none is left. */
bool rate_take(
    struct rate *rate, int64_t key_id, int64_t per_second, usec_t now);

#endif
