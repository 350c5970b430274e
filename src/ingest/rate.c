#include "rate.h"

#define NSEC_PER_USEC 1000
#define NSEC_PER_SEC (USEC_PER_SEC * NSEC_PER_USEC)

/* The key's bucket, or the one to be forgotten for it. */
static struct rate_bucket *
find(struct rate *rate, int64_t key_id)
{
	struct rate_bucket *set = rate->buckets[key_id % RATE_SETS];
	struct rate_bucket *least = &set[0];

	for (int i = 0; i < RATE_WAYS; i++) {
		if (set[i].key_id == key_id)
			return &set[i];
		if (set[i].full_at < least->full_at)
			least = &set[i];
	}
	*least = (struct rate_bucket){ .key_id = key_id };
	return least;
}

bool
rate_take(struct rate *rate, int64_t key_id, int64_t per_second, usec_t now)
{
	struct rate_bucket *bucket = find(rate, key_id);
	int64_t at = now * NSEC_PER_USEC;
	int64_t full_at = bucket->full_at > at ? bucket->full_at : at;

	full_at += NSEC_PER_SEC / per_second;
	if (full_at > at + NSEC_PER_SEC)
		return false;
	bucket->full_at = full_at;
	return true;
}
