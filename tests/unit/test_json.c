#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/json.h"

/* A text with its length, NUL bytes and all. */
#define T(text) text, sizeof(text) - 1

static struct json_slice
check(const char *text, size_t len)
{
	struct json_slice value;
	struct err err;

	if (json_check(&value, text, len, &err) != 0)
		fail_msg("%.*s: %s", (int)len, text, err.text);
	return value;
}

static const struct good {
	const char *text;
	size_t len;
	enum json_kind kind;
	const char *value; /* without the space around it */
} good[] = {
	{ T("null"), JSON_NULL, "null" },
	{ T(" true\n"), JSON_BOOL, "true" },
	{ T("false"), JSON_BOOL, "false" },
	{ T("0"), JSON_NUMBER, "0" },
	{ T("-0"), JSON_NUMBER, "-0" },
	{ T("136.0"), JSON_NUMBER, "136.0" },
	{ T("1E2"), JSON_NUMBER, "1E2" },
	{ T("1e-2 "), JSON_NUMBER, "1e-2" },
	{ T("1e400"), JSON_NUMBER, "1e400" },
	{ T("9007199254740993"), JSON_NUMBER, "9007199254740993" },
	{ T("123456789012345678901234567890"), JSON_NUMBER,
	    "123456789012345678901234567890" },
	{ T("\t\"\" "), JSON_STRING, "\"\"" },
	{ T("\"\\u0000\""), JSON_STRING, "\"\\u0000\"" },
	{ T("\"\\ud83d\\udca9\""), JSON_STRING, "\"\\ud83d\\udca9\"" },
	{ T("\"\\uD83D\\uDCA9\""), JSON_STRING, "\"\\uD83D\\uDCA9\"" },
	{ T("\"\xf0\x9f\x92\xa9\x7f\xe2\x80\xa8\""), JSON_STRING,
	    "\"\xf0\x9f\x92\xa9\x7f\xe2\x80\xa8\"" },
	{ T("\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\""), JSON_STRING,
	    "\"\xf4\x8f\xbf\xbf\xed\x9f\xbf\xee\x80\x80\"" },
	{ T("[ ]"), JSON_ARRAY, "[ ]" },
	{ T("\r\n[1, [], {}]"), JSON_ARRAY, "[1, [], {}]" },
	{ T("{\"a\":1 , \"a\" : [2]}"), JSON_OBJECT,
	    "{\"a\":1 , \"a\" : [2]}" },
};

static void
test_json_is_accepted_and_its_bytes_are_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const struct good *row = &good[i];
		struct json_slice value = check(row->text, row->len);

		if (value.kind != row->kind ||
		    value.len != strlen(row->value) ||
		    memcmp(value.at, row->value, value.len) != 0)
			fail_msg("%s: kind %d, \"%.*s\"", row->text,
			    (int)value.kind, (int)value.len, value.at);
	}
}

static const struct bad {
	const char *text;
	size_t len;
	size_t at; /* the byte that is blamed */
	const char *why;
} bad[] = {
	{ T(""), 0, "expected a value" },
	{ T("  "), 2, "expected a value" },
	{ T("NaN"), 0, "expected a value" },
	{ T("nul"), 0, "expected a value" },
	{ T("Infinity"), 0, "expected a value" },
	{ T("\xef\xbb\xbf{}"), 0, "expected a value" },
	{ T("'a'"), 0, "expected a value" },
	{ T("// no\n1"), 0, "expected a value" },
	{ T("01"), 1, "something follows" },
	{ T("-01"), 2, "something follows" },
	{ T("1 2"), 2, "something follows" },
	{ T("{}\0"), 2, "something follows" },
	{ T("true\0x"), 4, "something follows" },
	{ T("-"), 1, "lacks its digits" },
	{ T("+1"), 0, "expected a value" },
	{ T(".5"), 0, "expected a value" },
	{ T("1."), 2, "after its point" },
	{ T("1.e2"), 2, "after its point" },
	{ T("1e"), 2, "lacks its exponent" },
	{ T("1e+-1"), 3, "lacks its exponent" },
	{ T("0x10"), 1, "something follows" },
	{ T("\""), 1, "does not end" },
	{ T("\"a\\\""), 4, "does not end" },
	{ T("\"\\"), 2, "unknown escape" },
	{ T("\"\\x\""), 2, "unknown escape" },
	{ T("\"\\\0\""), 2, "unknown escape" },
	{ T("\"\\u12g4\""), 5, "four hex digits" },
	{ T("\"\\u12"), 5, "four hex digits" },
	{ T("\"\n\""), 1, "control character" },
	{ T("\"a\0b\""), 2, "control character" },
	{ T("\"\\ud83d\""), 7, "other half" },
	{ T("\"\\ud83d\\n\""), 8, "other half" },
	{ T("\"\\ud83d\\ud83d\""), 13, "other half" },
	{ T("\"\\ud83dx\""), 7, "other half" },
	{ T("\"\\udca9\""), 7, "other half" },
	{ T("{\"\\udca9\":1}"), 8, "other half" },
	{ T("\"\x80\""), 1, "not UTF-8" },
	{ T("\"\xc0\xaf\""), 1, "not UTF-8" },
	{ T("\"\xc1\xbf\""), 1, "not UTF-8" },
	{ T("\"\xe0\x80\xaf\""), 1, "not UTF-8" },
	{ T("\"\xe0\x9f\xbf\""), 1, "not UTF-8" },
	{ T("\"\xed\xa0\x80\""), 1, "not UTF-8" },
	{ T("\"\xf0\x8f\xbf\xbf\""), 1, "not UTF-8" },
	{ T("\"\xf4\x90\x80\x80\""), 1, "not UTF-8" },
	{ T("\"\xf5\x80\x80\x80\""), 1, "not UTF-8" },
	{ T("\"\xe2\x80\""), 1, "not UTF-8" },
	{ T("\"\xe2\x80"), 1, "not UTF-8" },
	{ T("\"\xff\""), 1, "not UTF-8" },
	{ T("["), 1, "expected a value" },
	{ T("[1"), 2, "expected a comma" },
	{ T("[1}"), 2, "expected a comma" },
	{ T("[1,]"), 3, "expected a value" },
	{ T("[,1]"), 1, "expected a value" },
	{ T("[1 2]"), 3, "expected a comma" },
	{ T("[]]"), 2, "something follows" },
	{ T("{"), 1, "member's name" },
	{ T("{]"), 1, "member's name" },
	{ T("{1:2}"), 1, "member's name" },
	{ T("{\"a\"}"), 4, "expected a colon" },
	{ T("{\"a\":}"), 5, "expected a value" },
	{ T("{\"a\":1,}"), 7, "member's name" },
	{ T("{\"a\":1]"), 6, "expected a comma" },
	{ T("{\"a\":[1}]"), 7, "expected a comma" },
	{ T("[\v1]"), 1, "expected a value" },
};

static void
test_what_is_not_json_is_refused_with_the_place_and_the_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct bad *row = &bad[i];
		struct json_slice value;
		struct err err = { 0 };
		char start[32];

		(void)snprintf(
		    start, sizeof(start), "JSON at byte %zu: ", row->at);
		if (json_check(&value, row->text, row->len, &err) == 0)
			fail_msg("row %zu accepted: %s", i, row->text);
		assert_int_equal(err.code, ERR_REFUSED);
		if (strncmp(err.text, start, strlen(start)) != 0 ||
		    strstr(err.text, row->why) == NULL)
			fail_msg("row %zu, %s: %s", i, row->text, err.text);
	}
}

static void
test_no_text_at_all_is_refused(void **state)
{
	struct json_slice value;
	struct err err;

	(void)state;
	assert_int_equal(-1, json_check(&value, NULL, 0, &err));
}

/* `depth` arrays or objects, one in the other. */
static void
put_nested(struct buf *out, int depth, const char *open, const char *close)
{
	buf_clear(out);
	for (int i = 0; i < depth; i++)
		buf_puts(out, open);
	buf_puts(out, "1");
	for (int i = 0; i < depth; i++)
		buf_puts(out, close);
}

static void
test_nesting_is_accepted_to_the_limit_and_no_further(void **state)
{
	static const char *const pairs[][2] = { { "[", "]" },
		{ "{\"a\":", "}" }, { "[0,", ",0]" } };
	struct buf text = { 0 };
	struct json_slice value;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		put_nested(&text, JSON_MAX_DEPTH, pairs[i][0], pairs[i][1]);
		value = check(text.data, text.len);
		assert_int_equal(value.len, text.len);

		put_nested(&text, JSON_MAX_DEPTH + 1, pairs[i][0], pairs[i][1]);
		assert_int_equal(
		    -1, json_check(&value, text.data, text.len, &err));
		assert_non_null(strstr(err.text, "nested too deep"));
	}
	buf_fini(&text);
}

static void
test_brackets_are_matched_at_every_depth(void **state)
{
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < JSON_MAX_DEPTH / 2; i++)
		buf_puts(&text, "[{\"k\":");
	buf_puts(&text, "0");
	for (int i = 0; i < JSON_MAX_DEPTH / 2; i++)
		buf_puts(&text, "}]");
	(void)check(text.data, text.len);
	for (size_t i = text.len - JSON_MAX_DEPTH; i < text.len; i++) {
		char right = text.data[i];
		struct json_slice value;
		struct err err;

		text.data[i] = right == '}' ? ']' : '}';
		if (json_check(&value, text.data, text.len, &err) == 0)
			fail_msg("a wrong bracket at byte %zu passed", i);
		text.data[i] = right;
	}
	buf_fini(&text);
}

static void
assert_slice(
    const struct json_slice *slice, enum json_kind kind, const char *text)
{
	assert_int_equal(slice->kind, kind);
	assert_int_equal(slice->len, strlen(text));
	assert_memory_equal(slice->at, text, slice->len);
}

static void
test_members_come_in_order_with_their_very_bytes(void **state)
{
	struct json_slice object =
	    check(T(" { \"a\" : -1.50 ,\"}\\\"\":{\"x\":[\"]\\\\\"]},"
		    "\n\"a\":null,\"\":\"\" } "));
	struct json_slice key, value;
	size_t pos = 0;

	(void)state;
	assert_true(json_next_member(&object, &pos, &key, &value));
	assert_slice(&key, JSON_STRING, "\"a\"");
	assert_slice(&value, JSON_NUMBER, "-1.50");
	assert_true(json_next_member(&object, &pos, &key, &value));
	assert_slice(&key, JSON_STRING, "\"}\\\"\"");
	assert_slice(&value, JSON_OBJECT, "{\"x\":[\"]\\\\\"]}");
	assert_true(json_next_member(&object, &pos, &key, &value));
	assert_slice(&value, JSON_NULL, "null");
	assert_true(json_next_member(&object, &pos, &key, &value));
	assert_slice(&key, JSON_STRING, "\"\"");
	assert_slice(&value, JSON_STRING, "\"\"");
	assert_false(json_next_member(&object, &pos, &key, &value));
	assert_false(json_next_member(&object, &pos, &key, &value));
}

static void
test_elements_come_in_order_with_their_very_bytes(void **state)
{
	struct json_slice array = check(T("[true,[1,[2]] , \"]\",1e400]"));
	struct json_slice value;
	size_t pos = 0;

	(void)state;
	assert_true(json_next_element(&array, &pos, &value));
	assert_slice(&value, JSON_BOOL, "true");
	assert_true(json_next_element(&array, &pos, &value));
	assert_slice(&value, JSON_ARRAY, "[1,[2]]");
	assert_true(json_next_element(&array, &pos, &value));
	assert_slice(&value, JSON_STRING, "\"]\"");
	assert_true(json_next_element(&array, &pos, &value));
	assert_slice(&value, JSON_NUMBER, "1e400");
	assert_false(json_next_element(&array, &pos, &value));
	assert_false(json_next_element(&array, &pos, &value));
}

static void
test_what_is_empty_has_no_members_and_no_elements(void **state)
{
	struct json_slice object = check(T("{ \n}"));
	struct json_slice array = check(T("[]"));
	struct json_slice key, value;
	size_t pos = 0;

	(void)state;
	assert_false(json_next_member(&object, &pos, &key, &value));
	pos = 0;
	assert_false(json_next_element(&array, &pos, &value));
}

/* What was accepted has a canonical form, which is JSON too. */
static void
use(const struct json_slice *value)
{
	struct buf out = { 0 };

	json_canonical(&out, value);
	(void)check(out.data, out.len);
	buf_fini(&out);
}

static void
run_file(const char *folder, const char *name)
{
	char path[1024];
	struct buf text = { 0 };
	struct json_slice value;
	struct err err;
	FILE *file;
	int c;
	bool accepted;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	while ((c = getc(file)) != EOF)
		buf_add(&text, &(char){ (char)c }, 1);
	(void)fclose(file);

	accepted = json_check(&value, text.data, text.len, &err) == 0;
	if (name[0] == 'y' && !accepted)
		fail_msg("%s: %s", name, err.text);
	if (name[0] == 'n' && accepted)
		fail_msg("%s: accepted", name);
	if (accepted)
		use(&value);
	buf_fini(&text);
}

static void
test_the_published_suite_is_judged_as_it_asks(void **state)
{
	const char *data = getenv("POSTRIDER_TEST_DATA");
	char folder[512];
	const struct dirent *entry;
	int files = 0;
	DIR *dir;

	(void)state;
	(void)snprintf(folder, sizeof(folder), "%s/json", data ? data : "");
	dir = data != NULL ? opendir(folder) : NULL;
	if (dir == NULL) {
		print_message("POSTRIDER_TEST_DATA has no json/: skipped\n");
		skip();
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (strchr("yni", entry->d_name[0]) == NULL ||
		    entry->d_name[1] != '_')
			continue;
		run_file(folder, entry->d_name);
		files++;
	}
	(void)closedir(dir);
	print_message("%d files\n", files);
	assert_true(files > 0);
}

/* A string of 24 letters with one byte in place of the `at`th. */
static size_t
string_with(char out[32], unsigned char byte, size_t at)
{
	memset(out, 'x', 26);
	out[0] = out[25] = '"';
	out[1 + at] = (char)byte;
	return 26;
}

static void
test_a_byte_is_judged_alike_wherever_it_stands(void **state)
{
	struct json_slice value;
	struct err err;
	char text[32];

	(void)state;
	for (int byte = 0; byte < 256; byte++)
		for (size_t at = 0; at < 24; at++) {
			size_t len = string_with(text, (unsigned char)byte, at);
			bool is_fine = byte >= ' ' && byte < 0x80 &&
			               byte != '"' && byte != '\\';

			if ((json_check(&value, text, len, &err) == 0) !=
			    is_fine)
				fail_msg("%02x at %zu", byte, at);
		}
}

static void
test_a_string_ends_at_the_quote_that_is_not_escaped(void **state)
{
	/* Backslashes in pairs, and an odd one before a quote. */
	static const char text[] =
	    "[\"\",\"\\\\\",\"\\\"\",\"a\\\\\\\"b\",\"\\\\\\\\\"]";
	static const size_t lens[] = { 2, 4, 4, 8, 6 };
	struct json_slice array = check(T(text)), element;
	size_t pos = 0, n = 0;

	(void)state;
	while (json_next_element(&array, &pos, &element))
		assert_int_equal(element.len, lens[n++]);
	assert_int_equal(n, sizeof(lens) / sizeof(lens[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_is_accepted_and_its_bytes_are_kept),
		cmocka_unit_test(
		    test_what_is_not_json_is_refused_with_the_place_and_the_reason),
		cmocka_unit_test(test_no_text_at_all_is_refused),
		cmocka_unit_test(
		    test_nesting_is_accepted_to_the_limit_and_no_further),
		cmocka_unit_test(test_brackets_are_matched_at_every_depth),
		cmocka_unit_test(
		    test_members_come_in_order_with_their_very_bytes),
		cmocka_unit_test(
		    test_elements_come_in_order_with_their_very_bytes),
		cmocka_unit_test(
		    test_what_is_empty_has_no_members_and_no_elements),
		cmocka_unit_test(test_the_published_suite_is_judged_as_it_asks),
		cmocka_unit_test(
		    test_a_byte_is_judged_alike_wherever_it_stands),
		cmocka_unit_test(
		    test_a_string_ends_at_the_quote_that_is_not_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
