/*
 * behaviour: what an endpoint does to a request, by its path and the number
 * of requests of that event before.  Pure.
 *
 *	/normal            200
 *	/response-loss     takes the event, then hangs up; from the second on 200
 *	/rejected          422
 *	/flaky?fail=N      503 for the first N (2), then 200
 *	/slow?ms=M         200 after M milliseconds (1000)
 *	/never             no answer, and the connection stays
 *	/endless           200 with a body that does not end
 *	/redirect          302 to /normal
 *	/throttle          429 with Retry-After: 1, then 200
 *	/gone              410
 *	/status/NNN        NNN
 *
 * What follows after a further slash is a free label: /normal/a and /normal/b
 * are two endpoints that behave alike.
 */

#ifndef RECEIVER_BEHAVIOUR_H
#define RECEIVER_BEHAVIOUR_H

#include <stdbool.h>

#include "base/clock.h"

enum behaviour_kind {
	BEHAVIOUR_ANSWER,
	BEHAVIOUR_HANG_UP,
	BEHAVIOUR_HOLD, /* keep the connection and say nothing */
	BEHAVIOUR_STREAM, /* answer with an endless body */
};

struct behaviour {
	enum behaviour_kind kind;
	int status; /* 0 if there is no answer */
	usec_t delay; /* before the answer */
	bool takes_effect; /* the event is applied */
	const char *header, *value; /* of the answer, or NULL */
};

/* False if no endpoint is at `path`, or `query` is not for it. */
bool behaviour_is_known(const char *path, const char *query);

/* For the `nth` request (from 1) of one event at an endpoint that is known. */
struct behaviour behaviour_decide(const char *path, const char *query, int nth);

#endif
