/*
 * Any address: it is judged as a slow judge does, that goes bit by bit by
 * tables of its own.
 */

#include <assert.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../unit/special_ranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
	const struct special_range *rows;
	size_t n;
} tables[] = {
	{ iana4, LENGTH(iana4) },
	{ iana6, LENGTH(iana6) },
	{ unregistered, LENGTH(unregistered) },
};

/* The ends of ranges are where mistakes are: begin at one, and flip bits. */
static void
make_near(struct special_octets *out, const uint8_t *data, size_t size)
{
	size_t table = data[0] % LENGTH(tables);
	size_t row = data[1] % tables[table].n;

	(void)special_read(out, tables[table].rows[row].range);
	for (size_t i = 2; i < size && i < 6; i++) {
		int bit = data[i] % (out->size * 8);

		out->at[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

static enum address_kind
judge(const struct special_octets *octets)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	bool is_v4 = octets->size == 4;
	const char *why = NULL;
	enum address_kind kind;

	memcpy(&v4.sin_addr, octets->at, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, octets->at, sizeof(v6.sin6_addr));
	kind = address_judge(
	    is_v4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6,
	    &why);
	assert((kind == ADDRESS_GLOBAL) == (why == NULL));
	return kind;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct special_octets octets = { .size = 4 };

	if (size == 4 || size == 16) {
		octets.size = (int)size;
		memcpy(octets.at, data, size);
	} else if (size > 2) {
		make_near(&octets, data, size);
	}
	assert(judge(&octets) == special_judge(&octets));
	return 0;
}
