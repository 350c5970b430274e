#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/retry_after.h"

#define S USEC_PER_SEC
#define NO ((usec_t)-1)

/* Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110. */
#define EXAMPLE (784111777 * S)
/* Thu, 01 Jan 2026 00:00:00 GMT */
#define NEW_YEAR (1767225600 * S)

static const struct {
	const char *value;
	usec_t now;
	usec_t wait;
} rows[] = {
	/* Seconds. */
	{ "0", 0, 0 },
	{ "1", 0, S },
	{ "120", 0, 120 * S },
	{ "007", 0, 7 * S },
	{ " \t120 \t", 0, 120 * S },
	{ "86399", 0, 86399 * S },
	{ "86400", 0, RETRY_AFTER_MAX },
	{ "86401", 0, RETRY_AFTER_MAX },
	{ "4294967296", 0, RETRY_AFTER_MAX },
	{ "18446744073709551616", 0, RETRY_AFTER_MAX },
	{ "99999999999999999999999999999999999999", 0, RETRY_AFTER_MAX },
	/* A fraction is rounded up. */
	{ "1.5", 0, 2 * S },
	{ "1.50", 0, 2 * S },
	{ "0.001", 0, S },
	{ "1.000", 0, S },
	{ "0.0000000000000000000000000000000000001", 0, S },
	{ "86399.9", 0, RETRY_AFTER_MAX },
	{ "99999999999999999999.9", 0, RETRY_AFTER_MAX },
	/* No seconds. */
	{ "", 0, NO },
	{ " ", 0, NO },
	{ "-1", 0, NO },
	{ "-0", 0, NO },
	{ "+1", 0, NO },
	{ ".5", 0, NO },
	{ "5.", 0, NO },
	{ "1.2.3", 0, NO },
	{ "1,5", 0, NO },
	{ "5, 7", 0, NO },
	{ "5 7", 0, NO },
	{ "1e3", 0, NO },
	{ "0x10", 0, NO },
	{ "5s", 0, NO },
	{ "soon", 0, NO },
	{ "\xd9\xa3", 0, NO }, /* an Arabic-Indic 3 */
	/* IMF-fixdate. */
	{ "Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE, 0 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE - 90 * S, 90 * S },
	{ "Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE - S / 4, S / 4 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT ", EXAMPLE - S, S },
	{ "Sun, 06 Nov 1994 08:49:37 GMT", EXAMPLE + S, 0 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT", NEW_YEAR, 0 },
	{ "Sun, 06 Nov 1994 08:49:37 GMT", 0, RETRY_AFTER_MAX },
	{ "Thu, 01 Jan 2026 00:00:10 GMT", NEW_YEAR, 10 * S },
	{ "Wed, 31 Dec 2025 23:59:60 GMT", NEW_YEAR - S, S },
	{ "Thu, 29 Feb 2024 00:00:00 GMT", NEW_YEAR, 0 },
	{ "Fri, 31 Dec 9999 23:59:59 GMT", NEW_YEAR, RETRY_AFTER_MAX },
	{ "Sat, 01 Jan 0000 00:00:00 GMT", NEW_YEAR, 0 },
	/* The form of RFC 850. */
	{ "Sunday, 06-Nov-94 08:49:37 GMT", EXAMPLE - 5 * S, 5 * S },
	{ "Sunday, 06-Nov-94 08:49:37 GMT", NEW_YEAR, 0 },
	{ "Thursday, 01-Jan-26 00:00:10 GMT", NEW_YEAR, 10 * S },
	{ "Wednesday, 01-Jan-76 00:00:10 GMT", NEW_YEAR, RETRY_AFTER_MAX },
	{ "Saturday, 01-Jan-77 00:00:10 GMT", NEW_YEAR, 0 },
	{ "Friday, 01-Jan-00 00:00:03 GMT", 946684800 * S - S, 4 * S },
	/* The form of asctime(). */
	{ "Sun Nov  6 08:49:37 1994", EXAMPLE - 5 * S, 5 * S },
	{ "Sun Nov 06 08:49:37 1994", EXAMPLE - 5 * S, 5 * S },
	{ "Sun Nov 16 08:49:37 1994", EXAMPLE - 5 * S, RETRY_AFTER_MAX },
	{ "Thu Jan  1 00:00:10 2026", NEW_YEAR, 10 * S },
	/* No dates. */
	{ "Sun, 06 Nov 1994 08:49:37", 0, NO },
	{ "Sun, 06 Nov 1994 08:49:37 UTC", 0, NO },
	{ "Sun, 06 Nov 1994 08:49:37 +0000", 0, NO },
	{ "Sun, 06 Nov 1994 08:49:37 GMT, 5", 0, NO },
	{ "Sun, 6 Nov 1994 08:49:37 GMT", 0, NO },
	{ "Sun, 06 Nov 94 08:49:37 GMT", 0, NO },
	{ "Sun, 06 Nov 1994 8:49:37 GMT", 0, NO },
	{ "Sun, 06 Nov 1994 24:00:00 GMT", 0, NO },
	{ "Sun, 06 Nov 1994 08:60:00 GMT", 0, NO },
	{ "Sun, 06 Nov 1994 08:49:61 GMT", 0, NO },
	{ "Sun, 00 Nov 1994 08:49:37 GMT", 0, NO },
	{ "Sun, 31 Nov 1994 08:49:37 GMT", 0, NO },
	{ "Sun, 29 Feb 2026 08:49:37 GMT", 0, NO },
	{ "Sun, 06 Nvo 1994 08:49:37 GMT", 0, NO },
	{ "Son, 06 Nov 1994 08:49:37 GMT", 0, NO },
	{ "Sun, 06 Nov -994 08:49:37 GMT", 0, NO },
	{ "Sun,", 0, NO },
	{ "Sunday, 06-Nov-1994 08:49:37 GMT", 0, NO },
	{ "Sun, 06-Nov-94 08:49:37 GMT", 0, NO },
	{ "Sun Nov 6 08:49:37 1994", 0, NO },
	{ "Sun Nov  6 08:49:37 1994 GMT", 0, NO },
	{ "1994-11-06T08:49:37Z", 0, NO },
};

static void
test_each_form_gives_its_wait_and_anything_else_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		usec_t wait = retry_after_parse(rows[i].value, rows[i].now);

		if (wait != rows[i].wait)
			fail_msg("row %zu, \"%s\": %lld instead of %lld", i,
			    rows[i].value, (long long)wait,
			    (long long)rows[i].wait);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    test_each_form_gives_its_wait_and_anything_else_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
