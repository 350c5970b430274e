#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"

enum { MAX_DIGITS = 18 };

/* The value of `name` and its length; NULL if it is not there. */
static const char *
find(const char *query, const char *name, size_t *len)
{
	size_t n = strlen(name), item;

	for (const char *p = query; *p != '\0'; p += item) {
		p += strspn(p, "&");
		item = strcspn(p, "&");
		if (strncmp(p, name, n) == 0 && p[n] == '=' && n < item) {
			*len = item - n - 1;
			return p + n + 1;
		}
	}
	return NULL;
}

static int
hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = strchr(digits, tolower((unsigned char)c));

	return c == '\0' || at == NULL ? -1 : (int)(at - digits);
}

/* The octet that `*p` begins with, moving it on; 0 if it is no escape. */
static char
unescape(const char **p)
{
	int high, low;

	if (**p != '%')
		return *(*p)++;
	high = hex_digit((*p)[1]);
	low = high < 0 ? -1 : hex_digit((*p)[2]);
	*p += 3;
	return low < 0 ? '\0' : (char)(high * 16 + low);
}

int
query_text(char *out, size_t size, const char *query, const char *name)
{
	const char *p, *end;
	size_t len = 0, used = 0;

	p = find(query, name, &len);
	if (p == NULL)
		return 0;
	for (end = p + len; p < end; used++) {
		if (used + 1 >= size)
			return -1;
		out[used] = unescape(&p);
		/* Control characters are in no path and no event id. */
		if (!isprint((unsigned char)out[used]))
			return -1;
	}
	out[used] = '\0';
	return 1;
}

int
query_number(int64_t *out, int64_t max, const char *query, const char *name)
{
	char text[MAX_DIGITS + 1];
	int found = query_text(text, sizeof(text), query, name);
	long long value;

	if (found != 1)
		return found;
	if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
		return -1;
	value = strtoll(text, NULL, 10);
	if (value > max)
		return -1;
	*out = value;
	return 1;
}
