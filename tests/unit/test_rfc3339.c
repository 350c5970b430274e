#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/rfc3339.h"

#define S USEC_PER_SEC
#define NO ((usec_t)-1)

/* 2026-01-01T00:00:00Z */
#define NEW_YEAR (1767225600 * S)

static const struct {
	const char *text;
	usec_t time;
} rows[] = {
	{ "1970-01-01T00:00:00Z", 0 },
	{ "2026-01-01T00:00:00Z", NEW_YEAR },
	{ "2026-01-01t00:00:00z", NEW_YEAR },
	{ "2026-01-01T00:00:00.5Z", NEW_YEAR + S / 2 },
	{ "2026-01-01T00:00:00.000001Z", NEW_YEAR + 1 },
	{ "2026-01-01T00:00:00.0000019Z", NEW_YEAR + 1 },
	{ "2026-01-01T00:00:00.123456789123456789Z", NEW_YEAR + 123456 },
	{ "2026-01-01T02:00:00+02:00", NEW_YEAR },
	{ "2025-12-31T18:30:00-05:30", NEW_YEAR },
	{ "2026-01-01T00:00:00-00:00", NEW_YEAR },
	{ "2024-02-29T00:00:00Z", 1709164800 * S },
	{ "2025-12-31T23:59:59Z", NEW_YEAR - S },
	{ "9999-12-31T23:59:59Z", 253402300799 * S },
	/* Not in the calendar, or on no clock. */
	{ "2026-02-29T00:00:00Z", NO },
	{ "2026-04-31T00:00:00Z", NO },
	{ "2026-00-01T00:00:00Z", NO },
	{ "2026-13-01T00:00:00Z", NO },
	{ "2026-01-00T00:00:00Z", NO },
	{ "2026-01-32T00:00:00Z", NO },
	{ "2026-01-01T24:00:00Z", NO },
	{ "2026-01-01T00:60:00Z", NO },
	{ "2025-12-31T23:59:60Z", NO },
	{ "2026-01-01T00:00:00+24:00", NO },
	{ "2026-01-01T00:00:00+00:60", NO },
	/* Before 1970. */
	{ "1969-12-31T23:59:59Z", NO },
	{ "1970-01-01T00:00:00+00:01", NO },
	/* Not whole. */
	{ "", NO },
	{ "2026", NO },
	{ "2026-01-01", NO },
	{ "2026-01-01T00:00Z", NO },
	{ "2026-01-01T00:00:00", NO },
	{ "2026-01-01T00:00:00.Z", NO },
	{ "2026-01-01T00:00:00+02", NO },
	{ "2026-01-01T00:00:00+0200", NO },
	/* Written otherwise. */
	{ "2026-01-01 00:00:00Z", NO },
	{ " 2026-01-01T00:00:00Z", NO },
	{ "2026-01-01T00:00:00Z ", NO },
	{ "2026-01-01T00:00:00ZZ", NO },
	{ "2026-1-1T00:00:00Z", NO },
	{ "+2026-01-01T00:00:00Z", NO },
	{ "20260101T000000Z", NO },
	{ "2026-01-01T00:00:00,5Z", NO },
	{ "2026-01-01T00:00:0xZ", NO },
	{ "1767225600", NO },
	{ "yesterday", NO },
};

static void
test_a_time_is_read_exactly_or_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		usec_t time = rfc3339_parse(rows[i].text, strlen(rows[i].text));

		if (time != rows[i].time)
			fail_msg("%s: %lld instead of %lld", rows[i].text,
			    (long long)time, (long long)rows[i].time);
	}
}

static void
test_nothing_behind_its_length_is_read(void **state)
{
	(void)state;
	assert_int_equal(rfc3339_parse("2026-01-01T00:00:00Z99", 20), NEW_YEAR);
	assert_int_equal(rfc3339_parse("2026-01-01T00:00:00Z", 19), NO);
}

static void
test_what_is_printed_is_read_back(void **state)
{
	char text[RFC3339_SIZE];

	(void)state;
	/* Steps of some 30 hours meet every day of some 100 years. */
	for (usec_t time = 0; time < 4102444800 * S; time += 107999123457) {
		size_t len = rfc3339_print(text, time, 6);

		if (rfc3339_parse(text, len) != time)
			fail_msg("%s", text);
	}
}

static void
test_a_fraction_is_cut_to_its_digits(void **state)
{
	static const struct {
		usec_t time;
		int digits;
		const char *text;
	} cases[] = {
		{ 0, 1, "1970-01-01T00:00:00.0Z" },
		{ NEW_YEAR - 1, 3, "2025-12-31T23:59:59.999Z" },
		{ NEW_YEAR - 1, 6, "2025-12-31T23:59:59.999999Z" },
		{ 1709164800 * S + 45296 * S, 3, "2024-02-29T12:34:56.000Z" },
		{ 253402300799 * S, 6, "9999-12-31T23:59:59.000000Z" },
	};
	char text[RFC3339_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len =
		    rfc3339_print(text, cases[i].time, cases[i].digits);

		assert_string_equal(text, cases[i].text);
		assert_int_equal(len, strlen(text));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_time_is_read_exactly_or_refused),
		cmocka_unit_test(test_what_is_printed_is_read_back),
		cmocka_unit_test(test_a_fraction_is_cut_to_its_digits),
		cmocka_unit_test(test_nothing_behind_its_length_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
