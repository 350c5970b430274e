#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "core/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One that is taken is a text, and has a weight that its length bounds. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	int weight;

	if (filter_check(&weight, (const char *)data, size, &err) == 0) {
		assert(size >= strlen("$<1") && size <= FILTER_MAX);
		assert(memchr(data, '\0', size) == NULL);
		assert(weight >= 10 && (size_t)weight <= 6 * size);
	}
	return 0;
}
