#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/verdict.h"

#define S USEC_PER_SEC
#define HOUR (3600 * S)

static const struct retry_policy plain = {
	.base = 5 * S,
	.cap = HOUR,
	.max_attempts = 8,
};

static const struct outcome {
	const char *label;
	int attempt;
	enum send_end end;
	int status;
	enum verdict_kind kind;
	bool disables;
} outcomes[] = {
	{ "200", 1, SEND_ANSWERED, 200, VERDICT_DELIVERED, false },
	{ "204", 1, SEND_ANSWERED, 204, VERDICT_DELIVERED, false },
	{ "299", 1, SEND_ANSWERED, 299, VERDICT_DELIVERED, false },
	{ "200, last", 8, SEND_ANSWERED, 200, VERDICT_DELIVERED, false },
	{ "no status", 1, SEND_ANSWERED, 0, VERDICT_DEAD, false },
	{ "101", 1, SEND_ANSWERED, 101, VERDICT_DEAD, false },
	{ "199", 1, SEND_ANSWERED, 199, VERDICT_DEAD, false },
	{ "300", 1, SEND_ANSWERED, 300, VERDICT_DEAD, false },
	{ "301", 1, SEND_ANSWERED, 301, VERDICT_DEAD, false },
	{ "304", 1, SEND_ANSWERED, 304, VERDICT_DEAD, false },
	{ "308", 1, SEND_ANSWERED, 308, VERDICT_DEAD, false },
	{ "400", 1, SEND_ANSWERED, 400, VERDICT_DEAD, false },
	{ "401", 1, SEND_ANSWERED, 401, VERDICT_DEAD, false },
	{ "404", 1, SEND_ANSWERED, 404, VERDICT_DEAD, false },
	{ "407", 1, SEND_ANSWERED, 407, VERDICT_DEAD, false },
	{ "408", 1, SEND_ANSWERED, 408, VERDICT_RETRY, false },
	{ "409", 1, SEND_ANSWERED, 409, VERDICT_DEAD, false },
	{ "410", 1, SEND_ANSWERED, 410, VERDICT_DEAD, true },
	{ "410, last", 8, SEND_ANSWERED, 410, VERDICT_DEAD, true },
	{ "411", 1, SEND_ANSWERED, 411, VERDICT_DEAD, false },
	{ "422", 1, SEND_ANSWERED, 422, VERDICT_DEAD, false },
	{ "424", 1, SEND_ANSWERED, 424, VERDICT_DEAD, false },
	{ "425", 1, SEND_ANSWERED, 425, VERDICT_RETRY, false },
	{ "426", 1, SEND_ANSWERED, 426, VERDICT_DEAD, false },
	{ "428", 1, SEND_ANSWERED, 428, VERDICT_DEAD, false },
	{ "429", 1, SEND_ANSWERED, 429, VERDICT_RETRY, false },
	{ "499", 1, SEND_ANSWERED, 499, VERDICT_DEAD, false },
	{ "500", 1, SEND_ANSWERED, 500, VERDICT_RETRY, false },
	{ "503", 7, SEND_ANSWERED, 503, VERDICT_RETRY, false },
	{ "503, last", 8, SEND_ANSWERED, 503, VERDICT_DEAD, false },
	{ "503, past the last", 9, SEND_ANSWERED, 503, VERDICT_DEAD, false },
	{ "599", 1, SEND_ANSWERED, 599, VERDICT_RETRY, false },
	{ "600", 1, SEND_ANSWERED, 600, VERDICT_DEAD, false },
	{ "999", 1, SEND_ANSWERED, 999, VERDICT_DEAD, false },
	{ "DNS", 1, SEND_DNS_FAILED, 0, VERDICT_RETRY, false },
	{ "DNS, last", 8, SEND_DNS_FAILED, 0, VERDICT_DEAD, false },
	{ "connect", 1, SEND_CONNECT_FAILED, 0, VERDICT_RETRY, false },
	{ "connect, last", 8, SEND_CONNECT_FAILED, 0, VERDICT_DEAD, false },
	{ "TLS", 1, SEND_TLS_FAILED, 0, VERDICT_RETRY, false },
	{ "TLS, last", 8, SEND_TLS_FAILED, 0, VERDICT_DEAD, false },
	{ "time-out", 1, SEND_TIMED_OUT, 0, VERDICT_RETRY, false },
	{ "time-out, last", 8, SEND_TIMED_OUT, 0, VERDICT_DEAD, false },
	{ "broken", 1, SEND_BROKEN, 0, VERDICT_RETRY, false },
	{ "a cut 200", 1, SEND_BROKEN, 200, VERDICT_RETRY, false },
	{ "a cut 410", 1, SEND_BROKEN, 410, VERDICT_RETRY, false },
	{ "broken, last", 8, SEND_BROKEN, 0, VERDICT_DEAD, false },
	{ "lease", 1, SEND_LEASE_EXPIRED, 0, VERDICT_RETRY, false },
	{ "lease, last", 8, SEND_LEASE_EXPIRED, 0, VERDICT_DEAD, false },
	{ "policy", 1, SEND_REFUSED, 0, VERDICT_DEAD, false },
	{ "poison", 1, SEND_IMPOSSIBLE, 0, VERDICT_DEAD, false },
	{ "unsent", 1, SEND_UNSENT, 0, VERDICT_RELEASE, false },
	{ "unsent, last", 8, SEND_UNSENT, 0, VERDICT_RELEASE, false },
};

static void
test_each_way_an_attempt_ends_has_its_outcome(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		const struct outcome *row = &outcomes[i];
		struct verdict verdict = verdict_decide(
		    &plain, row->attempt, row->end, row->status, -1, 0);

		if (verdict.kind != row->kind ||
		    verdict.disables != row->disables)
			fail_msg("%s: kind %d, disables %d", row->label,
			    (int)verdict.kind, verdict.disables);
		if ((verdict.kind == VERDICT_RETRY) != (verdict.wait > 0))
			fail_msg("%s: only a retry waits", row->label);
	}
}

static const struct wait {
	const char *label;
	usec_t base, cap;
	int attempt;
	usec_t retry_after;
	usec_t wait;
} waits[] = {
	{ "first", 5 * S, HOUR, 1, -1, 5 * S },
	{ "second", 5 * S, HOUR, 2, -1, 10 * S },
	{ "fifth", 5 * S, HOUR, 5, -1, 80 * S },
	{ "tenth", 5 * S, HOUR, 10, -1, 2560 * S },
	{ "eleventh meets the cap", 5 * S, HOUR, 11, -1, HOUR },
	{ "exactly the cap", S, 8 * S, 4, -1, 8 * S },
	{ "30", 5 * S, HOUR, 30, -1, HOUR },
	{ "1000", 5 * S, HOUR, 1000, -1, HOUR },
	{ "2147483646", 5 * S, HOUR, INT_MAX - 1, -1, HOUR },
	{ "largest cap", 1, INT64_MAX, 1000, -1, INT64_MAX },
	{ "largest base", INT64_MAX, INT64_MAX, 1000, -1, INT64_MAX },
	{ "base above cap", 2 * HOUR, HOUR, 1, -1, HOUR },
	{ "no base", 0, HOUR, INT_MAX - 1, -1, 0 },
	{ "negative base", -S, HOUR, INT_MAX - 1, -1, 0 },
	{ "asked for 0", 5 * S, HOUR, 1, 0, 5 * S },
	{ "asked for less", 5 * S, HOUR, 3, 19 * S, 20 * S },
	{ "asked for more", 5 * S, HOUR, 3, 21 * S, 21 * S },
	{ "asked for the cap", 5 * S, HOUR, 3, HOUR, HOUR },
	{ "asked for too much", 5 * S, HOUR, 3, 24 * HOUR, HOUR },
};

static void
test_waits_double_to_the_cap_and_honour_retry_after(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		const struct wait *row = &waits[i];
		const struct retry_policy policy = {
			.base = row->base,
			.cap = row->cap,
			.max_attempts = INT_MAX,
		};
		struct verdict verdict = verdict_decide(&policy, row->attempt,
		    SEND_ANSWERED, 503, row->retry_after, 999999);

		assert_int_equal(verdict.kind, VERDICT_RETRY);
		if (verdict.wait != row->wait)
			fail_msg(
			    "%s: %lld", row->label, (long long)verdict.wait);
	}
}

static const struct slow {
	const char *label;
	int status;
	usec_t retry_after;
	usec_t slows;
} slow[] = {
	{ "429", 429, -1, 0 },
	{ "502", 502, -1, 0 },
	{ "503", 503, -1, 0 },
	{ "504", 504, -1, 0 },
	{ "503, now", 503, 0, 0 },
	{ "503, later", 503, 7 * S, 7 * S },
	{ "503, five minutes", 503, 300 * S, 300 * S },
	{ "503, a day", 503, 24 * HOUR, 300 * S },
	{ "200, later", 200, 7 * S, -1 },
	{ "301, later", 301, 7 * S, -1 },
	{ "408, later", 408, 7 * S, -1 },
	{ "413, later", 413, 7 * S, -1 },
	{ "425", 425, -1, -1 },
	{ "428", 428, -1, -1 },
	{ "430", 430, -1, -1 },
	{ "500, later", 500, 7 * S, -1 },
	{ "501", 501, -1, -1 },
	{ "505", 505, -1, -1 },
	{ "no answer", 0, -1, -1 },
};

/* Also at the last attempt, and where the answer was cut short. */
static void
test_an_overloaded_endpoint_slows_down_all_that_is_sent_to_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
		for (int attempt = 1; attempt <= plain.max_attempts; attempt++)
			for (int end = SEND_ANSWERED; end <= SEND_BROKEN; end++)
				if (verdict_decide(&plain, attempt,
					(enum send_end)end, slow[i].status,
					slow[i].retry_after, 999999)
					.slows != slow[i].slows)
					fail_msg("%s", slow[i].label);
}

static void
test_the_largest_attempt_number_is_the_last(void **state)
{
	struct retry_policy policy = plain;

	(void)state;
	policy.max_attempts = INT_MAX;
	assert_int_equal(VERDICT_DEAD,
	    verdict_decide(&policy, INT_MAX, SEND_TIMED_OUT, 0, -1, 0).kind);
}

static void
test_jitter_draws_from_the_upper_half_of_the_backoff(void **state)
{
	static const usec_t fulls[] = { 1, 2, 3, S, 7 * S + 1, HOUR,
		INT64_MAX };
	static const int dice[] = { 0, 1, 333333, 500000, 999999 };
	usec_t wait, before;

	(void)state;
	for (size_t i = 0; i < sizeof(fulls) / sizeof(fulls[0]); i++) {
		const struct retry_policy policy = {
			.base = fulls[i],
			.cap = fulls[i],
			.max_attempts = 2,
			.jitter = true,
		};

		before = 0;
		for (size_t d = 0; d < sizeof(dice) / sizeof(dice[0]); d++) {
			wait = verdict_decide(
			    &policy, 1, SEND_ANSWERED, 503, -1, dice[d])
			           .wait;
			if (wait < fulls[i] / 2 || wait > fulls[i] ||
			    wait < before)
				fail_msg("%lld with %d: %lld",
				    (long long)fulls[i], dice[d],
				    (long long)wait);
			before = wait;
		}
	}
}

static void
test_jitter_spreads_retries_over_all_of_that_half(void **state)
{
	struct retry_policy policy = plain;

	(void)state;
	policy.jitter = true;
	policy.base = 10 * S;
	assert_int_equal(
	    5 * S, verdict_decide(&policy, 1, SEND_BROKEN, 0, -1, 0).wait);
	assert_int_equal(7500000,
	    verdict_decide(&policy, 1, SEND_BROKEN, 0, -1, 500000).wait);
	assert_int_equal(9999995,
	    verdict_decide(&policy, 1, SEND_BROKEN, 0, -1, 999999).wait);
}

static usec_t
throttled(usec_t retry_after, bool jitter, int dice)
{
	struct retry_policy policy = plain;

	policy.jitter = jitter;
	return verdict_decide(&policy, 1, SEND_ANSWERED, 429, retry_after, dice)
	    .wait;
}

static void
test_retry_after_is_spread_to_a_tenth_more_and_never_comes_early(void **state)
{
	(void)state;
	assert_int_equal(60 * S, throttled(60 * S, false, 999999));
	assert_int_equal(60 * S, throttled(60 * S, true, 0));
	assert_int_equal(63 * S, throttled(60 * S, true, 500000));
	assert_in_range(throttled(60 * S, true, 999999), 65 * S, 66 * S);
	assert_int_equal(plain.cap, throttled(24 * HOUR, true, 0));
	assert_int_equal(plain.cap, throttled(24 * HOUR, true, 999999));
}

static void
test_each_end_has_a_word_of_its_own(void **state)
{
	(void)state;
	for (int i = SEND_ANSWERED; i <= SEND_UNSENT; i++)
		for (int j = SEND_ANSWERED; j < i; j++)
			assert_string_not_equal(send_end_name((enum send_end)i),
			    send_end_name((enum send_end)j));
	assert_string_equal(send_end_name(SEND_ANSWERED), "answered");
	assert_string_equal(send_end_name(SEND_TIMED_OUT), "timed_out");
	assert_string_equal(send_end_name(SEND_UNSENT), "unsent");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_way_an_attempt_ends_has_its_outcome),
		cmocka_unit_test(
		    test_waits_double_to_the_cap_and_honour_retry_after),
		cmocka_unit_test(
		    test_an_overloaded_endpoint_slows_down_all_that_is_sent_to_it),
		cmocka_unit_test(test_the_largest_attempt_number_is_the_last),
		cmocka_unit_test(
		    test_jitter_draws_from_the_upper_half_of_the_backoff),
		cmocka_unit_test(
		    test_jitter_spreads_retries_over_all_of_that_half),
		cmocka_unit_test(
		    test_retry_after_is_spread_to_a_tenth_more_and_never_comes_early),
		cmocka_unit_test(test_each_end_has_a_word_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
