#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tls_world.h"

#define UNKNOWN                                                                \
	"SSL certificate problem: unable to get local issuer certificate"

/* Those who send, as the receiver tells them apart. */
struct clients {
	struct identity authority, one, two;
	struct send_tls as_one, as_two;
};

static int resumed; /* handshakes that were cut short by a session */

static struct send_tls
as(const struct identity *identity)
{
	return (struct send_tls){ .certificate = identity->pem,
		.key = identity->key_pem };
}

/* Answer with the name in the client's certificate, or "nobody". */
static void
answer_who(struct web_conn *conn)
{
	SSL *ssl = bufferevent_openssl_get_ssl(conn->bev);
	X509 *certificate = SSL_get0_peer_certificate(ssl);
	char name[64] = "nobody", text[256];

	if (certificate != NULL)
		(void)X509_NAME_get_text_by_NID(
		    X509_get_subject_name(certificate), NID_commonName, name,
		    sizeof(name));
	if (conn->requests == 1 && SSL_session_reused(ssl))
		resumed++;
	(void)snprintf(text, sizeof(text),
	    "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n%s\r\n%s", strlen(name),
	    conn->web->more, name);
	(void)bufferevent_write(conn->bev, text, strlen(text));
}

/* Let the receiver ask for certificates of `authority`. */
static void
ask_for_clients(struct world *w, const struct identity *authority, int how)
{
	X509_STORE *store = X509_STORE_new();

	(void)X509_STORE_add_cert(store, authority->certificate);
	SSL_CTX_set1_verify_cert_store(w->web.tls, store);
	X509_STORE_free(store);
	SSL_CTX_set_verify(w->web.tls, how, NULL);
	(void)SSL_CTX_set_session_id_context(
	    w->web.tls, (const unsigned char *)"test", 4);
	w->web.answer = answer_who;
	w->web.more = "";
	resumed = 0;
}

static struct clients
make_clients(struct world *w, int how)
{
	struct clients made;

	made.authority = usual_authority("Clients", NULL);
	made.one = usual_identity("one", &made.authority);
	made.two = usual_identity("two", &made.authority);
	made.as_one = as(&made.one);
	made.as_two = as(&made.two);
	ask_for_clients(w, &made.authority, how);
	return made;
}

static void
drop_clients(struct clients *clients)
{
	drop_identity(&clients->authority);
	drop_identity(&clients->one);
	drop_identity(&clients->two);
}

static void
expect_seen_as(struct world *w, const struct send_tls *tls, const char *name)
{
	struct send_result result = send_with(w, tls);

	expect_end(&result, SEND_ANSWERED, "");
	assert_string_equal(result.excerpt, name);
}

static void
test_no_connection_serves_two_identities(void **state)
{
	struct world *w = *state;
	struct clients c = make_clients(w, SSL_VERIFY_PEER);

	for (int i = 0; i < 3; i++) {
		expect_seen_as(w, &c.as_one, "one");
		expect_seen_as(w, &c.as_two, "two");
		expect_seen_as(w, NULL, "nobody");
		expect_seen_as(w, &c.as_one, "one");
	}
	/* But each has its own, which it uses again. */
	assert_int_equal(w->web.connections, 3);
	drop_clients(&c);
}

static void
test_no_session_serves_two_identities(void **state)
{
	struct world *w = *state;
	struct clients c = make_clients(w, SSL_VERIFY_PEER);

	w->web.more = "Connection: close\r\n";
	expect_seen_as(w, &c.as_one, "one");
	expect_seen_as(w, &c.as_two, "two");
	expect_seen_as(w, NULL, "nobody");
	assert_int_equal(resumed, 0);
	/* But each has its own: what we look for can be seen. */
	expect_seen_as(w, &c.as_one, "one");
	expect_seen_as(w, &c.as_two, "two");
	expect_seen_as(w, NULL, "nobody");
	assert_int_equal(resumed, 3);
	assert_int_equal(w->web.connections, 6);
	drop_clients(&c);
}

static void
test_the_same_texts_are_the_same_identity(void **state)
{
	struct world *w = *state;
	struct clients c = make_clients(w, SSL_VERIFY_PEER);
	char *pem = strdup(c.one.pem), *key = strdup(c.one.key_pem);
	const struct send_tls copy = { .certificate = pem, .key = key };

	expect_seen_as(w, &c.as_one, "one");
	expect_seen_as(w, &copy, "one");
	assert_int_equal(w->web.connections, 1);
	memset(pem, 'x', strlen(pem)); /* libcurl looks at its own copy */
	expect_seen_as(w, &c.as_one, "one");
	free(pem);
	free(key);
	drop_clients(&c);
}

static void
test_another_authority_gains_nothing_by_open_connections(void **state)
{
	struct world *w = *state;
	struct identity other = usual_authority("Other", NULL);
	struct send_tls with_ours = { .ca = w->ca.pem };
	struct send_tls with_other = { .ca = other.pem };
	struct send_result result;

	for (int i = 0; i < 2; i++) {
		result = send_with(w, &with_ours);
		expect_end(&result, SEND_ANSWERED, "");
		result = send_with(w, &with_other);
		expect_end(&result, SEND_TLS_FAILED, UNKNOWN);
		result = send_with(w, NULL);
		expect_end(&result, SEND_ANSWERED, "");
	}
	assert_int_equal(w->web.requests, 4);
	assert_int_equal(w->web.connections, 4);
	drop_identity(&other);
}

static void
test_an_authority_of_its_own_is_nobody_elses(void **state)
{
	struct world *w = *state;
	struct send_tls with_ours = { .ca = w->ca.pem };
	struct send_result result;

	trust_nobody(w);
	for (int i = 0; i < 2; i++) {
		result = send_with(w, &with_ours);
		expect_end(&result, SEND_ANSWERED, "");
		result = send_with(w, NULL);
		expect_end(&result, SEND_TLS_FAILED, UNKNOWN);
	}
	/* Nor is a session, once the connections are gone. */
	web_says(&w->web, web_text,
	    "HTTP/1.1 200 OK\r\nConnection: close\r\n"
	    "Content-Length: 0\r\n\r\n");
	for (int i = 0; i < 2; i++) {
		result = send_with(w, &with_ours);
		expect_end(&result, SEND_ANSWERED, "");
		result = send_with(w, NULL);
		expect_end(&result, SEND_TLS_FAILED, UNKNOWN);
	}
}

static void
test_an_authority_of_its_own_replaces_the_others(void **state)
{
	struct world *w = *state;
	struct identity mine = usual_authority("Mine", NULL);
	struct send_tls with_mine = { .ca = mine.pem };
	struct send_result result;

	/* The operator's ca_file knows the receiver; the subscription has
	 * said whom it believes. */
	result = send_with(w, &with_mine);
	expect_end(&result, SEND_TLS_FAILED, UNKNOWN);
	serve(w, usual_identity("good.example", &mine));
	result = send_with(w, &with_mine);
	expect_end(&result, SEND_ANSWERED, "");
	result = send_with(w, NULL);
	expect_end(&result, SEND_TLS_FAILED, UNKNOWN);
	drop_identity(&mine);
}

static void
test_the_name_counts_with_an_authority_of_its_own(void **state)
{
	struct world *w = *state;
	struct send_tls with_ours = { .ca = w->ca.pem };
	struct send_result result;

	serve(w, usual_identity("wrong.example", &w->ca));
	result = send_with(w, &with_ours);
	assert_int_equal(result.end, SEND_TLS_FAILED);
	assert_non_null(strstr(result.reason, "good.example"));
	assert_int_equal(w->web.requests, 0);
}

static void
test_a_certificate_that_is_asked_for_and_missing_is_said(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	static const char *const reasons[] = {
		"TLS: sslv3 alert handshake failure",
		"TLS: tlsv13 alert certificate required",
	};
	struct world *w = *state;
	struct clients c =
	    make_clients(w, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT);

	for (int i = 0; i < 2; i++) {
		struct send_result result;

		(void)SSL_CTX_set_max_proto_version(w->web.tls, versions[i]);
		result = send_with(w, NULL);
		expect_end(&result, SEND_TLS_FAILED, reasons[i]);
		expect_seen_as(w, &c.as_one, "one");
	}
	assert_int_equal(w->web.requests, 2);
	drop_clients(&c);
}

static void
test_a_certificate_that_the_receiver_does_not_know_is_said(void **state)
{
	struct world *w = *state;
	struct clients c = make_clients(w, SSL_VERIFY_PEER);
	struct identity alien = usual_identity("alien", NULL);
	struct send_tls as_alien = as(&alien);
	struct send_result result = send_with(w, &as_alien);

	expect_end(&result, SEND_TLS_FAILED, "TLS: tlsv1 alert unknown ca");
	assert_int_equal(w->web.requests, 0);
	drop_identity(&alien);
	drop_clients(&c);
}

/* Nothing asks on the terminal, and nothing crashes. */
static void
test_a_pair_that_cannot_be_used_is_said(void **state)
{
	struct world *w = *state;
	struct clients c = make_clients(w, SSL_VERIFY_PEER);
	BIO *bio = BIO_new(BIO_s_mem());
	char *locked;
	struct send_result result;

	(void)PEM_write_bio_PKCS8PrivateKey(
	    bio, c.one.key, EVP_aes_128_cbc(), "secret", 6, NULL, NULL);
	locked = take_text(bio);
	{
		const struct send_tls bad[] = {
			{ .certificate = c.one.pem, .key = locked },
			{ .certificate = c.one.pem, .key = c.two.key_pem },
			{ .certificate = c.one.pem, .key = "garbage" },
			{ .certificate = "", .key = c.one.key_pem },
			{ .certificate = "garbage", .key = c.one.key_pem },
		};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			result = send_with(w, &bad[i]);
			expect_end(&result, SEND_IMPOSSIBLE,
			    "its client certificate or key cannot be used");
		}
	}
	result = send_with(w, &(struct send_tls){ .ca = "garbage" });
	expect_end(&result, SEND_IMPOSSIBLE,
	    "its authority's certificate cannot be used");
	assert_int_equal(w->web.requests, 0);
	expect_seen_as(w, &c.as_one, "one");
	free(locked);
	drop_clients(&c);
}

static void
test_half_a_pair_is_refused(void **state)
{
	struct world *w = *state;
	struct send_tls half = { .certificate = w->ca.pem };
	struct send_args args = usual();
	struct outcome outcome = { 0 };
	struct send *send = NULL;
	struct err err;

	args.url = "https://good.example:1/";
	args.tls = &half;
	assert_int_equal(
	    -1, sender_start(&send, w->sender, &args, on_done, &outcome, &err));
	assert_int_equal(err.code, ERR_REFUSED);
	assert_int_equal(0, sender_in_flight(w->sender));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_connection_serves_two_identities),
		TEST(test_no_session_serves_two_identities),
		TEST(test_the_same_texts_are_the_same_identity),
		TEST(test_another_authority_gains_nothing_by_open_connections),
		TEST(test_an_authority_of_its_own_is_nobody_elses),
		TEST(test_an_authority_of_its_own_replaces_the_others),
		TEST(test_the_name_counts_with_an_authority_of_its_own),
		TEST(test_a_certificate_that_is_asked_for_and_missing_is_said),
		TEST(
		    test_a_certificate_that_the_receiver_does_not_know_is_said),
		TEST(test_a_pair_that_cannot_be_used_is_said),
		TEST(test_half_a_pair_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
