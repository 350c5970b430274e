#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is printed as it came, with the prefix. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sign_secret secret;
	struct buf out = { 0 };
	struct err err;

	if (sign_secret_parse(&secret, (const char *)data, size, &err) != 0) {
		assert(err.code == ERR_REFUSED);
		assert(secret.len == 0);
		return 0;
	}
	assert(secret.len >= SIGN_SECRET_MIN && secret.len <= SIGN_SECRET_MAX);
	sign_secret_print(&out, &secret);
	assert(out.len >= size);
	assert(memcmp(out.data + out.len - size, data, size) == 0);
	sign_secret_fini(&secret);
	buf_wipe(&out);
	return 0;
}
