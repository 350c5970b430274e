#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"

#define DIGITS                                                                 \
	"00112233445566778899aabbccddeeff0123456789abcdefFEDCBA9876543210"

static const struct seal_key key = { .bytes =
					 "a key of thirty-two bytes, no 1" };
static const struct seal_key other = { .bytes =
					   "a key of thirty-two bytes, no 2" };

/* A sealed secret and what it takes to open it. */
struct sealed {
	struct buf bytes;
	unsigned char nonce[SEAL_NONCE];
};

static struct sealed
seal(int64_t owner, const void *secret, size_t len)
{
	struct sealed sealed = { 0 };
	struct err err;

	assert_int_equal(seal_close(&sealed.bytes, sealed.nonce, &key, owner,
			     secret, len, &err),
	    0);
	assert_int_equal(sealed.bytes.len, len + SEAL_TAG);
	return sealed;
}

static void
assert_does_not_open(
    const struct sealed *sealed, const struct seal_key *with, int64_t owner)
{
	struct buf out = { 0 };
	struct err err = { 0 };

	buf_puts(&out, "before");
	assert_int_equal(seal_open(&out, sealed->nonce, with, owner,
			     sealed->bytes.data, sealed->bytes.len, &err),
	    -1);
	assert_int_equal(err.code, ERR_BROKEN);
	assert_int_equal(out.len, strlen("before"));
	assert_string_equal(buf_text(&out), "before");
	buf_fini(&out);
}

static void
test_what_is_sealed_opens_to_the_same_bytes(void **state)
{
	static const struct {
		const char *label, *secret;
		size_t len;
	} rows[] = {
		{ "nothing", "", 0 },
		{ "one byte", "x", 1 },
		{ "with a NUL", "a\0b", 3 },
		{ "a usual secret", "0123456789abcdef01234567", 24 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sealed sealed = seal(7, rows[i].secret, rows[i].len);
		struct buf out = { 0 };
		struct err err;

		print_message("%s\n", rows[i].label);
		buf_puts(&out, "+");
		assert_int_equal(seal_open(&out, sealed.nonce, &key, 7,
				     sealed.bytes.data, sealed.bytes.len, &err),
		    0);
		assert_int_equal(out.len, 1 + rows[i].len);
		assert_memory_equal(out.data + 1, rows[i].secret, rows[i].len);
		buf_wipe(&out);
		buf_fini(&sealed.bytes);
	}
}

static void
test_no_two_seals_are_alike_or_show_the_secret(void **state)
{
	static const char secret[] = "the same secret twice";
	struct sealed a = seal(1, secret, sizeof(secret));
	struct sealed b = seal(1, secret, sizeof(secret));

	(void)state;
	assert_memory_not_equal(a.nonce, b.nonce, SEAL_NONCE);
	assert_memory_not_equal(a.bytes.data, b.bytes.data, sizeof(secret));
	assert_memory_not_equal(a.bytes.data, secret, sizeof(secret));
	buf_fini(&a.bytes);
	buf_fini(&b.bytes);
}

static void
test_another_key_does_not_open_it(void **state)
{
	struct sealed sealed = seal(1, "secret", 6);

	(void)state;
	assert_does_not_open(&sealed, &other, 1);
	buf_fini(&sealed.bytes);
}

static void
test_a_secret_moved_to_another_owner_does_not_open(void **state)
{
	struct sealed sealed = seal(1, "secret", 6);

	(void)state;
	assert_does_not_open(&sealed, &key, 2);
	assert_does_not_open(&sealed, &key, (int64_t)1 << 56);
	buf_fini(&sealed.bytes);
}

static void
test_every_changed_byte_is_noticed(void **state)
{
	struct sealed sealed = seal(1, "secret", 6);

	(void)state;
	for (size_t i = 0; i < sealed.bytes.len; i++) {
		sealed.bytes.data[i] ^= 1;
		assert_does_not_open(&sealed, &key, 1);
		sealed.bytes.data[i] ^= 1;
	}
	for (size_t i = 0; i < SEAL_NONCE; i++) {
		sealed.nonce[i] ^= 0x80;
		assert_does_not_open(&sealed, &key, 1);
		sealed.nonce[i] ^= 0x80;
	}
	buf_fini(&sealed.bytes);
}

static void
test_a_cut_or_impossible_length_does_not_open(void **state)
{
	struct sealed sealed = seal(1, "secret", 6);

	(void)state;
	while (sealed.bytes.len > 0) {
		sealed.bytes.len--;
		assert_does_not_open(&sealed, &key, 1);
	}
	sealed.bytes.len = SEAL_MAX + SEAL_TAG + 1;
	assert_does_not_open(&sealed, &key, 1);
	buf_fini(&sealed.bytes);
}

static void
test_a_secret_that_is_too_long_is_refused(void **state)
{
	static const char secret[SEAL_MAX + 1];
	struct sealed sealed = seal(1, secret, SEAL_MAX);
	struct buf out = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(seal_close(&out, sealed.nonce, &key, 1, secret,
			     sizeof(secret), &err),
	    -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_int_equal(out.len, 0);
	buf_fini(&sealed.bytes);
	buf_fini(&out);
}

/* Write `text` to a new file of this mode; its path is in `path`. */
static void
write_key(char path[], const char *text, mode_t mode)
{
	int fd = mkstemp(path);
	size_t len = strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

static void
test_a_key_is_64_hex_digits_in_a_file_of_ones_own(void **state)
{
	static const struct {
		const char *label, *text;
		mode_t mode;
		bool is_good;
	} rows[] = {
		{ "digits", DIGITS, 0600, true },
		{ "and a newline", DIGITS "\n", 0600, true },
		{ "read only", DIGITS, 0400, true },
		{ "for a group to read", DIGITS, 0640, true },
		{ "for a group to write", DIGITS, 0620, false },
		{ "for all to read", DIGITS, 0604, false },
		{ "for all to write", DIGITS, 0602, false },
		{ "empty", "", 0600, false },
		{ "a digit short", &DIGITS[1], 0600, false },
		{ "a digit more", DIGITS "0", 0600, false },
		{ "two newlines", DIGITS "\n\n", 0600, false },
		{ "a blank", " " DIGITS, 0600, false },
		{ "no hex", "g" DIGITS, 0600, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[] = "/tmp/test_seal.XXXXXX";
		struct seal_key read = { 0 };
		struct err err = { 0 };
		int result;

		print_message("%s\n", rows[i].label);
		write_key(path, rows[i].text, rows[i].mode);
		result = seal_key_read(&read, path, &err);
		(void)unlink(path);
		assert_int_equal(result, rows[i].is_good ? 0 : -1);
		if (rows[i].is_good) {
			assert_int_equal(read.bytes[1], 0x11);
			assert_int_equal(read.bytes[31], 0x10);
			assert_int_equal(strlen(read.id), SEAL_KEY_ID);
		} else {
			assert_int_equal(err.code, ERR_BROKEN);
			assert_null(strstr(err.text, "0011223344"));
		}
		seal_key_fini(&read);
	}
}

static void
test_a_key_that_is_not_there_is_a_broken_installation(void **state)
{
	struct seal_key read;
	struct err err;

	(void)state;
	assert_int_equal(seal_key_read(&read, "/nonexistent/key", &err), -1);
	assert_int_equal(err.code, ERR_BROKEN);
	assert_non_null(strstr(err.text, "/nonexistent/key"));
}

/* The id of the key in a file with `text`. */
static void
read_id(char id[SEAL_KEY_ID + 1], const char *text)
{
	char path[] = "/tmp/test_seal.XXXXXX";
	struct seal_key read;
	struct err err;

	write_key(path, text, 0600);
	assert_int_equal(seal_key_read(&read, path, &err), 0);
	(void)unlink(path);
	memcpy(id, read.id, sizeof(read.id));
}

static void
test_an_id_tells_keys_apart_and_is_the_same_each_time(void **state)
{
	char changed[] = DIGITS;
	char id[3][SEAL_KEY_ID + 1];

	(void)state;
	changed[0] = '1';
	read_id(id[0], DIGITS);
	read_id(id[1], DIGITS "\n");
	read_id(id[2], changed);
	assert_string_equal(id[0], id[1]);
	assert_string_not_equal(id[0], id[2]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_sealed_opens_to_the_same_bytes),
		cmocka_unit_test(
		    test_no_two_seals_are_alike_or_show_the_secret),
		cmocka_unit_test(test_another_key_does_not_open_it),
		cmocka_unit_test(
		    test_a_secret_moved_to_another_owner_does_not_open),
		cmocka_unit_test(test_every_changed_byte_is_noticed),
		cmocka_unit_test(test_a_cut_or_impossible_length_does_not_open),
		cmocka_unit_test(test_a_secret_that_is_too_long_is_refused),
		cmocka_unit_test(
		    test_a_key_is_64_hex_digits_in_a_file_of_ones_own),
		cmocka_unit_test(
		    test_a_key_that_is_not_there_is_a_broken_installation),
		cmocka_unit_test(
		    test_an_id_tells_keys_apart_and_is_the_same_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
