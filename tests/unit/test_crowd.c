#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <sys/socket.h>

#include "../../src/http/crowd.h"
#include "base/err.h"

enum { MAX = 8 };

static int
set_up(void **state)
{
	struct crowd *crowd;
	struct err err;

	assert_int_equal(0, crowd_open(&crowd, MAX, &err));
	*state = crowd;
	return 0;
}

static int
tear_down(void **state)
{
	crowd_close(*state);
	return 0;
}

static void
enter(struct crowd *crowd, struct crowd_guest *guest, const char *from)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_storage address;

	if (inet_pton(AF_INET, from, &in.sin_addr) == 1) {
		memcpy(&address, &in, sizeof(in));
	} else {
		assert_int_equal(1, inet_pton(AF_INET6, from, &in6.sin6_addr));
		memcpy(&address, &in6, sizeof(in6));
	}
	assert_int_equal(
	    0, crowd_enter(crowd, guest, (struct sockaddr *)&address));
}

static void
leave(struct crowd *crowd, struct crowd_guest *guests, size_t n)
{
	for (size_t i = 0; i < n; i++)
		crowd_leave(crowd, &guests[i]);
}

static void
test_whoever_holds_most_is_the_first_to_give_one_up(void **state)
{
	struct crowd *crowd = *state;
	struct crowd_guest g[4];

	enter(crowd, &g[0], "192.0.2.1");
	enter(crowd, &g[1], "192.0.2.2");
	enter(crowd, &g[2], "192.0.2.2");
	enter(crowd, &g[3], "192.0.2.3");
	assert_ptr_equal(crowd_first(crowd), &g[1]);
	/* Busy ones are not to be had, and do not count. */
	crowd_wait(crowd, &g[1], CROWD_BUSY);
	crowd_wait(crowd, &g[2], CROWD_BUSY);
	assert_ptr_equal(crowd_first(crowd), &g[0]);
	assert_int_equal(crowd_waiting(crowd), 2);
	crowd_wait(crowd, &g[2], CROWD_IDLE);
	crowd_wait(crowd, &g[1], CROWD_IDLE);
	assert_ptr_equal(crowd_first(crowd), &g[2]);
	assert_int_equal(crowd_beside(&g[1]), 2);
	assert_int_equal(crowd_beside(&g[0]), 1);
	crowd_hold(&g[1], 7);
	crowd_hold(&g[2], 5);
	crowd_hold(&g[1], 3);
	assert_int_equal(crowd_held_beside(&g[2]), 8);
	assert_int_equal(crowd_held_beside(&g[0]), 0);
	leave(crowd, g, 4);
	assert_null(crowd_first(crowd));
}

static void
test_of_one_address_the_idle_go_before_the_slow(void **state)
{
	struct crowd *crowd = *state;
	struct crowd_guest g[3];

	for (int i = 0; i < 3; i++)
		enter(crowd, &g[i], "192.0.2.1");
	crowd_wait(crowd, &g[0], CROWD_SLOW);
	assert_ptr_equal(crowd_first(crowd), &g[1]);
	crowd_wait(crowd, &g[1], CROWD_SLOW);
	crowd_wait(crowd, &g[2], CROWD_OVER);
	assert_ptr_equal(crowd_first_beside(&g[0]), &g[2]);
	assert_int_equal(g[2].since, 0);
	crowd_wait(crowd, &g[2], CROWD_BUSY);
	assert_ptr_equal(crowd_first(crowd), &g[0]);
	/* To wait on in the same way does not move it back. */
	crowd_wait(crowd, &g[0], CROWD_SLOW);
	assert_ptr_equal(crowd_first(crowd), &g[0]);
	leave(crowd, g, 3);
}

static void
test_an_address_of_ipv6_is_its_network(void **state)
{
	struct crowd *crowd = *state;
	struct crowd_guest g[5];

	enter(crowd, &g[0], "2001:db8:0:1::1");
	enter(crowd, &g[1], "2001:db8:0:1:ffff::2");
	enter(crowd, &g[2], "2001:db8:0:2::1");
	/* Through a socket for both it is the same IPv4 address. */
	enter(crowd, &g[3], "192.0.2.1");
	enter(crowd, &g[4], "::ffff:192.0.2.1");
	assert_int_equal(crowd_beside(&g[0]), 2);
	assert_int_equal(crowd_beside(&g[2]), 1);
	assert_int_equal(crowd_beside(&g[3]), 2);
	leave(crowd, g, 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_whoever_holds_most_is_the_first_to_give_one_up),
		TEST(test_of_one_address_the_idle_go_before_the_slow),
		TEST(test_an_address_of_ipv6_is_its_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
