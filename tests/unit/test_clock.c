#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

static void
test_now_never_goes_back(void **state)
{
	usec_t before = clock_now();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		usec_t now = clock_now();

		assert_true(now >= before);
		before = now;
	}
	assert_true(before > 0);
}

static void
test_wall_is_the_systems_time(void **state)
{
	time_t before = time(NULL);
	usec_t wall = clock_wall();
	time_t after = time(NULL);

	(void)state;
	/* time() may lag the exact clock by a tick. */
	assert_true(wall / USEC_PER_SEC >= before);
	assert_true(wall / USEC_PER_SEC <= after + 1);
}

static void
test_a_duration_becomes_a_timeval(void **state)
{
	static const struct {
		const char *label;
		usec_t duration;
		long sec, usec;
	} rows[] = {
		{ "zero", 0, 0, 0 },
		{ "microseconds", 999999, 0, 999999 },
		{ "a second", USEC_PER_SEC, 1, 0 },
		{ "both", 2 * USEC_PER_SEC + 5 * USEC_PER_MS, 2, 5000 },
		{ "negative", -1, 0, 0 },
		{ "the least", INT64_MIN, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct timeval tv = clock_timeval(rows[i].duration);

		print_message("  %s\n", rows[i].label);
		assert_int_equal(tv.tv_sec, rows[i].sec);
		assert_int_equal(tv.tv_usec, rows[i].usec);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_now_never_goes_back),
		cmocka_unit_test(test_wall_is_the_systems_time),
		cmocka_unit_test(test_a_duration_becomes_a_timeval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
