#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tls_world.h"

#define NO "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

/* What good.example becomes when its owner is up to no good. */
static const struct dns_record rebound[] = {
	{ .name = "good.example", .a = { "169.254.169.254" } },
	{ .name = NULL },
};

static void
expect_refusal(struct world *w, const char *host, const char *reason)
{
	struct send_result result = send_to(w, host, USUAL_TIME);

	expect_end(&result, SEND_TLS_FAILED, reason);
	assert_int_equal(result.status, 0);
	assert_int_equal(w->web.requests, 0);
}

static void
test_a_pinned_address_is_verified_by_its_name(void **state)
{
	struct world *w = *state;
	char host[64];

	for (int i = 0; i < 3; i++) {
		struct send_result result =
		    send_to(w, "good.example", USUAL_TIME);

		expect_end(&result, SEND_ANSWERED, "");
		assert_int_equal(result.status, 200);
	}
	(void)snprintf(
	    host, sizeof(host), "\r\nHost: good.example:%u\r\n", w->web.port);
	assert_non_null(strstr(w->web.last, host));
	assert_string_equal(w->asked_for, "good.example");
	assert_int_equal(w->web.connections, 1);
}

static void
test_a_name_that_changes_its_answer_gains_nothing(void **state)
{
	struct world *w = *state;
	struct send_result result;

	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 200);
	w->dns.records = rebound;
	result = send_to(w, "good.example", USUAL_TIME);
	assert_int_equal(result.end, SEND_REFUSED);
	assert_non_null(strstr(result.reason, "metadata"));
	assert_int_equal(w->web.requests, 1);
}

static void
test_another_name_is_refused(void **state)
{
	expect_refusal(*state, "wrong.example",
	    "SSL: no alternative certificate subject name matches target host "
	    "name 'wrong.example'");
}

static void
test_an_authority_that_nobody_knows_is_refused(void **state)
{
	struct world *w = *state;

	trust_nobody(w);
	expect_refusal(w, "good.example",
	    "SSL certificate problem: unable to get local issuer certificate");
}

static void
test_a_certificate_that_signs_itself_is_refused(void **state)
{
	struct world *w = *state;

	serve(w, usual_identity("good.example", NULL));
	expect_refusal(w, "good.example",
	    "SSL certificate problem: self-signed certificate");
}

static void
test_a_certificate_that_is_over_is_refused(void **state)
{
	struct world *w = *state;

	serve(w, make_identity(&(struct wanted){ .name = "good.example",
		     .by = &w->ca,
		     .from = -10,
		     .until = -1 }));
	expect_refusal(w, "good.example",
	    "SSL certificate problem: certificate has expired");
}

static void
test_a_certificate_that_is_still_to_come_is_refused(void **state)
{
	struct world *w = *state;

	serve(w, make_identity(&(struct wanted){ .name = "good.example",
		     .by = &w->ca,
		     .from = 1,
		     .until = 10 }));
	expect_refusal(w, "good.example",
	    "SSL certificate problem: certificate is not yet valid");
}

static void
test_an_old_protocol_is_refused(void **state)
{
	static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION };
	struct world *w = *state;

	SSL_CTX_set_security_level(w->web.tls, 0);
	(void)SSL_CTX_set_cipher_list(w->web.tls, "ALL:@SECLEVEL=0");
	for (int i = 0; i < 2; i++) {
		(void)SSL_CTX_set_min_proto_version(w->web.tls, versions[i]);
		(void)SSL_CTX_set_max_proto_version(w->web.tls, versions[i]);
		expect_refusal(
		    w, "good.example", "TLS: tlsv1 alert protocol version");
	}
}

static void
test_the_oldest_that_is_taken_is_1_2(void **state)
{
	struct world *w = *state;

	(void)SSL_CTX_set_max_proto_version(w->web.tls, TLS1_2_VERSION);
	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 200);
}

static void
test_a_receiver_without_tls_is_refused(void **state)
{
	struct world *w = *state;

	/* It takes the handshake for a request that never ends. */
	SSL_CTX_free(w->web.tls);
	w->web.tls = NULL;
	w->web.greeting = "220 mail.example ESMTP\r\n";
	expect_refusal(w, "good.example", "TLS: wrong version number");
	w->web.greeting = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
	expect_refusal(w, "good.example", "TLS: wrong version number");
}

static void
test_a_handshake_that_is_cut_off_is_said_to_be(void **state)
{
	struct world *w = *state;

	SSL_CTX_free(w->web.tls);
	w->web.tls = NULL;
	w->web.is_shut = true;
	expect_refusal(
	    w, "good.example", "the connection closed in the TLS handshake");
}

static void
test_a_handshake_that_never_ends_is_timed_out(void **state)
{
	struct world *w = *state;
	struct send_result result;

	SSL_CTX_free(w->web.tls);
	w->web.tls = NULL; /* it waits for a request in the clear */
	result = send_to(w, "good.example", 300 * USEC_PER_MS);
	expect_end(&result, SEND_TIMED_OUT,
	    "timed out after 300 ms while in the TLS handshake");
	assert_true(result.timing.dns >= 0);
	assert_true(result.timing.connect >= 0);
	assert_true(result.timing.tls > 0);
	assert_int_equal(result.timing.wait, -1);
	assert_int_equal(result.timing.receive, -1);
}

/* In a record of its own, and at the end of the answer's: libcurl reads but a
 * part of that, and the rest waits in OpenSSL, where the socket is silent. */
static void
test_no_stray_answer_is_taken_for_the_next_requests(void **state)
{
	enum { READ_AT_ONCE = 4096 };
	struct world *w = *state;
	char text[READ_AT_ONCE + sizeof(OK)];
	int head;

	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 200);
	web_speak_up(&w->web, OK);
	web_says(&w->web, web_text, NO);
	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 500);
	assert_int_equal(w->web.connections, 2);

	memset(text, 'x', sizeof(text));
	head = snprintf(text, sizeof(text), "HTTP/1.1 204 OK\r\n\r\n");
	text[head] = 'x';
	memcpy(text + READ_AT_ONCE, OK, sizeof(OK));
	web_says(&w->web, web_text, text);
	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 204);
	web_says(&w->web, web_text, NO);
	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 500);
	assert_int_equal(w->web.connections, 3);
	assert_int_equal(w->web.requests, 4);
}

/* libcurl takes the farewell of TLS for a sign of life. */
static void
test_a_connection_that_said_goodbye_costs_no_attempt(void **state)
{
	struct world *w = *state;
	struct send_result result;

	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 200);
	(void)SSL_shutdown(
	    bufferevent_openssl_get_ssl(LIST_FIRST(&w->web.conns)->bev));
	result = send_to(w, "good.example", USUAL_TIME);
	expect_end(&result, SEND_ANSWERED, "");
	assert_int_equal(w->web.connections, 2);
	assert_int_equal(w->web.requests, 2);
}

static void
test_no_authority_comes_from_the_environment(void **state)
{
	static const char *const names[] = { "SSL_CERT_FILE", "CURL_CA_BUNDLE",
		"SSL_CERT_DIR" };
	struct world *w = *state;

	for (int i = 0; i < 3; i++)
		(void)setenv(names[i], i < 2 ? w->ca_file : "/tmp", 1);
	trust_nobody(w);
	expect_refusal(w, "good.example",
	    "SSL certificate problem: unable to get local issuer certificate");
	for (int i = 0; i < 3; i++)
		(void)unsetenv(names[i]);
}

static void
test_no_keys_are_written_where_the_environment_says(void **state)
{
	struct world *w = *state;
	struct sender_conf conf = world_conf(w);
	char path[] = "/tmp/keys-XXXXXX";
	struct stat file;

	write_file(path, "");
	(void)setenv("SSLKEYLOGFILE", path, 1);
	reopen_sender(w, &conf);
	assert_int_equal(send_to(w, "good.example", USUAL_TIME).status, 200);
	assert_null(getenv("SSLKEYLOGFILE"));
	assert_int_equal(0, stat(path, &file));
	assert_int_equal(file.st_size, 0);
	(void)unlink(path);
}

/* What only an answer over TLS may ask for. */
static void
test_nothing_is_remembered_of_an_answer(void **state)
{
	struct world *w = *state;
	struct sender_conf conf = world_conf(w);
	struct web plain;
	struct send_args args = usual();
	char text[512], url[64];

	assert_int_equal(0, web_open(&plain, w->loop));
	web_says(&plain, web_text, OK);
	(void)snprintf(text, sizeof(text),
	    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n"
	    "Set-Cookie: a=b; path=/\r\n"
	    "Strict-Transport-Security: max-age=1000; includeSubDomains\r\n"
	    "Alt-Svc: h1=\":%u\"; ma=1000\r\n\r\n",
	    plain.port);
	web_says(&w->web, web_text, text);
	serve(w, usual_identity("localhost", &w->ca));
	conf.policy.development = true;
	reopen_sender(w, &conf);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
		    send_to(w, "localhost", USUAL_TIME).status, 200);
	assert_null(strstr(w->web.last, "Cookie"));
	assert_null(strstr(w->web.last, "Alt-Used"));
	assert_int_equal(w->web.requests, 2);
	assert_int_equal(plain.connections, 0);

	(void)snprintf(url, sizeof(url), "http://localhost:%u/", plain.port);
	args.url = url;
	assert_int_equal(send_it(w, &args).status, 200);
	assert_int_equal(plain.requests, 1);
	web_close(&plain);
}

static void
test_the_phases_of_a_send_are_told_apart(void **state)
{
	struct world *w = *state;
	struct send_result result = send_to(w, "good.example", USUAL_TIME);
	struct send_timing first = result.timing, again;

	again = send_to(w, "good.example", USUAL_TIME).timing;
	assert_true(first.dns > 0);
	assert_true(first.connect > 0);
	assert_true(first.tls > 0);
	assert_true(first.wait > 0);
	assert_true(first.receive >= 0);
	assert_true(first.dns + first.connect + first.tls + first.wait +
			first.receive <=
		    result.duration);
	assert_true(again.dns > 0);
	assert_int_equal(again.connect, -1);
	assert_int_equal(again.tls, -1);
	assert_true(again.wait > 0);
}

static void
test_a_family_that_is_dead_does_not_cost_the_send(void **state)
{
	struct world *w = *state;
	struct send_result result;

	serve(w, usual_identity("dead.example", &w->ca));
	result = send_to(w, "dead.example", 10 * USEC_PER_SEC);
	expect_end(&result, SEND_ANSWERED, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_pinned_address_is_verified_by_its_name),
		TEST(test_a_name_that_changes_its_answer_gains_nothing),
		TEST(test_another_name_is_refused),
		TEST(test_an_authority_that_nobody_knows_is_refused),
		TEST(test_a_certificate_that_signs_itself_is_refused),
		TEST(test_a_certificate_that_is_over_is_refused),
		TEST(test_a_certificate_that_is_still_to_come_is_refused),
		TEST(test_an_old_protocol_is_refused),
		TEST(test_the_oldest_that_is_taken_is_1_2),
		TEST(test_a_receiver_without_tls_is_refused),
		TEST(test_a_handshake_that_is_cut_off_is_said_to_be),
		TEST(test_a_handshake_that_never_ends_is_timed_out),
		TEST(test_no_stray_answer_is_taken_for_the_next_requests),
		TEST(test_a_connection_that_said_goodbye_costs_no_attempt),
		TEST(test_no_authority_comes_from_the_environment),
		TEST(test_no_keys_are_written_where_the_environment_says),
		TEST(test_nothing_is_remembered_of_an_answer),
		TEST(test_the_phases_of_a_send_are_told_apart),
		TEST(test_a_family_that_is_dead_does_not_cost_the_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
