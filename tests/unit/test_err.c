#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void
test_set_fills_everything_and_returns_failure(void **state)
{
	struct err err;

	(void)state;
	memset(&err, 'x', sizeof(err));
	assert_int_equal(
	    err_set(&err, ERR_REFUSED, "%d of %s", 3, "those"), -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_string_equal(err.text, "3 of those");
	assert_string_equal(err.sqlstate, "");
}

static void
test_wrap_puts_the_context_in_front_and_keeps_the_rest(void **state)
{
	struct err err;

	(void)state;
	(void)err_set(&err, ERR_RETRY, "connection lost");
	memcpy(err.sqlstate, "57P01", 6);
	assert_int_equal(err_wrap(&err, "lane %d", 7), -1);
	assert_string_equal(err.text, "lane 7: connection lost");
	assert_string_equal(err.sqlstate, "57P01");
	assert_int_equal(err.code, ERR_RETRY);
	(void)err_wrap(&err, "claim");
	assert_string_equal(err.text, "claim: lane 7: connection lost");
}

static void
test_errno_is_told_in_words(void **state)
{
	struct err err;

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_errno(&err, ERR_BROKEN, "open %s", "key"), -1);
	assert_int_equal(err.code, ERR_BROKEN);
	assert_string_equal(err.text, "open key: No such file or directory");
}

static void
test_a_long_text_is_cut_not_overrun(void **state)
{
	char word[2 * sizeof(((struct err *)0)->text)];
	struct {
		struct err err;
		char guard;
	} s = { .guard = 'g' };

	(void)state;
	memset(word, 'w', sizeof(word));
	word[sizeof(word) - 1] = '\0';

	(void)err_set(&s.err, ERR_REFUSED, "%s", word);
	assert_int_equal(strlen(s.err.text), sizeof(s.err.text) - 1);
	(void)err_wrap(&s.err, "front");
	assert_int_equal(strlen(s.err.text), sizeof(s.err.text) - 1);
	assert_int_equal(strncmp(s.err.text, "front: www", 10), 0);
	(void)err_wrap(&s.err, "%s", word);
	assert_int_equal(strlen(s.err.text), sizeof(s.err.text) - 1);
	errno = ENOENT;
	(void)err_errno(&s.err, ERR_REFUSED, "%s", word);
	assert_int_equal(strlen(s.err.text), sizeof(s.err.text) - 1);
	assert_int_equal(s.guard, 'g');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_fills_everything_and_returns_failure),
		cmocka_unit_test(
		    test_wrap_puts_the_context_in_front_and_keeps_the_rest),
		cmocka_unit_test(test_errno_is_told_in_words),
		cmocka_unit_test(test_a_long_text_is_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
