/*
 * verdict: what becomes of a delivery after an attempt (design: outcomes).
 *
 *	2xx                                          delivered
 *	408, 425, 429, 5xx, no answer, lease expired retry, or dead after the last
 *	410                                          dead, subscription disabled
 *	any other status                             dead
 *	refused by policy, or cannot be sent at all  dead, with the reason
 *
 * Whoever answers 429, 502, 503 or 504 is overloaded, and says so for all that
 * is sent to it.
 *
 * Pure: time and chance come in as arguments.
 */

#ifndef CORE_VERDICT_H
#define CORE_VERDICT_H

#include <stdbool.h>

#include "base/clock.h"

/* The longest that one answer keeps all others from being sent. */
#define VERDICT_SLOWS_MAX (300 * USEC_PER_SEC)

/* How one try at sending ended. */
enum send_end {
	SEND_ANSWERED, /* a whole response; `status` says which */
	SEND_DNS_FAILED,
	SEND_CONNECT_FAILED,
	SEND_TLS_FAILED,
	SEND_TIMED_OUT,
	SEND_BROKEN, /* the response was cut short, or was no HTTP */
	SEND_REFUSED, /* the address policy forbids it; nothing was sent */
	SEND_IMPOSSIBLE, /* it cannot be sent as it is (a poison row) */
	SEND_LEASE_EXPIRED, /* the worker that held it vanished */
	SEND_UNSENT, /* no request was made; it costs no attempt */
};

enum verdict_kind {
	VERDICT_DELIVERED,
	VERDICT_RETRY,
	VERDICT_DEAD,
	VERDICT_RELEASE, /* back to the queue, no attempt consumed */
};

struct retry_policy {
	usec_t base; /* the wait after the first failure */
	usec_t cap; /* the longest wait */
	int max_attempts; /* at least 1 */
	bool jitter;
};

struct verdict {
	enum verdict_kind kind;
	bool disables; /* the subscription is to be disabled (410) */
	usec_t wait; /* VERDICT_RETRY: from now until the next attempt */
	/* The endpoint is overloaded, and wants no request at all for so long:
	 * 0..VERDICT_SLOWS_MAX, 0 if it did not say.  -1: it is not. */
	usec_t slows;
};

/*
 * Judge attempt number `attempt` (the first is 1) that ended as `end` with
 * `status` (0 if none) and asked to wait `retry_after` (-1 if it did not).
 * `dice` is a fresh random number in 0..999999.
 *
 * Backoff is min(cap, base * 2^(attempt-1)).  With jitter the wait is drawn
 * from its upper half.  Retry-After is honoured up to the cap, drawn from it
 * to a tenth more with jitter, and never shortens the backoff.
 */
struct verdict verdict_decide(const struct retry_policy *policy, int attempt,
    enum send_end end, int status, usec_t retry_after, int dice);

/* The word for `end` in SQL, JSON and logs: "answered", "timed_out", ... */
const char *send_end_name(enum send_end end);

#endif
