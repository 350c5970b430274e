#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/retry_after.h"
#include "sender_world.h"

/* What a receiver may say, and what that is. */
static const struct {
	const char *label;
	web_answer_fn *answer;
	const char *text, *more;
	enum send_end end;
	int status;
	const char *reason; /* a part of it */
} answers[] = {
	{ "200", web_text, OK, "", SEND_ANSWERED, 200, "" },
	{ "204", web_text, "HTTP/1.1 204 No Content\r\n\r\n", "", SEND_ANSWERED,
	    204, "" },
	{ "204 with a body", web_text,
	    "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc", "",
	    SEND_ANSWERED, 204, "" },
	{ "500", web_text, "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops",
	    "", SEND_ANSWERED, 500, "" },
	{ "HTTP/1.0 until close", web_text_close, "HTTP/1.0 200 OK\r\n\r\nbye",
	    "", SEND_ANSWERED, 200, "" },
	{ "chunked", web_text,
	    "HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "2\r\nok\r\n0\r\n\r\n",
	    "", SEND_ANSWERED, 202, "" },
	{ "a status out of the ordinary", web_text,
	    "HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n", "",
	    SEND_ANSWERED, 999, "" },
	{ "100 before the answer", web_text, "HTTP/1.1 100 Continue\r\n\r\n" OK,
	    "", SEND_ANSWERED, 200, "" },
	{ "a status of another HTTP", web_text_close,
	    "HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n", "", SEND_ANSWERED,
	    200, "" },
	{ "304 with a body", web_text,
	    "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\nabc", "",
	    SEND_ANSWERED, 304, "" },
	{ "the same length twice", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
	    "content-length:2 \r\n\r\nok",
	    "", SEND_ANSWERED, 200, "" },
	{ "a length beside chunks, which count", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	    "", SEND_ANSWERED, 200, "" },
	{ "Latin-1 in a header", web_text,
	    "HTTP/1.1 200 OK\r\nX: \xfc\x01\r\nContent-Length: 0\r\n\r\n", "",
	    SEND_ANSWERED, 200, "" },
	{ "octets after the end", web_text, OK "HTTP/1.1 500 No\r\n\r\n", "",
	    SEND_ANSWERED, 200, "" },
	{ "a header that looks like a status", web_text,
	    "HTTP/1.1 200 OK\r\nHTTP/1.1 410 Gone: x\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 200, "" },
	{ "a trailer that looks like a status", web_text,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "0\r\nHTTP/1.1 410 Gone: x\r\n\r\n",
	    "", SEND_ANSWERED, 200, "" },
	{ "301", web_text,
	    "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 301, "" },
	{ "302", web_text,
	    "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 302, "" },
	{ "303", web_text,
	    "HTTP/1.1 303 Other\r\nLocation: /again\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 303, "" },
	{ "307", web_text,
	    "HTTP/1.1 307 There\r\nLocation: file:///etc/passwd\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 307, "" },
	{ "308", web_text,
	    "HTTP/1.1 308 There\r\nLocation: /hook\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 308, "" },
	{ "a challenge", web_text,
	    "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\n"
	    "Content-Length: 0\r\n\r\n",
	    "", SEND_ANSWERED, 401, "" },
	{ "closed unanswered", web_close_unanswered, "", "", SEND_BROKEN, 0,
	    "" },
	{ "a cut body", web_text_close,
	    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "", SEND_BROKEN,
	    200, "" },
	{ "a cut header", web_text_close, "HTTP/1.1 200 OK\r\nX-A: b", "",
	    SEND_BROKEN, 200, "" },
	{ "bad chunking", web_text,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "",
	    SEND_BROKEN, 200, "" },
	{ "garbage", web_text_close, "SSH-2.0-OpenSSH_9.2\r\n", "", SEND_BROKEN,
	    0, "" },
	{ "HTTP/0.9", web_text_close, "<html>hello</html>", "", SEND_BROKEN, 0,
	    "HTTP/0.9" },
	{ "a header without a colon", web_text,
	    "HTTP/1.1 200 OK\r\nX\r\nContent-Length: 0\r\n\r\n", "",
	    SEND_BROKEN, 200, "colon" },
	{ "a body that is too short", web_text_close,
	    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "", SEND_BROKEN,
	    200, "" },
	{ "two lengths", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
	    "Content-Length: 3\r\n\r\nok!",
	    "", SEND_BROKEN, 200, "Content-Length" },
	{ "two lengths in one", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", "",
	    SEND_BROKEN, 200, "Content-Length" },
	{ "a length below nothing", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "", SEND_BROKEN,
	    200, "Content-Length" },
	{ "a length beyond counting", web_text,
	    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n"
	    "\r\nok",
	    "", SEND_BROKEN, 200, "Content-Length" },
	{ "a length that is huge", web_flood,
	    "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", "and more",
	    SEND_BROKEN, 200, "body" },
	{ "a status of four digits", web_text_close, "HTTP/1.1 2000 OK\r\n\r\n",
	    "", SEND_BROKEN, 0, "" },
	{ "a status of two digits", web_text_close, "HTTP/1.1 20 OK\r\n\r\n",
	    "", SEND_BROKEN, 0, "" },
	{ "a status out of its place", web_text,
	    "HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", "", SEND_BROKEN, 0,
	    "status" },
	{ "another HTTP", web_text_close, "HTTP/3.7 200 OK\r\n\r\n", "",
	    SEND_BROKEN, 0, "" },
	{ "chunks without an end", web_text_close,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "2\r\nok\r\n",
	    "", SEND_BROKEN, 200, "" },
	{ "a chunk that is cut", web_text_close,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nok", "",
	    SEND_BROKEN, 200, "" },
	{ "101", web_text, "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", "",
	    SEND_BROKEN, 101, "101" },
	{ "1xx without end", web_flood, "HTTP/1.1 100 Continue\r\n\r\n",
	    "HTTP/1.1 103 Early\r\n\r\n", SEND_BROKEN, 103, "1xx" },
	{ "headers without end", web_flood, "HTTP/1.1 200 OK\r\n",
	    "X-More: and more and more and more\r\n", SEND_BROKEN, 200,
	    "headers" },
	{ "one header without end", web_flood, "HTTP/1.1 200 OK\r\nX: ",
	    "and more and more and more", SEND_BROKEN, 200, "" },
	{ "a body without end", web_flood, ENDLESS, "and more", SEND_BROKEN,
	    200, "body" },
	{ "chunks without end", web_flood,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "4\r\nmore\r\n", SEND_BROKEN, 200, "body" },
	{ "a chunk size without end", web_flood,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	    "0000000000000000", SEND_BROKEN, 200, "" },
	{ "trailers without end", web_flood,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "0\r\n",
	    "X-More: and more and more and more\r\n", SEND_BROKEN, 200, "" },
};

static void
test_every_answer_has_its_end(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct send_result result;
		int before = w->web.requests;

		web_says(&w->web, answers[i].answer, answers[i].text);
		w->web.more = answers[i].more;
		result = send_usual(w);
		if (result.end != answers[i].end ||
		    result.status != answers[i].status ||
		    strstr(result.reason, answers[i].reason) == NULL)
			fail_msg("%s: %s %d \"%s\"", answers[i].label,
			    send_end_name(result.end), result.status,
			    result.reason);
		if ((result.end == SEND_ANSWERED) != (result.reason[0] == '\0'))
			fail_msg("%s: reason \"%s\"", answers[i].label,
			    result.reason);
		if (w->web.requests != before + 1)
			fail_msg("%s: %d requests", answers[i].label,
			    w->web.requests - before);
	}
}

static const struct {
	const char *lines;
	usec_t min, max;
} waits[] = {
	{ "Retry-After: 120\r\n", 120 * USEC_PER_SEC, 120 * USEC_PER_SEC },
	{ "retry-after:7\r\n", 7 * USEC_PER_SEC, 7 * USEC_PER_SEC },
	{ "RETRY-AFTER:  \t 9 \r\n", 9 * USEC_PER_SEC, 9 * USEC_PER_SEC },
	{ "Retry-After: 0\r\n", 0, 0 },
	{ "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n", 0, 0 },
	{ "Retry-After: Fri, 31 Dec 2400 23:59:59 GMT\r\n", RETRY_AFTER_MAX,
	    RETRY_AFTER_MAX },
	{ "Retry-After: 99999999999999999999\r\n", RETRY_AFTER_MAX,
	    RETRY_AFTER_MAX },
	{ "Retry-After: soon\r\n", -1, -1 },
	{ "Retry-After:\r\n", -1, -1 },
	{ "Retry-After: -5\r\n", -1, -1 },
	{ "Retry-After: 3\r\nRetry-After: 30\r\nRetry-After: x\r\n",
	    30 * USEC_PER_SEC, 30 * USEC_PER_SEC },
	{ "X-Retry-After: 3\r\n", -1, -1 },
	{ "", -1, -1 },
};

static void
test_retry_after_is_read_in_every_form(void **state)
{
	struct world *w = *state;
	char text[512];

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct send_result result;

		(void)snprintf(text, sizeof(text),
		    "HTTP/1.1 503 No\r\n%sContent-Length: 0\r\n\r\n",
		    waits[i].lines);
		web_says(&w->web, web_text, text);
		result = send_usual(w);
		if (result.retry_after < waits[i].min ||
		    result.retry_after > waits[i].max)
			fail_msg("%s: %lld", waits[i].lines,
			    (long long)result.retry_after);
	}
}

static void
expect_time_out(
    struct world *w, const struct send_args *args, const char *phase)
{
	usec_t began = clock_now();
	struct send_result result = send_it(w, args);
	usec_t took = clock_now() - began;

	assert_int_equal(result.end, SEND_TIMED_OUT);
	if (strstr(result.reason, phase) == NULL)
		fail_msg("\"%s\" does not say %s", result.reason, phase);
	/* The loop's clock is a coarse one. */
	assert_true(took >= args->timeout - 10 * USEC_PER_MS);
	assert_true(took < args->timeout + 2 * USEC_PER_SEC);
}

static void
test_silence_and_drips_end_in_time(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);

	args.timeout = 60 * USEC_PER_MS;
	web_says(&w->web, web_hang, "");
	expect_time_out(w, &args, "waiting for an answer");
	web_says(&w->web, web_drip, ENDLESS);
	expect_time_out(w, &args, "reading the answer");
	web_says(&w->web, web_drip, "HTTP/1.1 200 OK\r\nX-Slow: ");
	expect_time_out(w, &args, "the answer");
	web_says(&w->web, web_drip, "HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 10");
	expect_time_out(w, &args, "the answer");
	web_says(&w->web, web_drip,
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n");
	expect_time_out(w, &args, "reading the answer");
	args.url = "https://silent.example/";
	expect_time_out(w, &args, "looking up the name");
	assert_int_equal(sender_in_flight(w->sender), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_answer_has_its_end),
		TEST(test_retry_after_is_read_in_every_form),
		TEST(test_silence_and_drips_end_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
