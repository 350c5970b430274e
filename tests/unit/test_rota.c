#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "store/rota.h"

enum { MANY = 10000, MOST = 200 };

static int
setup(void **state)
{
	struct rota *rota;
	struct err err;

	if (rota_new(&rota, &err) != 0)
		return -1;
	*state = rota;
	return 0;
}

static int
teardown(void **state)
{
	rota_free(*state);
	return 0;
}

/* Tenants own the subscriptions of their thousands: 3 has 3000 to 3999; but 90
 * has all from 90000 on. */
static int64_t
tenant_of(int64_t subscription)
{
	return subscription >= 90000 ? 90 : subscription / 1000;
}

static void
add(struct rota *rota, int64_t first, int64_t n)
{
	for (int64_t i = first; i < first + n; i++)
		rota_add(rota, tenant_of(i), i);
}

static size_t
count_of(int64_t tenant, const int64_t *turns, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += tenant_of(turns[i]) == tenant;
	return count;
}

static void
test_a_tenant_with_many_does_not_push_away_one_with_few(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];

	add(rota, 90000, MANY);
	add(rota, 1000, 1);
	for (int pass = 0; pass < 10; pass++) {
		size_t n = rota_next(rota, turns, MOST);

		assert_int_equal(n, 101);
		assert_int_equal(count_of(90, turns, n), 100);
		assert_int_equal(count_of(1, turns, n), 1);
	}
}

static void
test_all_subscriptions_of_a_tenant_have_their_turn(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];
	int seen[1000] = { 0 };

	add(rota, 1000, 1000);
	add(rota, 2000, 3);
	for (int pass = 0; pass < 30; pass++) {
		size_t n = rota_next(rota, turns, MOST);

		assert_int_equal(count_of(2, turns, n), 3);
		for (size_t i = 0; i < n; i++)
			if (tenant_of(turns[i]) == 1)
				seen[turns[i] - 1000]++;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(seen[i], 3);
}

static void
test_more_tenants_than_turns_have_theirs_one_after_the_other(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];
	int served[51] = { 0 };

	for (int64_t tenant = 1; tenant <= 50; tenant++)
		add(rota, tenant * 1000, 2);
	for (int pass = 0; pass < 10; pass++) {
		size_t n = rota_next(rota, turns, 20);

		assert_int_equal(n, 20);
		for (size_t i = 0; i < n; i++)
			served[tenant_of(turns[i])]++;
	}
	for (int tenant = 1; tenant <= 50; tenant++)
		assert_int_equal(served[tenant], 4);
}

static void
test_nobody_has_two_turns_at_once(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];

	add(rota, 1000, 3);
	add(rota, 1000, 3);
	assert_int_equal(rota_count(rota), 3);
	assert_int_equal(rota_next(rota, turns, MOST), 3);
	assert_int_not_equal(turns[0], turns[1]);
	assert_int_not_equal(turns[1], turns[2]);
	assert_int_not_equal(turns[0], turns[2]);
}

static void
test_what_comes_is_next(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];

	add(rota, 1000, 5);
	(void)rota_next(rota, turns, 2);
	add(rota, 1900, 1);
	assert_int_equal(rota_next(rota, turns, 1), 1);
	assert_int_equal(turns[0], 1900);
	add(rota, 2000, 1);
	assert_int_equal(rota_next(rota, turns, 1), 1);
	assert_int_equal(turns[0], 2000);
}

static void
test_what_left_the_round_has_no_turn(void **state)
{
	struct rota *rota = *state;
	int64_t turns[MOST];

	add(rota, 1000, 2);
	add(rota, 2000, 1);
	rota_remove(rota, 1000);
	rota_remove(rota, 2000);
	rota_remove(rota, 2000);
	assert_int_equal(rota_count(rota), 1);
	assert_int_equal(rota_next(rota, turns, MOST), 1);
	assert_int_equal(turns[0], 1001);
	rota_remove(rota, 1001);
	assert_int_equal(rota_next(rota, turns, MOST), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_tenant_with_many_does_not_push_away_one_with_few),
		TEST(test_all_subscriptions_of_a_tenant_have_their_turn),
		TEST(
		    test_more_tenants_than_turns_have_theirs_one_after_the_other),
		TEST(test_nobody_has_two_turns_at_once),
		TEST(test_what_comes_is_next),
		TEST(test_what_left_the_round_has_no_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
