#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tls_world.h"

#define REVOKED "SSL certificate problem: certificate revoked"

/* The fingerprint as OpenSSL's command prints it. */
static void
print_fingerprint(char out[256], const struct identity *of)
{
	unsigned char octets[EVP_MAX_MD_SIZE];
	size_t at;

	assert_int_equal(
	    1, X509_digest(of->certificate, EVP_sha256(), octets, NULL));
	at = (size_t)snprintf(out, 256, "sha256 Fingerprint=");
	for (int i = 0; i < 32; i++)
		at += (size_t)snprintf(
		    out + at, 256 - at, "%s%02X", i == 0 ? "" : ":", octets[i]);
}

static void
take_back(struct world *w, const char *text)
{
	struct sender_conf conf = world_conf(w);
	char path[] = "/tmp/revoked-XXXXXX";

	write_file(path, text);
	conf.revoked_file = path;
	reopen_sender(w, &conf);
	(void)unlink(path);
}

static void
test_what_the_operator_takes_back_is_refused_in_any_chain(void **state)
{
	struct world *w = *state;
	struct identity middle = usual_authority("Middle", &w->ca);
	struct identity leaf = usual_identity("good.example", &middle);
	const struct identity *all[] = { &leaf, &middle, &w->ca };
	const struct send_tls own = { .ca = w->ca.pem };
	const struct send_tls *trusts[] = { NULL, &own };
	char prints[3][256];
	struct send_result result;

	for (int i = 0; i < 3; i++)
		print_fingerprint(prints[i], all[i]);
	serve(w, leaf); /* used up */
	(void)SSL_CTX_add1_chain_cert(w->web.tls, middle.certificate);
	result = send_with(w, NULL);
	expect_end(&result, SEND_ANSWERED, "");
	for (int i = 0; i < 3; i++) {
		take_back(w, prints[i]);
		for (int j = 0; j < 2; j++) {
			result = send_with(w, trusts[j]);
			expect_end(&result, SEND_TLS_FAILED, REVOKED);
		}
	}
	assert_int_equal(w->web.requests, 1);
	take_back(w, "# nobody\n\n");
	result = send_with(w, &own);
	expect_end(&result, SEND_ANSWERED, "");
	drop_identity(&middle);
}

/* Write the digits of `print` plain, and in small letters. */
static void
make_plain(char *out, const char *print)
{
	for (print = strchr(print, '=') + 1; *print != '\0'; print++)
		if (*print != ':')
			*out++ = (char)(*print | 0x20);
	*out = '\0';
}

static void
test_fingerprints_are_read_in_every_form(void **state)
{
	struct world *w = *state;
	char print[256], plain[256], text[2048];
	struct send_result result;

	print_fingerprint(print, &w->ca);
	make_plain(plain, print);
	{
		const char *const forms[] = { print, strchr(print, '=') + 1,
			plain };

		for (int i = 0; i < 3; i++) {
			(void)snprintf(text, sizeof(text),
			    "# taken back\r\n\r\n \t%s  # by us\r\n%064d\n"
			    "%064d",
			    forms[i], 1, 2);
			take_back(w, text);
			result = send_with(w, NULL);
			expect_end(&result, SEND_TLS_FAILED, REVOKED);
		}
	}
}

static void
test_a_list_that_cannot_be_read_stops_the_start(void **state)
{
	static const char *const texts[] = {
		"# fine\nnot a fingerprint\n",
		"\nAB:CD\n",
		"\nsha1 Fingerprint=00:11\n",
		"\n00000000000000000000000000000000000000000000000000000000000"
		"000000\n",
		"\n000000000000000000000000000000000000000000000000000000000"
		"0000000 x\n",
		"\n::0000000000000000000000000000000000000000000000000000000"
		"0000000\n",
	};
	struct world *w = *state;
	struct sender_conf conf = world_conf(w);
	struct sender *sender = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char path[] = "/tmp/revoked-XXXXXX", says[128];

		write_file(path, texts[i]);
		conf.revoked_file = path;
		if (sender_open(&sender, w->loop, &conf, &err) != -1)
			fail_msg("taken: \"%s\"", texts[i]);
		(void)unlink(path);
		(void)snprintf(says, sizeof(says),
		    "%s: line 2 is no SHA-256 fingerprint", path);
		assert_int_equal(err.code, ERR_BROKEN);
		assert_non_null(strstr(err.text, says));
	}
	conf.revoked_file = "/nonexistent/revoked";
	assert_int_equal(-1, sender_open(&sender, w->loop, &conf, &err));
	assert_int_equal(err.code, ERR_BROKEN);
	assert_non_null(strstr(err.text, "/nonexistent/revoked"));
	conf.revoked_file = "/";
	assert_int_equal(-1, sender_open(&sender, w->loop, &conf, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_the_operator_takes_back_is_refused_in_any_chain),
		TEST(test_fingerprints_are_read_in_every_form),
		TEST(test_a_list_that_cannot_be_read_stops_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
