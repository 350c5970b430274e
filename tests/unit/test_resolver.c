#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "dns_server.h"
#include "http/resolver.h"

static const struct dns_record records[] = {
	{ .name = "both.test",
	    .a = { "192.0.2.1" },
	    .aaaa = { "2001:db8::1" } },
	{ .name = "four.test", .a = { "192.0.2.4", "192.0.2.5" } },
	{ .name = "six.test", .aaaa = { "2001:db8::6" } },
	{ .name = "alias.test", .a = { "192.0.2.7" }, .cname = "four.test" },
	{ .name = "none.test" },
	{ .name = "broken.test", .error = DNS_ERR_SERVERFAILED },
	{ .name = "silent.test", .is_silent_a = 1, .is_silent_aaaa = 1 },
	{ .name = "half.test", .a = { "192.0.2.8" }, .is_silent_aaaa = 1 },
	{ .name = "many.test",
	    .a = { "192.0.2.10", "192.0.2.11", "192.0.2.12", "192.0.2.13",
		"192.0.2.14", "192.0.2.15", "192.0.2.16", "192.0.2.17",
		"192.0.2.18", "192.0.2.19", "192.0.2.20", "192.0.2.21",
		"192.0.2.22", "192.0.2.23", "192.0.2.24", "192.0.2.25",
		"192.0.2.26", "192.0.2.27", "192.0.2.28", "192.0.2.29",
		"192.0.2.30", "192.0.2.31", "192.0.2.32", "192.0.2.33" },
	    .aaaa = { "2001:db8::10", "2001:db8::11", "2001:db8::12",
		"2001:db8::13", "2001:db8::14", "2001:db8::15",
		"2001:db8::16" } },
	{ .name = NULL },
};

struct world {
	struct event_base *loop;
	struct dns_server dns;
	struct resolver *resolver;
};

struct answer {
	int calls;
	struct lookup_result result;
};

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	if (w == NULL)
		return -1;
	w->loop = event_base_new();
	if (w->loop == NULL || dns_open(&w->dns, w->loop, records) != 0 ||
	    resolver_open(&w->resolver, w->loop, w->dns.address, &err) != 0)
		return -1;
	*state = w;
	return 0;
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	resolver_close(w->resolver);
	(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	dns_close(&w->dns);
	event_base_free(w->loop);
	free(w);
	return 0;
}

static void
on_answer(void *arg, const struct lookup_result *result)
{
	struct answer *answer = arg;

	answer->calls++;
	answer->result = *result;
}

static struct lookup *
start(struct world *w, const char *name, usec_t timeout, struct answer *answer)
{
	struct lookup *lookup = NULL;
	struct err err;

	assert_int_equal(0, resolver_start(&lookup, w->resolver, name, timeout,
				on_answer, answer, &err));
	assert_int_equal(answer->calls, 0);
	return lookup;
}

static struct lookup_result
look_up(struct world *w, const char *name, usec_t timeout)
{
	struct answer answer = { 0 };

	(void)start(w, name, timeout, &answer);
	while (answer.calls == 0)
		assert_int_equal(0, event_base_loop(w->loop, EVLOOP_ONCE));
	assert_int_equal(answer.calls, 1);
	return answer.result;
}

static int
has(const struct lookup_result *result, const char *address)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < result->count; i++) {
		const union resolver_address *at = &result->addresses[i];
		const void *octets = &at->v4.sin_addr;

		if (at->any.sa_family == AF_INET6)
			octets = &at->v6.sin6_addr;
		(void)inet_ntop(at->any.sa_family, octets, text, sizeof(text));
		if (strcmp(text, address) == 0)
			return 1;
	}
	return 0;
}

static void
test_both_families_are_found(void **state)
{
	struct lookup_result found = look_up(*state, "both.test", USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.1"));
	assert_true(has(&found, "2001:db8::1"));
	assert_string_equal(found.reason, "");
}

static void
test_one_family_is_enough(void **state)
{
	struct lookup_result found = look_up(*state, "four.test", USEC_PER_SEC);

	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.4"));
	assert_true(has(&found, "192.0.2.5"));

	found = look_up(*state, "six.test", USEC_PER_SEC);
	assert_int_equal(found.count, 1);
	assert_true(has(&found, "2001:db8::6"));
}

static void
test_an_alias_is_followed(void **state)
{
	struct lookup_result found =
	    look_up(*state, "alias.test", USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_true(has(&found, "192.0.2.7"));
}

static void
test_a_name_that_is_not_fails_with_a_reason(void **state)
{
	struct lookup_result found =
	    look_up(*state, "missing.test", USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FAILED);
	assert_int_equal(found.count, 0);
	assert_string_equal(found.reason, "no such name");

	found = look_up(*state, "none.test", USEC_PER_SEC);
	assert_int_equal(found.end, LOOKUP_FAILED);
}

static void
test_a_failing_name_server_is_told_from_a_missing_name(void **state)
{
	struct lookup_result found =
	    look_up(*state, "broken.test", 10 * USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FAILED);
	assert_string_not_equal(found.reason, "no such name");
}

static void
test_silence_ends_in_time(void **state)
{
	usec_t began = clock_now();
	struct lookup_result found =
	    look_up(*state, "silent.test", 50 * USEC_PER_MS);

	assert_int_equal(found.end, LOOKUP_TIMED_OUT);
	assert_true(clock_now() - began >= 40 * USEC_PER_MS);
	assert_true(clock_now() - began < 5 * USEC_PER_SEC);
}

static void
test_a_family_that_is_silent_does_not_cost_the_other(void **state)
{
	struct lookup_result found =
	    look_up(*state, "half.test", 10 * USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(found.count, 1);
	assert_true(has(&found, "192.0.2.8"));
}

static void
test_answers_are_bounded(void **state)
{
	struct lookup_result found =
	    look_up(*state, "many.test", 5 * USEC_PER_SEC);

	assert_true(found.count <= RESOLVER_ANSWERS_MAX);
	assert_true(found.count >= 24);
}

static void
test_the_hosts_file_answers_and_never_from_inside_start(void **state)
{
	struct world *w = *state;
	struct lookup_result found = look_up(w, "localhost", USEC_PER_SEC);

	if (found.end != LOOKUP_FOUND)
		skip(); /* this machine's hosts file does not know it */
	assert_true(has(&found, "127.0.0.1") || has(&found, "::1"));
	assert_int_equal(w->dns.questions, 0);
}

static void
test_a_cancelled_lookup_is_never_called_back(void **state)
{
	struct world *w = *state;
	struct answer answer = { 0 };

	lookup_cancel(start(w, "both.test", USEC_PER_SEC, &answer));
	lookup_cancel(start(w, "localhost", USEC_PER_SEC, &answer));
	(void)look_up(w, "four.test", USEC_PER_SEC);
	assert_int_equal(answer.calls, 0);
}

static void
test_silent_names_do_not_hold_up_another(void **state)
{
	struct world *w = *state;
	struct answer answers[500] = { { 0 } };
	struct lookup *lookups[500];
	struct lookup_result found;
	usec_t began;

	for (int i = 0; i < 500; i++) {
		lookups[i] =
		    start(w, "silent.test", 60 * USEC_PER_SEC, &answers[i]);
		/* A datagram is lost if the server does not read on. */
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	}
	began = clock_now();
	found = look_up(w, "four.test", 10 * USEC_PER_SEC);
	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_true(clock_now() - began < USEC_PER_SEC);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(answers[i].calls, 0);
		lookup_cancel(lookups[i]);
	}
}

static void
test_closing_drops_what_is_in_flight(void **state)
{
	struct world *w = *state;
	struct answer answer = { 0 };

	(void)start(w, "silent.test", USEC_PER_SEC, &answer);
	resolver_close(w->resolver);
	w->resolver = NULL;
	(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	assert_int_equal(answer.calls, 0);
}

static void
test_a_name_server_that_is_no_address_is_refused(void **state)
{
	struct world *w = *state;
	struct resolver *resolver = NULL;
	struct err err;

	assert_int_equal(
	    -1, resolver_open(&resolver, w->loop, "ns.test", &err));
	assert_int_equal(err.code, ERR_REFUSED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_both_families_are_found),
		TEST(test_one_family_is_enough),
		TEST(test_an_alias_is_followed),
		TEST(test_a_name_that_is_not_fails_with_a_reason),
		TEST(test_a_failing_name_server_is_told_from_a_missing_name),
		TEST(test_silence_ends_in_time),
		TEST(test_a_family_that_is_silent_does_not_cost_the_other),
		TEST(test_answers_are_bounded),
		TEST(test_the_hosts_file_answers_and_never_from_inside_start),
		TEST(test_a_cancelled_lookup_is_never_called_back),
		TEST(test_silent_names_do_not_hold_up_another),
		TEST(test_closing_drops_what_is_in_flight),
		TEST(test_a_name_server_that_is_no_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
