#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign_key.h"

/* The published vector of Standard Webhooks. */
#define KEY                                                                    \
	"whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0d" \
	"RqSKJp4AJ6p9lMicMFs6Kvg=="
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define BODY "{\"test\": 2432232314}"
#define TIMESTAMP 1614265330

static bool
is_taken(const char *text)
{
	struct sign_key key;
	struct err err;

	if (sign_key_parse(&key, text, strlen(text), &err) == 0)
		return true;
	assert_int_equal(err.code, ERR_REFUSED);
	return false;
}

static struct sign_key
parse(const char *text)
{
	struct sign_key key;
	struct err err;

	assert_int_equal(sign_key_parse(&key, text, strlen(text), &err), 0);
	return key;
}

static void
test_the_published_vector_is_met(void **state)
{
	struct sign_key key = parse(KEY);
	struct buf out = { 0 };

	(void)state;
	sign_key_sign(&out, &key, ID, TIMESTAMP, BODY, strlen(BODY));
	assert_string_equal(buf_text(&out),
	    "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA"
	    "7AZdpXwVLPo3mNl8EM+m7TBAg==");
	buf_fini(&out);
}

static void
test_all_that_is_signed_changes_the_signature(void **state)
{
	struct sign_key key = parse(KEY);
	struct buf out[4] = { 0 };

	(void)state;
	sign_key_sign(&out[0], &key, ID, TIMESTAMP, BODY, strlen(BODY));
	sign_key_sign(&out[1], &key, ID "x", TIMESTAMP, BODY, strlen(BODY));
	sign_key_sign(&out[2], &key, ID, TIMESTAMP + 1, BODY, strlen(BODY));
	sign_key_sign(&out[3], &key, ID, TIMESTAMP, BODY, strlen(BODY) - 1);
	for (size_t i = 1; i < 4; i++)
		assert_string_not_equal(buf_text(&out[0]), buf_text(&out[i]));
	for (size_t i = 0; i < 4; i++)
		buf_fini(&out[i]);
}

static void
test_the_public_key_is_the_second_half(void **state)
{
	struct sign_key key = parse(KEY);
	struct buf out = { 0 };

	(void)state;
	sign_key_print_public(&out, &key);
	assert_string_equal(buf_text(&out),
	    "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=");
	buf_fini(&out);
}

static void
test_keys_are_taken_only_as_they_are_printed(void **state)
{
	struct buf text = { 0 };

	(void)state;
	assert_true(is_taken(KEY));
	assert_false(is_taken(""));
	assert_false(is_taken("whsk_"));
	assert_false(is_taken(&KEY[5]));
	assert_false(is_taken("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
	assert_false(is_taken(KEY "="));
	assert_false(is_taken(" " KEY));
	/* Leftover bits, a seed of another public key, a space inside. */
	for (size_t i = 0; i < 3; i++) {
		buf_clear(&text);
		buf_puts(&text, KEY);
		if (i == 0)
			text.data[text.len - 3] = 'h';
		else
			text.data[5] = i == 1 ? '7' : ' ';
		assert_false(is_taken(buf_text(&text)));
	}
	buf_fini(&text);
}

static void
test_a_refusal_never_repeats_the_key(void **state)
{
	struct sign_key key;
	struct err err;

	(void)state;
	assert_int_equal(
	    sign_key_parse(&key, KEY "=", strlen(KEY) + 1, &err), -1);
	assert_null(strstr(err.text, "6Xb/"));
	assert_non_null(strstr(err.text, "whsk_"));
}

static void
test_new_keys_differ_and_survive_print_and_parse(void **state)
{
	struct sign_key one, other, again;
	struct buf text = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(sign_key_new(&one, &err), 0);
	assert_int_equal(sign_key_new(&other, &err), 0);
	assert_memory_not_equal(one.bytes, other.bytes, SIGN_KEY_SIZE);
	sign_key_print(&text, &one);
	again = parse(buf_text(&text));
	assert_memory_equal(one.bytes, again.bytes, SIGN_KEY_SIZE);
	buf_fini(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_published_vector_is_met),
		cmocka_unit_test(test_all_that_is_signed_changes_the_signature),
		cmocka_unit_test(test_the_public_key_is_the_second_half),
		cmocka_unit_test(test_keys_are_taken_only_as_they_are_printed),
		cmocka_unit_test(test_a_refusal_never_repeats_the_key),
		cmocka_unit_test(
		    test_new_keys_differ_and_survive_print_and_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
