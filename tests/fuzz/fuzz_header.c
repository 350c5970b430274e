#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One that may be sent is one line, and none of those that frame the request. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	if (header_name_fault(text, size) == NULL) {
		assert(size > 0 && size <= HEADER_NAME_MAX);
		for (size_t i = 0; i < size; i++)
			assert(
			    data[i] > ' ' && data[i] < 0x7f && data[i] != ':');
		assert(size != 4 || strncasecmp(text, "host", 4) != 0);
		assert(size < 8 || strncasecmp(text, "webhook-", 8) != 0);
		assert(size < 8 || strncasecmp(text, "content-", 8) != 0);
	}
	if (header_value_fault(text, size) == NULL) {
		assert(size > 0 && size <= HEADER_VALUE_MAX);
		assert(data[0] > ' ' && data[size - 1] > ' ');
		for (size_t i = 0; i < size; i++)
			assert((data[i] >= ' ' || data[i] == '\t') &&
			       data[i] < 0x7f);
	}
	return 0;
}
