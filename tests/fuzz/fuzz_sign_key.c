#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is printed as it came. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sign_key key;
	struct buf out = { 0 };
	struct err err;

	if (sign_key_parse(&key, (const char *)data, size, &err) != 0) {
		assert(err.code == ERR_REFUSED);
		for (size_t i = 0; i < sizeof(key.bytes); i++)
			assert(key.bytes[i] == 0);
		return 0;
	}
	sign_key_print(&out, &key);
	assert(out.len == size);
	assert(memcmp(out.data, data, size) == 0);
	sign_key_fini(&key);
	buf_wipe(&out);
	return 0;
}
