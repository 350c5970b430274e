#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

enum { FIRST_CAP = 256, MAX_CAP = 1 << 30 };

void
buf_fini(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ 0 };
}

void
buf_wipe(struct buf *buf)
{
	if (buf->data != NULL)
		explicit_bzero(buf->data, buf->cap);
	buf_fini(buf);
}

void
buf_clear(struct buf *buf)
{
	buf->len = 0;
	buf->failed = false;
}

/* Make room by moving, with the old bytes wiped: they may be a secret's. */
static bool
reserve(struct buf *buf, size_t n)
{
	size_t cap = buf->cap == 0 ? FIRST_CAP : buf->cap;
	char *data;

	if (buf->failed)
		return false;
	if (n <= buf->cap - buf->len)
		return true;
	if (n > MAX_CAP - buf->len)
		goto fail;
	while (cap - buf->len < n)
		cap *= 2;
	data = malloc(cap);
	if (data == NULL)
		goto fail;
	if (buf->len > 0)
		memcpy(data, buf->data, buf->len);
	if (buf->data != NULL)
		explicit_bzero(buf->data, buf->len);
	free(buf->data);
	buf->data = data;
	buf->cap = cap;
	return true;

fail:
	buf->failed = true;
	return false;
}

void
buf_reserve(struct buf *buf, size_t n)
{
	(void)reserve(buf, n);
}

char *
buf_grow(struct buf *buf, size_t n)
{
	char *at;

	if (!reserve(buf, n))
		return NULL;
	at = buf->data + buf->len;
	buf->len += n;
	return at;
}

void
buf_add(struct buf *buf, const void *bytes, size_t n)
{
	char *at;

	if (n == 0)
		return;
	at = buf_grow(buf, n);
	if (at != NULL)
		memcpy(at, bytes, n);
}

void
buf_puts(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void
buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0 || !reserve(buf, (size_t)n + 1)) {
		buf->failed = true;
		return;
	}
	va_start(args, format);
	(void)vsnprintf(buf->data + buf->len, (size_t)n + 1, format, args);
	va_end(args);
	buf->len += (size_t)n;
}

static void
add_be(struct buf *buf, uint64_t value, size_t n)
{
	char *at = buf_grow(buf, n);

	if (at == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		at[i] = (char)(unsigned char)(value >> (8 * (n - 1 - i)));
}

void
buf_be16(struct buf *buf, uint16_t value)
{
	add_be(buf, value, sizeof(value));
}

void
buf_be32(struct buf *buf, uint32_t value)
{
	add_be(buf, value, sizeof(value));
}

void
buf_be64(struct buf *buf, uint64_t value)
{
	add_be(buf, value, sizeof(value));
}

const char *
buf_text(struct buf *buf)
{
	if (!reserve(buf, 1))
		return "";
	buf->data[buf->len] = '\0';
	return buf->data;
}
