#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Visit all of a value, which must lie inside the value around it. */
static void
walk(const struct json_slice *value)
{
	struct json_slice key, item;
	struct buf out = { 0 };
	size_t pos = 0;

	if (value->kind == JSON_STRING) {
		json_unescape(&out, value);
		assert(json_compare(value, value) == 0);
	} else if (value->kind == JSON_OBJECT) {
		while (json_next_member(value, &pos, &key, &item)) {
			assert(item.at + item.len < value->at + value->len);
			walk(&key);
			walk(&item);
		}
	} else if (value->kind == JSON_ARRAY) {
		while (json_next_element(value, &pos, &item)) {
			assert(item.at + item.len < value->at + value->len);
			walk(&item);
		}
	}
	buf_fini(&out);
}

/* The canonical form is JSON, no longer, and its own canonical form. */
static void
check_canonical(const struct json_slice *value)
{
	struct buf once = { 0 }, twice = { 0 };
	struct json_slice again;
	struct err err;

	json_canonical(&once, value);
	assert(once.len <= value->len);
	assert(json_check(&again, once.data, once.len, &err) == 0);
	assert(again.kind == value->kind);
	json_canonical(&twice, &again);
	assert(once.len == twice.len);
	assert(memcmp(once.data, twice.data, once.len) == 0);
	buf_fini(&once);
	buf_fini(&twice);
}

/* Whatever the bytes, they can be quoted. */
static void
check_quote(const char *text, size_t len)
{
	struct json_slice string;
	struct buf out = { 0 };
	struct err err;

	json_quote(&out, text, len);
	assert(json_check(&string, out.data, out.len, &err) == 0);
	assert(string.kind == JSON_STRING);
	buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct json_slice value;
	struct err err;

	check_quote(text, size);
	if (json_check(&value, text, size, &err) == 0) {
		walk(&value);
		check_canonical(&value);
	} else {
		assert(err.code == ERR_REFUSED);
	}
	return 0;
}
