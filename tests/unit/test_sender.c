#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "core/retry_after.h"
#include "dns_server.h"
#include "http/sender.h"
#include "web_server.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define ENDLESS "HTTP/1.1 200 OK\r\n\r\n"

static const struct dns_record records[] = {
	{ .name = "mixed.example", .a = { "93.184.216.34", "10.0.0.1" } },
	{ .name = "inner.example", .a = { "10.0.0.1" } },
	{ .name = "loop.example", .a = { "127.0.0.1" } },
	{ .name = "six.example", .a = { "93.184.216.34" }, .aaaa = { "::1" } },
	{ .name = "silent.example", .is_silent_a = 1, .is_silent_aaaa = 1 },
	{ .name = NULL },
};

struct world {
	struct event_base *loop;
	struct dns_server dns;
	struct web web;
	struct sender *sender;
	char url[64];
	char body[2 * 1024 * 1024]; /* from 1 MiB on libcurl would ask first */
};

struct outcome {
	int calls;
	struct send_result result;
};

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sender_conf conf = {
		.policy = { .development = true, .allow_hosts = "" },
		.max_in_flight = 1000,
		.ca_file = "",
	};
	struct err err;

	if (w == NULL)
		return -1;
	w->loop = event_base_new();
	if (w->loop == NULL || dns_open(&w->dns, w->loop, records) != 0 ||
	    web_open(&w->web, w->loop) != 0)
		return -1;
	conf.nameserver = w->dns.address;
	(void)snprintf(
	    w->url, sizeof(w->url), "http://127.0.0.1:%u/hook", w->web.port);
	memset(w->body, 'b', sizeof(w->body));
	*state = w;
	if (sender_open(&w->sender, w->loop, &conf, &err) != 0) {
		print_error("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	sender_close(w->sender);
	(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	web_close(&w->web);
	dns_close(&w->dns);
	event_base_free(w->loop);
	free(w);
	return 0;
}

static void
on_done(void *arg, const struct send_result *result)
{
	struct outcome *outcome = arg;

	outcome->calls++;
	outcome->result = *result;
}

/* What most tests send; they change what they are about. */
static struct send_args
usual(const struct world *w)
{
	static const char *const headers[] = { "Content-Type: application/json",
		"webhook-id: evt_1", NULL };

	return (struct send_args){
		.url = w->url,
		.headers = headers,
		.body = "{}",
		.len = 2,
		.timeout = 5 * USEC_PER_SEC,
		.not_after = INT64_MAX,
	};
}

static struct send *
start(struct world *w, const struct send_args *args, struct outcome *outcome)
{
	struct send *send = NULL;
	struct err err = { .text = "" };

	if (sender_start(&send, w->sender, args, on_done, outcome, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(outcome->calls, 0);
	return send;
}

static void
await(struct world *w, const struct outcome *outcome)
{
	usec_t limit = clock_now() + 20 * USEC_PER_SEC;

	while (outcome->calls == 0) {
		assert_int_equal(0, event_base_loop(w->loop, EVLOOP_ONCE));
		assert_true(clock_now() < limit);
	}
	assert_int_equal(outcome->calls, 1);
}

static struct send_result
send_it(struct world *w, const struct send_args *args)
{
	struct outcome outcome = { 0 };

	(void)start(w, args, &outcome);
	await(w, &outcome);
	return outcome.result;
}

static struct send_result
send_usual(struct world *w)
{
	struct send_args args = usual(w);

	return send_it(w, &args);
}

static void
test_a_request_arrives_as_it_was_given(void **state)
{
	struct world *w = *state;
	struct send_result result;
	char remote[64];

	web_says(&w->web, web_text, OK);
	result = send_usual(w);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_int_equal(result.status, 200);
	assert_int_equal(result.retry_after, -1);
	assert_string_equal(result.reason, "");
	assert_string_equal(result.excerpt, "ok");
	assert_true(result.duration > 0);
	(void)snprintf(remote, sizeof(remote), "127.0.0.1:%u", w->web.port);
	assert_string_equal(result.remote, remote);

	assert_ptr_equal(
	    strstr(w->web.last, "POST /hook HTTP/1.1\r\n"), w->web.last);
	assert_non_null(strstr(w->web.last, "\r\nwebhook-id: evt_1\r\n"));
	assert_non_null(strstr(w->web.last, "\r\nContent-Length: 2\r\n"));
	assert_non_null(
	    strstr(w->web.last, "\r\nContent-Type: application/json\r\n"));
	assert_non_null(strstr(w->web.last, "\r\nUser-Agent: Postrider/"));
	assert_null(strstr(w->web.last, "Expect"));
	assert_null(strstr(w->web.last, "Accept-Encoding"));
	assert_non_null(strstr(w->web.last, "\r\n\r\n{}"));
}

static void
test_headers_not_given_are_not_made_up(void **state)
{
	static const char *const none[] = { "X-Empty:", NULL };
	struct world *w = *state;
	struct send_args args = usual(w);

	web_says(&w->web, web_text, OK);
	args.headers = none;
	args.len = 0;
	assert_int_equal(send_it(w, &args).end, SEND_ANSWERED);
	assert_null(strstr(w->web.last, "Content-Type"));
	assert_non_null(strstr(w->web.last, "\r\nX-Empty:\r\n"));
	assert_non_null(strstr(w->web.last, "\r\nContent-Length: 0\r\n"));
}

static void
test_a_large_body_goes_without_asking_first(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w);

	web_says(&w->web, web_text, OK);
	args.body = w->body;
	args.len = sizeof(w->body);
	assert_int_equal(send_it(w, &args).status, 200);
	assert_null(strstr(w->web.last, "Expect"));
}

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
	    "" },
	{ "a NUL in a header", web_flood, "HTTP/1.1 200 OK\r\nX: ",
	    "\x01\x80\xff\r\n", SEND_BROKEN, 200, "" },
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

static void
test_what_is_kept_of_a_body_is_safe_to_show(void **state)
{
	struct world *w = *state;
	struct send_result result;

	web_says(&w->web, web_text,
	    "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\na\x1b[31m\n\xff"
	    "b");
	result = send_usual(w);
	assert_string_equal(result.excerpt, "a.[31m..b");
}

static void
test_a_compressed_body_is_left_compressed(void **state)
{
	struct world *w = *state;
	struct send_result result;

	web_says(&w->web, web_text,
	    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
	    "Content-Length: 3\r\n\r\n\x1f\x8bZ");
	result = send_usual(w);
	assert_int_equal(result.end, SEND_ANSWERED);
	assert_string_equal(result.excerpt, "..Z");
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
test_an_interim_answer_asks_for_no_wait(void **state)
{
	struct world *w = *state;

	web_says(&w->web, web_text,
	    "HTTP/1.1 103 Early\r\nRetry-After: 5\r\n\r\n" OK);
	assert_int_equal(send_usual(w).retry_after, -1);
}

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
	args.url = "https://silent.example/";
	expect_time_out(w, &args, "looking up the name");
	assert_int_equal(sender_in_flight(w->sender), 0);
}

static void
test_nobody_listening_is_a_failed_connection(void **state)
{
	struct world *w = *state;
	struct send_result result;

	web_deaf(&w->web);
	result = send_usual(w);
	assert_int_equal(result.end, SEND_CONNECT_FAILED);
	assert_string_not_equal(result.reason, "");
}

static void
test_the_environment_has_no_say(void **state)
{
	static const char *const names[] = { "http_proxy", "HTTP_PROXY",
		"ALL_PROXY", "all_proxy", "https_proxy" };
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)setenv(names[i], "http://127.0.0.1:1", 1);
	web_says(&w->web, web_text, OK);
	assert_int_equal(send_usual(w).status, 200);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
	assert_ptr_equal(
	    strstr(w->web.last, "POST /hook HTTP/1.1\r\n"), w->web.last);
}

static void
test_nothing_is_remembered_of_an_answer(void **state)
{
	struct world *w = *state;

	web_says(&w->web, web_text,
	    "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n"
	    "Strict-Transport-Security: max-age=1000\r\n"
	    "Alt-Svc: h2=\":1\"; ma=1000\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(send_usual(w).status, 200);
	assert_int_equal(send_usual(w).status, 200);
	assert_null(strstr(w->web.last, "Cookie"));
	assert_null(strstr(w->web.last, "Referer"));
	assert_null(strstr(w->web.last, "Alt-Used"));
	assert_int_equal(w->web.requests, 2);
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

static void
test_a_cancelled_send_is_never_called_back(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w), name = usual(w);
	struct outcome cancelled[3] = { { 0 } }, other = { 0 };
	struct send *at_once, *later;

	name.url = "https://silent.example/";
	web_says(&w->web, web_hang, "");
	at_once = start(w, &args, &cancelled[0]);
	send_cancel(at_once);
	later = start(w, &args, &cancelled[1]);
	while (w->web.requests == 0)
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	send_cancel(later);
	send_cancel(start(w, &name, &cancelled[2]));
	assert_int_equal(sender_in_flight(w->sender), 0);

	web_says(&w->web, web_text, OK);
	(void)start(w, &args, &other);
	await(w, &other);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cancelled[i].calls, 0);
}

static void
test_closing_drops_what_is_in_flight(void **state)
{
	struct world *w = *state;
	struct send_args args = usual(w), name = usual(w);
	struct outcome outcomes[2] = { { 0 } };

	name.url = "https://silent.example/";
	(void)start(w, &args, &outcomes[0]);
	(void)start(w, &name, &outcomes[1]);
	while (w->web.requests == 0)
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	sender_close(w->sender);
	w->sender = NULL;
	(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	assert_int_equal(outcomes[0].calls + outcomes[1].calls, 0);
}

/* A `done` that starts and cancels others. */
struct chain {
	struct world *w;
	struct send *victim;
	struct outcome second;
};

static void
on_chain(void *arg, const struct send_result *result)
{
	struct chain *chain = arg;
	struct send_args args = usual(chain->w);

	assert_int_equal(result->status, 200);
	send_cancel(chain->victim);
	(void)start(chain->w, &args, &chain->second);
}

static void
answer_all_but_two(struct web_conn *conn)
{
	if (conn->web->requests != 1)
		web_text(conn);
}

static void
test_an_end_may_start_and_cancel_others(void **state)
{
	struct world *w = *state;
	struct chain chain = { .w = w };
	struct outcome victim = { 0 };
	struct send_args args = usual(w);
	struct send *send = NULL;
	struct err err;

	web_says(&w->web, answer_all_but_two, OK);
	chain.victim = start(w, &args, &victim);
	while (w->web.requests == 0)
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	assert_int_equal(
	    0, sender_start(&send, w->sender, &args, on_chain, &chain, &err));
	await(w, &chain.second);
	assert_int_equal(chain.second.result.status, 200);
	assert_int_equal(victim.calls, 0);
	assert_int_equal(sender_in_flight(w->sender), 0);
}

static void
answer_by_path(struct web_conn *conn)
{
	if (strncmp(conn->web->last, "POST /fast", 10) == 0)
		web_text(conn);
}

static void
test_hanging_sends_do_not_hold_up_another(void **state)
{
	enum { HANGING = 400 };
	struct world *w = *state;
	struct outcome *hanging = calloc(HANGING, sizeof(*hanging));
	struct send_args args = usual(w);
	struct send_result result;
	char url[64];

	assert_non_null(hanging);
	web_says(&w->web, answer_by_path, OK);
	for (int i = 0; i < HANGING; i++)
		(void)start(w, &args, &hanging[i]);
	while (w->web.requests < HANGING)
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	assert_int_equal(sender_in_flight(w->sender), HANGING);

	(void)snprintf(
	    url, sizeof(url), "http://127.0.0.1:%u/fast", w->web.port);
	args.url = url;
	for (int i = 0; i < 3; i++) {
		result = send_it(w, &args);
		assert_int_equal(result.status, 200);
		assert_true(result.duration < 500 * USEC_PER_MS);
	}
	assert_int_equal(w->web.connections, HANGING + 1);
	for (int i = 0; i < HANGING; i++)
		assert_int_equal(hanging[i].calls, 0);
	sender_close(w->sender);
	w->sender = NULL;
	free(hanging);
}

static void
test_up_to_the_limit_all_are_in_flight(void **state)
{
	enum { LIMIT = 300 };
	struct world *w = *state;
	struct sender_conf conf = {
		.policy = { .development = true, .allow_hosts = "" },
		.max_in_flight = LIMIT,
		.ca_file = "",
		.nameserver = w->dns.address,
	};
	struct outcome outcome = { 0 };
	struct send_args args = usual(w);
	struct sender *sender = NULL;
	struct send *send = NULL;
	struct err err;

	web_says(&w->web, answer_by_path, OK);
	assert_int_equal(0, sender_open(&sender, w->loop, &conf, &err));
	for (int i = 0; i < LIMIT; i++)
		assert_int_equal(0, sender_start(&send, sender, &args, on_done,
					&outcome, &err));
	while (w->web.requests < LIMIT)
		(void)event_base_loop(w->loop, EVLOOP_ONCE);
	assert_int_equal(sender_in_flight(sender), LIMIT);
	assert_int_equal(w->web.connections, LIMIT);
	assert_int_equal(outcome.calls, 0);
	sender_close(sender);
}

static void
test_more_than_the_limit_is_put_off(void **state)
{
	struct world *w = *state;
	struct sender_conf conf = {
		.policy = { .development = true, .allow_hosts = "" },
		.max_in_flight = 1,
		.ca_file = "",
		.nameserver = w->dns.address,
	};
	struct send_args args = usual(w);
	struct outcome outcomes[2] = { { 0 } };
	struct sender *sender = NULL;
	struct send *send = NULL;
	struct err err;

	assert_int_equal(0, sender_open(&sender, w->loop, &conf, &err));
	assert_int_equal(
	    0, sender_start(&send, sender, &args, on_done, &outcomes[0], &err));
	assert_int_equal(-1,
	    sender_start(&send, sender, &args, on_done, &outcomes[1], &err));
	assert_int_equal(err.code, ERR_RETRY);
	sender_close(sender);
}

static void
test_a_missing_certificate_file_stops_the_start(void **state)
{
	struct world *w = *state;
	struct sender_conf conf = {
		.policy = { .allow_hosts = "" },
		.max_in_flight = 1,
		.ca_file = "/nonexistent/ca.pem",
		.nameserver = "",
	};
	struct sender *sender = NULL;
	struct err err;

	assert_int_equal(-1, sender_open(&sender, w->loop, &conf, &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_non_null(strstr(err.text, "/nonexistent/ca.pem"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_request_arrives_as_it_was_given),
		TEST(test_headers_not_given_are_not_made_up),
		TEST(test_a_large_body_goes_without_asking_first),
		TEST(test_every_answer_has_its_end),
		TEST(test_what_is_kept_of_a_body_is_safe_to_show),
		TEST(test_a_compressed_body_is_left_compressed),
		TEST(test_retry_after_is_read_in_every_form),
		TEST(test_an_interim_answer_asks_for_no_wait),
		TEST(test_a_request_is_not_sent_again_behind_our_back),
		TEST(test_a_connection_is_used_again),
		TEST(test_a_connection_that_the_receiver_closed_is_not_used),
		TEST(test_silence_and_drips_end_in_time),
		TEST(test_nobody_listening_is_a_failed_connection),
		TEST(test_the_environment_has_no_say),
		TEST(test_nothing_is_remembered_of_an_answer),
		TEST(test_headers_that_split_or_frame_are_refused),
		TEST(test_a_url_that_the_policy_forbids_is_refused),
		TEST(test_one_bad_address_refuses_a_name),
		TEST(test_a_name_that_is_not_there_is_a_failed_lookup),
		TEST(test_localhost_goes_by_the_hosts_file),
		TEST(test_after_the_lease_nothing_is_sent),
		TEST(test_a_cancelled_send_is_never_called_back),
		TEST(test_closing_drops_what_is_in_flight),
		TEST(test_an_end_may_start_and_cancel_others),
		TEST(test_hanging_sends_do_not_hold_up_another),
		TEST(test_up_to_the_limit_all_are_in_flight),
		TEST(test_more_than_the_limit_is_put_off),
		TEST(test_a_missing_certificate_file_stops_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
