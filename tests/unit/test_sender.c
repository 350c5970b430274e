#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sender_world.h"

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
	assert_null(strstr(w->web.last, "User-Agent"));
	assert_non_null(strstr(w->web.last, "\r\nX-Empty:\r\n"));
	assert_non_null(strstr(w->web.last, "\r\nContent-Length: 0\r\n"));
}

/* One handle has it all, one after the other. */
static void
test_each_request_goes_where_it_is_sent(void **state)
{
	static const char *const paths[] = { "hook", "hook", "hook/2", "hook",
		NULL, "hook" };
	struct world *w = *state;
	struct send_args args = usual(w);
	struct send *send;
	char url[64], line[64];
	struct err err;

	web_says(&w->web, web_text, OK);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (paths[i] == NULL) {
			args.url = "http://192.0.2.1/hook";
			assert_int_equal(-1, sender_start(&send, w->sender,
						 &args, on_done, NULL, &err));
			continue;
		}
		(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s",
		    w->web.port, paths[i]);
		(void)snprintf(
		    line, sizeof(line), "POST /%s HTTP/1.1\r\n", paths[i]);
		args.url = url;
		assert_int_equal(send_it(w, &args).end, SEND_ANSWERED);
		assert_ptr_equal(strstr(w->web.last, line), w->web.last);
	}
	assert_int_equal(w->web.requests, 5);
}

static void
test_a_large_body_goes_without_asking_first(void **state)
{
	/* From 1 MiB on libcurl would. */
	static char body[2 * 1024 * 1024];
	struct world *w = *state;
	struct send_args args = usual(w);

	memset(body, 'b', sizeof(body));
	web_says(&w->web, web_text, OK);
	args.body = body;
	args.len = sizeof(body);
	assert_int_equal(send_it(w, &args).status, 200);
	assert_null(strstr(w->web.last, "Expect"));
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
	struct sender_conf conf = world_conf(w, LIMIT);
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
	struct sender_conf conf = world_conf(w, 1);
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
	struct sender_conf conf = world_conf(w, 1);
	struct sender *sender = NULL;
	struct err err;

	conf.ca_file = "/nonexistent/ca.pem";
	assert_int_equal(-1, sender_open(&sender, w->loop, &conf, &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_non_null(strstr(err.text, "/nonexistent/ca.pem"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_request_arrives_as_it_was_given),
		TEST(test_headers_not_given_are_not_made_up),
		TEST(test_each_request_goes_where_it_is_sent),
		TEST(test_a_large_body_goes_without_asking_first),
		TEST(test_nobody_listening_is_a_failed_connection),
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
