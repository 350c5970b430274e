#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void
test_a_zeroed_buffer_is_empty_and_usable(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	assert_string_equal(buf_text(&buf), "");
	assert_int_equal(buf.len, 0);
	assert_false(buf.failed);
	buf_fini(&buf);
	buf_fini(&buf);
	buf_puts(&buf, "again");
	assert_string_equal(buf_text(&buf), "again");
	buf_fini(&buf);
}

static void
test_what_is_added_stays_through_growth(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	for (int i = 0; i < 10000; i++)
		buf_printf(&buf, "%d,", i % 10);
	assert_int_equal(buf.len, 20000);
	for (size_t i = 0; i < 10000; i++) {
		assert_int_equal(buf.data[2 * i], '0' + (int)(i % 10));
		assert_int_equal(buf.data[2 * i + 1], ',');
	}
	buf_fini(&buf);
}

static void
test_bytes_may_be_nul(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	buf_add(&buf, "a\0b", 3);
	buf_add(&buf, NULL, 0);
	buf_puts(&buf, "");
	assert_int_equal(buf.len, 3);
	assert_memory_equal(buf.data, "a\0b", 3);
	buf_fini(&buf);
}

static void
test_text_ends_where_the_content_does(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	/* Exactly full, so that the NUL needs more room. */
	while (buf.len == 0 || buf.len < buf.cap)
		buf_puts(&buf, "x");
	assert_int_equal(strlen(buf_text(&buf)), buf.len);
	buf_puts(&buf, "y");
	assert_int_equal(strlen(buf_text(&buf)), buf.len);
	buf_fini(&buf);
}

static void
test_integers_are_big_endian(void **state)
{
	static const unsigned char want[] = { 0xfe, 0xdc, 0x01, 0x23, 0x45,
		0x67, 0x80, 0, 0, 0, 0, 0, 0, 0xff };
	struct buf buf = { 0 };

	(void)state;
	buf_be16(&buf, 0xfedc);
	buf_be32(&buf, 0x01234567);
	buf_be64(&buf, 0x80000000000000ff);
	assert_int_equal(buf.len, sizeof(want));
	assert_memory_equal(buf.data, want, sizeof(want));
	buf_fini(&buf);
}

static void
test_clear_forgets_but_keeps_the_memory(void **state)
{
	struct buf buf = { 0 };
	const char *data;

	(void)state;
	buf_puts(&buf, "first");
	data = buf.data;
	buf_clear(&buf);
	assert_int_equal(buf.len, 0);
	buf_puts(&buf, "2nd");
	assert_ptr_equal(buf.data, data);
	assert_string_equal(buf_text(&buf), "2nd");
	buf_wipe(&buf);
	assert_null(buf.data);
	assert_int_equal(buf.cap, 0);
}

static void
test_failure_is_remembered_and_changes_nothing(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	buf_puts(&buf, "kept");
	assert_null(buf_grow(&buf, SIZE_MAX));
	assert_true(buf.failed);
	buf_puts(&buf, "lost");
	buf_be64(&buf, 1);
	buf_printf(&buf, "%d", 1);
	assert_true(buf.failed);
	assert_int_equal(buf.len, 4);
	assert_memory_equal(buf.data, "kept", 4);
	buf_clear(&buf);
	assert_false(buf.failed);
	buf_puts(&buf, "anew");
	assert_string_equal(buf_text(&buf), "anew");
	buf_fini(&buf);
}

static void
test_the_limit_is_a_failure_not_an_overflow(void **state)
{
	struct buf buf = { 0 };

	(void)state;
	buf_puts(&buf, "x");
	assert_null(buf_grow(&buf, (size_t)1 << 30));
	assert_true(buf.failed);
	assert_string_equal(buf_text(&buf), "");
	buf_fini(&buf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_zeroed_buffer_is_empty_and_usable),
		cmocka_unit_test(test_what_is_added_stays_through_growth),
		cmocka_unit_test(test_bytes_may_be_nul),
		cmocka_unit_test(test_text_ends_where_the_content_does),
		cmocka_unit_test(test_integers_are_big_endian),
		cmocka_unit_test(test_clear_forgets_but_keeps_the_memory),
		cmocka_unit_test(
		    test_failure_is_remembered_and_changes_nothing),
		cmocka_unit_test(test_the_limit_is_a_failure_not_an_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
