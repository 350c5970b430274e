/*
 * tls_world: a sender in production mode, and a receiver over TLS for it with
 * certificates that are made on the spot.
 */

#ifndef TESTS_TLS_WORLD_H
#define TESTS_TLS_WORLD_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "dns_server.h"
#include "http/sender.h"
#include "web_server.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

#define USUAL_TIME (5 * USEC_PER_SEC)

enum { DAY = 86400 };

static const struct dns_record records[] = {
	{ .name = "good.example", .a = { "127.0.0.1" } },
	{ .name = "wrong.example", .a = { "127.0.0.1" } },
	{ .name = "dead.example", .a = { "127.0.0.1" }, .aaaa = { "fd00::1" } },
	{ .name = NULL },
};

/* A key and a certificate, and both as PEM. */
struct identity {
	EVP_PKEY *key;
	X509 *certificate;
	char *key_pem, *pem;
};

struct world {
	struct event_base *loop;
	struct dns_server dns;
	struct web web;
	struct identity ca;
	char ca_file[32];
	struct sender *sender;
	char asked_for[64]; /* the name in the newest handshake */
};

/* What make_identity() is to make. */
struct wanted {
	const char *name;
	const struct identity *by; /* NULL: it signs itself */
	int from, until; /* days from now */
	bool is_authority;
};

static void
add_extension(X509 *to, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	assert_non_null(extension);
	assert_int_equal(1, X509_add_ext(to, extension, -1));
	X509_EXTENSION_free(extension);
}

/* What was written to `bio`, which is used up. */
static char *
take_text(BIO *bio)
{
	char *data, *text;
	long len = BIO_get_mem_data(bio, &data);

	text = calloc((size_t)len + 1, 1);
	assert_non_null(text);
	memcpy(text, data, (size_t)len);
	BIO_free(bio);
	return text;
}

static void
write_pems(struct identity *identity)
{
	BIO *bio = BIO_new(BIO_s_mem());

	assert_int_equal(1, PEM_write_bio_X509(bio, identity->certificate));
	identity->pem = take_text(bio);
	bio = BIO_new(BIO_s_mem());
	assert_int_equal(1, PEM_write_bio_PrivateKey(
				bio, identity->key, NULL, NULL, 0, NULL, NULL));
	identity->key_pem = take_text(bio);
}

static struct identity
make_identity(const struct wanted *wanted)
{
	static long serial = 1;
	struct identity made = { 0 };
	char names[128];
	X509_NAME *subject;
	X509 *x;

	made.key = EVP_EC_gen("P-256");
	made.certificate = x = X509_new();
	assert_non_null(made.key);
	assert_non_null(x);
	(void)X509_set_version(x, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
	(void)X509_gmtime_adj(X509_getm_notBefore(x), (long)wanted->from * DAY);
	(void)X509_gmtime_adj(X509_getm_notAfter(x), (long)wanted->until * DAY);
	(void)X509_set_pubkey(x, made.key);
	subject = X509_get_subject_name(x);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
	    (const unsigned char *)wanted->name, -1, -1, 0);
	(void)X509_set_issuer_name(
	    x, wanted->by == NULL
		   ? subject
		   : X509_get_subject_name(wanted->by->certificate));
	(void)snprintf(names, sizeof(names), "DNS:%s", wanted->name);
	if (wanted->is_authority)
		add_extension(x, NID_basic_constraints, "CA:TRUE");
	else
		add_extension(x, NID_subject_alt_name, names);
	assert_true(
	    X509_sign(x, wanted->by == NULL ? made.key : wanted->by->key,
		EVP_sha256()) > 0);
	write_pems(&made);
	return made;
}

/* A sound one for `name`. */
static inline struct identity
usual_identity(const char *name, const struct identity *by)
{
	return make_identity(&(struct wanted){
	    .name = name, .by = by, .from = -10, .until = 10 });
}

static inline struct identity
usual_authority(const char *name, const struct identity *by)
{
	return make_identity(&(struct wanted){ .name = name,
	    .by = by,
	    .from = -10,
	    .until = 10,
	    .is_authority = true });
}

static void
drop_identity(struct identity *identity)
{
	EVP_PKEY_free(identity->key);
	X509_free(identity->certificate);
	free(identity->key_pem);
	free(identity->pem);
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

/* Write `text` to a new file, whose name replaces the Xs of `path`. */
static void
write_file(char *path, const char *text)
{
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(0, fclose(file));
}

static inline struct sender_conf
world_conf(const struct world *w)
{
	return (struct sender_conf){
		.policy = {
		    .any_port = true,
		    .allow_hosts = "good.example,wrong.example,dead.example",
		},
		.max_in_flight = 10,
		.ca_file = w->ca_file,
		.revoked_file = "",
		.nameserver = w->dns.address,
	};
}

static void
reopen_sender(struct world *w, const struct sender_conf *conf)
{
	struct err err;

	sender_close(w->sender);
	w->sender = NULL;
	if (sender_open(&w->sender, w->loop, conf, &err) != 0)
		fail_msg("%s", err.text);
}

/* With the system's trust alone, which does not know our authority. */
static inline void
trust_nobody(struct world *w)
{
	struct sender_conf conf = world_conf(w);

	conf.ca_file = "";
	reopen_sender(w, &conf);
}

static int
set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct sender_conf conf;

	if (w == NULL)
		return -1;
	w->loop = event_base_new();
	w->ca = usual_authority("Test Authority", NULL);
	(void)snprintf(w->ca_file, sizeof(w->ca_file), "/tmp/ca-XXXXXX");
	write_file(w->ca_file, w->ca.pem);
	if (w->loop == NULL || dns_open(&w->dns, w->loop, records) != 0 ||
	    web_open(&w->web, w->loop) != 0)
		return -1;
	web_says(&w->web, web_text, OK);
	serve(w, usual_identity("good.example", &w->ca));
	conf = world_conf(w);
	reopen_sender(w, &conf);
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

static struct send_args
usual(void)
{
	static const char *const headers[] = { "webhook-id: evt_1", NULL };

	return (struct send_args){
		.headers = headers,
		.body = "{}",
		.len = 2,
		.timeout = USUAL_TIME,
		.not_after = INT64_MAX,
	};
}

static struct send_result
send_it(struct world *w, const struct send_args *args)
{
	struct outcome outcome = { 0 };
	struct send *send = NULL;
	struct err err;

	if (sender_start(&send, w->sender, args, on_done, &outcome, &err) != 0)
		fail_msg("%s", err.text);
	while (outcome.calls == 0)
		assert_int_equal(0, event_base_loop(w->loop, EVLOOP_ONCE));
	return outcome.result;
}

static inline struct send_result
send_to(struct world *w, const char *host, usec_t timeout)
{
	struct send_args args = usual();
	char url[128];

	(void)snprintf(
	    url, sizeof(url), "https://%s:%u/hook", host, w->web.port);
	args.url = url;
	args.timeout = timeout;
	return send_it(w, &args);
}

/* To good.example, with certificates of its own. */
static inline struct send_result
send_with(struct world *w, const struct send_tls *tls)
{
	struct send_args args = usual();
	char url[128];

	(void)snprintf(
	    url, sizeof(url), "https://good.example:%u/hook", w->web.port);
	args.url = url;
	args.tls = tls;
	return send_it(w, &args);
}

static inline void
expect_end(
    const struct send_result *result, enum send_end end, const char *reason)
{
	if (result->end != end || strcmp(result->reason, reason) != 0)
		fail_msg(
		    "%s \"%s\"", send_end_name(result->end), result->reason);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
