#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../../src/pg/batch.h"

static const struct param *
last_param(const struct pg_batch *batch)
{
	return batch_param(batch, batch->params.len / sizeof(struct param) - 1);
}

static void
put_int(struct pg_batch *batch)
{
	pg_int(batch, -2);
}

static void
put_bigint(struct pg_batch *batch)
{
	pg_bigint(batch, INT64_C(0x0102030405060708));
}

static void
put_smallest(struct pg_batch *batch)
{
	pg_bigint(batch, INT64_MIN);
}

static void
put_true(struct pg_batch *batch)
{
	pg_bool(batch, true);
}

static void
put_false(struct pg_batch *batch)
{
	pg_bool(batch, false);
}

static void
put_text(struct pg_batch *batch)
{
	pg_text(batch, "pump");
}

static void
put_empty_text(struct pg_batch *batch)
{
	pg_text(batch, "");
}

static void
put_bytes(struct pg_batch *batch)
{
	pg_bytes(batch, "a\0b", 3);
}

static void
put_texts(struct pg_batch *batch)
{
	pg_array(batch, PG_TEXT);
	pg_text(batch, "ab");
	pg_text(batch, "");
	pg_array_end(batch);
}

static void
put_ints_with_null(struct pg_batch *batch)
{
	pg_array(batch, PG_INT);
	pg_int(batch, 7);
	pg_null(batch);
	pg_array_end(batch);
}

static void
put_null_text_in_array(struct pg_batch *batch)
{
	pg_array(batch, PG_TEXT);
	pg_text(batch, NULL);
	pg_array_end(batch);
}

static void
put_bigints(struct pg_batch *batch)
{
	pg_array(batch, PG_BIGINT);
	pg_bigint(batch, 1);
	pg_array_end(batch);
}

static void
put_bools(struct pg_batch *batch)
{
	pg_array(batch, PG_BOOL);
	pg_bool(batch, true);
	pg_array_end(batch);
}

static void
put_uuids(struct pg_batch *batch)
{
	pg_array(batch, PG_UUID);
	pg_bytes(batch, "0123456789abcdef", 16);
	pg_array_end(batch);
}

static void
put_byteas(struct pg_batch *batch)
{
	pg_array(batch, PG_BYTEA);
	pg_bytes(batch, "\0", 1);
	pg_array_end(batch);
}

static void
put_no_bytes_in_array(struct pg_batch *batch)
{
	pg_array(batch, PG_BYTEA);
	pg_array_end(batch);
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *label;
	void (*put)(struct pg_batch *batch);
	const char *bytes;
	size_t len;
} encodings[] = {
	{ "integer", put_int, BYTES("\xff\xff\xff\xfe") },
	{ "bigint", put_bigint, BYTES("\1\2\3\4\5\6\7\10") },
	{ "the smallest bigint", put_smallest, BYTES("\x80\0\0\0\0\0\0\0") },
	{ "true", put_true, BYTES("\1") },
	{ "false", put_false, BYTES("\0") },
	{ "text, without a NUL at its end", put_text, BYTES("pump") },
	{ "empty text, which is not null", put_empty_text, BYTES("") },
	{ "bytes with a NUL", put_bytes, BYTES("a\0b") },
	{ "text[]", put_texts,
	    BYTES("\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\2\0\0\0\1"
		  "\0\0\0\2ab\0\0\0\0") },
	{ "integer[] with a null", put_ints_with_null,
	    BYTES("\0\0\0\1\0\0\0\1\0\0\0\x17\0\0\0\2\0\0\0\1"
		  "\0\0\0\4\0\0\0\7\xff\xff\xff\xff") },
	{ "text[] of a NULL", put_null_text_in_array,
	    BYTES("\0\0\0\1\0\0\0\1\0\0\0\x19\0\0\0\1\0\0\0\1"
		  "\xff\xff\xff\xff") },
	{ "bigint[]", put_bigints,
	    BYTES("\0\0\0\1\0\0\0\0\0\0\0\x14\0\0\0\1\0\0\0\1"
		  "\0\0\0\10\0\0\0\0\0\0\0\1") },
	{ "boolean[]", put_bools,
	    BYTES("\0\0\0\1\0\0\0\0\0\0\0\x10\0\0\0\1\0\0\0\1"
		  "\0\0\0\1\1") },
	{ "uuid[]", put_uuids,
	    BYTES("\0\0\0\1\0\0\0\0\0\0\x0b\x86\0\0\0\1\0\0\0\1"
		  "\0\0\0\x10"
		  "0123456789abcdef") },
	{ "bytea[]", put_byteas,
	    BYTES("\0\0\0\1\0\0\0\0\0\0\0\x11\0\0\0\1\0\0\0\1"
		  "\0\0\0\1\0") },
	{ "empty array, which has no dimension", put_no_bytes_in_array,
	    BYTES("\0\0\0\0\0\0\0\0\0\0\0\x11") },
};

static void
test_values_are_in_the_binary_format(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(encodings) / sizeof(encodings[0]); i++) {
		struct pg_batch *batch = pg_batch_new();
		const struct param *param;

		pg_call(batch, 0);
		pg_int(batch, 1); /* so that offsets are not all 0 */
		encodings[i].put(batch);
		param = last_param(batch);
		if ((size_t)param->len != encodings[i].len ||
		    memcmp(batch->bytes.data + param->at, encodings[i].bytes,
			encodings[i].len) != 0)
			fail_msg("%s", encodings[i].label);
		assert_int_equal(batch_op(batch, 0)->nparams, 2);
		assert_int_equal(batch->bytes.len, 4 + encodings[i].len);
		pg_batch_free(batch);
	}
}

static void
test_a_null_has_no_bytes(void **state)
{
	struct pg_batch *batch = pg_batch_new();

	(void)state;
	pg_call(batch, 0);
	pg_null(batch);
	assert_int_equal(last_param(batch)->len, -1);
	pg_text(batch, NULL);
	assert_int_equal(last_param(batch)->len, -1);
	assert_int_equal(batch->bytes.len, 0);
	pg_batch_free(batch);
}

static void
test_each_call_has_its_own_parameters(void **state)
{
	struct pg_batch *batch = pg_batch_new();

	(void)state;
	pg_call(batch, 3);
	pg_int(batch, 1);
	pg_text(batch, "two");
	pg_call(batch, 5);
	assert_false(batch->commits);
	pg_commit(batch);
	pg_call(batch, 4);
	pg_int(batch, 3);

	assert_int_equal(batch_count(batch), 4);
	assert_int_equal(batch->ncalls, 3);
	assert_int_equal(batch_op(batch, 0)->statement, 3);
	assert_int_equal(batch_op(batch, 0)->first_param, 0);
	assert_int_equal(batch_op(batch, 0)->nparams, 2);
	assert_int_equal(batch_op(batch, 1)->nparams, 0);
	assert_int_equal(batch_op(batch, 2)->kind, OP_COMMIT);
	assert_int_equal(batch_op(batch, 3)->first_param, 2);
	assert_int_equal(batch_op(batch, 3)->nparams, 1);
	assert_true(batch->commits);
	pg_batch_free(batch);
}

static void
test_many_values_keep_their_places(void **state)
{
	struct pg_batch *batch = pg_batch_new();

	(void)state;
	for (int i = 0; i < 5000; i++) {
		pg_call(batch, i);
		pg_int(batch, i);
	}
	for (int i = 0; i < 5000; i++) {
		const struct op *op = batch_op(batch, (size_t)i);
		const struct param *param = batch_param(batch, op->first_param);

		assert_int_equal(op->statement, i);
		assert_int_equal(param->at, i * 4);
		assert_int_equal(
		    (unsigned char)batch->bytes.data[param->at + 3], i & 0xff);
	}
	assert_false(batch_failed(batch));
	pg_batch_free(batch);
}

/* A length past every limit fails before a byte of it is read. */
static void
test_a_failure_sticks_and_what_follows_is_harmless(void **state)
{
	struct pg_batch *batch = pg_batch_new();

	(void)state;
	pg_call(batch, 0);
	assert_false(batch_failed(batch));
	pg_bytes(batch, "", ((size_t)1 << 30) + 1);
	assert_true(batch_failed(batch));
	pg_int(batch, 1);
	pg_array(batch, PG_TEXT);
	pg_text(batch, "x");
	pg_array_end(batch);
	pg_commit(batch);
	assert_true(batch_failed(batch));
	pg_batch_free(batch);
}

static void
test_a_failure_inside_an_array_sticks(void **state)
{
	struct pg_batch *batch = pg_batch_new();

	(void)state;
	pg_call(batch, 0);
	pg_array(batch, PG_BYTEA);
	pg_bytes(batch, "", SIZE_MAX / 2);
	pg_array_end(batch);
	assert_true(batch_failed(batch));
	pg_batch_free(batch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_in_the_binary_format),
		cmocka_unit_test(test_a_null_has_no_bytes),
		cmocka_unit_test(test_each_call_has_its_own_parameters),
		cmocka_unit_test(test_many_values_keep_their_places),
		cmocka_unit_test(
		    test_a_failure_sticks_and_what_follows_is_harmless),
		cmocka_unit_test(test_a_failure_inside_an_array_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
