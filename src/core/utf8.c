#include "core/utf8.h"

/* How long a character is that begins with `lead`; 0 if none does. */
static size_t
lead_len(unsigned char lead)
{
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2)
		return 0;
	if (lead < 0xe0)
		return 2;
	if (lead < 0xf0)
		return 3;
	return lead < 0xf5 ? 4 : 0;
}

size_t
utf8_len(const char *text, size_t left)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n = left > 0 ? lead_len(at[0]) : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;

	/* What the lead allows but Unicode does not shows in the second. */
	switch (at[0]) {
	case 0xe0:
		return at[1] >= 0xa0 ? n : 0;
	case 0xed:
		return at[1] < 0xa0 ? n : 0;
	case 0xf0:
		return at[1] >= 0x90 ? n : 0;
	case 0xf4:
		return at[1] < 0x90 ? n : 0;
	default:
		return n;
	}
}

bool
utf8_is_valid(const char *text, size_t len)
{
	while (len > 0) {
		size_t n = utf8_len(text, len);

		if (n == 0)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

uint32_t
utf8_get(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	size_t n = lead_len(at[0]);
	uint32_t c = n == 1 ? at[0] : at[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (at[i] & 0x3f);
	*text += n;
	return c;
}

size_t
utf8_put(char out[4], uint32_t c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	out[0] = (char)(marks[n] | c);
	return n;
}
