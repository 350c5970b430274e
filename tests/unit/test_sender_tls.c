#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "dns_server.h"
#include "http/sender.h"
#include "web_server.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

enum { DAY = 86400 };

static const struct dns_record records[] = {
	{ .name = "good.example", .a = { "127.0.0.1" } },
	{ .name = "wrong.example", .a = { "127.0.0.1" } },
	{ .name = "dead.example", .a = { "127.0.0.1" }, .aaaa = { "fd00::1" } },
	{ .name = NULL },
};

/* What good.example becomes when its owner is up to no good. */
static const struct dns_record rebound[] = {
	{ .name = "good.example", .a = { "169.254.169.254" } },
	{ .name = NULL },
};

/* A key and a certificate, and who vouches for them. */
struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

struct world {
	struct event_base *loop;
	struct dns_server dns;
	struct web web;
	struct identity ca;
	char ca_file[64];
	struct sender *sender;
	char asked_for[64]; /* the name in the newest handshake */
};

static void
add_extension(X509 *to, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	assert_non_null(extension);
	assert_int_equal(1, X509_add_ext(to, extension, -1));
	X509_EXTENSION_free(extension);
}

/* Make an identity for `name`, signed by `by`, or by itself, that is valid
 * until `days` from now. */
static struct identity
make_identity(const char *name, const struct identity *by, int days)
{
	struct identity made;
	char names[128];
	X509_NAME *subject;

	made.key = EVP_EC_gen("P-256");
	made.certificate = X509_new();
	assert_non_null(made.key);
	assert_non_null(made.certificate);
	(void)X509_set_version(made.certificate, 2);
	(void)ASN1_INTEGER_set(
	    X509_get_serialNumber(made.certificate), days + 1000);
	(void)X509_gmtime_adj(
	    X509_getm_notBefore(made.certificate), -10L * DAY);
	(void)X509_gmtime_adj(
	    X509_getm_notAfter(made.certificate), (long)days * DAY);
	(void)X509_set_pubkey(made.certificate, made.key);
	subject = X509_get_subject_name(made.certificate);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
	    (const unsigned char *)name, -1, -1, 0);
	(void)X509_set_issuer_name(made.certificate,
	    by == NULL ? subject : X509_get_subject_name(by->certificate));
	if (by == NULL) {
		add_extension(
		    made.certificate, NID_basic_constraints, "CA:TRUE");
	} else {
		(void)snprintf(names, sizeof(names), "DNS:%s", name);
		add_extension(made.certificate, NID_subject_alt_name, names);
	}
	assert_true(X509_sign(made.certificate, by == NULL ? made.key : by->key,
			EVP_sha256()) > 0);
	return made;
}

static void
drop_identity(struct identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
}

static int
on_name(SSL *ssl, int *alert, void *arg)
{
	struct world *w = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	(void)snprintf(
	    w->asked_for, sizeof(w->asked_for), "%s", name != NULL ? name : "");
	return SSL_TLSEXT_ERR_OK;
}

/* Let the receiver be `identity`, which is used up. */
static void
serve(struct world *w, struct identity identity)
{
	if (w->web.tls != NULL)
		SSL_CTX_free(w->web.tls);
	w->web.tls = SSL_CTX_new(TLS_server_method());
	assert_non_null(w->web.tls);
	(void)SSL_CTX_use_certificate(w->web.tls, identity.certificate);
	(void)SSL_CTX_use_PrivateKey(w->web.tls, identity.key);
	(void)SSL_CTX_set_tlsext_servername_callback(w->web.tls, on_name);
	(void)SSL_CTX_set_tlsext_servername_arg(w->web.tls, w);
	drop_identity(&identity);
}

static void
open_sender(struct world *w, const char *ca_file)
{
	struct sender_conf conf = {
		.policy = {
		    .any_port = true,
		    .allow_hosts = "good.example,wrong.example,dead.example",
		},
		.max_in_flight = 10,
		.ca_file = ca_file,
		.nameserver = w->dns.address,
	};
	struct err err;

	sender_close(w->sender);
	w->sender = NULL;
	if (sender_open(&w->sender, w->loop, &conf, &err) != 0)
		fail_msg("%s", err.text);
}

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	FILE *file;
	int fd;

	if (w == NULL)
		return -1;
	w->loop = event_base_new();
	w->ca = make_identity("Test Authority", NULL, 10);
	(void)snprintf(w->ca_file, sizeof(w->ca_file), "/tmp/ca-XXXXXX");
	fd = mkstemp(w->ca_file);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (w->loop == NULL || file == NULL ||
	    PEM_write_X509(file, w->ca.certificate) != 1 || fclose(file) != 0 ||
	    dns_open(&w->dns, w->loop, records) != 0 ||
	    web_open(&w->web, w->loop) != 0)
		return -1;
	web_says(&w->web, web_text, OK);
	serve(w, make_identity("good.example", &w->ca, 10));
	open_sender(w, w->ca_file);
	*state = w;
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
	drop_identity(&w->ca);
	(void)unlink(w->ca_file);
	free(w);
	return 0;
}

struct outcome {
	int calls;
	struct send_result result;
};

static void
on_done(void *arg, const struct send_result *result)
{
	struct outcome *outcome = arg;

	outcome->calls++;
	outcome->result = *result;
}

static struct send_result
send_to(struct world *w, const char *host, usec_t timeout)
{
	static const char *const headers[] = { "webhook-id: evt_1", NULL };
	struct outcome outcome = { 0 };
	struct send *send = NULL;
	struct err err;
	char url[128];
	const struct send_args args = {
		.url = url,
		.headers = headers,
		.body = "{}",
		.len = 2,
		.timeout = timeout,
		.not_after = INT64_MAX,
	};

	(void)snprintf(
	    url, sizeof(url), "https://%s:%u/hook", host, w->web.port);
	if (sender_start(&send, w->sender, &args, on_done, &outcome, &err) != 0)
		fail_msg("%s", err.text);
	while (outcome.calls == 0)
		assert_int_equal(0, event_base_loop(w->loop, EVLOOP_ONCE));
	return outcome.result;
}

static void
expect_refusal(struct world *w, const char *host, const char *reason)
{
	struct send_result result = send_to(w, host, 5 * USEC_PER_SEC);

	if (result.end != SEND_TLS_FAILED ||
	    strstr(result.reason, reason) == NULL)
		fail_msg("%s: %s \"%s\"", host, send_end_name(result.end),
		    result.reason);
	assert_int_equal(w->web.requests, 0);
}

static void
test_a_pinned_address_is_verified_by_its_name(void **state)
{
	struct world *w = *state;
	char host[64];

	for (int i = 0; i < 3; i++) {
		struct send_result result =
		    send_to(w, "good.example", 5 * USEC_PER_SEC);

		if (result.end != SEND_ANSWERED)
			fail_msg("%s", result.reason);
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

	assert_int_equal(
	    send_to(w, "good.example", 5 * USEC_PER_SEC).status, 200);
	w->dns.records = rebound;
	result = send_to(w, "good.example", 5 * USEC_PER_SEC);
	assert_int_equal(result.end, SEND_REFUSED);
	assert_non_null(strstr(result.reason, "metadata"));
	assert_int_equal(w->web.requests, 1);
}

static void
test_another_name_is_refused(void **state)
{
	expect_refusal(*state, "wrong.example", "wrong.example");
}

static void
test_an_authority_that_nobody_knows_is_refused(void **state)
{
	struct world *w = *state;

	open_sender(w, "");
	expect_refusal(w, "good.example", "certificate");
}

static void
test_a_certificate_that_signs_itself_is_refused(void **state)
{
	struct world *w = *state;

	serve(w, make_identity("good.example", NULL, 10));
	expect_refusal(w, "good.example", "self-signed");
}

static void
test_a_certificate_that_is_over_is_refused(void **state)
{
	struct world *w = *state;

	serve(w, make_identity("good.example", &w->ca, -1));
	expect_refusal(w, "good.example", "expired");
}

static void
test_an_old_protocol_is_refused(void **state)
{
	struct world *w = *state;

	(void)SSL_CTX_set_max_proto_version(w->web.tls, TLS1_1_VERSION);
	SSL_CTX_set_security_level(w->web.tls, 0);
	(void)SSL_CTX_set_cipher_list(w->web.tls, "ALL:@SECLEVEL=0");
	expect_refusal(w, "good.example", "");
}

static void
test_a_handshake_that_never_ends_is_timed_out(void **state)
{
	struct world *w = *state;
	struct send_result result;

	SSL_CTX_free(w->web.tls);
	w->web.tls = NULL; /* it waits for a request in the clear */
	result = send_to(w, "good.example", 50 * USEC_PER_MS);
	assert_int_equal(result.end, SEND_TIMED_OUT);
	assert_non_null(strstr(result.reason, "connecting"));
}

static void
test_a_family_that_is_dead_does_not_cost_the_send(void **state)
{
	struct world *w = *state;
	struct send_result result;

	serve(w, make_identity("dead.example", &w->ca, 10));
	result = send_to(w, "dead.example", 10 * USEC_PER_SEC);
	if (result.end != SEND_ANSWERED)
		fail_msg("%s", result.reason);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

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
		TEST(test_an_old_protocol_is_refused),
		TEST(test_a_handshake_that_never_ends_is_timed_out),
		TEST(test_a_family_that_is_dead_does_not_cost_the_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
