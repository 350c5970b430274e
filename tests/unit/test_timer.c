/* A timer runs at the soonest of the times that it was asked for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dispatch/timer.h"

#define AN_HOUR (3600 * USEC_PER_SEC)

struct world {
	struct event_base *loop;
	struct timer timer;
	int runs;
};

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct world *world = arg;

	(void)fd;
	(void)what;
	world->runs++;
}

static int
set_up(void **state)
{
	static struct world world;

	world = (struct world){ .loop = event_base_new() };
	*state = &world;
	if (world.loop == NULL)
		return -1;
	return timer_open(&world.timer, world.loop, on_timer, &world);
}

static int
tear_down(void **state)
{
	struct world *world = *state;

	timer_close(&world->timer);
	event_base_free(world->loop);
	return 0;
}

/* How often it ran by now. */
static int
runs(struct world *world)
{
	assert_true(event_base_loop(world->loop, EVLOOP_NONBLOCK) >= 0);
	return world->runs;
}

static void
test_what_may_wait_longer_puts_nothing_off(void **state)
{
	struct world *world = *state;

	timer_within(&world->timer, 0);
	timer_within(&world->timer, AN_HOUR);
	assert_int_equal(runs(world), 1);
}

static void
test_what_is_wanted_sooner_comes_sooner(void **state)
{
	struct world *world = *state;

	timer_within(&world->timer, AN_HOUR);
	assert_int_equal(runs(world), 0);
	timer_within(&world->timer, 0);
	assert_int_equal(runs(world), 1);
}

static void
test_once_it_ran_it_waits_as_it_is_told(void **state)
{
	struct world *world = *state;

	timer_within(&world->timer, 0);
	assert_int_equal(runs(world), 1);
	timer_within(&world->timer, AN_HOUR);
	assert_int_equal(runs(world), 1);
	timer_within(&world->timer, 0);
	assert_int_equal(runs(world), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_what_may_wait_longer_puts_nothing_off, set_up,
		    tear_down),
		cmocka_unit_test_setup_teardown(
		    test_what_is_wanted_sooner_comes_sooner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    test_once_it_ran_it_waits_as_it_is_told, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
