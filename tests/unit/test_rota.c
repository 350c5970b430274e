#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/rota.h"

/* The subscription after which a tenant goes on; 0: from its first. */
static int64_t
last_of(const struct rota *rota, int64_t tenant_id)
{
	for (size_t i = 0; i < rota->n; i++)
		if (rota->tenants[i] == tenant_id)
			return rota->last[i];
	return 0;
}

static void
test_a_tenant_goes_on_after_what_was_served_last(void **state)
{
	struct rota rota = { 0 };

	(void)state;
	rota_served(&rota, 7, 70);
	rota_served(&rota, 9, 90);
	rota_served(&rota, 7, 71);
	assert_int_equal(rota.tenant_id, 7);
	assert_int_equal(rota.n, 2);
	assert_int_equal(last_of(&rota, 7), 71);
	assert_int_equal(last_of(&rota, 9), 90);
}

static void
test_a_tenant_that_was_served_wholly_is_not_remembered(void **state)
{
	struct rota rota = { 0 };

	(void)state;
	rota_served(&rota, 7, 70);
	rota_served(&rota, 8, 80);
	rota_served(&rota, 9, 0);
	rota_served(&rota, 7, 0);
	assert_int_equal(rota.tenant_id, 7);
	assert_int_equal(rota.n, 1);
	assert_int_equal(last_of(&rota, 8), 80);
}

static void
test_the_longest_remembered_makes_way(void **state)
{
	struct rota rota = { 0 };

	(void)state;
	for (int64_t i = 1; i <= ROTA_TENANTS + 2; i++)
		rota_served(&rota, i, i * 10);
	assert_int_equal(rota.n, ROTA_TENANTS);
	assert_int_equal(last_of(&rota, 1), 0);
	assert_int_equal(last_of(&rota, 2), 0);
	assert_int_equal(last_of(&rota, 3), 30);
	assert_int_equal(
	    last_of(&rota, ROTA_TENANTS + 2), (ROTA_TENANTS + 2) * 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_a_tenant_goes_on_after_what_was_served_last),
		cmocka_unit_test(
		    test_a_tenant_that_was_served_wholly_is_not_remembered),
		cmocka_unit_test(test_the_longest_remembered_makes_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
