#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/filter.h"

/* `fault` is part of what is said, and NULL for nothing. */
struct row {
	const char *text;
	int weight;
	const char *fault;
};

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err err = { .text = "" };
		int weight = 0;
		int result = filter_check(
		    &weight, rows[i].text, strlen(rows[i].text), &err);

		print_message("%s: %s\n", rows[i].text, err.text);
		if (rows[i].fault == NULL) {
			assert_int_equal(0, result);
			assert_int_equal(rows[i].weight, weight);
		} else {
			assert_int_equal(-1, result);
			assert_int_equal(ERR_REFUSED, err.code);
			assert_non_null(strstr(err.text, rows[i].fault));
		}
	}
}

#define CHECK(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

static void
test_predicates_are_taken_with_their_weight(void **state)
{
	static const struct row rows[] = {
		{ "$.data > 1", 11, NULL },
		{ "$ == 1", 10, NULL },
		{ " lax $.data==1 ", 11, NULL },
		{ "strict $.data == 1", 11, NULL },
		{ "10 <= $.data", 11, NULL },
		{ "$.a == -1.5e-3", 11, NULL },
		{ "$.a == \"x\\\"\\\\\\n\" ", 11, NULL },
		{ "$.a == \"\xc3\xa4\"", 11, NULL },
		{ "$.a == true || $.a == false && $.a != null", 33, NULL },
		{ "$.a <> 0 && ($.b < 1 || $.c >= 2)", 34, NULL },
		{ "!($.a == 1)", 12, NULL },
		{ "!exists($.a)", 11, NULL },
		{ "($.a == 1) is unknown", 12, NULL },
		{ "$.\"a b\".type() starts with \"n\"", 20, NULL },
		{ "$.a[0][last][last - 1][*].*.size() > 3", 73, NULL },
		{ "exists($.a[*] ? (@.b > 1 && @.c == \"x\") ? (@.d == 0))", 47,
		    NULL },
		{ "exists($.a ? (exists(@.b ? (@ == 1))))", 34, NULL },
		{ "$.true == true", 11, NULL },
	};

	(void)state;
	CHECK(rows);
}

static void
test_work_without_a_bound_is_refused(void **state)
{
	static const struct row rows[] = {
		{ "$.a == $.b", 0, "at octet 7: compare it with a constant" },
		{ "$.a[*] < $.a[*]", 0, "pairs" },
		{ "exists($.a ? (@.b == $.c))", 0, "compare it with" },
		{ "exists($.a ? ($.b == 1))", 0, "no $" },
		{ "exists($.a ? (@.b == @.c))", 0, "pairs" },
		{ "$.** == 1", 0, ".** is not taken" },
		{ "$.a.**{2} == 1", 0, ".** is not taken" },
		{ "$[0,0] == 1", 0, "one index" },
		{ "$[0 to 9] == 1", 0, "one index" },
		{ "$[$.a] == 1", 0, "want *, a number, or last" },
		{ "$.a like_regex \"(a*)*b\"", 0, "like_regex is not taken" },
		{ "$.a * $.a > 1", 0, "arithmetic" },
		{ "$.a + 1 > 1", 0, "arithmetic" },
		{ "$.a % 2 == 1", 0, "arithmetic" },
		{ "-$.a == 1", 0, "want a number" },
		{ "$.a.datetime() == \"x\"", 0, "of methods there are" },
		{ "exists($.keyvalue())", 0, "of methods there are" },
	};

	(void)state;
	CHECK(rows);
}

static void
test_what_is_no_predicate_is_refused(void **state)
{
	static const struct row rows[] = {
		{ "", 0, "at octet 0: want a string" },
		{ "   ", 0, "want a string" },
		{ "$", 0, "want a comparison" },
		{ "$.a", 0, "want a comparison" },
		{ "$.a ? (@ > 1)", 0, "want a comparison" },
		{ "@.a == 1", 0, "at octet 0: want a path that begins with $" },
		{ "$.a = 1", 0, "want a comparison" },
		{ "$.a ==", 0, "want a string" },
		{ "$.a == 1 &&", 0, "want a string" },
		{ "$.a == 1 $.b == 2", 0, "at octet 9: want an operator" },
		{ "($.a == 1", 0, "or )" },
		{ "$.a == 1)", 0, "or the end" },
		{ "1 == 1", 0, "want a path" },
		{ "$foo == 1", 0, "no variables" },
		{ "$\"foo\" == 1", 0, "no variables" },
		{ "$.a == $foo", 0, "compare it with a constant" },
		{ "$.1a == 1", 0, "want a key" },
		{ "$.a-b == 1", 0, "arithmetic" },
		{ "$.\xc3\xa4 == 1", 0, "written in quotes" },
		{ "$.a == 01", 0, "as JSON" },
		{ "$.a[01] == 1", 0, "want *, a number, or last" },
		{ "$.a[last - 01] == 1", 0, "want a number" },
		{ "$.a == 1.", 0, "behind the point" },
		{ "$.a == 1e1000", 0, "exponent" },
		{ "$.a == 0x10", 0, "as JSON" },
		{ "$.a == \"x", 0, "does not end" },
		{ "$.a == \"\\u0041\"", 0, "unknown escape" },
		{ "$.a == \"\\", 0, "unknown escape" },
		{ "$.a == \"\xff\"", 0, "no character" },
		{ "$.a == 'x'", 0, "want a string" },
		{ "$.a starts with 1", 0, "and a string" },
		{ "!$.a == 1", 0, "want (" },
		{ "($.a == 1) is null", 0, "is unknown" },
		{ "/* */ $.a == 1", 0, "want a string" },
		{ "$.a == TRUE", 0, "want a string" },
	};

	(void)state;
	CHECK(rows);
}

static void
test_an_octet_of_zero_is_no_end(void **state)
{
	static const char text[] = "$.a == 1\0 && $.b == 2";
	struct err err;
	int weight;

	(void)state;
	assert_int_equal(-1, filter_check(&weight, text, sizeof(text), &err));
}

static void
test_length_and_depth_are_bounded(void **state)
{
	struct buf text = { 0 };
	struct err err;
	int weight;

	(void)state;
	for (int i = 0; i < FILTER_DEPTH - 1; i++)
		buf_puts(&text, "(");
	buf_puts(&text, "$==1");
	for (int i = 0; i < FILTER_DEPTH - 1; i++)
		buf_puts(&text, ")");
	assert_int_equal(0, filter_check(&weight, text.data, text.len, &err));
	while (text.len < FILTER_MAX)
		buf_puts(&text, " ");
	assert_int_equal(0, filter_check(&weight, text.data, text.len, &err));
	buf_puts(&text, " ");
	assert_int_equal(-1, filter_check(&weight, text.data, text.len, &err));
	assert_non_null(strstr(err.text, "longer than 1024"));
	buf_clear(&text);
	for (int i = 0; i < FILTER_DEPTH; i++)
		buf_puts(&text, "(");
	assert_int_equal(-1, filter_check(&weight, text.data, text.len, &err));
	assert_non_null(strstr(err.text, "too many parentheses"));
	buf_fini(&text);
}

static size_t
values(const char *body)
{
	return filter_values(body, strlen(body));
}

static void
test_values_are_counted_or_overestimated(void **state)
{
	(void)state;
	assert_int_equal(1, values(""));
	assert_true(values("1") >= 1);
	assert_true(values("[1,2,3]") >= 4);
	assert_true(values("{\"a\":{\"b\":[]},\"c\":1}") >= 4);
	assert_true(values("[[],[[]],{}]") >= 5);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicates_are_taken_with_their_weight),
		cmocka_unit_test(test_work_without_a_bound_is_refused),
		cmocka_unit_test(test_what_is_no_predicate_is_refused),
		cmocka_unit_test(test_an_octet_of_zero_is_no_end),
		cmocka_unit_test(test_length_and_depth_are_bounded),
		cmocka_unit_test(test_values_are_counted_or_overestimated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
