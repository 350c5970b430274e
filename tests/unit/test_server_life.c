/* Slow, rude and many clients; the ends of connections and of the server. */

#include "server_world.h"

static void
test_a_flood_behind_a_request_in_hand_is_not_taken_in(void **state)
{
	struct world *w = *state;
	struct client *c;
	size_t sent = 0;
	int quiet = 0;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	say(c, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 1);
	/* The kernel's buffers are large, and open in leaps. */
	while (quiet++ < 100) {
		ssize_t n;

		while ((n = send(c->fd, w->big, BIG, MSG_NOSIGNAL)) > 0) {
			sent += (size_t)n;
			quiet = 0;
		}
		barrier(w);
		assert_true(sent < 2 * (size_t)BIG);
	}
	request_reply(w->held[0], 200, "text/plain", "held", 4);
	until(w, is_over(c));
	assert_int_equal(status(c), 200);
	assert_int_equal(w->refused, 1);
}

static void
test_the_error_can_be_read_although_the_body_still_comes(void **state)
{
	struct world *w = *state;
	struct client *c;
	size_t sent = 0;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	say(c, POST "Content-Length: 16777216\r\n\r\n");
	until(w, status(c) == 413);
	while (sent < BIG) {
		ssize_t n = send(c->fd, w->big, BIG - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
		barrier(w);
	}
	until(w, is_over(c));
	assert_true(c->is_ended);
}

struct drip {
	struct client *client;
	const char *text;
};

static void
on_drip(evutil_socket_t fd, short what, void *arg)
{
	struct drip *drip = arg;

	(void)fd;
	(void)what;
	(void)send(
	    drip->client->fd, drip->text, strlen(drip->text), MSG_NOSIGNAL);
}

/* Say `text` every five milliseconds until the server has enough. */
static void
drip(struct world *w, struct client *c, const char *text)
{
	const struct timeval often = { .tv_usec = 5000 };
	struct drip drop = { c, text };
	struct event *timer =
	    event_new(w->loop, -1, EV_PERSIST, on_drip, &drop);

	event_add(timer, &often);
	until(w, is_over(c));
	event_free(timer);
}

static void
test_a_drip_does_not_keep_a_connection(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .head_timeout = 60 * USEC_PER_MS,
		     .body_timeout = 60 * USEC_PER_MS });
	c = join(w, 0);
	say(c, "GET / HTTP/1.1\r\n" HOST);
	drip(w, c, "A: b\r\n");
	assert_int_equal(status(c), 408);

	c = join(w, 0);
	say(c, CHUNKED);
	drip(w, c, "1\r\nx\r\n");
	assert_int_equal(status(c), 408);

	c = join(w, 0);
	say(c, SECOND "\r\n");
	until(w, status(c) == 200);
	drip(w, c, "G");
	assert_true(heard(c, "HTTP/1.1 408 "));
}

static void
test_a_silent_client_is_closed_without_a_word(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .head_timeout = 30 * USEC_PER_MS,
		     .idle_timeout = 60 * USEC_PER_MS });
	c = join(w, 0);
	until(w, is_over(c));
	assert_int_equal(c->in.len, 0);

	c = join(w, 0);
	say(c, SECOND "\r\n");
	until(w, is_over(c));
	assert_int_equal(count(c, "HTTP/1.1 "), 1);
	assert_int_equal(w->refused, 0);
}

static void
test_a_client_that_does_not_read_is_closed(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .write_timeout = 60 * USEC_PER_MS });
	make_big(w);
	c = join(w, 0);
	event_del(c->readable);
	say(c, "GET /big HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->handled == 1);
	until(w, server_connections(w->server) == 0);
}

static void
reset(struct client *c)
{
	const struct linger now = { .l_onoff = 1 };

	assert_int_equal(
	    0, setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	leave(c);
}

static void
test_a_request_outlives_its_client(void **state)
{
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (int i = 0; i < 4; i++) {
		struct client *c = join(w, 0);
		size_t len;

		say(c, "PUT /hold HTTP/1.1\r\n" HOST
		       "Content-Length: 2\r\n\r\nhi");
		until(w, w->nheld == i + 1);
		reset(c);
		if (i % 2 == 0)
			barrier(w);
		assert_memory_equal(request_body(w->held[i], &len), "hi", 2);
		assert_string_equal(request_path(w->held[i]), "/hold");
		request_add_header(w->held[i], "X-A", "b");
		if (i < 2)
			request_reply(w->held[i], 200, "a/b", "late", 4);
		else
			request_abort(w->held[i]);
		until(w, server_connections(w->server) == 0);
		assert_int_equal(server_requests(w->server), 0);
	}
}

static void
test_a_half_closed_client_still_gets_its_answers(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, "GET /hold HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	assert_int_equal(0, shutdown(c->fd, SHUT_WR));
	until(w, w->nheld == 1);
	barrier(w);
	request_reply(w->held[0], 200, "text/plain", "held", 4);
	until(w, is_over(c));
	assert_true(heard(c, "heldHTTP/1.1 200 OK"));
	assert_true(heard(c, "GET /second"));

	c = join(w, 0);
	say(c, POST "Content-Length: 3\r\n\r\nhi");
	assert_int_equal(0, shutdown(c->fd, SHUT_WR));
	until(w, is_over(c));
	assert_int_equal(status(c), 400);
}

static void
test_closing_the_server_with_requests_in_hand_leaves_nothing(void **state)
{
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (int i = 0; i < 3; i++)
		say(join(w, i), "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 3);
}

static void
on_drained(void *arg)
{
	struct world *w = arg;

	w->drained++;
}

static void
test_drain_closes_the_idle_and_lets_the_rest_finish(void **state)
{
	struct world *w = *state;
	struct client *idle, *busy, *half;

	start(w, &(struct server_conf){ 0 });
	idle = join(w, 0);
	say(idle, SECOND "\r\n");
	busy = join(w, 1);
	say(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	half = join(w, 2);
	say(half, "GET /half HTTP/1.1\r\n");
	until(w, w->nheld == 1 && status(idle) == 200);
	barrier(w);

	server_drain(w->server, on_drained, w);
	until(w, is_over(idle));
	assert_int_equal(w->drained, 0);
	say(half, HOST "\r\n");
	until(w, is_over(half));
	assert_true(heard(half, "GET /half"));
	assert_true(heard(half, "\r\nConnection: close\r\n"));
	request_reply(w->held[0], 200, "text/plain", "held", 4);
	until(w, is_over(busy));
	assert_true(heard(busy, "\r\nConnection: close\r\n"));
	assert_false(heard(busy, "/second"));
	leave(idle);
	leave(busy);
	leave(half);
	until(w, w->drained == 1);
	assert_int_equal(server_connections(w->server), 0);
}

static void
test_drain_closes_after_an_answer_under_way(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	event_del(c->readable);
	say(c, "GET /big HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->handled == 1);
	server_drain(w->server, on_drained, w);
	event_add(c->readable, NULL);
	until(w, is_over(c));
	assert_true(c->is_ended && c->in.len > BIG);
	leave(c);
	until(w, w->drained == 1);
}

static void
test_drain_without_connections_is_told_from_the_loop(void **state)
{
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	server_drain(w->server, on_drained, w);
	assert_int_equal(w->drained, 0);
	until(w, w->drained == 1);
}

static void
test_an_aborted_request_gets_no_answer(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, "GET /abort HTTP/1.1\r\n" HOST "\r\n");
	until(w, is_over(c));
	assert_int_equal(c->in.len, 0);
	assert_int_equal(server_connections(w->server), 0);
}

static void
test_more_connections_than_allowed_wait_their_turn(void **state)
{
	struct world *w = *state;
	struct client *first, *second, *third;

	start(w, &(struct server_conf){ .max_connections = 2 });
	first = join(w, 0);
	say(first, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	second = join(w, 1);
	say(second, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	until(w, w->nheld == 2);
	third = join(w, 2);
	say(third, SECOND "\r\n");
	for (int i = 0; i < 10; i++)
		event_base_loop(w->loop, EVLOOP_NONBLOCK);
	assert_int_equal(server_connections(w->server), 2);
	assert_int_equal(status(third), 0);

	request_reply(w->held[0], 204, NULL, NULL, 0);
	until(w, status(first) == 204);
	until(w, status(third) == 200);
	assert_int_equal(server_given_up(w->server), 1);
	assert_int_equal(server_connections(w->server), 2);
	request_reply(w->held[1], 204, NULL, NULL, 0);
	until(w, status(second) == 204);
}

static void
test_running_out_of_descriptors_neither_spins_nor_ends_service(void **state)
{
	const struct timeval while_ = { .tv_usec = 250000 };
	struct world *w = *state;
	struct rlimit all, few;
	struct client *c;
	int turns = 0;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, SECOND "\r\n");
	assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &all));
	few = all;
	few.rlim_cur = (rlim_t)c->fd + 1;
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &few));
	event_base_loopexit(w->loop, &while_);
	while (!event_base_got_exit(w->loop) && turns < 100) {
		event_base_loop(w->loop, EVLOOP_ONCE);
		turns++;
	}
	assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &all));
	assert_int_equal(status(c), 0);
	assert_true(turns < 20);
	until(w, status(c) == 200);
}

static void
test_an_address_that_is_none_is_refused(void **state)
{
	struct world *w = *state;
	struct server_conf conf = { .address = "localhost",
		.max_connections = 1 };
	struct err err;

	assert_int_equal(
	    -1, server_open(&w->server, w->loop, &conf, &events, w, &err));
	assert_int_equal(err.code, ERR_REFUSED);
	assert_null(w->server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_flood_behind_a_request_in_hand_is_not_taken_in),
		TEST(test_the_error_can_be_read_although_the_body_still_comes),
		TEST(test_a_drip_does_not_keep_a_connection),
		TEST(test_a_silent_client_is_closed_without_a_word),
		TEST(test_a_client_that_does_not_read_is_closed),
		TEST(test_a_request_outlives_its_client),
		TEST(test_a_half_closed_client_still_gets_its_answers),
		TEST(
		    test_closing_the_server_with_requests_in_hand_leaves_nothing),
		TEST(test_drain_closes_the_idle_and_lets_the_rest_finish),
		TEST(test_drain_closes_after_an_answer_under_way),
		TEST(test_drain_without_connections_is_told_from_the_loop),
		TEST(test_an_aborted_request_gets_no_answer),
		TEST(test_more_connections_than_allowed_wait_their_turn),
		TEST(
		    test_running_out_of_descriptors_neither_spins_nor_ends_service),
		TEST(test_an_address_that_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
