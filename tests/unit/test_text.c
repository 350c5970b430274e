#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

/* U+202E and U+2066: a literal of these is what compilers warn of. */
static const char override[] = { '\xe2', '\x80', '\xae', '\0' };
static const char isolate[] = { '\xe2', '\x81', '\xa6', '\0' };

static const struct {
	const char *label, *from, *to;
} cases[] = {
	{ "nothing", "", "" },
	{ "plain", "Hello, world!", "Hello, world!" },
	{ "umlauts", "Gr\xc3\xbc\xc3\x9f", "Gr\xc3\xbc\xc3\x9f" },
	{ "four octets", "\xf0\x9f\x90\x8e", "\xf0\x9f\x90\x8e" },
	{ "lines", "a\r\nb\tc\nd", "a  b c d" },
	{ "a colour", "\x1b[31mred", R "[31mred" },
	{ "delete", "a\x7f", "a" R },
	{ "C1, which some terminals obey",
	    "\xc2\x9b"
	    "31m",
	    R "31m" },
	{ "the last C1", "\xc2\x9f", R },
	{ "a space that does not break", "\xc2\xa0", "\xc2\xa0" },
	{ "soft hyphen", "\xc2\xad", R },
	{ "Arabic letter mark", "\xd8\x9c", R },
	{ "zero width space",
	    "a\xe2\x80\x8b"
	    "b",
	    "a" R "b" },
	{ "right to left mark", "\xe2\x80\x8f", R },
	{ "line separator", "\xe2\x80\xa8", R },
	{ "right to left override", override, R },
	{ "narrow space after it", "\xe2\x80\xaf", "\xe2\x80\xaf" },
	{ "isolate", isolate, R },
	{ "byte order mark", "\xef\xbb\xbf{}", R "{}" },
	{ "annotation", "\xef\xbf\xb9", R },
	{ "noncharacters", "\xef\xb7\x90\xef\xbf\xbf\xf4\x8f\xbf\xbf", R R R },
	{ "a tag", "\xf3\xa0\x81\x81", R },
	{ "the last character of all", "\xf4\x8f\xbf\xbd", "\xf4\x8f\xbf\xbd" },
	{ "Latin-1", "Gr\xfc\xdf", "Gr" R R },
	{ "cut short", "a\xe2\x82", "a" R R },
	{ "overlong", "\xc0\xaf", R R },
	{ "a surrogate", "\xed\xa0\x80", R R R },
	{ "past the end", "\xf4\x90\x80\x80", R R R R },
	{ "the replacement itself", R, R },
};

static void
test_every_text_is_made_safe(void **state)
{
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = text_make_safe(
		    out, sizeof(out), cases[i].from, strlen(cases[i].from));

		if (strcmp(out, cases[i].to) != 0)
			fail_msg("%s: \"%s\"", cases[i].label, out);
		assert_int_equal(n, strlen(out));
	}
}

static void
test_a_nul_does_not_end_it(void **state)
{
	char out[16];

	(void)state;
	assert_int_equal(5, text_make_safe(out, sizeof(out), "a\0b", 3));
	assert_string_equal(out, "a" R "b");
}

static void
test_no_character_is_cut(void **state)
{
	char out[6];

	(void)state;
	assert_int_equal(5, text_make_safe(out, sizeof(out), "abcdefgh", 8));
	assert_string_equal(out, "abcde");
	assert_int_equal(
	    4, text_make_safe(out, sizeof(out), "abcd\xc3\xbc", 6));
	assert_string_equal(out, "abcd");
	assert_int_equal(3, text_make_safe(out, sizeof(out), "\xff\xff", 2));
	assert_int_equal(0, text_make_safe(out, 1, "a", 1));
}

/* Whatever comes in, cleaning what came out changes nothing. */
static void
test_what_is_safe_stays_as_it_is(void **state)
{
	unsigned seed = 1;
	char from[64], once[256], twice[256];

	(void)state;
	for (int round = 0; round < 2000; round++) {
		for (size_t i = 0; i < sizeof(from); i++) {
			seed = seed * 1103515245u + 12345u;
			from[i] = (char)(seed >> 16);
		}
		(void)text_make_safe(once, sizeof(once), from, sizeof(from));
		(void)text_make_safe(twice, sizeof(twice), once, strlen(once));
		assert_string_equal(once, twice);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_text_is_made_safe),
		cmocka_unit_test(test_a_nul_does_not_end_it),
		cmocka_unit_test(test_no_character_is_cut),
		cmocka_unit_test(test_what_is_safe_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
