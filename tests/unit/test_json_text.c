#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

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

static const char *
canonical(struct buf *out, const char *text, size_t len)
{
	struct json_slice value = check(text, len);

	buf_clear(out);
	json_canonical(out, &value);
	assert_false(out->failed);
	return buf_text(out);
}

static void
test_unescaping_gives_the_characters_meant(void **state)
{
	static const char meant[] = "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac"
				    "\xf0\x9f\x92\xa9\0z";
	struct json_slice string =
	    check(T("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac"
		    "\\uD83D\\udca9\\u0000z\""));
	struct buf out = { 0 };

	(void)state;
	json_unescape(&out, &string);
	assert_int_equal(out.len, sizeof(meant) - 1);
	assert_memory_equal(out.data, meant, out.len);
	buf_fini(&out);
}

static void
test_a_key_is_a_name_only_if_it_is_all_of_it(void **state)
{
	static const struct {
		const char *key;
		const char *name;
		bool is;
	} rows[] = {
		{ "\"asset\"", "asset", true },
		{ "\"\\u0061sset\"", "asset", true },
		{ "\"\\u0061\\u0073\\u0073\\u0065\\u0074\"", "asset", true },
		{ "\"asset\\u0000x\"", "asset", false },
		{ "\"\\u0000\"", "", false },
		{ "\"a\\u0000b\"", "a\0b", false },
		{ "\"asse\"", "asset", false },
		{ "\"assets\"", "asset", false },
		{ "\"Asset\"", "asset", false },
		{ "\"\"", "", true },
		{ "\"\"", "asset", false },
		{ "\"\\u20ac\"", "\xe2\x82\xac", true },
		{ "\"\\u20ac\"", "\xe2\x82", false },
		{ "\"\\\\\"", "\\", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_slice key = check(rows[i].key, strlen(rows[i].key));

		if (json_is(&key, rows[i].name) != rows[i].is)
			fail_msg("%s, \"%s\"", rows[i].key, rows[i].name);
	}
}

static void
test_strings_sort_by_the_utf_8_of_what_they_stand_for(void **state)
{
	/* Each below the next, and equal to itself spelled otherwise. */
	static const char *const rows[][2] = {
		{ "\"\"", "\"\"" },
		{ "\"\\u0000\"", "\"\\u0000\"" },
		{ "\" \"", "\"\\u0020\"" },
		{ "\"#\"", "\"\\u0023\"" }, /* beside the quote */
		{ "\"A\"", "\"\\u0041\"" },
		{ "\"Aa\"", "\"\\u0041a\"" },
		{ "\"a\"", "\"\\u0061\"" },
		{ "\"\xc3\xa9\"", "\"\\u00e9\"" },
		{ "\"\xef\xbf\xbd\"", "\"\\ufffd\"" },
		{ "\"\xf0\x9f\x92\xa9\"", "\"\\ud83d\\udca9\"" },
	};
	size_t n = sizeof(rows) / sizeof(rows[0]);

	(void)state;
	for (size_t i = 0; i < 4 * n * n; i++) {
		size_t left = i / 2 % n, right = i / 2 / n % n;
		const char *a = rows[left][i % 2];
		const char *b = rows[right][i / (2 * n * n)];
		struct json_slice key_a = check(a, strlen(a));
		struct json_slice key_b = check(b, strlen(b));
		int order = json_compare(&key_a, &key_b);

		if ((order > 0) - (order < 0) !=
		    (left > right) - (left < right))
			fail_msg("%s and %s: %d", a, b, order);
	}
}

static void
test_quoting_is_short_and_always_valid(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *quoted;
	} rows[] = {
		{ T(""), "\"\"" },
		{ T("a/b \x7f"), "\"a/b \x7f\"" },
		{ T("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"" },
		{ T("\0\x01\x1f"), "\"\\u0000\\u0001\\u001f\"" },
		{ T("\xf0\x9f\x92\xa9"), "\"\xf0\x9f\x92\xa9\"" },
		{ T("a\xff\xe2\x82z"),
		    "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"" },
		{ T("\xed\xa0\x80"),
		    "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
	};
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&out);
		json_quote(&out, rows[i].text, rows[i].len);
		assert_string_equal(buf_text(&out), rows[i].quoted);
		(void)check(out.data, out.len);
	}
	buf_clear(&out);
	json_quote(&out, NULL, 0);
	assert_string_equal(buf_text(&out), "\"\"");
	buf_fini(&out);
}

static void
test_the_canonical_form_forgets_spelling_and_keeps_meaning(void **state)
{
	static const struct {
		const char *text;
		const char *canonical;
	} rows[] = {
		{ " [ 1 , 1.0 , -0 , 1e400 , 1E2 ] ", "[1,1.0,-0,1e400,1E2]" },
		{ "{\"b\":1,\"a\":{\"d\":2,\"c\":3}}",
		    "{\"a\":{\"c\":3,\"d\":2},\"b\":1}" },
		{ "{\"a\":1,\"b\":2,\"\\u0061\":3,\"a\":0}",
		    "{\"a\":1,\"a\":3,\"a\":0,\"b\":2}" },
		{ "{\"\\ud83d\\ude00\":1,\"\xef\xbf\xbd\":2}",
		    "{\"\xef\xbf\xbd\":2,\"\xf0\x9f\x98\x80\":1}" },
		{ "{\"ab\":1,\"a\":2,\"\":3,\"a\\u0000\":4}",
		    "{\"\":3,\"a\":2,\"a\\u0000\":4,\"ab\":1}" },
		{ "\"\\u002f\\/\\u0022\\u000A\\u001F\"",
		    "\"//\\\"\\n\\u001f\"" },
		{ "{ }", "{}" },
		{ "[ [ ] , { } , null , true , false ]",
		    "[[],{},null,true,false]" },
	};
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(rows[i].canonical,
		    canonical(&out, rows[i].text, strlen(rows[i].text)));
	buf_fini(&out);
}

static void
put_many_keys(struct buf *out)
{
	buf_puts(out, "{");
	for (int i = 0; i < 10000; i++)
		buf_printf(out, "%s\"%x\":0", i > 0 ? "," : "",
		    (unsigned)(i * 7919 % 10000));
	buf_puts(out, "}");
}

/* Deep on the left, so that the outer levels are long. */
static void
put_deep_and_long(struct buf *out)
{
	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		buf_puts(out, "{\"\\u0061\":");
	buf_puts(out, "\"");
	for (int i = 0; i < 60000; i++)
		buf_puts(out, "x");
	buf_puts(out, "\"");
	for (int i = 0; i < JSON_MAX_DEPTH; i++)
		buf_puts(out, "}");
}

static void
put_escapes(struct buf *out)
{
	buf_puts(out, "[\"");
	for (int i = 0; i < 10000; i++)
		buf_puts(out, "\\u0001");
	buf_puts(out, "\"]");
}

static void
put_long_keys(struct buf *out)
{
	buf_puts(out, "{");
	for (int i = 0; i < 100; i++) {
		buf_puts(out, i > 0 ? ",\"\\u0061" : "\"\\u0061");
		for (int j = 0; j < 600; j++)
			buf_puts(out, "k");
		buf_printf(out, "%02d\":0", 99 - i);
	}
	buf_puts(out, "}");
}

static void
test_hostile_texts_get_their_canonical_form_in_little_time(void **state)
{
	static void (*const makers[])(struct buf *) = { put_many_keys,
		put_deep_and_long, put_escapes, put_long_keys };
	struct buf text = { 0 }, once = { 0 }, twice = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		clock_t start = clock();
		double seconds;

		buf_clear(&text);
		makers[i](&text);
		(void)canonical(&once, text.data, text.len);
		(void)canonical(&twice, once.data, once.len);
		assert_string_equal(buf_text(&once), buf_text(&twice));
		assert_true(once.len <= text.len);

		/* Milliseconds; anything quadratic would take many seconds. */
		seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
		if (seconds > 1)
			fail_msg("maker %zu: %.1f s", i, seconds);
	}
	buf_fini(&text);
	buf_fini(&once);
	buf_fini(&twice);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unescaping_gives_the_characters_meant),
		cmocka_unit_test(test_a_key_is_a_name_only_if_it_is_all_of_it),
		cmocka_unit_test(
		    test_strings_sort_by_the_utf_8_of_what_they_stand_for),
		cmocka_unit_test(test_quoting_is_short_and_always_valid),
		cmocka_unit_test(
		    test_the_canonical_form_forgets_spelling_and_keeps_meaning),
		cmocka_unit_test(
		    test_hostile_texts_get_their_canonical_form_in_little_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
