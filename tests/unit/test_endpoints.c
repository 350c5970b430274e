#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "dispatch/endpoints.h"

static void
put(struct endpoints *endpoints, int64_t id, int64_t version)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
	struct err err;

	assert_non_null(endpoint);
	endpoint->subscription_id = id;
	endpoint->version = version;
	assert_int_equal(0, endpoints_put(endpoints, endpoint, &err));
}

static struct endpoints *
make(void)
{
	struct endpoints *endpoints;
	struct err err;

	assert_int_equal(0, endpoints_new(&endpoints, &err));
	return endpoints;
}

static void
test_an_endpoint_is_known_up_to_its_version(void **state)
{
	struct endpoints *endpoints = make();
	struct endpoint_ref *ref;

	(void)state;
	assert_null(endpoints_hold(endpoints, 7, 1));
	put(endpoints, 7, 2);
	assert_null(endpoints_hold(endpoints, 7, 3));
	assert_null(endpoints_hold(endpoints, 8, 1));
	ref = endpoints_hold(endpoints, 7, 2);
	assert_non_null(ref);
	assert_int_equal(ref->endpoint->version, 2);
	endpoints_release(ref);
	endpoints_free(endpoints);
}

static void
test_a_newer_one_takes_its_place_and_the_old_one_lives_while_held(void **state)
{
	struct endpoints *endpoints = make();
	struct endpoint_ref *old, *new;

	(void)state;
	put(endpoints, 7, 1);
	old = endpoints_hold(endpoints, 7, 1);
	put(endpoints, 7, 2);
	new = endpoints_hold(endpoints, 7, 1);
	assert_ptr_not_equal(old, new);
	assert_int_equal(old->endpoint->version, 1);
	assert_int_equal(new->endpoint->version, 2);
	endpoints_release(old);
	endpoints_free(endpoints);
	assert_int_equal(new->endpoint->version, 2);
	endpoints_release(new);
}

/* More than are ever kept: those in use stay, the others may be asked again. */
static void
test_idle_endpoints_are_let_go(void **state)
{
	struct endpoints *endpoints = make();
	struct endpoint_ref *held;
	int known = 0;

	(void)state;
	put(endpoints, 1, 1);
	held = endpoints_hold(endpoints, 1, 1);
	for (int64_t id = 2; id <= 20000; id++)
		put(endpoints, id, 1);
	for (int64_t id = 2; id <= 20000; id++) {
		struct endpoint_ref *ref = endpoints_hold(endpoints, id, 1);

		if (ref == NULL)
			continue;
		assert_int_equal(ref->endpoint->subscription_id, id);
		endpoints_release(ref);
		known++;
	}
	assert_in_range(known, 1, 16384);
	assert_int_equal(held->endpoint->subscription_id, 1);
	endpoints_release(held);
	endpoints_free(endpoints);
}

static void
test_one_that_lacks_a_key_is_soon_asked_for_again(void **state)
{
	struct endpoints *endpoints = make();
	struct endpoint_ref *lacking, *other;

	(void)state;
	put(endpoints, 7, 1);
	put(endpoints, 8, 1);
	lacking = endpoints_hold(endpoints, 7, 1);
	other = endpoints_hold(endpoints, 8, 1);
	lacking->endpoint->missing_key[0] = 'f';
	assert_ptr_equal(endpoints_hold(endpoints, 7, 1), lacking);
	lacking->known_at -= 3 * USEC_PER_SEC;
	other->known_at -= 3 * USEC_PER_SEC;
	assert_null(endpoints_hold(endpoints, 7, 1));
	assert_ptr_equal(endpoints_hold(endpoints, 8, 1), other);
	for (int i = 0; i < 2; i++) {
		endpoints_release(lacking);
		endpoints_release(other);
	}
	endpoints_free(endpoints);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_endpoint_is_known_up_to_its_version),
		cmocka_unit_test(
		    test_a_newer_one_takes_its_place_and_the_old_one_lives_while_held),
		cmocka_unit_test(test_idle_endpoints_are_let_go),
		cmocka_unit_test(
		    test_one_that_lacks_a_key_is_soon_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
