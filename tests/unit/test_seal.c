#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"

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
			     "label", secret, len, &err),
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
	assert_int_equal(seal_open(&out, sealed->nonce, with, owner, "label",
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
		assert_int_equal(seal_open(&out, sealed.nonce, &key, 7, "label",
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
	assert_int_equal(seal_close(&out, sealed.nonce, &key, 1, "", secret,
			     sizeof(secret), &err),
	    -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_int_equal(out.len, 0);
	buf_fini(&sealed.bytes);
	buf_fini(&out);
}

/* What is the old form of a signing secret opens with an empty label. */
static void
test_what_was_sealed_before_there_were_labels_opens_with_none(void **state)
{
	static const unsigned char nonce[SEAL_NONCE] = { 1 };
	static const unsigned char sealed[] = { 0xe4, 0xe1, 0x0a, 0x47, 0xfd,
		0x08, 0x2e, 0x5d, 0xf2, 0xc7, 0x21, 0x9c, 0xe6, 0xc5, 0x3d,
		0x6b, 0x78, 0x14, 0x8d, 0xbc, 0x09, 0xd6 };
	struct buf out = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(
	    seal_open(&out, nonce, &key, 7, "", sealed, sizeof(sealed), &err),
	    0);
	assert_string_equal(buf_text(&out), "secret");
	buf_wipe(&out);
}

static void
test_a_secret_passed_off_as_another_kind_does_not_open(void **state)
{
	static const char *const labels[] = { "", "labe", "labell", "Label" };
	struct sealed sealed = seal(1, "secret", 6);
	struct buf out = { 0 };
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
		assert_int_equal(
		    seal_open(&out, sealed.nonce, &key, 1, labels[i],
			sealed.bytes.data, sealed.bytes.len, &err),
		    -1);
	assert_int_equal(out.len, 0);
	buf_fini(&sealed.bytes);
	buf_fini(&out);
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
		    test_what_was_sealed_before_there_were_labels_opens_with_none),
		cmocka_unit_test(
		    test_a_secret_passed_off_as_another_kind_does_not_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
