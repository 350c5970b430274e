/*
 * sender_world: a sender in development mode, and a scripted receiver and a
 * name server for it, on one loop.
 */

#ifndef TESTS_SENDER_WORLD_H
#define TESTS_SENDER_WORLD_H

#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
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
};

struct outcome {
	int calls;
	struct send_result result;
};

static inline struct sender_conf
world_conf(const struct world *w, int max_in_flight)
{
	return (struct sender_conf){
		.policy = { .development = true, .allow_hosts = "" },
		.max_in_flight = max_in_flight,
		.ca_file = "",
		.revoked_file = "",
		.nameserver = w->dns.address,
	};
}

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sender_conf conf;
	struct err err;

	if (w == NULL)
		return -1;
	w->loop = event_base_new();
	if (w->loop == NULL || dns_open(&w->dns, w->loop, records) != 0 ||
	    web_open(&w->web, w->loop) != 0)
		return -1;
	(void)snprintf(
	    w->url, sizeof(w->url), "http://127.0.0.1:%u/hook", w->web.port);
	*state = w;
	conf = world_conf(w, 1000);
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

static inline struct send_result
send_usual(struct world *w)
{
	struct send_args args = usual(w);

	return send_it(w, &args);
}

/* Say `text`, and see what comes of the usual request. */
static inline struct send_result
answer_with(struct world *w, web_answer_fn *answer, const char *text)
{
	web_says(&w->web, answer, text);
	return send_usual(w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
