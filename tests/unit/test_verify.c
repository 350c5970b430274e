/* The receiver's own judgement of signatures. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "receiver/verify.h"

/* The vector that Standard Webhooks publishes, and what Python's hmac makes of
 * the same request in the older scheme. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define TIMESTAMP "1614265330"
#define BODY "{\"test\": 2432232314}"
#define GOOD "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define BAD "v1,h0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define OLDER                                                                  \
	"v1=e96203c6de850e7dc1fde7489ef6140b"                                  \
	"402d3a5a64fe250cd2eef9830fac1cef"

enum { AT = 1614265330, TOLERANCE = 300 };

static const struct verify_request good = {
	.id = ID,
	.timestamp = TIMESTAMP,
	.signature = GOOD,
	.body = BODY,
	.len = sizeof(BODY) - 1,
};

static struct verify_secret
secret(void)
{
	struct verify_secret out;
	struct err err;

	assert_int_equal(0, verify_secret_parse(&out, SECRET, &err));
	return out;
}

static enum verify_verdict
judge_at(const struct verify_request *request, int64_t now)
{
	const struct verify_secret known = secret();

	return verify_judge(request, &known, now, TOLERANCE);
}

static void
expect(const char *label, enum verify_verdict wanted,
    const struct verify_request *request)
{
	enum verify_verdict verdict = judge_at(request, AT);

	if (verdict != wanted)
		fail_msg("%s: %s instead of %s", label,
		    verify_verdict_name(verdict), verify_verdict_name(wanted));
}

static void
test_the_published_vector_is_valid(void **state)
{
	(void)state;
	expect("vector", VERIFY_VALID, &good);
}

static void
test_one_signature_that_fits_is_enough(void **state)
{
	static const struct {
		enum verify_verdict wanted;
		const char *signature;
	} rows[] = {
		{ VERIFY_VALID, BAD " " GOOD },
		{ VERIFY_VALID, GOOD " " BAD },
		{ VERIFY_VALID, "v1a,AAAA v2,x " GOOD },
		{ VERIFY_VALID, "  " GOOD "  " },
		{ VERIFY_WRONG, "" },
		{ VERIFY_WRONG, " " },
		{ VERIFY_WRONG, BAD },
		{ VERIFY_WRONG, BAD " " BAD },
		{ VERIFY_WRONG, GOOD "x" },
		{ VERIFY_WRONG, GOOD "," BAD },
		{ VERIFY_WRONG,
		    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE" },
		{ VERIFY_WRONG,
		    "V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" },
		{ VERIFY_WRONG,
		    "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" },
		{ VERIFY_WRONG,
		    "v1=g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" },
		{ VERIFY_WRONG, "v1," },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verify_request request = good;

		request.signature = rows[i].signature;
		expect(rows[i].signature, rows[i].wanted, &request);
	}
}

static void
test_all_that_is_signed_counts(void **state)
{
	struct verify_request request = good;

	(void)state;
	request.id = ID "x";
	expect("another id", VERIFY_WRONG, &request);

	request = good;
	request.timestamp = "1614265331";
	expect("another time", VERIFY_WRONG, &request);

	request = good;
	request.body = "{\"test\": 2432232315}";
	expect("another body", VERIFY_WRONG, &request);

	request = good;
	request.len--;
	expect("a shorter body", VERIFY_WRONG, &request);
}

static void
test_headers_must_be_there_and_whole(void **state)
{
	struct verify_request request = good;

	(void)state;
	request.id = NULL;
	expect("no id", VERIFY_MISSING, &request);
	request.id = "";
	expect("an empty id", VERIFY_MALFORMED, &request);
	request.id = "a.b";
	expect("a dot in the id", VERIFY_MALFORMED, &request);

	request = good;
	request.signature = NULL;
	expect("no signature", VERIFY_MISSING, &request);

	request = good;
	request.timestamp = NULL;
	expect("no timestamp", VERIFY_MISSING, &request);
}

static void
test_a_timestamp_is_plain_digits(void **state)
{
	static const char *const rows[] = { "", " ", "x", "-1", "+1614265330",
		"01614265330", "1614265330 ", " 1614265330", "1614265330.0",
		"0x60381c32", "16142653301614265330" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verify_request request = good;

		request.timestamp = rows[i];
		expect(rows[i], VERIFY_MALFORMED, &request);
	}
}

static void
test_time_may_be_off_by_the_tolerance_either_way(void **state)
{
	(void)state;
	assert_int_equal(VERIFY_VALID, judge_at(&good, AT + TOLERANCE));
	assert_int_equal(VERIFY_VALID, judge_at(&good, AT - TOLERANCE));
	assert_int_equal(VERIFY_EXPIRED, judge_at(&good, AT + TOLERANCE + 1));
	assert_int_equal(VERIFY_EXPIRED, judge_at(&good, AT - TOLERANCE - 1));
}

static void
test_without_a_secret_nothing_is_valid(void **state)
{
	(void)state;
	assert_int_equal(
	    VERIFY_NO_SECRET, verify_judge(&good, NULL, AT, TOLERANCE));
}

static void
test_another_secret_does_not_fit(void **state)
{
	struct verify_secret other = secret();

	(void)state;
	other.bytes[0] ^= 1;
	assert_int_equal(
	    VERIFY_WRONG, verify_judge(&good, &other, AT, TOLERANCE));
	other = secret();
	other.len--;
	assert_int_equal(
	    VERIFY_WRONG, verify_judge(&good, &other, AT, TOLERANCE));
}

static struct verify_request
both_schemes(void)
{
	struct verify_request request = good;

	request.older_id = ID;
	request.older_timestamp = TIMESTAMP;
	request.older_signature = OLDER;
	return request;
}

static void
test_the_older_scheme_must_fit_where_it_is_there(void **state)
{
	struct verify_request request = both_schemes();

	(void)state;
	expect("both", VERIFY_VALID, &request);

	request.older_signature = OLDER "0";
	expect("a longer one", VERIFY_WRONG, &request);
	request.older_signature = "v1=" GOOD;
	expect("base64", VERIFY_WRONG, &request);
	request.older_signature = NULL;
	expect("no older signature", VERIFY_MISSING, &request);

	request = both_schemes();
	request.older_id = "msg_x";
	expect("another older id", VERIFY_MALFORMED, &request);
	request.older_id = NULL;
	expect("no older id", VERIFY_MISSING, &request);

	request = both_schemes();
	request.older_timestamp = "1614265331";
	expect("another older time", VERIFY_WRONG, &request);
	request.older_timestamp = "1";
	expect("an old older time", VERIFY_EXPIRED, &request);
	request.older_timestamp = NULL;
	expect("no older time", VERIFY_MISSING, &request);
}

static void
test_the_older_scheme_alone_is_not_enough(void **state)
{
	struct verify_request request = both_schemes();

	(void)state;
	request.signature = NULL;
	expect("older alone", VERIFY_MISSING, &request);
	request.signature = BAD;
	expect("older good, newer bad", VERIFY_WRONG, &request);
}

#define K "a2tra2tra2tra2tra2tra2tra2tr" /* 21 times k */

static void
test_a_secret_is_base64_of_24_to_64_bytes(void **state)
{
	static const struct {
		size_t len; /* 0: refused */
		const char *text;
	} rows[] = {
		{ 24, SECRET },
		{ 24, "whsec_" K "a2tr" },
		{ 25, "whsec_" K "a2traw==" },
		{ 26, "whsec_" K "a2tra2s=" },
		{ 64, "whsec_" K K K "aw==" },
		{ 0, "" },
		{ 0, "whsec_" },
		{ 0, K "a2tr" },
		{ 0, "whsec_" K "a2s=" }, /* 23 */
		{ 0, "whsec_" K K K "a2s=" }, /* 65 */
		{ 0, "whsec_" K K K K K K },
		{ 0, "whsec_" K "a2traw" },
		{ 0, "whsec_" K "a2traw=" },
		{ 0, "whsec_" K "a2trax==" }, /* bits past the end */
		{ 0, "whsec_" K "a2t\n" },
		{ 0, "whsec_" K "a2t-" },
		{ 0, "whsec_" K "a=tr" },
		{ 0, "WHSEC_" K "a2tr" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct verify_secret out = { .len = 0 };
		struct err err = { .text = "" };
		int result = verify_secret_parse(&out, rows[i].text, &err);

		if ((result == 0) != (rows[i].len > 0) ||
		    (result == 0 && out.len != rows[i].len))
			fail_msg("\"%s\": %d, %zu bytes", rows[i].text, result,
			    out.len);
		assert_null(strstr(err.text, "a2tr"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_published_vector_is_valid),
		cmocka_unit_test(test_one_signature_that_fits_is_enough),
		cmocka_unit_test(test_all_that_is_signed_counts),
		cmocka_unit_test(test_headers_must_be_there_and_whole),
		cmocka_unit_test(test_a_timestamp_is_plain_digits),
		cmocka_unit_test(
		    test_time_may_be_off_by_the_tolerance_either_way),
		cmocka_unit_test(test_without_a_secret_nothing_is_valid),
		cmocka_unit_test(test_another_secret_does_not_fit),
		cmocka_unit_test(
		    test_the_older_scheme_must_fit_where_it_is_there),
		cmocka_unit_test(test_the_older_scheme_alone_is_not_enough),
		cmocka_unit_test(test_a_secret_is_base64_of_24_to_64_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
