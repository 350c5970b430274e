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
#include "core/envelope.h"

#define X16 "xxxxxxxxxxxxxxxx"
#define X128 X16 X16 X16 X16 X16 X16 X16 X16
#define X256 X128 X128

/* 2026-01-02T03:04:05.678Z */
#define TIMESTAMP (1767323045678 * USEC_PER_MS + 999)

static struct envelope
parse(const char *text)
{
	struct envelope event;
	struct err err;

	if (envelope_parse(&event, text, strlen(text), NULL, &err) != 0)
		fail_msg("%s: %s", text, err.text);
	return event;
}

static void
test_an_event_is_taken_apart(void **state)
{
	static const char text[] =
	    " {\"data\" : { \"n\":1.0 } ,\"subscriptions\":[\"17\",\"3\","
	    "\"9223372036854775807\",\"\\u0031\\u0037\"],"
	    "\"type\":\"pump.inspection_due-2\",\"id\":\"a:B_9-\","
	    "\"asset\":\"order/4711 \xe2\x82\xac\"} ";
	struct envelope event = parse(text);

	(void)state;
	assert_string_equal(event.id, "a:B_9-");
	assert_string_equal(event.type, "pump.inspection_due-2");
	assert_string_equal(event.asset, "order/4711 \xe2\x82\xac");
	assert_int_equal(event.data.kind, JSON_OBJECT);
	assert_int_equal(event.data.len, strlen("{ \"n\":1.0 }"));
	assert_ptr_equal(event.data.at, strstr(text, "{ \"n\""));
	assert_int_equal(event.nsubscriptions, 3);
	assert_int_equal(event.subscriptions[0], 3);
	assert_int_equal(event.subscriptions[1], 17);
	assert_int_equal(event.subscriptions[2], INT64_MAX);
}

static void
test_what_is_optional_can_be_left_out(void **state)
{
	struct envelope event = parse("{\"type\":\"t\",\"data\":null}");

	(void)state;
	assert_string_equal(event.id, "");
	assert_string_equal(event.asset, "");
	assert_int_equal(event.data.kind, JSON_NULL);
	assert_int_equal(event.nsubscriptions, 0);
}

static void
test_an_asset_of_null_is_none(void **state)
{
	struct envelope event =
	    parse("{\"type\":\"t\",\"asset\":null,\"data\":1}");

	(void)state;
	assert_string_equal(event.asset, "");
}

/* Names, types and assets at their limits. */
static void
test_texts_are_accepted_to_their_limits(void **state)
{
	struct envelope event =
	    parse("{\"id\":\"" X128 "\",\"type\":\"" X256 "\",\"asset\":\""
		  "\\u0078" X128 X16 X16 X16 X16 X16 X16 X16
		  "xxxxxxxxxxxxxxx\",\"data\":1}");

	(void)state;
	assert_int_equal(strlen(event.id), ENVELOPE_ID_MAX);
	assert_int_equal(strlen(event.type), ENVELOPE_TYPE_MAX);
	assert_int_equal(strlen(event.asset), ENVELOPE_ASSET_MAX);
}

#define REST ",\"type\":\"t\",\"data\":1}"
#define TYPE(type) "{\"data\":1,\"type\":" type "}"
#define ASSET(asset) "{\"asset\":" asset REST
#define SUBSCRIPTIONS(ids) "{\"subscriptions\":" ids REST
#define IDS8 "\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\","

static const struct refusal {
	const char *text;
	const char *pointer;
	const char *why;
} refusals[] = {
	{ "", "", "JSON at byte 0" },
	{ "{", "", "JSON at byte 1" },
	{ "{\"type\":\"t\",\"data\":\"\\ud83d\"}", "", "other half" },
	{ "[]", "", "must be a JSON object" },
	{ "null", "", "must be a JSON object" },
	{ "{}", "/type", "type: is required" },
	{ "{\"data\":1}", "/type", "type: is required" },
	{ "{\"type\":\"t\"}", "/data", "data: is required" },
	{ "{\"typo\":1" REST, "", "unknown member \"typo\"" },
	{ "{\"Type\":1" REST, "", "unknown member \"Type\"" },
	{ "{\"\":1" REST, "", "unknown member \"\"" },
	{ "{\"asset\\u0000x\":\"a\"" REST, "",
	    "unknown member \"asset\\u0000x\"" },
	{ "{\"\xe2\x82\xac\x7f\":1" REST, "", "unknown member \"????\"" },
	{ "{\"" X256 "\":1" REST, "", "\"" X16 X16 "...\"" },
	{ "{\"id\":\"a\",\"id\":\"a\"" REST, "/id", "id: must not be rep" },
	{ "{\"id\":\"a\",\"\\u0069d\":\"b\"" REST, "/id", "must not be rep" },
	{ "{\"data\":1" REST, "/data", "data: must not be repeated" },
	{ "{\"asset\":null,\"asset\":null" REST, "/asset", "not be repeated" },
	{ "{\"id\":null" REST, "/id", "id: must be a string" },
	{ "{\"id\":7" REST, "/id", "id: must be a string" },
	{ "{\"id\":\"\"" REST, "/id", "1 to 128 bytes" },
	{ "{\"id\":\"x" X128 "\"" REST, "/id", "1 to 128 bytes" },
	{ "{\"id\":\"a.b\"" REST, "/id", "only letters" },
	{ "{\"id\":\"a b\"" REST, "/id", "only letters" },
	{ "{\"id\":\"a\xc3\xa9\"" REST, "/id", "only letters" },
	{ "{\"id\":\"a\\u0000b\"" REST, "/id", "control characters" },
	{ "{\"id\":\"a\\n\"" REST, "/id", "control characters" },
	{ TYPE("null"), "/type", "must be a string" },
	{ TYPE("[\"t\"]"), "/type", "must be a string" },
	{ TYPE("\"\""), "/type", "1 to 256 bytes" },
	{ TYPE("\"x" X256 "\""), "/type", "1 to 256 bytes" },
	{ TYPE("\".\""), "/type", "with dots between" },
	{ TYPE("\"a.\""), "/type", "with dots between" },
	{ TYPE("\".a\""), "/type", "with dots between" },
	{ TYPE("\"a..b\""), "/type", "with dots between" },
	{ TYPE("\"a b\""), "/type", "with dots between" },
	{ TYPE("\"a.*\""), "/type", "with dots between" },
	{ TYPE("\"a:b\""), "/type", "with dots between" },
	{ TYPE("\"\xc3\xa9\""), "/type", "with dots between" },
	{ TYPE("\"a\\u0000\""), "/type", "control characters" },
	{ TYPE("\"postrider.x\""), "/type", "Postrider's own" },
	{ TYPE("\"\\u0070ostrider.x.y\""), "/type", "Postrider's own" },
	{ ASSET("1"), "/asset", "must be a string" },
	{ ASSET("false"), "/asset", "must be a string" },
	{ ASSET("\"\""), "/asset", "1 to 256 bytes" },
	{ ASSET("\"x" X256 "\""), "/asset", "1 to 256 bytes" },
	{ ASSET("\"a\\u0000\""), "/asset", "control characters" },
	{ ASSET("\"a\\tb\""), "/asset", "control characters" },
	{ ASSET("\"\x7f\""), "/asset", "control characters" },
	{ ASSET("\"\\u0085\""), "/asset", "control characters" },
	{ ASSET("\"a\xc2\x9f\""), "/asset", "control characters" },
	{ SUBSCRIPTIONS("null"), "/subscriptions", "must be an array" },
	{ SUBSCRIPTIONS("\"17\""), "/subscriptions", "must be an array" },
	{ SUBSCRIPTIONS("[]"), "/subscriptions", "at least one" },
	{ SUBSCRIPTIONS("[17]"), "/subscriptions", "strings of digits" },
	{ SUBSCRIPTIONS("[\"1\",null]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"0\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"017\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"-17\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"+17\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\" 17\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"17 \"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"1.0\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"0x1\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"1\\u0000\"]"), "/subscriptions", "of digits" },
	{ SUBSCRIPTIONS("[\"9223372036854775808\"]"), "/subscriptions",
	    "of digits" },
	{ SUBSCRIPTIONS("[\"10000000000000000000\"]"), "/subscriptions",
	    "of digits" },
	{ SUBSCRIPTIONS("[" IDS8 IDS8 IDS8 IDS8 "\"1\"]"), "/subscriptions",
	    "more than 32" },
};

static void
test_what_is_no_event_is_refused_with_the_field_and_the_reason(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *row = &refusals[i];
		char pointer[ENVELOPE_POINTER_SIZE] = "untouched";
		struct envelope event;
		struct err err = { 0 };

		if (envelope_parse(&event, row->text, strlen(row->text),
			pointer, &err) == 0)
			fail_msg("accepted: %s", row->text);
		assert_int_equal(err.code, ERR_REFUSED);
		if (strstr(err.text, row->why) == NULL ||
		    strcmp(pointer, row->pointer) != 0)
			fail_msg("%s: \"%s\" at \"%s\"", row->text, err.text,
			    pointer);
	}
}

static void
test_thirty_two_subscriptions_are_sorted_and_each_once(void **state)
{
	struct buf text = { 0 };
	struct envelope event;

	(void)state;
	buf_puts(&text, "{\"subscriptions\":[");
	for (int i = 0; i < ENVELOPE_SUBSCRIPTIONS_MAX; i++)
		buf_printf(&text, "%s\"%d\"", i > 0 ? "," : "",
		    i * 13 % ENVELOPE_SUBSCRIPTIONS_MAX + 1);
	buf_puts(&text, "]" REST);
	event = parse(buf_text(&text));
	assert_int_equal(event.nsubscriptions, ENVELOPE_SUBSCRIPTIONS_MAX);
	for (size_t i = 0; i < event.nsubscriptions; i++)
		assert_int_equal(event.subscriptions[i], i + 1);
	buf_fini(&text);
}

#define A                                                                      \
	"{\"type\":\"t\",\"asset\":\"a\",\"data\":{\"x\":1,\"y\":"             \
	"\"\xc3\xa9\"}"

static const struct {
	const char *a, *b;
	bool same;
} repeats[] = {
	{ A "}", A "}", true },
	{ A "}", " " A " }\n", true },
	{ A "}", A ",\"id\":\"other\"}", true },
	{ A "}",
	    "{\"data\":{ \"y\" :\"\\u00E9\" , \"\\u0078\":1},"
	    "\"asset\":\"\\u0061\",\"type\":\"t\"}",
	    true },
	{ A ",\"subscriptions\":[\"1\",\"2\"]}",
	    A ",\"subscriptions\":[\"2\",\"1\",\"2\"]}", true },
	{ A "}", A ",\"subscriptions\":[\"1\"]}", false },
	{ A ",\"subscriptions\":[\"1\",\"2\"]}",
	    A ",\"subscriptions\":[\"12\"]}", false },
	{ "{\"type\":\"t\",\"data\":1}",
	    "{\"type\":\"t\",\"asset\":null,\"data\":1}", true },
	{ "{\"type\":\"t\",\"data\":1}", "{\"type\":\"u\",\"data\":1}", false },
	{ "{\"type\":\"t\",\"data\":1}",
	    "{\"type\":\"t\",\"asset\":\"null\",\"data\":1}", false },
	{ "{\"type\":\"t\",\"data\":1}", "{\"type\":\"t\",\"data\":1.0}",
	    false },
	{ "{\"type\":\"t\",\"data\":1}", "{\"type\":\"t\",\"data\":\"1\"}",
	    false },
	{ "{\"type\":\"t\",\"data\":[1,2]}", "{\"type\":\"t\",\"data\":[2,1]}",
	    false },
	{ "{\"type\":\"t\",\"data\":{\"a\":1,\"a\":2}}",
	    "{\"type\":\"t\",\"data\":{\"a\":2,\"a\":1}}", false },
	{ "{\"type\":\"t\",\"data\":\"\xc3\xa9\"}",
	    "{\"type\":\"t\",\"data\":\"e\xcc\x81\"}", false },
};

static void
test_a_repeat_is_known_by_its_content_and_not_by_its_spelling(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(repeats) / sizeof(repeats[0]); i++) {
		struct envelope a = parse(repeats[i].a);
		struct envelope b = parse(repeats[i].b);
		bool same = memcmp(a.fingerprint, b.fingerprint,
				ENVELOPE_FINGERPRINT) == 0;

		if (same != repeats[i].same)
			fail_msg("%s and %s", repeats[i].a, repeats[i].b);
	}
}

/*
 * Fingerprints are kept in the database, so that what they are made of may
 * never change: SHA-256 of ["t","a",{"x":1,"y":"é"},1,2].
 */
static void
test_fingerprints_are_the_same_for_ever(void **state)
{
	static const unsigned char known[ENVELOPE_FINGERPRINT] = { 0xc9, 0x65,
		0x59, 0x6d, 0x22, 0x51, 0x65, 0x30, 0x1c, 0x3b, 0x05, 0x04,
		0x32, 0xb6, 0x39, 0x18, 0xde, 0x7c, 0xdd, 0x73, 0x5b, 0x8f,
		0x83, 0xbe, 0x86, 0x45, 0x8f, 0xc6, 0x89, 0x49, 0xd8, 0x0b };
	struct envelope event = parse(A ",\"subscriptions\":[\"2\",\"1\"]}");

	(void)state;
	assert_memory_equal(event.fingerprint, known, sizeof(known));
}

static void
assert_body(const char *text, const char *expected)
{
	struct envelope event = parse(text);
	struct json_slice whole;
	struct buf body = { 0 };
	struct err err;

	envelope_body(&body, &event, TIMESTAMP);
	assert_string_equal(buf_text(&body), expected);
	assert_int_equal(0, json_check(&whole, body.data, body.len, &err));
	buf_fini(&body);
}

#define TIME "\"timestamp\":\"2026-01-02T03:04:05.678Z\""

static void
test_the_body_has_all_and_in_the_one_order(void **state)
{
	(void)state;
	assert_body("{\"data\":[1],\"asset\":\"a\\\"\\u20ac\\\\\",\"id\":\"i\","
		    "\"type\":\"t\",\"subscriptions\":[\"1\"]}",
	    "{\"id\":\"i\",\"type\":\"t\",\"asset\":"
	    "\"a\\\"\xe2\x82\xac\\\\\"," TIME ",\"data\":[1]}");
	assert_body("{\"data\":{},\"id\":\"i\",\"type\":\"t\"}",
	    "{\"id\":\"i\",\"type\":\"t\"," TIME ",\"data\":{}}");
}

static void
test_data_is_sent_byte_for_byte(void **state)
{
	static const char *const datas[] = {
		"136.0",
		"0.0",
		"1E2",
		"-0",
		"9007199254740993",
		"18446744073709551616",
		"123456789012345678901234567890",
		"1e400",
		"-1e-400",
		"{ \"b\" : 1,\n\t\"a\":2 , \"b\":3 }",
		"\"x\\u0000y\"",
		"\"\\ud83d\\udca9 \xf0\x9f\x92\xa9 \xe2\x80\xa8\"",
		"\"\xc3\xa9 e\xcc\x81 \\/ \\u00e9 \x7f\"",
		"[[],{},\"\",null,true,false]",
	};
	char text[256], expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(datas) / sizeof(datas[0]); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"id\":\"i\",\"type\":\"t\",\"data\": %s }", datas[i]);
		(void)snprintf(expected, sizeof(expected),
		    "{\"id\":\"i\",\"type\":\"t\"," TIME ",\"data\":%s}",
		    datas[i]);
		assert_body(text, expected);
	}
}

static void
test_ids_of_our_own_are_valid_and_differ(void **state)
{
	struct envelope one = parse("{\"type\":\"t\",\"data\":1}");
	struct envelope two = one;
	char text[256];
	struct err err;

	(void)state;
	assert_int_equal(0, envelope_make_id(&one, &err));
	assert_int_equal(0, envelope_make_id(&two, &err));
	assert_int_equal(strlen(one.id), 36);
	assert_memory_equal(one.id, "evt_", 4);
	assert_int_equal(strspn(one.id + 4, "0123456789abcdef"), 32);
	assert_string_not_equal(one.id, two.id);

	(void)snprintf(text, sizeof(text), "{\"id\":\"%s\"" REST, one.id);
	two = parse(text);
	assert_string_equal(one.id, two.id);
}

/* Real payloads, one event a line. */
static void
test_real_events_are_accepted(void **state)
{
	const char *data = getenv("POSTRIDER_TEST_DATA");
	char path[512];
	char *line = NULL;
	size_t cap = 0;
	int events = 0;
	FILE *file;

	(void)state;
	(void)snprintf(
	    path, sizeof(path), "%s/events/github.ndjson", data ? data : "");
	file = data != NULL ? fopen(path, "r") : NULL;
	if (file == NULL) {
		print_message("POSTRIDER_TEST_DATA has no events: skipped\n");
		skip();
		return;
	}
	while (getline(&line, &cap, file) > 0) {
		struct envelope event = parse(line);
		struct buf body = { 0 };

		envelope_body(&body, &event, TIMESTAMP);
		assert_true(body.len > event.data.len);
		assert_memory_equal(body.data + body.len - 1 - event.data.len,
		    event.data.at, event.data.len);
		buf_fini(&body);
		events++;
	}
	free(line);
	(void)fclose(file);
	print_message("%d events\n", events);
	assert_true(events > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_event_is_taken_apart),
		cmocka_unit_test(test_what_is_optional_can_be_left_out),
		cmocka_unit_test(test_an_asset_of_null_is_none),
		cmocka_unit_test(test_texts_are_accepted_to_their_limits),
		cmocka_unit_test(
		    test_what_is_no_event_is_refused_with_the_field_and_the_reason),
		cmocka_unit_test(
		    test_thirty_two_subscriptions_are_sorted_and_each_once),
		cmocka_unit_test(
		    test_a_repeat_is_known_by_its_content_and_not_by_its_spelling),
		cmocka_unit_test(test_fingerprints_are_the_same_for_ever),
		cmocka_unit_test(test_the_body_has_all_and_in_the_one_order),
		cmocka_unit_test(test_data_is_sent_byte_for_byte),
		cmocka_unit_test(test_ids_of_our_own_are_valid_and_differ),
		cmocka_unit_test(test_real_events_are_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
