#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/text.h"
#include "core/utf8.h"

enum { REPLACEMENT = 0xfffd };

/* Sorted.  Characters that control, and such as take no place of their own. */
static const struct {
	uint32_t first, last;
} unsafe[] = {
	{ 0x00, 0x1f }, { 0x7f, 0x9f }, { 0xad, 0xad }, /* soft hyphen */
	{ 0x61c, 0x61c }, /* Arabic letter mark */
	{ 0x180e, 0x180e },
	{ 0x200b, 0x200f }, /* zero width; marks of direction */
	{ 0x2028, 0x202e }, /* line and paragraph ends; direction */
	{ 0x2060, 0x206f }, /* invisible operators; isolates of direction */
	{ 0xfdd0, 0xfdef }, /* noncharacters, as are the last two of a plane */
	{ 0xfeff, 0xfeff }, /* byte order mark */
	{ 0xfff0, 0xfffb }, /* interlinear annotation */
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff }, /* tags */
};

static bool
is_safe(uint32_t c)
{
	if ((c & 0xfffe) == 0xfffe)
		return false;
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++) {
		if (c < unsafe[i].first)
			return true;
		if (c <= unsafe[i].last)
			return false;
	}
	return true;
}

static bool
is_plain(char c)
{
	return c >= ' ' && c < 0x7f;
}

/* Read one character, or step over one byte that begins none. */
static uint32_t
next(const char **at, size_t left)
{
	uint32_t c;

	if (utf8_len(*at, left) == 0) {
		(*at)++;
		return REPLACEMENT;
	}
	c = utf8_get(at);
	if (c == '\t' || c == '\n' || c == '\r')
		return ' ';
	return is_safe(c) ? c : REPLACEMENT;
}

size_t
text_make_safe(char *out, size_t size, const char *from, size_t len)
{
	size_t used = 0;
	char one[4];

	while (len > 0) {
		const char *at = from;
		size_t n;

		/* Nearly all of nearly every text. */
		if (is_plain(*from) && used + 1 < size) {
			out[used++] = *from++;
			len--;
			continue;
		}
		n = utf8_put(one, next(&from, len));
		if (used + n >= size)
			break;
		memcpy(out + used, one, n);
		used += n;
		len -= (size_t)(from - at);
	}
	out[used] = '\0';
	return used;
}
