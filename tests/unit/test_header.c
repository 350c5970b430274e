#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/header.h"

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN

/* `fault` is part of what is said; NULL: nothing. */
struct row {
	const char *text, *fault;
};

static void
check(const char *(*judge)(const char *text, size_t len), const struct row *row,
    size_t len)
{
	const char *fault = judge(row->text, len);

	print_message("%s\n", row->text);
	if (row->fault == NULL) {
		assert_null(fault);
		return;
	}
	assert_non_null(fault);
	assert_non_null(strstr(fault, row->fault));
}

static void
test_names_are_tokens(void **state)
{
	static const struct row rows[] = {
		{ "authorization", NULL },
		{ "Authorization", NULL },
		{ "x-api-key", NULL },
		{ "cookie", NULL },
		{ "date", NULL },
		{ "a", NULL },
		{ "!#$%&'*+-.^_`|~09", NULL },
		{ SIXTY "abcd", NULL },
		{ SIXTY "abcde", "over 64" },
		{ "", "empty" },
		{ "x key", "character" },
		{ "x-key ", "character" },
		{ " x-key", "character" },
		{ "x:key", "character" },
		{ ":authority", "character" },
		{ "x-key\r", "character" },
		{ "x\nhost", "character" },
		{ "x\tkey", "character" },
		{ "x(key)", "character" },
		{ "x/key", "character" },
		{ "x\"key", "character" },
		{ "x@key", "character" },
		{ "x\177", "character" },
		{ "x-\303\251", "character" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(header_name_fault, &rows[i], strlen(rows[i].text));
}

static void
test_names_that_others_need_are_reserved(void **state)
{
	static const struct row rows[] = {
		/* The client's. */
		{ "host", "HTTP client" },
		{ "Host", "HTTP client" },
		{ "HOST", "HTTP client" },
		{ "connection", "HTTP client" },
		{ "expect", "HTTP client" },
		{ "keep-alive", "HTTP client" },
		{ "te", "HTTP client" },
		{ "TE", "HTTP client" },
		{ "trailer", "HTTP client" },
		{ "transfer-encoding", "HTTP client" },
		{ "Transfer-Encoding", "HTTP client" },
		{ "upgrade", "HTTP client" },
		{ "http2-settings", "HTTP client" },
		{ "accept-encoding", "HTTP client" },
		{ "proxy-authorization", "HTTP client" },
		{ "proxy-connection", "HTTP client" },
		{ "Proxy-Anything", "HTTP client" },
		/* Ours. */
		{ "content-length", "Postrider" },
		{ "Content-Type", "Postrider" },
		{ "content-encoding", "Postrider" },
		{ "user-agent", "Postrider" },
		{ "webhook-id", "Postrider" },
		{ "webhook-signature", "Postrider" },
		{ "Webhook-Timestamp", "Postrider" },
		{ "webhook-", "Postrider" },
		{ "postrider-attempt", "Postrider" },
		{ "postrider-anything", "Postrider" },
		{ "x-event-id", "Postrider" },
		{ "X-Event-ID", "Postrider" },
		{ "x-webhook-timestamp", "Postrider" },
		{ "X-Webhook-Signature", "Postrider" },
		/* What others believe. */
		{ "forwarded", "on whose behalf" },
		{ "x-forwarded-for", "on whose behalf" },
		{ "X-Forwarded-Host", "on whose behalf" },
		{ "x-real-ip", "on whose behalf" },
		{ "metadata", "clouds" },
		{ "Metadata-Flavor", "clouds" },
		{ "x-aws-ec2-metadata-token", "clouds" },
		{ "X-aws-ec2-metadata-token-ttl-seconds", "clouds" },
		{ "x-google-metadata-request", "clouds" },
		/* Like them, and not them. */
		{ "hosts", NULL },
		{ "x-host", NULL },
		{ "tenant", NULL },
		{ "tee", NULL },
		{ "t", NULL },
		{ "webhook", NULL },
		{ "webhooks-id", NULL },
		{ "x-webhook-id", NULL },
		{ "x-content-type", NULL },
		{ "x-event-id2", NULL },
		{ "proxy", NULL },
		{ "expected", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(header_name_fault, &rows[i], strlen(rows[i].text));
}

static void
test_values_are_visible_ascii_with_blanks_between(void **state)
{
	static const struct row rows[] = {
		{ "x", NULL },
		{ "Bearer abc.def-_~+/=", NULL },
		{ "a b", NULL },
		{ "a\tb", NULL },
		{ "  a", "blank" },
		{ "a ", "blank" },
		{ "\ta", "blank" },
		{ "a\t", "blank" },
		{ " ", "blank" },
		{ "", "empty" },
		{ "a\rb", "control" },
		{ "a\nb", "control" },
		{ "a\r\nhost: b", "control" },
		{ "\n", "control" },
		{ "a\177", "control" },
		{ "a\033[2J", "control" },
		{ "caf\303\251", "beyond ASCII" },
		{ "\240", "beyond ASCII" },
		{ "~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(header_value_fault, &rows[i], strlen(rows[i].text));
}

static void
test_a_nul_is_no_end(void **state)
{
	(void)state;
	check(header_name_fault, &(struct row){ "x\0y", "character" }, 3);
	check(header_value_fault, &(struct row){ "x\0y", "control" }, 3);
}

static void
test_a_value_has_4096_characters_at_most(void **state)
{
	char value[HEADER_VALUE_MAX + 1];

	(void)state;
	memset(value, 'v', sizeof(value));
	assert_null(header_value_fault(value, HEADER_VALUE_MAX));
	assert_non_null(header_value_fault(value, sizeof(value)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_tokens),
		cmocka_unit_test(test_names_that_others_need_are_reserved),
		cmocka_unit_test(
		    test_values_are_visible_ascii_with_blanks_between),
		cmocka_unit_test(test_a_nul_is_no_end),
		cmocka_unit_test(test_a_value_has_4096_characters_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
