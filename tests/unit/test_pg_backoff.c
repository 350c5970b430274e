#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../src/pg/backoff.h"

static const struct {
	const char *label;
	int tries;
	usec_t min, max;
	usec_t longest; /* the shortest is `min` */
} waits[] = {
	{ "the first", 0, 100, 10000, 200 },
	{ "the second", 1, 100, 10000, 400 },
	{ "the fifth", 4, 100, 10000, 3200 },
	{ "at the cap", 7, 100, 10000, 10000 },
	{ "long after", 1000000, 100, 10000, 10000 },
	{ "a cap that is no power", 3, 3, 47, 47 },
	{ "no room to choose", 5, 100, 100, 100 },
	{ "a cap below the minimum", 5, 100, 10, 100 },
	{ "at once allowed", 0, 0, 8, 2 },
	{ "the largest cap", 1000, 1, INT64_MAX, INT64_MAX },
};

static void
test_waits_lie_between_the_least_and_a_limit_that_doubles(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		usec_t min = waits[i].min, longest = waits[i].longest;
		uint64_t span = (uint64_t)(longest - min);

		if (backoff_wait(waits[i].tries, min, waits[i].max, 0) != min ||
		    backoff_wait(waits[i].tries, min, waits[i].max, span) !=
			longest ||
		    backoff_wait(waits[i].tries, min, waits[i].max, span + 1) !=
			min)
			fail_msg("%s", waits[i].label);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_waits_lie_between_the_least_and_a_limit_that_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
