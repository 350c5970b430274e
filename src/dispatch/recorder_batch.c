#include <stdint.h>

#include "dispatch/endpoints.h"
#include "dispatch/pace.h"
#include "dispatch/recorder_inside.h"
#include "dispatch/worker.h"

/* After an outcome that delivery_taken() is not for. */
#define INTRICATE_FOR USEC_PER_SEC

usec_t
recorder_rest_left(const struct recorder *recorder)
{
	const struct worker *worker = recorder->worker;
	usec_t left = recorder->rests_until - clock_now();
	bool is_enough =
	    recorder->nwaiting >= pace_enough(worker_room_max(worker)) ||
	    recorder->nwaiting == worker->held;

	return left > 0 && !is_enough ? left : 0;
}

/* What delivery_taken() is for: not for what is sent at a rate, nor beside what
 * has to be judged together. */
static bool
is_short(const struct recorder *recorder, const struct attempt *attempt)
{
	return recorder->suspects == 0 && !attempt->is_intricate &&
	       attempt->lease.begin_within == INT64_MAX &&
	       delivery_is_plain(&attempt->outcome) &&
	       attempt->endpoint->nintricate == 0 &&
	       clock_now() >= attempt->endpoint->intricate_until;
}

void
recorder_complicate(struct attempt *attempt)
{
	struct endpoint_ref *endpoint = attempt->endpoint;

	if (endpoint != NULL && !attempt->is_intricate) {
		endpoint->nintricate++;
		endpoint->intricate_until = clock_now() + INTRICATE_FOR;
	}
	attempt->is_intricate = true;
}

/* A full dispatcher lets go of lanes, for those that wait for a turn. */
static bool
hands_back(const struct recorder *recorder)
{
	return !recorder->worker->stopping && worker_room(recorder->worker) > 0;
}

bool
recorder_is_urgent(
    const struct recorder *recorder, const struct attempt *attempt)
{
	return attempt->lease.goes_on && hands_back(recorder) &&
	       is_short(recorder, attempt);
}

bool
recorder_take(struct recorder *recorder)
{
	size_t limit =
	    recorder->suspects > 0 ? 1 : (size_t)recorder->worker->conf->batch;
	struct attempt *attempt, *next;
	bool rests = recorder_rest_left(recorder) > 0, goes_on;
	size_t n = 0;

	attempt = TAILQ_FIRST(&recorder->waiting);
	recorder->is_short = rests || is_short(recorder, attempt);
	recorder->is_urgent = true;
	for (; n < limit && attempt != NULL; attempt = next) {
		next = TAILQ_NEXT(attempt, entry);
		goes_on = recorder_is_urgent(recorder, attempt);
		if (rests ? !goes_on
			  : is_short(recorder, attempt) != recorder->is_short)
			continue;
		recorder->is_urgent = recorder->is_urgent && goes_on;
		TAILQ_REMOVE(&recorder->waiting, attempt, entry);
		recorder->nwaiting--;
		recorder->outcomes[n] = &attempt->outcome;
		recorder->in_hand[n++] = attempt;
	}
	recorder->nin_hand = n;
	recorder->suspects -= n > 0 && recorder->suspects > 0;
	return n > 0;
}

void
recorder_put(const struct recorder *recorder, struct pg_batch *batch)
{
	usec_t margin = recorder->worker->conf->lease_margin;
	bool is_handed_back = hands_back(recorder);
	enum delivery_fate fate = recorder->is_urgent ? DELIVERY_GOES_ON
	                          : is_handed_back    ? DELIVERY_ANY
	                                              : DELIVERY_LET_GO;

	if (recorder->is_short)
		delivery_taken(batch, recorder->outcomes, recorder->nin_hand,
		    fate, margin);
	else
		delivery_record(batch, recorder->outcomes, recorder->nin_hand,
		    is_handed_back, margin);
}
