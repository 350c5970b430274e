#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign.h"

static struct sign_secret
parse(const char *text)
{
	struct sign_secret secret;
	struct err err;

	if (sign_secret_parse(&secret, text, strlen(text), &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return secret;
}

static const struct {
	const char *secret, *id;
	int64_t timestamp;
	const char *body, *signature;
} vectors[] = {
	{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	    "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
	    "{\"test\": 2432232314}",
	    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" },
	{ "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
	    "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553,
	    "{\"email\":\"test@example.com\",\"username\":\"test_user\"}",
	    "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=" },
};

static void
test_the_published_vectors_are_met(void **state)
{
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct sign_secret secret = parse(vectors[i].secret);

		buf_clear(&out);
		sign_standard(&out, &secret, vectors[i].id,
		    vectors[i].timestamp, vectors[i].body,
		    strlen(vectors[i].body));
		assert_string_equal(buf_text(&out), vectors[i].signature);
		sign_secret_fini(&secret);
	}
	buf_fini(&out);
}

static void
test_the_older_scheme_signs_time_and_body_in_hex(void **state)
{
	struct sign_secret secret = parse(vectors[0].secret);
	struct buf out = { 0 };

	(void)state;
	sign_older(&out, &secret, vectors[0].timestamp, vectors[0].body,
	    strlen(vectors[0].body));
	assert_string_equal(buf_text(&out),
	    "v1="
	    "e96203c6de850e7dc1fde7489ef6140b402d3a5a64fe250cd2eef9830fac1cef");
	sign_secret_fini(&secret);
	buf_fini(&out);
}

static void
test_signatures_are_appended_so_that_two_secrets_can_sign(void **state)
{
	struct sign_secret secret = parse(vectors[0].secret);
	struct buf out = { 0 };

	(void)state;
	sign_standard(&out, &secret, "a", 0, "", 0);
	buf_puts(&out, " ");
	sign_standard(&out, &secret, "a", 0, NULL, 0);
	assert_int_equal(out.len, 2 * 47 + 1);
	assert_memory_equal(out.data, out.data + 48, 47);
	sign_secret_fini(&secret);
	buf_fini(&out);
}

static void
test_all_that_is_signed_changes_the_signature(void **state)
{
	struct sign_secret secret = parse(vectors[0].secret);
	struct sign_secret other = parse(vectors[1].secret);
	struct buf out[5] = { 0 };

	(void)state;
	sign_standard(&out[0], &secret, "a", 1, "x\0y", 3);
	sign_standard(&out[1], &secret, "b", 1, "x\0y", 3);
	sign_standard(&out[2], &secret, "a", -1, "x\0y", 3);
	sign_standard(&out[3], &secret, "a", 1, "x\0z", 3);
	sign_standard(&out[4], &other, "a", 1, "x\0y", 3);
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(
			    buf_text(&out[i]), buf_text(&out[j]));
	for (size_t i = 0; i < 5; i++)
		buf_fini(&out[i]);
	sign_secret_fini(&secret);
	sign_secret_fini(&other);
}

static void
test_a_secret_signs_the_same_again(void **state)
{
	struct sign_secret secret = parse(vectors[0].secret);
	struct sign_secret other = parse(vectors[1].secret);
	struct buf out = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		buf_clear(&out);
		sign_standard(&out, &secret, vectors[0].id,
		    vectors[0].timestamp, vectors[0].body,
		    strlen(vectors[0].body));
		assert_string_equal(buf_text(&out), vectors[0].signature);
		sign_older(&out, &secret, i, "{}", 2);
		sign_standard(&out, &other, "a", i, "{}", 2);
	}
	sign_secret_fini(&secret);
	sign_secret_fini(&other);
	buf_fini(&out);
}

/* In base64, 24 bytes are 32 characters and 64 bytes are 88. */
#define C24 "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define C64 C24 C24 "MfKQ9r8GKYqrTwjUPD8ILA=="

static const struct {
	const char *text;
	size_t len; /* of the secret; 0: refused */
} texts[] = {
	{ "whsec_" C24, 24 },
	{ C24, 24 },
	{ "whsec_" C24 "AA==", 25 },
	{ "whsec_" C24 "AAA=", 26 },
	{ "whsec_" C64, 64 },
	{ C24 C24 "MfKQ9r8GKYqrTwjUPD8ILAA=", 0 }, /* 65 bytes */
	{ C24 C24 C24, 0 },
	{ C24 C24 "MfKQ9r8GKYqrTwjUPD8ILPZI", 0 }, /* 66 */
	{ "", 0 },
	{ "whsec_", 0 },
	{ "whsec", 0 },
	{ "=", 0 },
	{ "====", 0 },
	{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ=", 0 }, /* 23 */
	{ "whsec_whsec_" C24, 0 },
	{ "WHSEC_" C24, 0 },
	{ "whsk_" C24, 0 },
	{ "whsec_" C24 "AA", 0 }, /* no padding */
	{ "whsec_" C24 "AA=", 0 },
	{ "whsec_" C24 "AB==", 0 }, /* bits left over */
	{ "whsec_" C24 "A===", 0 },
	{ "whsec_" C24 "====", 0 },
	{ "whsec_AA==" C24, 0 }, /* padding inside */
	{ "whsec_MfKQ=r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAA", 0 },
	{ " whsec_" C24, 0 },
	{ "whsec_ " C24, 0 },
	{ "whsec_" C24 "\n", 0 },
	{ "whsec_" C24 "    ", 0 },
	{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZI-_LaLaSw", 0 }, /* URL-safe */
	{ "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaL\xc3\xa9w", 0 },
	{ "0123456789abcdef0123456789abcde!", 0 },
};

static void
test_secrets_are_taken_only_as_they_are_printed(void **state)
{
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *text = texts[i].text;
		struct sign_secret secret;
		struct err err = { 0 };
		int rc = sign_secret_parse(&secret, text, strlen(text), &err);

		if ((rc == 0) != (texts[i].len > 0) ||
		    secret.len != texts[i].len)
			fail_msg("\"%s\": %d, %zu", text, rc, secret.len);
		if (rc != 0) {
			assert_int_equal(err.code, ERR_REFUSED);
			continue;
		}
		buf_clear(&out);
		sign_secret_print(&out, &secret);
		assert_non_null(strstr(buf_text(&out), text));
		assert_memory_equal(out.data, "whsec_", 6);
	}
	buf_fini(&out);
}

static void
test_a_nul_inside_is_refused(void **state)
{
	static const char text[] = "whsec_" C24 "\0\0\0";
	struct sign_secret secret;
	struct err err;

	(void)state;
	assert_int_equal(
	    -1, sign_secret_parse(&secret, text, sizeof(text), &err));
}

static void
test_a_refusal_explains_and_never_repeats_the_secret(void **state)
{
	static const char text[] = "whsec_hunter2hunter2hunter2hunter2hunter2!";
	struct sign_secret secret;
	struct err err;

	(void)state;
	assert_int_equal(
	    -1, sign_secret_parse(&secret, text, strlen(text), &err));
	assert_null(strstr(err.text, "hunter2"));
	assert_non_null(strstr(err.text, "24 to 64 bytes"));
}

static void
test_new_secrets_differ_and_survive_print_and_parse(void **state)
{
	struct sign_secret one, two;
	struct buf out = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(0, sign_secret_new(&one, &err));
	assert_int_equal(0, sign_secret_new(&two, &err));
	assert_int_equal(one.len, SIGN_SECRET_NEW);
	assert_memory_not_equal(one.bytes, two.bytes, SIGN_SECRET_NEW);

	sign_secret_print(&out, &one);
	two = parse(buf_text(&out));
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.bytes, two.bytes, one.len);
	buf_wipe(&out);
}

static void
test_a_finished_secret_is_wiped(void **state)
{
	static const struct sign_secret wiped;
	struct sign_secret secret = parse(vectors[0].secret);
	struct buf out = { 0 };

	(void)state;
	sign_standard(&out, &secret, "a", 0, "", 0);
	buf_fini(&out);
	sign_secret_fini(&secret);
	assert_memory_equal(&secret, &wiped, sizeof(secret));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_published_vectors_are_met),
		cmocka_unit_test(
		    test_the_older_scheme_signs_time_and_body_in_hex),
		cmocka_unit_test(
		    test_signatures_are_appended_so_that_two_secrets_can_sign),
		cmocka_unit_test(test_all_that_is_signed_changes_the_signature),
		cmocka_unit_test(test_a_secret_signs_the_same_again),
		cmocka_unit_test(
		    test_secrets_are_taken_only_as_they_are_printed),
		cmocka_unit_test(test_a_nul_inside_is_refused),
		cmocka_unit_test(
		    test_a_refusal_explains_and_never_repeats_the_secret),
		cmocka_unit_test(
		    test_new_secrets_differ_and_survive_print_and_parse),
		cmocka_unit_test(test_a_finished_secret_is_wiped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
