/* Answers made while the client reads, and clients that do not wait. */

#include "server_world.h"

enum { PIECE = 16384 };

struct source {
	int pieces; /* made so far */
	int last; /* the number of the last; 0 for none */
};

static bool
more(void *arg, struct buf *out)
{
	struct source *source = arg;
	char *piece = buf_grow(out, PIECE);

	assert_non_null(piece);
	memset(piece, 'x', PIECE);
	source->pieces++;
	return source->pieces != source->last;
}

/* A client whose request is in the handler's hands. */
static struct client *
hold(struct world *w, const char *request)
{
	struct client *c = join(w, 0);
	int before = w->nheld;

	say(c, request);
	until(w, w->nheld > before);
	return c;
}

#define HOLD "GET /hold HTTP/1.1\r\n" HOST "\r\n"

static void
test_a_streamed_answer_comes_in_chunks_and_ends(void **state)
{
	struct source source = { .last = 3 };
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	request_stream(w->held[0], 200, "text/plain", more, &source);
	/* The first piece is made in a turn of its own. */
	assert_int_equal(0, source.pieces);
	until(w, heard(c, "\r\n0\r\n\r\n"));
	assert_true(heard(c, "Transfer-Encoding: chunked\r\n"));
	assert_false(heard(c, "Content-Length"));
	assert_int_equal(3, count(c, "\r\n4000\r\nx"));
	assert_int_equal(3, source.pieces);

	say(c, SECOND "\r\n");
	until(w, count(c, "HTTP/1.1 200 ") == 2);
	assert_int_equal(1, count(c, "Transfer-Encoding"));
}

static void
test_a_stream_is_made_no_faster_than_it_is_read(void **state)
{
	struct source source = { 0 };
	struct world *w = *state;
	struct client *c;
	int before = -1;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	event_del(c->readable);
	request_stream(w->held[0], 200, "text/plain", more, &source);
	while (source.pieces != before) {
		before = source.pieces;
		barrier(w);
		barrier(w);
		assert_true((size_t)source.pieces * PIECE < 4 * (size_t)BIG);
	}
	event_add(c->readable, NULL);
	until(w, source.pieces > before + 10);
	leave(c);
	until(w, server_connections(w->server) == 0);
	assert_int_equal(0, server_requests(w->server));
}

static void
test_a_client_that_does_not_read_a_stream_is_closed(void **state)
{
	struct source source = { 0 };
	struct world *w = *state;
	struct client *c;

	start(w, &(struct server_conf){ .write_timeout = 60 * USEC_PER_MS });
	c = hold(w, HOLD);
	event_del(c->readable);
	request_stream(w->held[0], 200, "text/plain", more, &source);
	until(w, server_connections(w->server) == 0);
}

static void
test_who_takes_no_chunks_gets_no_body(void **state)
{
	static const char *const rows[] = {
		"HEAD /hold HTTP/1.1\r\n" HOST "\r\n",
		"GET /hold HTTP/1.0\r\n" HOST "\r\n",
	};
	struct source source = { 0 };
	struct world *w = *state;

	start(w, &(struct server_conf){ 0 });
	for (int i = 0; i < 2; i++) {
		struct client *c = hold(w, rows[i]);

		request_stream(w->held[i], 200, "text/plain", more, &source);
		until(w, heard(c, "Content-Length: 0\r\n"));
		assert_int_equal(0, source.pieces);
	}
}

struct loss {
	struct request *request;
	int told;
	bool answers;
};

static void
on_gone(void *arg)
{
	struct loss *loss = arg;

	loss->told++;
	if (loss->answers)
		request_reply(loss->request, 200, "text/plain", "late", 4);
	else
		request_abort(loss->request);
}

static void
test_a_client_that_goes_is_told_of(void **state)
{
	struct world *w = *state;
	struct loss loss = { 0 };
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	loss.request = w->held[0];
	request_on_gone(loss.request, on_gone, &loss);
	barrier(w);
	assert_int_equal(0, loss.told);
	leave(c);
	until(w, server_connections(w->server) == 0);
	assert_int_equal(1, loss.told);
	assert_int_equal(0, server_requests(w->server));
}

static void
test_a_reset_is_told_of(void **state)
{
	const struct linger now = { .l_onoff = 1 };
	struct world *w = *state;
	struct loss loss = { .answers = true };
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	loss.request = w->held[0];
	request_on_gone(loss.request, on_gone, &loss);
	assert_int_equal(
	    0, setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	leave(c);
	until(w, server_connections(w->server) == 0);
	assert_int_equal(1, loss.told);
}

static void
test_a_client_that_only_sends_no_more_can_be_answered(void **state)
{
	struct world *w = *state;
	struct loss loss = { .answers = true };
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	loss.request = w->held[0];
	request_on_gone(loss.request, on_gone, &loss);
	assert_int_equal(0, shutdown(c->fd, SHUT_WR));
	until(w, is_over(c));
	assert_true(heard(c, "late"));
	assert_int_equal(1, loss.told);
}

static void
test_one_that_went_before_we_asked_is_told_of(void **state)
{
	struct world *w = *state;
	struct loss loss = { 0 };
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	leave(c);
	barrier(w);
	loss.request = w->held[0];
	request_on_gone(loss.request, on_gone, &loss);
	assert_int_equal(0, loss.told);
	until(w, loss.told == 1);
	until(w, server_connections(w->server) == 0);
}

static void
test_who_has_its_answer_is_not_told_of(void **state)
{
	struct world *w = *state;
	struct loss loss = { 0 };
	struct client *c;

	start(w, &(struct server_conf){ 0 });
	c = hold(w, HOLD);
	request_on_gone(w->held[0], on_gone, &loss);
	request_reply(w->held[0], 200, "text/plain", "ok", 2);
	until(w, heard(c, "ok"));
	say(c, HOLD);
	until(w, w->nheld == 2);
	leave(c);
	barrier(w);
	request_abort(w->held[1]);
	assert_int_equal(0, loss.told);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_streamed_answer_comes_in_chunks_and_ends),
		TEST(test_a_stream_is_made_no_faster_than_it_is_read),
		TEST(test_a_client_that_does_not_read_a_stream_is_closed),
		TEST(test_who_takes_no_chunks_gets_no_body),
		TEST(test_a_client_that_goes_is_told_of),
		TEST(test_a_reset_is_told_of),
		TEST(test_a_client_that_only_sends_no_more_can_be_answered),
		TEST(test_one_that_went_before_we_asked_is_told_of),
		TEST(test_who_has_its_answer_is_not_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
