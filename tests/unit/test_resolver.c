#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../../src/http/resolver_inside.h"
#include "base/err.h"
#include "dns_server.h"
#include "http/resolver.h"

static const struct dns_record records[] = {
	{ .name = "both.test",
	    .a = { "192.0.2.1" },
	    .aaaa = { "2001:db8::1" } },
	{ .name = "four.test", .a = { "192.0.2.4", "192.0.2.5" } },
	{ .name = "six.test", .aaaa = { "2001:db8::6" } },
	{ .name = "alias.test", .cname = "second.test" },
	{ .name = "second.test", .cname = "both.test" },
	{ .name = "round.test", .cname = "about.test" },
	{ .name = "about.test", .cname = "round.test" },
	{ .name = "self.test", .cname = "self.test" },
	{ .name = "astray.test", .cname = "nowhere.test" },
	{ .name = "none.test" },
	{ .name = "broken.test", .error = DNS_SERVFAIL },
	{ .name = "refused.test", .error = DNS_REFUSED },
	{ .name = "hiccup.test",
	    .a = { "192.0.2.3" },
	    .error = DNS_SERVFAIL,
	    .failures = 1 },
	{ .name = "mended.test",
	    .a = { "192.0.2.9" },
	    .error = DNS_NXDOMAIN,
	    .failures = 1 },
	{ .name = "silent.test", .is_silent_a = 1, .is_silent_aaaa = 1 },
	{ .name = "half.test", .a = { "192.0.2.8" }, .is_silent_aaaa = 1 },
	{ .name = "late.test",
	    .a = { "192.0.2.8" },
	    .aaaa = { "2001:db8::8" },
	    .delay_ms = 100 },
	{ .name = "slow.test", .aaaa = { "2001:db8::9" }, .delay_ms = 1500 },
	{ .name = "crowd.test", .many = 100, .aaaa = { "2001:db8::10" } },
	{ .name = "stuck.test", .many = 100, .is_silent_tcp = 1 },
	{ .name = "rebound.test",
	    .a = { "192.0.2.11" },
	    .later_a = "127.0.0.1" },
	{ .name = "looped.test", .a = { "192.0.2.12" }, .trick = DNS_LOOP },
	{ .name = "rubbish.test", .a = { "192.0.2.12" }, .trick = DNS_GARBAGE },
	{ .name = "cut.test", .a = { "192.0.2.12" }, .trick = DNS_CUT },
	{ .name = "foreign.test", .a = { "192.0.2.12" }, .trick = DNS_FOREIGN },
	{ .name = "half-looped.test",
	    .a = { "192.0.2.13" },
	    .trick_aaaa = DNS_LOOP },
	{ .name = "half-rubbish.test",
	    .a = { "192.0.2.13" },
	    .trick_aaaa = DNS_GARBAGE },
	{ .name = "half-cut.test",
	    .a = { "192.0.2.13" },
	    .aaaa = { "2001:db8::13" },
	    .trick_aaaa = DNS_CUT },
	{ .name = "wrong-id.test",
	    .a = { "192.0.2.14" },
	    .trick = DNS_WRONG_ID },
	{ .name = "wrong-question.test",
	    .a = { "192.0.2.14" },
	    .trick = DNS_WRONG_QUESTION },
	{ .name = "wrong-source.test",
	    .a = { "192.0.2.14" },
	    .trick = DNS_WRONG_SOURCE },
	{ .name = "empty.test", .a = { "192.0.2.14" }, .trick = DNS_EMPTY },
	{ .name = "short.test", .a = { "192.0.2.14" }, .trick = DNS_SHORT },
	{ .name = NULL },
};

struct world {
	struct event_base *loop;
	struct dns_server dns;
	struct resolver *resolver;
	char hosts[32], resolv_conf[32]; /* files of our own */
};

struct answer {
	int calls;
	struct lookup_result result;
};

static void
write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(0, fclose(file));
}

static void
make_file(char *path, const char *text)
{
	int fd;

	(void)snprintf(path, 32, "/tmp/test_resolver-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	(void)close(fd);
	write_file(path, text);
}

static struct resolver *
open_resolver(struct world *w, const char *nameserver)
{
	const struct resolver_places places = {
		.nameserver = nameserver,
		.hosts = w->hosts,
		.resolv_conf = w->resolv_conf,
		.port = ntohs(w->dns.at.sin_port),
	};
	struct resolver *resolver = NULL;
	struct err err;

	if (resolver_open_at(&resolver, w->loop, &places, &err) != 0)
		fail_msg("%s", err.text);
	return resolver;
}

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -1;
	make_file(w->hosts, "");
	make_file(w->resolv_conf, "");
	w->loop = event_base_new();
	if (w->loop == NULL || dns_open(&w->dns, w->loop, records) != 0)
		return -1;
	w->resolver = open_resolver(w, w->dns.address);
	*state = w;
	return 0;
}

static int
tear_down(void **state)
{
	struct world *w = *state;

	resolver_close(w->resolver);
	dns_close(&w->dns);
	event_base_free(w->loop);
	(void)unlink(w->hosts);
	(void)unlink(w->resolv_conf);
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

/* Found, and nothing else than `address`. */
static void
expect_one(struct world *w, const char *name, const char *address)
{
	struct lookup_result found = look_up(w, name, 10 * USEC_PER_SEC);

	if (found.end != LOOKUP_FOUND)
		fail_msg("%s: %s", name, found.reason);
	assert_int_equal(found.count, 1);
	assert_true(has(&found, address));
}

static void
expect_failure(struct world *w, const char *name, const char *reason)
{
	struct lookup_result found = look_up(w, name, 10 * USEC_PER_SEC);

	if (found.end != LOOKUP_FAILED || strcmp(found.reason, reason) != 0)
		fail_msg("%s: %d, %s", name, (int)found.end, found.reason);
	assert_int_equal(found.count, 0);
}

static void
test_both_families_are_found_and_take_turns(void **state)
{
	struct lookup_result found = look_up(*state, "both.test", USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.1"));
	assert_true(has(&found, "2001:db8::1"));
	assert_int_equal(found.addresses[0].any.sa_family, AF_INET);
	assert_string_equal(found.reason, "");
}

static void
test_one_family_is_enough(void **state)
{
	struct lookup_result found = look_up(*state, "four.test", USEC_PER_SEC);

	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.4"));
	assert_true(has(&found, "192.0.2.5"));
	expect_one(*state, "six.test", "2001:db8::6");
}

static void
test_aliases_are_followed_to_their_end(void **state)
{
	struct lookup_result found =
	    look_up(*state, "alias.test", USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.1"));
	assert_true(has(&found, "2001:db8::1"));
}

static void
test_aliases_that_lead_nowhere_fail(void **state)
{
	expect_failure(*state, "round.test", "the name has no address");
	expect_failure(*state, "self.test", "the name has no address");
	expect_failure(*state, "astray.test", "the name has no address");
}

static void
test_a_name_that_is_not_fails_with_a_reason(void **state)
{
	expect_failure(*state, "missing.test", "no such name");
	expect_failure(*state, "none.test", "the name has no address");
}

static void
test_a_name_that_was_not_is_found_once_it_is(void **state)
{
	expect_failure(*state, "mended.test", "no such name");
	expect_one(*state, "mended.test", "192.0.2.9");
}

static void
test_each_look_up_asks_anew(void **state)
{
	expect_one(*state, "rebound.test", "192.0.2.11");
	expect_one(*state, "rebound.test", "127.0.0.1");
}

static void
test_a_failing_name_server_is_told_from_a_missing_name(void **state)
{
	expect_failure(
	    *state, "broken.test", "the name servers cannot say now");
	expect_failure(
	    *state, "refused.test", "the name servers cannot say now");
}

static void
test_a_server_that_fails_once_is_asked_again(void **state)
{
	expect_one(*state, "hiccup.test", "192.0.2.3");
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

/* Before the time of the look-up is up, and says so. */
static void
test_silence_is_asked_again_and_given_up(void **state)
{
	struct world *w = *state;

	expect_failure(w, "silent.test", "no answer from the name servers");
	assert_int_equal(w->dns.questions, 8); /* four times each family */
}

static void
test_a_family_that_is_silent_costs_the_other_half_a_second(void **state)
{
	usec_t began = clock_now();

	expect_one(*state, "half.test", "192.0.2.8");
	assert_true(clock_now() - began >= 400 * USEC_PER_MS);
	assert_true(clock_now() - began < 2 * USEC_PER_SEC);
}

static void
test_a_family_that_is_late_is_waited_for(void **state)
{
	struct lookup_result found = look_up(*state, "late.test", USEC_PER_SEC);

	assert_int_equal(found.count, 2);
	assert_true(has(&found, "2001:db8::8"));
}

static void
test_a_family_that_fails_does_not_cost_the_other(void **state)
{
	expect_one(*state, "half-looped.test", "192.0.2.13");
	expect_one(*state, "half-rubbish.test", "192.0.2.13");
	expect_one(*state, "half-cut.test", "192.0.2.13");
}

static void
test_answers_that_are_none_fail(void **state)
{
	static const char *const names[] = { "looped.test", "rubbish.test",
		"cut.test", "foreign.test" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct lookup_result found =
		    look_up(*state, names[i], 10 * USEC_PER_SEC);

		if (found.end == LOOKUP_FOUND)
			fail_msg("%s: %zu addresses", names[i], found.count);
	}
}

static void
test_what_was_not_asked_for_is_no_answer(void **state)
{
	expect_one(*state, "wrong-id.test", "192.0.2.14");
	expect_one(*state, "wrong-question.test", "192.0.2.14");
	expect_one(*state, "wrong-source.test", "192.0.2.14");
	expect_one(*state, "empty.test", "192.0.2.14");
	expect_one(*state, "short.test", "192.0.2.14");
}

/* A hundred addresses: 1612 octets. */
static void
test_an_answer_that_fits_no_datagram_comes_over_tcp(void **state)
{
	struct world *w = *state;
	struct lookup_result found = look_up(w, "crowd.test", 5 * USEC_PER_SEC);

	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(w->dns.tcp_questions, 1);
	assert_int_equal(found.count, RESOLVER_ANSWERS_MAX);
	assert_true(has(&found, "192.0.2.1"));
	assert_true(has(&found, "2001:db8::10"));
}

static void
test_tcp_that_is_silent_ends_in_time(void **state)
{
	struct world *w = *state;
	struct lookup_result found =
	    look_up(w, "stuck.test", 300 * USEC_PER_MS);

	assert_int_equal(found.end, LOOKUP_TIMED_OUT);
	assert_int_equal(w->dns.tcp_questions, 1);
}

static void
test_the_hosts_file_answers_and_never_from_inside_start(void **state)
{
	struct world *w = *state;
	struct lookup_result found;

	resolver_close(w->resolver);
	write_file(w->hosts,
	    "# 192.0.2.99 four.test\n"
	    "192.0.2.41\tinner  FOUR.test alias # four\n"
	    "\n"
	    "2001:db8::41 four.test\r\n"
	    "fe80::1%lo four.test\n"
	    "nonsense four.test\n"
	    "192.0.2.42 four.test.not not-four.test # four.test\n"
	    "192.0.2.43 last.test");
	w->resolver = open_resolver(w, w->dns.address);

	found = look_up(w, "four.test", USEC_PER_SEC);
	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_int_equal(found.count, 2);
	assert_true(has(&found, "192.0.2.41"));
	assert_true(has(&found, "2001:db8::41"));
	expect_one(w, "last.test", "192.0.2.43");
	assert_int_equal(w->dns.questions, 0);
}

static void
test_a_changed_hosts_file_is_read_again(void **state)
{
	struct world *w = *state;
	usec_t began = clock_now();
	struct lookup_result found = { .count = 0 };

	write_file(w->hosts, "192.0.2.44 four.test\n");
	while (!has(&found, "192.0.2.44")) {
		found = look_up(w, "four.test", USEC_PER_SEC);
		assert_true(clock_now() - began < 10 * USEC_PER_SEC);
	}
}

static void
write_resolv_conf(struct world *w, const struct dns_server *server)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "search test\nnameserver %.*s\n",
	    (int)strcspn(server->address, ":"), server->address);
	write_file(w->resolv_conf, text);
}

static void
test_search_domains_are_never_tried(void **state)
{
	struct world *w = *state;

	resolver_close(w->resolver);
	write_resolv_conf(w, &w->dns);
	w->resolver = open_resolver(w, "");
	expect_failure(w, "both", "no such name");
	assert_int_equal(w->dns.questions, 2);
}

/* A second server, which knows another both.test. */
static const struct dns_record others[] = {
	{ .name = "both.test", .a = { "192.0.2.77" } },
	{ .name = NULL },
};

static void
test_changed_name_servers_are_asked_from_then_on(void **state)
{
	struct world *w = *state;
	struct sockaddr_in at = w->dns.at;
	struct dns_server second;
	struct answer slow = { 0 };
	struct lookup_result found = { .count = 0 };
	usec_t began;

	/* resolv.conf knows no ports: the same one at another address. */
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	assert_int_equal(0, dns_open_at(&second, w->loop, others, at));
	resolver_close(w->resolver);
	write_resolv_conf(w, &w->dns);
	w->resolver = open_resolver(w, "");
	assert_int_equal(2, look_up(w, "both.test", USEC_PER_SEC).count);

	/* One that is under way keeps its server, and is not lost. */
	(void)start(w, "slow.test", 10 * USEC_PER_SEC, &slow);
	write_resolv_conf(w, &second);
	began = clock_now();
	while (!has(&found, "192.0.2.77")) {
		found = look_up(w, "both.test", USEC_PER_SEC);
		assert_true(clock_now() - began < 10 * USEC_PER_SEC);
	}
	while (slow.calls == 0)
		assert_int_equal(0, event_base_loop(w->loop, EVLOOP_ONCE));
	assert_true(has(&slow.result, "2001:db8::9"));
	resolver_close(w->resolver);
	w->resolver = NULL;
	dns_close(&second);
}

/* A server that is down costs a wait, until another is asked first. */
static void
test_a_dead_name_server_is_asked_last(void **state)
{
	static const struct dns_record silence[] = {
		{ .name = "both.test", .is_silent_a = 1, .is_silent_aaaa = 1 },
		{ .name = NULL },
	};
	struct world *w = *state;
	struct dns_server dead;
	char list[80];
	usec_t began;

	assert_int_equal(0, dns_open(&dead, w->loop, silence));
	(void)snprintf(
	    list, sizeof(list), "%s,%s", dead.address, w->dns.address);
	resolver_close(w->resolver);
	w->resolver = open_resolver(w, list);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
		    2, look_up(w, "both.test", 5 * USEC_PER_SEC).count);
	began = clock_now();
	assert_int_equal(2, look_up(w, "both.test", 5 * USEC_PER_SEC).count);
	assert_true(clock_now() - began < 300 * USEC_PER_MS);
	resolver_close(w->resolver);
	w->resolver = NULL;
	dns_close(&dead);
}

static void
test_a_port_where_nobody_listens_fails_at_once(void **state)
{
	struct world *w = *state;
	struct dns_server gone;

	assert_int_equal(0, dns_open(&gone, w->loop, records));
	dns_close(&gone);
	resolver_close(w->resolver);
	w->resolver = open_resolver(w, gone.address);
	expect_failure(w, "both.test", "the name servers cannot say now");
}

static void
test_a_cancelled_lookup_is_never_called_back(void **state)
{
	struct world *w = *state;
	struct answer answer = { 0 };

	lookup_cancel(start(w, "both.test", USEC_PER_SEC, &answer));
	lookup_cancel(start(w, "silent.test", USEC_PER_SEC, &answer));
	(void)look_up(w, "four.test", USEC_PER_SEC);
	/* Answered, and not told yet. */
	write_file(w->hosts, "192.0.2.44 four.test\n");
	resolver_close(w->resolver);
	w->resolver = open_resolver(w, w->dns.address);
	lookup_cancel(start(w, "four.test", USEC_PER_SEC, &answer));
	(void)look_up(w, "both.test", USEC_PER_SEC);
	assert_int_equal(answer.calls, 0);
}

/* Names that c-ares does not even ask for. */
static void
test_a_name_that_is_none_fails_from_the_loop(void **state)
{
	char name[400];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	expect_failure(*state, name, "the name servers cannot say now");
	expect_failure(*state, "a..b", "the name servers cannot say now");
}

struct chain {
	struct world *w;
	int left;
};

static void
on_chain(void *arg, const struct lookup_result *result)
{
	struct chain *chain = arg;
	struct lookup *lookup;
	struct err err;

	assert_int_equal(result->end, LOOKUP_FOUND);
	if (chain->left-- > 0)
		assert_int_equal(
		    0, resolver_start(&lookup, chain->w->resolver, "both.test",
			   USEC_PER_SEC, on_chain, chain, &err));
}

static void
test_one_may_be_started_when_one_is_done(void **state)
{
	struct chain chain = { *state, 20 };

	on_chain(&chain, &(struct lookup_result){ .end = LOOKUP_FOUND });
	while (chain.left >= 0)
		assert_int_equal(
		    0, event_base_loop(chain.w->loop, EVLOOP_ONCE));
}

static void
test_silent_names_do_not_hold_up_another(void **state)
{
	enum { SILENT = 16384 };
	struct world *w = *state;
	struct answer *answers = calloc(SILENT, sizeof(*answers));
	struct lookup **lookups = calloc(SILENT, sizeof(struct lookup *));
	struct lookup_result found;
	usec_t began;

	assert_non_null(answers);
	assert_non_null(lookups);
	for (int i = 0; i < SILENT; i++) {
		lookups[i] =
		    start(w, "silent.test", 60 * USEC_PER_SEC, &answers[i]);
		/* A datagram is lost if the server does not read on. */
		(void)event_base_loop(w->loop, EVLOOP_NONBLOCK);
	}
	began = clock_now();
	found = look_up(w, "four.test", 10 * USEC_PER_SEC);
	assert_int_equal(found.end, LOOKUP_FOUND);
	assert_true(clock_now() - began < USEC_PER_SEC);
	for (int i = 0; i < SILENT; i++)
		if (answers[i].calls == 0)
			lookup_cancel(lookups[i]);
	free(answers);
	free(lookups);
}

static void
test_closing_drops_what_is_in_flight(void **state)
{
	struct world *w = *state;
	struct answer answer = { 0 };

	(void)start(w, "silent.test", USEC_PER_SEC, &answer);
	(void)start(w, "stuck.test", USEC_PER_SEC, &answer);
	lookup_cancel(start(w, "silent.test", USEC_PER_SEC, &answer));
	(void)look_up(w, "four.test", USEC_PER_SEC);
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
		TEST(test_both_families_are_found_and_take_turns),
		TEST(test_one_family_is_enough),
		TEST(test_aliases_are_followed_to_their_end),
		TEST(test_aliases_that_lead_nowhere_fail),
		TEST(test_a_name_that_is_not_fails_with_a_reason),
		TEST(test_a_name_that_was_not_is_found_once_it_is),
		TEST(test_each_look_up_asks_anew),
		TEST(test_a_failing_name_server_is_told_from_a_missing_name),
		TEST(test_a_server_that_fails_once_is_asked_again),
		TEST(test_silence_ends_in_time),
		TEST(test_silence_is_asked_again_and_given_up),
		TEST(
		    test_a_family_that_is_silent_costs_the_other_half_a_second),
		TEST(test_a_family_that_is_late_is_waited_for),
		TEST(test_a_family_that_fails_does_not_cost_the_other),
		TEST(test_answers_that_are_none_fail),
		TEST(test_what_was_not_asked_for_is_no_answer),
		TEST(test_an_answer_that_fits_no_datagram_comes_over_tcp),
		TEST(test_tcp_that_is_silent_ends_in_time),
		TEST(test_the_hosts_file_answers_and_never_from_inside_start),
		TEST(test_a_changed_hosts_file_is_read_again),
		TEST(test_search_domains_are_never_tried),
		TEST(test_changed_name_servers_are_asked_from_then_on),
		TEST(test_a_dead_name_server_is_asked_last),
		TEST(test_a_port_where_nobody_listens_fails_at_once),
		TEST(test_a_cancelled_lookup_is_never_called_back),
		TEST(test_a_name_that_is_none_fails_from_the_loop),
		TEST(test_one_may_be_started_when_one_is_done),
		TEST(test_silent_names_do_not_hold_up_another),
		TEST(test_closing_drops_what_is_in_flight),
		TEST(test_a_name_server_that_is_no_address_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
