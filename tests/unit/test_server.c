/* What is read as a request, and what is answered. */

#include "server_rows.h"
#include "server_world.h"

static void
test_what_is_no_sound_request_is_refused_and_ends_the_connection(void **state)
{
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct client *c = join(w, 0);

		put(c, refused[i].bytes, refused[i].len);
		until(w, is_over(c));
		if (status(c) != refused[i].status || w->handled != 0 ||
		    !c->is_ended || !heard(c, "\r\nConnection: close\r\n") ||
		    count(c, "\r\nDate: ") != 1)
			fail_msg("row %zu: %s\nwanted %d, got: %s", i,
			    refused[i].bytes, refused[i].status,
			    buf_text(&c->in));
	}
	assert_int_equal(w->refused, sizeof(refused) / sizeof(refused[0]));
}

static void
test_a_sound_request_is_served_and_the_connection_stays(void **state)
{
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct client *c = join(w, 0);

		put(c, taken[i].bytes, taken[i].len);
		until(w, is_over(c) || status(c) != 0);
		if (status(c) != taken[i].status)
			fail_msg("row %zu: %s\ngot: %s", i, taken[i].bytes,
			    buf_text(&c->in));
		buf_clear(&c->in);
		say(c, SECOND "\r\n");
		until(w, heard(c, "GET /second"));
	}
}

static void
test_a_request_may_come_octet_by_octet(void **state)
{
	static const char text[] = CHUNKED "2\r\nhi\r\n3;a\r\ngh!\r\n"
					   "0\r\nA: b\r\n\r\n";
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		assert_int_equal(c->in.len, 0);
		put(c, text + i, 1);
		barrier(w);
	}
	until(w, heard(c, "\r\n\r\nhigh!"));
	assert_true(heard(c, "\r\nContent-Length: 5\r\n"));
}

static void
test_the_handler_sees_the_parts_of_the_request(void **state)
{
	struct world *w = *state;
	struct request *r;
	struct client *c;
	size_t len;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, "PATCH http://a/hold?b=%20&c HTTP/1.1\r\n" HOST
	       "X-Value:\t two words \r\nContent-Length: 3\r\n\r\na\tb");
	until(w, w->nheld == 1);
	r = w->held[0];
	assert_string_equal(request_method(r), "PATCH");
	assert_string_equal(request_path(r), "/hold");
	assert_string_equal(request_query(r), "b=%20&c");
	assert_string_equal(request_header(r, "x-vALUE"), "two words");
	assert_null(request_header(r, "x-val"));
	assert_memory_equal(request_body(r, &len), "a\tb", 3);
	assert_int_equal(len, 3);
	assert_int_equal(0, strncmp(request_peer(r), "127.0.0.1:", 10));
	assert_int_equal(server_requests(w->server), 1);
	request_reply(r, 202, "text/plain", "later", 5);
	until(w, heard(c, "HTTP/1.1 202 Accepted\r\nDate: "));
	assert_int_equal(server_requests(w->server), 0);
}

static void
test_pipelined_requests_are_handled_one_at_a_time_and_in_order(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	for (int i = 0; i < 3; i++)
		say(c, "GET /hold HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	for (int i = 0; i < 3; i++) {
		until(w, w->nheld == i + 1);
		barrier(w);
		assert_int_equal(w->nheld, i + 1);
		assert_int_equal(count(c, "/second"), i);
		request_reply(w->held[i], 200, "text/plain", "held", 4);
		/* Nothing is handled from inside the reply. */
		assert_int_equal(w->nheld, i + 1);
	}
	until(w, count(c, "/second") == 3);
	assert_int_equal(count(c, "\r\n\r\nheldHTTP/1.1"), 3);
}

static void
test_one_empty_line_may_come_first_and_no_more(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	for (int i = 0; i < 2; i++) {
		assert_false(is_over(c));
		say(c, "\r\n");
		barrier(w);
	}
	until(w, is_over(c));
	assert_int_equal(status(c), 400);
}

static void
test_what_waits_behind_a_request_is_taken_up_from_where_it_stopped(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	say(c, "GET /hold HTTP/1.1\r\n" HOST "\r\n");
	say(c, POST "Content-Length: 10000\r\n\r\n");
	put(c, w->big, 10000);
	say(c, SECOND "\r\n");
	until(w, w->nheld == 1);
	barrier(w);
	request_reply(w->held[0], 200, "text/plain", "held", 4);
	until(w, heard(c, "/second"));
	assert_true(heard(c, "\r\nContent-Length: 10000\r\n"));
}

static void
test_a_body_up_to_the_limit_comes_whole(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	say(c, POST "Content-Length: 65536\r\n\r\n");
	put(c, w->big, 65536);
	until(w, c->in.len > 65536);
	assert_int_equal(status(c), 200);
	say(c, CHUNKED "10000\r\n");
	put(c, w->big, 65536);
	say(c, "\r\n0\r\n\r\n");
	until(w, c->in.len > 131072);
	say(c, CHUNKED "10000\r\n");
	put(c, w->big, 65536);
	say(c, "\r\n1\r\n");
	until(w, heard(c, "HTTP/1.1 413 "));
}

static void
test_a_head_over_its_limit_is_refused_before_its_end(void **state)
{
	struct world *w = *state;
	struct client *c;
	char text[8192];

	start(w, &(struct server_conf){ 0 });
	memset(text, 'x', sizeof(text));
	c = join(w, 0);
	say(c, "GET /");
	put(c, text, sizeof(text));
	until(w, is_over(c));
	assert_int_equal(status(c), 414);

	c = join(w, 0);
	say(c, "GET / HTTP/1.1\r\n" HOST "X-A: ");
	put(c, text, sizeof(text));
	until(w, is_over(c));
	assert_int_equal(status(c), 431);

	c = join(w, 0);
	say(c, "GET / HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 100; i++)
		say(c, "A: b\r\n");
	say(c, "\r\n");
	until(w, is_over(c));
	assert_int_equal(status(c), 431);
}

static void
test_extensions_and_trailers_are_bounded(void **state)
{
	struct world *w = *state;
	char text[5000];

	start(w, &(struct server_conf){ 0 });
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 2; i++) {
		struct client *c = join(w, 0);

		say(c, i == 0 ? CHUNKED "2;" : CHUNKED "0\r\nA:");
		put(c, text, sizeof(text));
		until(w, is_over(c));
		assert_int_equal(status(c), 400);
	}
}

static void
test_a_long_answer_comes_whole(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	make_big(w);
	c = join(w, 0);
	say(c, "GET /big HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	until(w, c->in.len > BIG && heard(c, "xHTTP/1.1 200 OK\r\n"));
	until(w, heard(c, "GET /second"));
}

static void
test_100_continue_is_sent_to_those_who_wait_for_it(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	until(w, heard(c, "\r\n\r\n"));
	assert_string_equal(buf_text(&c->in), "HTTP/1.1 100 Continue\r\n\r\n");
	say(c, "hi");
	until(w, heard(c, "\r\n\r\nhi"));

	c = join(w, 0);
	say(c, POST "Expect: 100-continue\r\nContent-Length: 65537\r\n\r\n");
	until(w, is_over(c));
	assert_int_equal(status(c), 413);

	c = join(w, 0);
	say(c, "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\n"
	       "Content-Length: 2\r\n\r\n");
	barrier(w);
	assert_int_equal(c->in.len, 0);
	say(c, "hi");
	until(w, is_over(c));
	assert_int_equal(status(c), 200);
}

static void
test_answers_without_a_body_have_none(void **state)
{
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = join(w, 0);
	say(c, "HEAD /x HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	until(w, heard(c, "/second"));
	assert_true(heard(c, "\r\nContent-Length: 8\r\n\r\nHTTP/1.1 200"));

	c = join(w, 0);
	say(c, "GET /none HTTP/1.1\r\n" HOST "\r\n" SECOND "\r\n");
	until(w, heard(c, "/second"));
	assert_int_equal(status(c), 204);
	assert_int_equal(count(c, "Content-Length"), 1);
	assert_true(heard(c, "\r\nX-Made-Of: a  Injected: b\r\n\r\nHTTP/1.1"));
}

static void
test_the_client_may_ask_for_the_end(void **state)
{
	static const char *const heads[] = {
		"GET /one HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		"GET /one HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
		"GET /one HTTP/1.1\r\n" HOST "Connection: a,\tCLOSE ,b\r\n\r\n",
		"GET /one HTTP/1.1\r\n" HOST
		"Connection: keep-alive\r\nConnection: close\r\n\r\n",
	};
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct client *c = join(w, 0);

		say(c, heads[i]);
		say(c, SECOND "\r\n");
		until(w, is_over(c));
		assert_true(heard(c, "\r\nConnection: close\r\n"));
		assert_true(heard(c, "GET /one"));
		assert_false(heard(c, "/second"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(
		    test_what_is_no_sound_request_is_refused_and_ends_the_connection),
		TEST(test_a_sound_request_is_served_and_the_connection_stays),
		TEST(test_a_request_may_come_octet_by_octet),
		TEST(test_the_handler_sees_the_parts_of_the_request),
		TEST(
		    test_pipelined_requests_are_handled_one_at_a_time_and_in_order),
		TEST(test_one_empty_line_may_come_first_and_no_more),
		TEST(
		    test_what_waits_behind_a_request_is_taken_up_from_where_it_stopped),
		TEST(test_a_body_up_to_the_limit_comes_whole),
		TEST(test_a_head_over_its_limit_is_refused_before_its_end),
		TEST(test_extensions_and_trailers_are_bounded),
		TEST(test_a_long_answer_comes_whole),
		TEST(test_100_continue_is_sent_to_those_who_wait_for_it),
		TEST(test_answers_without_a_body_have_none),
		TEST(test_the_client_may_ask_for_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
