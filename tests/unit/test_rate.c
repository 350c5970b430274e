#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../src/ingest/rate.h"

#define NOW (1000 * USEC_PER_SEC)

static struct rate rate;

static int
set_up(void **state)
{
	(void)state;
	memset(&rate, 0, sizeof(rate));
	return 0;
}

/* How many of a hundred it may have now. */
static int
taken(int64_t key_id, int64_t per_second, usec_t now)
{
	int n = 0;

	for (int i = 0; i < 100; i++)
		n += rate_take(&rate, key_id, per_second, now);
	return n;
}

static void
test_a_second_is_worth_what_it_says(void **state)
{
	(void)state;
	assert_int_equal(taken(1, 10, NOW), 10);
	assert_int_equal(taken(1, 10, NOW + USEC_PER_SEC / 2), 5);
	assert_int_equal(taken(1, 10, NOW + USEC_PER_SEC / 2), 0);
	assert_int_equal(taken(1, 10, NOW + 60 * USEC_PER_SEC), 10);
	assert_int_equal(taken(2, 1, NOW), 1);
	assert_int_equal(taken(3, RATE_MAX, NOW), 100);
}

static void
test_each_key_has_its_own_also_where_they_meet(void **state)
{
	(void)state;
	for (int64_t i = 0; i < RATE_WAYS; i++)
		assert_int_equal(taken(1 + i * RATE_SETS, 5, NOW + i), 5);
	for (int64_t i = 0; i < RATE_WAYS; i++)
		assert_int_equal(taken(1 + i * RATE_SETS, 5, NOW + i), 0);
	/* One more, and the one that is full soonest is forgotten. */
	assert_int_equal(taken(1 + RATE_WAYS * RATE_SETS, 5, NOW + 9), 5);
	assert_int_equal(taken(1 + RATE_SETS, 5, NOW + 9), 0);
	assert_int_equal(taken(1, 5, NOW + 9), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
		    test_a_second_is_worth_what_it_says, set_up),
		cmocka_unit_test_setup(
		    test_each_key_has_its_own_also_where_they_meet, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
