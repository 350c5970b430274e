#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"

#define KEY "00112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210"
#define OTHER "10112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210"
#define LOWER "00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210"

/* From SHA-256 of its bytes, by another program. */
#define KEY_ID "fee4349a190ef128"

/* Read a file of `mode` with this text. */
static int
read_text(struct seal_ring *out, const char *text, mode_t mode, struct err *err)
{
	char path[] = "/tmp/test_seal_ring.XXXXXX";
	int fd = mkstemp(path);
	size_t len = strlen(text);
	int result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
	result = seal_ring_read(out, path, err);
	(void)unlink(path);
	return result;
}

static void
test_a_key_is_64_hex_digits_on_a_line(void **state)
{
	static const struct {
		const char *label, *text;
		size_t nkeys; /* 0: refused */
		const char *why;
	} rows[] = {
		{ "digits", KEY, 1, "" },
		{ "and a newline", KEY "\n", 1, "" },
		{ "two keys", KEY "\n" OTHER "\n", 2, "" },
		{ "the last without a newline", KEY "\n" OTHER, 2, "" },
		{ "empty", "", 0, "is empty" },
		{ "a digit short", &KEY[1], 0, "line 1" },
		{ "a digit more", KEY "0", 0, "line 1" },
		{ "an empty line", KEY "\n\n" OTHER, 0, "line 2" },
		{ "an empty line at the end", KEY "\n\n", 0, "line 2" },
		{ "a blank", " " KEY, 0, "line 1" },
		{ "a carriage return", KEY "\r\n", 0, "line 1" },
		{ "no hex", "g" OTHER, 0, "line 1" },
		{ "no hex inside", KEY "\n" OTHER "g", 0, "line 2" },
		{ "twice the same", KEY "\n" OTHER "\n" KEY, 0, "line 3" },
		{ "the same in lower case", KEY "\n" LOWER, 0, KEY_ID },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seal_ring ring;
		struct err err = { 0 };
		int result = read_text(&ring, rows[i].text, 0600, &err);

		print_message("%s\n", rows[i].label);
		assert_int_equal(result, rows[i].nkeys > 0 ? 0 : -1);
		assert_int_equal(ring.n, rows[i].nkeys);
		if (result == 0)
			continue;
		assert_int_equal(err.code, ERR_BROKEN);
		assert_non_null(strstr(err.text, "test_seal_ring."));
		assert_non_null(strstr(err.text, rows[i].why));
		assert_null(strstr(err.text, "0112233445"));
		for (size_t at = 0; at < sizeof(ring); at++)
			assert_int_equal(((char *)&ring)[at], 0);
	}
}

static void
test_nobody_else_may_read_or_change_the_file(void **state)
{
	const struct {
		mode_t mode;
		bool is_good;
	} rows[] = {
		{ 0600, true },
		{ 0400, true },
		{ 0640, geteuid() == 0 }, /* root's, for a group */
		{ 0440, geteuid() == 0 },
		{ 0620, false },
		{ 0604, false },
		{ 0602, false },
		{ 0644, false },
		{ 0601, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seal_ring ring;
		struct err err = { 0 };
		int result = read_text(&ring, KEY, rows[i].mode, &err);

		print_message("%o\n", rows[i].mode);
		assert_int_equal(result, rows[i].is_good ? 0 : -1);
		if (!rows[i].is_good)
			assert_non_null(strstr(err.text, "chmod 600"));
	}
}

static void
test_what_is_no_file_is_a_broken_installation(void **state)
{
	char folder[] = "/tmp/test_seal_ring.XXXXXX";
	struct seal_ring ring;
	struct err err;

	(void)state;
	assert_int_equal(seal_ring_read(&ring, "/nonexistent/key", &err), -1);
	assert_int_equal(err.code, ERR_BROKEN);
	assert_non_null(strstr(err.text, "/nonexistent/key"));

	assert_non_null(mkdtemp(folder));
	assert_int_equal(seal_ring_read(&ring, folder, &err), -1);
	assert_non_null(strstr(err.text, "not a file"));

	/* Nor does anyone wait for its other end. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkfifo(folder, 0600), 0);
	assert_int_equal(seal_ring_read(&ring, folder, &err), -1);
	assert_non_null(strstr(err.text, "not a file"));
	assert_int_equal(unlink(folder), 0);
}

static void
test_a_ring_has_room_for_so_many_and_no_more(void **state)
{
	struct buf text = { 0 };
	struct seal_ring ring;
	struct err err;

	(void)state;
	for (int i = 0; i < SEAL_KEYS_MAX; i++)
		buf_printf(&text, "%02x%s\n", i, &KEY[2]);
	assert_int_equal(read_text(&ring, buf_text(&text), 0600, &err), 0);
	assert_int_equal(ring.n, SEAL_KEYS_MAX);
	assert_int_equal(
	    ring.keys[SEAL_KEYS_MAX - 1].bytes[0], SEAL_KEYS_MAX - 1);

	buf_puts(&text, "ff");
	buf_puts(&text, &KEY[2]);
	assert_int_equal(read_text(&ring, buf_text(&text), 0600, &err), -1);
	assert_non_null(strstr(err.text, "more than 16 keys"));
	buf_fini(&text);
}

static void
test_keys_are_found_by_their_ids(void **state)
{
	struct seal_ring ring;
	struct err err;

	(void)state;
	assert_int_equal(read_text(&ring, KEY "\n" OTHER "\n", 0600, &err), 0);
	assert_string_equal(ring.keys[0].id, KEY_ID);
	assert_int_equal(ring.keys[0].bytes[1], 0x11);
	assert_int_equal(ring.keys[0].bytes[31], 0x10);
	assert_ptr_equal(seal_ring_find(&ring, KEY_ID), &ring.keys[0]);
	assert_ptr_equal(seal_ring_find(&ring, ring.keys[1].id), &ring.keys[1]);
	assert_string_not_equal(ring.keys[0].id, ring.keys[1].id);
	assert_null(seal_ring_find(&ring, ""));
	assert_null(seal_ring_find(&ring, "0123456789abcdef"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_key_is_64_hex_digits_on_a_line),
		cmocka_unit_test(test_nobody_else_may_read_or_change_the_file),
		cmocka_unit_test(test_what_is_no_file_is_a_broken_installation),
		cmocka_unit_test(test_a_ring_has_room_for_so_many_and_no_more),
		cmocka_unit_test(test_keys_are_found_by_their_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
