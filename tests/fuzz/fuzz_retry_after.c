#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/retry_after.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* 1970, 2026 and 2099. */
	static const usec_t nows[] = { 0, 1767225600 * USEC_PER_SEC,
		4070908800 * USEC_PER_SEC };
	char *value = malloc(size + 1);

	assert(value != NULL);
	if (size > 0)
		memcpy(value, data, size);
	value[size] = '\0';
	for (size_t i = 0; i < sizeof(nows) / sizeof(nows[0]); i++) {
		usec_t wait = retry_after_parse(value, nows[i]);

		assert(wait >= -1 && wait <= RETRY_AFTER_MAX);
	}
	free(value);
	return 0;
}
