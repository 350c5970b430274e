/* Who gets past the gate, and how much memory bodies may take. */

#include "server_world.h"

enum { SMALL = 100, LARGE = 65536 };

#define TURNED "POST /turned HTTP/1.1\r\n" HOST
#define SMALLER "POST /small HTTP/1.1\r\n" HOST

/* Asked for each request: /turned is answered at once, /small may have less
 * than the rest. */
static size_t
ask_gate(void *arg, struct request *request)
{
	const char *path = request_path(request);
	struct world *w = arg;
	size_t len;

	w->gated++;
	(void)request_body(request, &len);
	assert_int_equal(len, 0);
	if (strcmp(path, "/cut") == 0)
		request_abort(request);
	else if (strcmp(path, "/turned") == 0)
		request_reply(request, 401, "text/plain", "no", 2);
	return strcmp(path, "/small") == 0 ? SMALL : SIZE_MAX;
}

static const struct server_events gated = {
	.gate = ask_gate, .handler = handle, .error = explain
};

static void
test_what_the_gate_refuses_is_answered_before_its_body_comes(void **state)
{
	static const char *const heads[] = {
		TURNED "Content-Length: 5\r\n\r\n",
		TURNED "Content-Length: 5\r\n\r\nhello",
		TURNED "Content-Length: 99999999\r\n\r\n",
		TURNED "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		TURNED "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
	};
	struct world *w = *state;

	open_server(w, &(struct server_conf){ 0 }, &gated);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct client *c = join(w, 0);

		say(c, heads[i]);
		until(w, is_over(c));
		if (status(c) != 401 || count(c, "HTTP/1.1 ") != 1 ||
		    !heard(c, "\r\nConnection: close\r\n") || !c->is_ended)
			fail_msg("row %zu: %s", i, buf_text(&c->in));
		assert_int_equal(w->gated, i + 1);
	}
	assert_int_equal(w->handled + w->refused, 0);
	assert_int_equal(server_requests(w->server), 0);
}

static void
test_a_refusal_without_a_body_keeps_the_connection(void **state)
{
	struct world *w = *state;
	struct client *c;

	open_server(w, &(struct server_conf){ 0 }, &gated);
	c = join(w, 0);
	say(c, "GET /turned HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	until(w, heard(c, "GET /second"));
	assert_int_equal(status(c), 401);
	assert_false(heard(c, "Connection: close"));

	say(c, "GET /cut HTTP/1.1\r\n" HOST "\r\n");
	until(w, is_over(c));
	assert_int_equal(w->gated, 3);
	assert_int_equal(w->handled, 1);
}

static void
test_a_body_may_be_as_large_as_the_gate_says(void **state)
{
	static const struct {
		const char *head, *rest;
		int status;
		bool has_body;
	} rows[] = {
		{ SMALLER "Content-Length: 100\r\n\r\n", "", 200, true },
		{ SMALLER "Content-Length: 101\r\n\r\n", "", 413, false },
		{ SMALLER "Transfer-Encoding: chunked\r\n\r\n64\r\n",
		    "\r\n0\r\n\r\n", 200, true },
		{ SMALLER "Transfer-Encoding: chunked\r\n\r\n64\r\n",
		    "\r\n1\r\n", 413, true },
		{ SMALLER "Expect: 100-continue\r\nContent-Length: 101\r\n\r\n",
		    "", 413, false },
		/* The server's own limit holds, whatever the gate says. */
		{ POST "Content-Length: 65537\r\n\r\n", "", 413, false },
	};
	struct world *w = *state;
	char body[SMALL];

	memset(body, 'x', SMALL);
	open_server(w, &(struct server_conf){ 0 }, &gated);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct client *c = join(w, 0);

		say(c, rows[i].head);
		if (rows[i].has_body)
			put(c, body, SMALL);
		say(c, rows[i].rest);
		until(w, status(c) != 0);
		if (status(c) != rows[i].status)
			fail_msg("row %zu: %s", i, buf_text(&c->in));
		assert_int_equal(w->gated, i + 1);
	}
}

static void
test_what_is_no_sound_request_does_not_reach_the_gate(void **state)
{
	struct world *w = *state;
	struct client *c;

	open_server(w, &(struct server_conf){ 0 }, &gated);
	c = join(w, 0);
	say(c, TURNED "Content-Length: +5\r\n\r\nhello");
	until(w, is_over(c));
	assert_int_equal(status(c), 400);
	assert_int_equal(w->gated, 0);
}

/* A client whose body is here but for its last octet. */
static struct client *
half_from(struct world *w, int i, const char *path, uint32_t from)
{
	struct client *c = join_from(w, i, from);
	char text[128];

	(void)snprintf(text, sizeof(text),
	    "POST %s HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n", path,
	    LARGE);
	say(c, text);
	put(c, w->big, LARGE - 1);
	return c;
}

static struct client *
half(struct world *w, int i, const char *path)
{
	return half_from(w, i, path, 1);
}

static void
test_bodies_together_take_no_more_than_they_may(void **state)
{
	struct world *w = *state;
	struct client *first, *second, *third;

	start(w, &(struct server_conf){ .max_buffered = 2 * LARGE });
	make_big(w);
	first = half(w, 0, "/echo");
	second = half(w, 1, "/hold");
	until(w, server_buffered(w->server) == 2 * LARGE);
	third = half(w, 2, "/echo");
	until(w, is_over(third));
	assert_int_equal(status(third), 503);
	assert_true(heard(third, "\r\nConnection: close\r\n"));
	assert_int_equal(server_buffered(w->server), 2 * LARGE);

	/* Those that were here before, and small ones, suffer nothing. */
	third = join(w, 2);
	say(third, POST "Content-Length: 2\r\n\r\nhi");
	until(w, status(third) == 200);
	say(first, "x");
	until(w, status(first) == 200);
	say(second, "x");
	until(w, w->nheld == 1);
	assert_int_equal(server_buffered(w->server), LARGE);
	request_reply(w->held[0], 200, "text/plain", "held", 4);
	assert_int_equal(server_buffered(w->server), 0);
	(void)half(w, 2, "/echo");
	until(w, server_buffered(w->server) == LARGE);
	leave(&w->clients[2]);
	until(w, server_buffered(w->server) == 0);
}

static void
test_no_address_keeps_the_room_from_one_that_has_less(void **state)
{
	struct world *w = *state;
	struct client *held, *oldest, *other, *small;

	start(w, &(struct server_conf){ .max_buffered = 3 * LARGE });
	make_big(w);
	held = half(w, 0, "/hold");
	say(held, "x");
	until(w, w->nheld == 1);
	oldest = half(w, 1, "/echo");
	until(w, server_buffered(w->server) == 2 * LARGE);
	other = half(w, 2, "/echo");
	until(w, server_buffered(w->server) == 3 * LARGE);

	/* What is the program's to answer stays. */
	small = half_from(w, 3, "/echo", 2);
	until(w, is_over(oldest));
	assert_int_equal(status(oldest), 503);
	until(w, server_buffered(w->server) == 3 * LARGE);
	say(small, "x");
	until(w, status(small) == 200);
	say(other, "x");
	until(w, status(other) == 200);

	/* It does not take from one that has no more than itself. */
	request_reply(w->held[0], 204, NULL, NULL, 0);
	until(w, status(held) == 204);
	oldest = half(w, 0, "/echo");
	until(w, server_buffered(w->server) == LARGE);
	(void)half_from(w, 1, "/echo", 2);
	until(w, server_buffered(w->server) == 2 * LARGE);
	(void)half_from(w, 2, "/echo", 2);
	until(w, server_buffered(w->server) == 3 * LARGE);
	small = half_from(w, 3, "/echo", 2);
	until(w, is_over(small));
	assert_int_equal(status(small), 503);
	say(oldest, "x");
	until(w, status(oldest) == 200);
}

static void
test_a_body_that_is_refused_gives_its_memory_back_at_once(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .body_timeout = 200 * USEC_PER_MS });
	make_big(w);
	c = half(w, 0, "/echo");
	until(w, server_buffered(w->server) == LARGE);
	w->buffered = LARGE;
	until(w, status(c) == 408);
	/* Not only when its answer is sent. */
	assert_int_equal(w->buffered, 0);
	assert_int_equal(server_connections(w->server), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(
		    test_what_the_gate_refuses_is_answered_before_its_body_comes),
		TEST(test_a_refusal_without_a_body_keeps_the_connection),
		TEST(test_a_body_may_be_as_large_as_the_gate_says),
		TEST(test_what_is_no_sound_request_does_not_reach_the_gate),
		TEST(test_bodies_together_take_no_more_than_they_may),
		TEST(test_no_address_keeps_the_room_from_one_that_has_less),
		TEST(test_a_body_that_is_refused_gives_its_memory_back_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
