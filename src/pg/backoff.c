#include "backoff.h"

usec_t
backoff_wait(int tries, usec_t min, usec_t max, uint64_t dice)
{
	usec_t limit = min < 1 ? 1 : min;

	for (int i = 0; i <= tries && limit < max; i++)
		limit = limit <= max / 2 ? limit * 2 : max;
	if (limit <= min)
		return min;
	return min + (usec_t)(dice % (uint64_t)(limit - min + 1));
}
