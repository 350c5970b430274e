#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sender_world.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

static void
test_what_is_kept_of_a_body_is_safe_to_show(void **state)
{
	struct world *w = *state;
	struct send_result result;

	web_says(&w->web, web_text,
	    "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\na\x1b[31m\n\xff"
	    "b");
	result = send_usual(w);
	assert_string_equal(result.excerpt, "a" R "[31m " R "b");
}

/* With a NUL in them they are no C strings. */
static void
test_a_nul_breaks_headers_and_not_bodies(void **state)
{
	static const char header[] =
	    "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n";
	static const char status[] = "HTTP/1.1 200 O\0K\r\n\r\n";
	static const char body[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";
	struct world *w = *state;
	struct send_result result;

	web_says_bytes(&w->web, web_text, header, sizeof(header) - 1);
	result = send_usual(w);
	assert_int_equal(result.end, SEND_BROKEN);
	assert_string_equal(result.reason, "Nul byte in header");
	web_says_bytes(&w->web, web_text, status, sizeof(status) - 1);
	assert_int_equal(send_usual(w).end, SEND_BROKEN);
	web_says_bytes(&w->web, web_text, body, sizeof(body) - 1);
	result = send_usual(w);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_string_equal(result.excerpt, "a" R "b");
}

static void
test_of_a_long_body_the_begin_is_kept(void **state)
{
	static char text[8192];
	struct world *w = *state;
	struct send_result result;
	int head = snprintf(text, sizeof(text),
	    "HTTP/1.1 500 No\r\nContent-Length: 6000\r\n\r\n");

	memset(text + head, 'b', 6000);
	result = answer_with(w, web_text, text);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_int_equal(strlen(result.excerpt), SEND_EXCERPT_MAX);
	assert_int_equal(strspn(result.excerpt, "b"), strlen(result.excerpt));
	/* Three octets for each that is none. */
	memset(text + head, 0xff, 6000);
	result = answer_with(w, web_text, text);
	assert_int_equal(strlen(result.excerpt), SEND_EXCERPT_MAX / 3 * 3);
}

static void
test_a_bomb_is_not_set_off(void **state)
{
	/* gzip -9 of a thousand noughts. */
	static const char bomb[] =
	    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
	    "Content-Length: 29\r\n\r\n"
	    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x30\x18\x05"
	    "\xa3\x60\x14\x0c\x77\x00\x00\x83\x99\x5f\xa8\xe8\x03\x00"
	    "\x00";
	struct world *w = *state;
	struct send_result result;

	web_says_bytes(&w->web, web_text, bomb, sizeof(bomb) - 1);
	result = send_usual(w);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_null(strstr(w->web.last, "Accept-Encoding"));
	assert_non_null(strstr(result.headers, "content-encoding: gzip"));
	assert_null(strstr(result.excerpt, "000"));
}

static void
test_chosen_headers_are_kept(void **state)
{
	struct world *w = *state;
	struct send_result result = answer_with(w, web_text,
	    "HTTP/1.1 302 Found\r\n"
	    "SERVER:  nginx/1.22 \r\n"
	    "Set-Cookie: session=secret\r\n"
	    "Location: /other\r\n"
	    "X-Request-Id: a\x1b[31m\xff\r\n"
	    "X-Request-Idle: no\r\n"
	    "Via: one\r\nVia: two\r\n"
	    "Retry-After:\r\n"
	    "Content-Length: 0\r\n\r\n");

	assert_string_equal(result.headers, "server: nginx/1.22\n"
					    "location: /other\n"
					    "x-request-id: a" R "[31m" R "\n"
					    "via: one\nvia: two\n"
					    "retry-after: \n"
					    "content-length: 0");
	result = answer_with(w, web_text, "HTTP/1.1 204 OK\r\nX: y\r\n\r\n");
	assert_string_equal(result.headers, "");
}

static void
test_what_is_kept_of_headers_is_bounded(void **state)
{
	static char text[16384];
	struct world *w = *state;
	struct send_result result;
	size_t at = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n");

	for (int i = 0; i < 20; i++)
		at += (size_t)snprintf(
		    text + at, sizeof(text) - at, "Via: %0500d\r\n", i);
	(void)snprintf(text + at, sizeof(text) - at,
	    "Server: small\r\nContent-Length: 0\r\n\r\n");
	result = answer_with(w, web_text, text);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_true(strlen(result.headers) <= SEND_HEADERS_KEPT);
	/* Three long ones, cut, leave room for the short ones. */
	assert_int_equal(strcspn(result.headers, "\n"), 5 + 256);
	assert_non_null(strstr(result.headers, "\nserver: small\n"));
}

/* Those of interim answers and of trailers are not the answer's. */
static void
test_only_the_answers_own_headers_count(void **state)
{
	struct world *w = *state;
	struct send_result result = answer_with(w, web_text,
	    "HTTP/1.1 103 Early\r\nServer: early\r\nRetry-After: 5\r\n"
	    "Content-Length: 7\r\n\r\n"
	    "HTTP/1.1 503 No\r\nServer: late\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n"
	    "0\r\nRetry-After: 9\r\nServer: trailer\r\n"
	    "Content-Length: 3\r\n\r\n");

	assert_int_equal(result.end, SEND_ANSWERED);
	assert_int_equal(result.status, 503);
	assert_string_equal(result.headers, "server: late");
	assert_int_equal(result.retry_after, -1);
}

static void
test_phases_that_did_not_come_are_left_out(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);
	struct send_timing timing;

	timing = answer_with(w, web_text, OK).timing;
	assert_int_equal(timing.dns, -1); /* an address */
	assert_int_equal(timing.tls, -1);
	assert_true(timing.connect > 0);
	assert_true(timing.wait > 0);
	assert_true(timing.receive >= 0);

	timing = send_usual(w).timing;
	assert_int_equal(timing.connect, -1); /* the same connection */
	assert_true(timing.wait > 0);

	args.timeout = 60 * USEC_PER_MS;
	web_says(&w->web, web_hang, "");
	timing = send_it(w, &args).timing;
	assert_true(timing.wait > 0); /* until the end */
	assert_int_equal(timing.receive, -1);

	web_says(&w->web, web_drip, ENDLESS);
	timing = send_it(w, &args).timing;
	assert_true(timing.wait >= 0);
	assert_true(timing.receive > 0);

	args.url = "https://silent.example/";
	timing = send_it(w, &args).timing;
	assert_true(timing.dns > 0);
	assert_int_equal(timing.connect, -1);
	assert_int_equal(timing.wait, -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_kept_of_a_body_is_safe_to_show),
		TEST(test_a_nul_breaks_headers_and_not_bodies),
		TEST(test_of_a_long_body_the_begin_is_kept),
		TEST(test_a_bomb_is_not_set_off),
		TEST(test_chosen_headers_are_kept),
		TEST(test_what_is_kept_of_headers_is_bounded),
		TEST(test_only_the_answers_own_headers_count),
		TEST(test_phases_that_did_not_come_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
