#include <assert.h>

#include "core/verdict.h"

enum { DICE_SIDES = 1000000 };

/* Double the wait for each failure, up to the cap. */
static usec_t
backoff(const struct retry_policy *policy, int attempt)
{
	usec_t wait = policy->base;

	if (wait <= 0)
		return 0;
	for (int i = 1; i < attempt && wait < policy->cap; i++) {
		if (wait > policy->cap / 2)
			return policy->cap;
		wait *= 2;
	}
	return wait < policy->cap ? wait : policy->cap;
}

/* `dice` millionths of `range`, without the product that overflows. */
static usec_t
share(usec_t range, int dice)
{
	return range / DICE_SIDES * dice +
	       range % DICE_SIDES * dice / DICE_SIDES;
}

static struct verdict
retry_or_dead(const struct retry_policy *policy, int attempt,
    usec_t retry_after, int dice)
{
	usec_t wait;

	if (attempt >= policy->max_attempts)
		return (struct verdict){ .kind = VERDICT_DEAD };

	/* Half fixed, half random: spread out, yet never immediate. */
	wait = backoff(policy, attempt);
	if (policy->jitter)
		wait = wait - wait / 2 + share(wait / 2, dice);
	/* Many were told the same: a tenth more keeps them from coming back in
	 * one instant, and none comes earlier than it was asked to. */
	if (retry_after > 0 && policy->jitter)
		retry_after += share(retry_after / 10, dice);
	if (retry_after > policy->cap)
		retry_after = policy->cap;
	if (wait < retry_after)
		wait = retry_after;
	return (struct verdict){ .kind = VERDICT_RETRY, .wait = wait };
}

static bool
is_passing(int status)
{
	return status == 408 || status == 425 || status == 429 ||
	       (status >= 500 && status <= 599);
}

static struct verdict
decide(const struct retry_policy *policy, int attempt, enum send_end end,
    int status, usec_t retry_after, int dice)
{
	assert(dice >= 0 && dice < DICE_SIDES);

	switch (end) {
	case SEND_ANSWERED:
		if (status >= 200 && status <= 299)
			return (struct verdict){ .kind = VERDICT_DELIVERED };
		if (is_passing(status))
			break;
		return (struct verdict){
			.kind = VERDICT_DEAD,
			.disables = status == 410,
		};
	case SEND_DNS_FAILED:
	case SEND_CONNECT_FAILED:
	case SEND_TLS_FAILED:
	case SEND_TIMED_OUT:
	case SEND_BROKEN:
	case SEND_LEASE_EXPIRED:
		break;
	case SEND_REFUSED:
	case SEND_IMPOSSIBLE:
		return (struct verdict){ .kind = VERDICT_DEAD };
	case SEND_UNSENT:
		return (struct verdict){ .kind = VERDICT_RELEASE };
	}
	return retry_or_dead(policy, attempt, retry_after, dice);
}

static bool
is_overloaded(int status)
{
	return status == 429 || (status >= 502 && status <= 504);
}

static usec_t
slows(int status, usec_t retry_after)
{
	if (!is_overloaded(status))
		return -1;
	if (retry_after > VERDICT_SLOWS_MAX)
		return VERDICT_SLOWS_MAX;
	return retry_after < 0 ? 0 : retry_after;
}

struct verdict
verdict_decide(const struct retry_policy *policy, int attempt,
    enum send_end end, int status, usec_t retry_after, int dice)
{
	struct verdict verdict =
	    decide(policy, attempt, end, status, retry_after, dice);

	verdict.slows = slows(status, retry_after);
	return verdict;
}

const char *
send_end_name(enum send_end end)
{
	switch (end) {
	case SEND_ANSWERED:
		return "answered";
	case SEND_DNS_FAILED:
		return "dns_failed";
	case SEND_CONNECT_FAILED:
		return "connect_failed";
	case SEND_TLS_FAILED:
		return "tls_failed";
	case SEND_TIMED_OUT:
		return "timed_out";
	case SEND_BROKEN:
		return "broken";
	case SEND_REFUSED:
		return "refused";
	case SEND_IMPOSSIBLE:
		return "impossible";
	case SEND_LEASE_EXPIRED:
		return "lease_expired";
	case SEND_UNSENT:
		return "unsent";
	}
	return "unknown";
}
