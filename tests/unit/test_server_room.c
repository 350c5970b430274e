/* A server whose connections are all taken. */

#include "server_world.h"

static void
test_a_newcomer_gets_the_connection_that_waits_longest(void **state)
{
	struct world *w = *state;
	struct client *idle, *busy, *newcomer;

	start(w, &(struct server_conf){ .max_connections = 2 });
	idle = join(w, 0);
	busy = join(w, 1);
	say(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 1);
	newcomer = join(w, 2);
	say(newcomer, SECOND "\r\n");
	until(w, status(newcomer) == 200);
	until(w, is_over(idle));
	assert_int_equal(idle->in.len, 0);
	assert_int_equal(server_given_up(w->server), 1);
	request_reply(w->held[0], 204, NULL, NULL, 0);
	until(w, status(busy) == 204);
}

static void
test_half_a_request_keeps_no_connection_from_others(void **state)
{
	struct world *w = *state;
	struct client *slow, *newcomer;

	start(w, &(struct server_conf){ .max_connections = 1 });
	slow = join(w, 0);
	say(slow, POST "Content-Length: 2\r\n\r\n{");
	newcomer = join(w, 1);
	say(newcomer, SECOND "\r\n");
	until(w, status(newcomer) == 200);
	assert_true(is_over(slow) && status(slow) == 0);
}

static void
test_an_answer_ends_its_connection_while_others_may_wait(void **state)
{
	struct world *w = *state;
	struct client *first, *second;

	start(w, &(struct server_conf){ .max_connections = 2 });
	first = join(w, 0);
	say(first, SECOND "\r\n");
	until(w, status(first) == 200);
	assert_false(heard(first, "Connection: close"));
	second = join(w, 1);
	say(second, SECOND "\r\n");
	until(w, heard(second, "Connection: close"));
	until(w, is_over(second));
}

static void
test_a_connection_ends_after_so_many_requests(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .max_requests = 3 });
	c = join(w, 0);
	say(c, SECOND "\r\n" SECOND "\r\n" SECOND "\r\n" SECOND "\r\n");
	until(w, is_over(c));
	assert_true(c->is_ended);
	assert_int_equal(count(c, "HTTP/1.1 200"), 3);
	assert_int_equal(count(c, "Connection: close"), 1);
}

static void
test_one_address_has_no_more_than_its_part(void **state)
{
	struct world *w = *state;
	struct client *idle, *busy, *other;

	start(w, &(struct server_conf){ .max_per_address = 2 });
	busy = join(w, 0);
	say(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 1);
	idle = join(w, 1);
	other = join(w, 2);
	until(w, is_over(idle));
	say(other, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 2);
	/* Nothing of it waits: the newcomer itself is one too many. */
	idle = join(w, 1);
	until(w, is_over(idle));
	request_reply(w->held[0], 204, NULL, NULL, 0);
	request_reply(w->held[1], 204, NULL, NULL, 0);
	until(w, status(busy) == 204 && status(other) == 204);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_newcomer_gets_the_connection_that_waits_longest),
		TEST(test_half_a_request_keeps_no_connection_from_others),
		TEST(test_an_answer_ends_its_connection_while_others_may_wait),
		TEST(test_a_connection_ends_after_so_many_requests),
		TEST(test_one_address_has_no_more_than_its_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
