#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sender_world.h"

static void
answer_first_only(struct web_conn *conn)
{
	if (conn->requests == 1)
		web_text(conn);
	else
		web_close_unanswered(conn);
}

static void
test_a_request_is_not_sent_again_behind_our_back(void **state)
{
	struct world *w = *state;
	struct send_result result;

	web_says(&w->web, answer_first_only, OK);
	assert_int_equal(send_usual(w).end, SEND_ANSWERED);

	result = send_usual(w);
	assert_int_equal(w->web.requests, 2);
	assert_int_equal(result.end, SEND_BROKEN);
	assert_int_equal(result.status, 0);
	assert_string_equal(
	    result.reason, "the connection closed before any answer");
}

static void
test_a_connection_is_used_again(void **state)
{
	struct world *w = *state;

	web_says(&w->web, web_text, OK);
	for (int i = 0; i < 20; i++)
		assert_int_equal(send_usual(w).status, 200);
	assert_int_equal(w->web.requests, 20);
	assert_int_equal(w->web.connections, 1);
}

static void
test_a_connection_that_the_receiver_closed_is_not_used(void **state)
{
	struct world *w = *state;

	web_says(&w->web, web_text_close, OK);
	for (int i = 0; i < 5; i++)
		assert_int_equal(send_usual(w).status, 200);
	assert_int_equal(w->web.requests, 5);
}

#define NO_MORE                                                                \
	"HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define NO_BODY "HTTP/1.1 204 No Content\r\n\r\n"
#define CHUNKS                                                                 \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"                \
	"2\r\nok\r\n0\r\n\r\n"

/* What comes with an answer or after it, and belongs to no request. */
static const struct {
	const char *label, *answer, *later;
} strays[] = {
	{ "a second answer, later", OK, OK },
	{ "a second answer at once", OK OK, "" },
	{ "after no body", NO_BODY OK, "" },
	{ "after no body, later", NO_BODY, OK },
	{ "a body that is none", NO_BODY, "body" OK },
	{ "after chunks", CHUNKS OK, "" },
	{ "after chunks, later", CHUNKS, OK },
	{ "a proxy that waits no longer", OK,
	    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n"
	    "Connection: close\r\n\r\n" },
	{ "half an answer", OK, "HTTP/1.1 200 O" },
	{ "an empty line", OK, "\r\n" },
	{ "nothing", OK, "" },
};

static void
test_no_stray_answer_is_taken_for_the_next_requests(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(strays) / sizeof(strays[0]); i++) {
		struct send_result result;
		int before = w->web.requests;

		result = answer_with(w, web_text, strays[i].answer);
		assert_int_equal(result.end, SEND_ANSWERED);
		if (strays[i].later[0] != '\0')
			web_speak_up(&w->web, strays[i].later);
		result = answer_with(w, web_text, NO_MORE);
		if (result.end != SEND_ANSWERED || result.status != 500)
			fail_msg("%s: %s %d \"%s\"", strays[i].label,
			    send_end_name(result.end), result.status,
			    result.reason);
		assert_int_equal(w->web.requests, before + 2);
	}
}

/* More than libcurl reads at once, so that the rest is still in the socket. */
static void
test_no_stray_answer_hides_behind_a_long_one(void **state)
{
	enum { READ_AT_ONCE = 4096, LONG = 9000 };
	static char text[LONG + 512];
	struct world *w = *state;
	size_t head;

	for (int has_body = 0; has_body < 2; has_body++) {
		memset(text, 'x', sizeof(text));
		head = (size_t)snprintf(text, sizeof(text),
		    has_body ? "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
			     : "HTTP/1.1 204 OK\r\nX-Length: %d\r\n\r\n",
		    LONG);
		text[head] = 'x';
		memcpy(text + (has_body ? head + LONG : READ_AT_ONCE), OK,
		    sizeof(OK));
		assert_int_equal(
		    answer_with(w, web_text, text).end, SEND_ANSWERED);
		assert_int_equal(answer_with(w, web_text, NO_MORE).status, 500);
	}
}

/* Its event stays from one request to the next, and goes once it has spoken:
 * the loop would turn without end. */
static void
test_a_connection_at_rest_that_speaks_is_listened_to_once(void **state)
{
	struct world *w = *state;
	int at_rest;

	assert_int_equal(answer_with(w, web_text, OK).status, 200);
	at_rest = event_base_get_num_events(w->loop, EVENT_BASE_COUNT_ADDED);
	web_speak_up(&w->web, OK);
	for (int i = 0; i < 3; i++)
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	assert_int_equal(
	    event_base_get_num_events(w->loop, EVENT_BASE_COUNT_ADDED),
	    at_rest - 1);
}

static void
test_after_the_lease_nothing_is_sent(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);
	struct send_result result;

	web_says(&w->web, web_text, OK);
	args.not_after = clock_now() - 1;
	result = send_it(w, &args);
	assert_int_equal(result.end, SEND_UNSENT);
	assert_int_equal(w->web.requests, 0);

	/* On a connection that is open already as well. */
	assert_int_equal(send_usual(w).status, 200);
	assert_int_equal(send_it(w, &args).end, SEND_UNSENT);
	assert_int_equal(w->web.requests, 1);
}

static const char *const bad_headers[] = {
	"X-A: b\r\nX-B: c",
	"X-A: b\nX-B: c",
	"X-A: b\rc",
	"X-A: b\x7f",
	"X-A: b\x01",
	"X A: b",
	"X-A : b",
	": b",
	"no colon",
	"",
	"X-\xc3\xa9: b",
	"Host: other.example",
	"CONTENT-LENGTH: 0",
	"Transfer-Encoding: chunked",
	"Expect: 100-continue",
	"Connection: close",
};

static void
test_headers_that_split_or_frame_are_refused(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);

	for (size_t i = 0; i < sizeof(bad_headers) / sizeof(bad_headers[0]);
	     i++) {
		const char *const headers[] = { "X-Good: yes", bad_headers[i],
			NULL };
		struct outcome outcome = { 0 };
		struct send *send = NULL;
		struct err err;

		args.headers = headers;
		if (sender_start(
			&send, w->sender, &args, on_done, &outcome, &err) != -1)
			fail_msg("taken: \"%s\"", bad_headers[i]);
		assert_int_equal(err.code, ERR_REFUSED);
	}
	assert_int_equal(sender_in_flight(w->sender), 0);
	assert_int_equal(w->web.connections, 0);
}

static void
test_a_url_that_the_policy_forbids_is_refused(void **state)
{
	static const char *const urls[] = { "http://10.0.0.1/",
		"http://example.com/", "https://169.254.169.254/",
		"ftp://127.0.0.1/", "http://127.1/", "" };
	struct world *w = *state;
	struct send_args args = usual(w);

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct outcome outcome = { 0 };
		struct send *send = NULL;
		struct err err;

		args.url = urls[i];
		assert_int_equal(-1, sender_start(&send, w->sender, &args,
					 on_done, &outcome, &err));
		assert_int_equal(err.code, ERR_REFUSED);
	}
}

static void
expect_name(
    struct world *w, const char *url, enum send_end end, const char *reason)
{
	struct send_args args = usual(w);
	struct send_result result;

	args.url = url;
	result = send_it(w, &args);
	if (result.end != end || strstr(result.reason, reason) == NULL)
		fail_msg("%s: %s \"%s\"", url, send_end_name(result.end),
		    result.reason);
}

static void
test_one_bad_address_refuses_a_name(void **state)
{
	struct world *w = *state;

	expect_name(w, "https://mixed.example/", SEND_REFUSED, "10.0.0.0/8");
	expect_name(w, "https://inner.example/", SEND_REFUSED, "10.0.0.0/8");
	expect_name(w, "https://six.example/", SEND_REFUSED, "::1");
	/* Development opens loopback to those who name it, and to no name. */
	expect_name(w, "https://loop.example/", SEND_REFUSED, "127.0.0.0/8");
	assert_int_equal(w->web.connections, 0);
}

static void
test_a_name_that_is_not_there_is_a_failed_lookup(void **state)
{
	expect_name(*state, "https://missing.example/", SEND_DNS_FAILED,
	    "missing.example: no such name");
}

static void
test_localhost_goes_by_the_hosts_file(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);
	struct send_result result;
	char url[64], host[64];

	(void)snprintf(
	    url, sizeof(url), "http://localhost:%u/named", w->web.port);
	(void)snprintf(
	    host, sizeof(host), "\r\nHost: localhost:%u\r\n", w->web.port);
	args.url = url;
	web_says(&w->web, web_text, OK);
	for (int i = 0; i < 3; i++) {
		result = send_it(w, &args);
		if (result.end == SEND_DNS_FAILED)
			skip(); /* this machine's hosts file has none */
		assert_int_equal(result.status, 200);
		assert_non_null(strstr(w->web.last, host));
	}
	assert_int_equal(w->web.connections, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_request_is_not_sent_again_behind_our_back),
		TEST(test_a_connection_is_used_again),
		TEST(test_a_connection_that_the_receiver_closed_is_not_used),
		TEST(test_no_stray_answer_is_taken_for_the_next_requests),
		TEST(test_no_stray_answer_hides_behind_a_long_one),
		TEST(test_a_connection_at_rest_that_speaks_is_listened_to_once),
		TEST(test_after_the_lease_nothing_is_sent),
		TEST(test_headers_that_split_or_frame_are_refused),
		TEST(test_a_url_that_the_policy_forbids_is_refused),
		TEST(test_one_bad_address_refuses_a_name),
		TEST(test_a_name_that_is_not_there_is_a_failed_lookup),
		TEST(test_localhost_goes_by_the_hosts_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
