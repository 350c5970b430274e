/* What a dispatcher does together: rests between transactions, turns of a pass. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/pace.h"

enum { BATCH = 500, MOST = 200 };

static void
test_small_transactions_leave_time_between_them(void **state)
{
	(void)state;
	assert_int_equal(pace_rest(2000, 1, BATCH, BATCH), 2000);
	assert_int_equal(pace_rest(2000, BATCH / 4 - 1, BATCH, BATCH), 2000);
	assert_int_equal(pace_rest(2000, BATCH / 4, BATCH, BATCH), 0);
	assert_int_equal(pace_rest(2000, 1, BATCH, BATCH / 4), 2000);
}

static void
test_where_all_places_are_taken_transactions_are_large(void **state)
{
	(void)state;
	assert_int_equal(
	    pace_rest(2000, BATCH / 4 - 1, BATCH, BATCH / 4 - 1), 6000);
	assert_int_equal(pace_rest(2000, 24, BATCH, 0), 22000);
	assert_int_equal(pace_rest(2000, 24, BATCH, BATCH / 4), 2000);
}

static void
test_no_rest_is_long(void **state)
{
	(void)state;
	assert_int_equal(
	    pace_rest(10 * USEC_PER_SEC, 1, BATCH, BATCH), 100 * USEC_PER_MS);
	assert_int_equal(
	    pace_rest(60 * USEC_PER_MS, 1, BATCH, 0), 100 * USEC_PER_MS);
}

static void
test_where_there_are_few_places_none_is_too_small(void **state)
{
	(void)state;
	for (int most = 1; most < 4; most++)
		assert_int_equal(pace_rest(2000, 0, most, 0), 0);
}

/* Passes one after the other, over subscriptions that have so many lanes each. */
static int
settle(int turns, int room, int lanes_each)
{
	for (int i = 0; i < 20; i++) {
		int found = turns * lanes_each;

		turns =
		    pace_turns(turns, MOST, room, found < room ? found : room);
		assert_in_range(turns, 1, MOST);
	}
	return turns;
}

static void
test_turns_that_have_much_are_few(void **state)
{
	(void)state;
	assert_in_range(settle(MOST, BATCH, 1000), 31, 33);
	assert_in_range(settle(MOST, 20, 1000), 1, 3);
	assert_int_equal(settle(MOST, 1, 1000), 1);
}

static void
test_turns_that_have_little_are_many(void **state)
{
	(void)state;
	assert_int_equal(settle(1, BATCH, 1), MOST);
	assert_int_equal(settle(1, BATCH, 0), MOST);
	assert_in_range(settle(1, 100, 1), 50, MOST);
	/* And few again once they have more. */
	assert_in_range(settle(settle(1, BATCH, 0), BATCH, 50), 31, 33);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_small_transactions_leave_time_between_them),
		cmocka_unit_test(
		    test_where_all_places_are_taken_transactions_are_large),
		cmocka_unit_test(test_no_rest_is_long),
		cmocka_unit_test(
		    test_where_there_are_few_places_none_is_too_small),
		cmocka_unit_test(test_turns_that_have_much_are_few),
		cmocka_unit_test(test_turns_that_have_little_are_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
