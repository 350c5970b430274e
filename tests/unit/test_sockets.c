#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../src/http/sockets.h"
#include "base/err.h"

static const struct socket_ends ends = { .local_ip = "127.0.0.1",
	.remote_ip = "192.0.2.1",
	.local_port = 1024,
	.remote_port = 443 };

struct world {
	struct sockets *sockets;
	int ours, theirs;
};

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	int pair[2];
	struct err err;

	if (w == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 ||
	    sockets_new(&w->sockets, &err) != 0)
		return -1;
	w->ours = pair[0];
	w->theirs = pair[1];
	*state = w;
	return 0;
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	sockets_free(w->sockets);
	(void)close(w->ours);
	(void)close(w->theirs);
	free(w);
	return 0;
}

static void
test_what_is_not_known_is_not_quiet(void **state)
{
	struct world *w = *state;

	assert_false(sockets_are_quiet(w->sockets, &ends));
	assert_null(sockets_drop(w->sockets, w->ours));
	assert_null(sockets_drop(w->sockets, -1));
	assert_null(sockets_drop(w->sockets, 100000));
}

static void
test_an_octet_or_the_end_breaks_the_quiet(void **state)
{
	struct world *w = *state;
	char octet;

	sockets_add(w->sockets, w->ours, &ends);
	assert_true(sockets_are_quiet(w->sockets, &ends));
	assert_int_equal(1, write(w->theirs, "x", 1));
	assert_false(sockets_are_quiet(w->sockets, &ends));
	assert_int_equal(1, read(w->ours, &octet, 1)); /* it was left there */
	assert_true(sockets_are_quiet(w->sockets, &ends));
	assert_int_equal(0, shutdown(w->theirs, SHUT_WR));
	assert_false(sockets_are_quiet(w->sockets, &ends));
}

static void
test_each_end_counts(void **state)
{
	struct world *w = *state;
	struct socket_ends others[4] = { ends, ends, ends, ends };

	others[0].local_ip = "127.0.0.2";
	others[1].remote_ip = "192.0.2.2";
	others[2].local_port += 4096; /* the same bucket */
	others[3].remote_port++;
	sockets_add(w->sockets, w->ours, &ends);
	for (int i = 0; i < 4; i++)
		assert_false(sockets_are_quiet(w->sockets, &others[i]));
}

static void
test_what_is_dropped_is_forgotten(void **state)
{
	struct world *w = *state;

	sockets_add(w->sockets, w->ours, &ends);
	assert_null(sockets_drop(w->sockets, w->ours));
	assert_false(sockets_are_quiet(w->sockets, &ends));
}

static void
test_a_watch_is_left_with_what_is_known(void **state)
{
	struct world *w = *state;
	struct watch *watch = (struct watch *)(void *)w; /* any will do */

	assert_false(sockets_park(w->sockets, w->ours, watch));
	sockets_add(w->sockets, w->ours, &ends);
	assert_true(sockets_park(w->sockets, w->ours, watch));
	assert_ptr_equal(sockets_unpark(w->sockets, w->ours), watch);
	assert_null(sockets_unpark(w->sockets, w->ours));
	assert_true(sockets_park(w->sockets, w->ours, watch));
	assert_ptr_equal(sockets_drop(w->sockets, w->ours), watch);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_not_known_is_not_quiet),
		TEST(test_an_octet_or_the_end_breaks_the_quiet),
		TEST(test_each_end_counts),
		TEST(test_what_is_dropped_is_forgotten),
		TEST(test_a_watch_is_left_with_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
