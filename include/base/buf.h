/*
 * buf: bytes that grow.
 *
 * Appending never fails at the call: `failed` is set when memory runs out or
 * the limit of 1 GiB is passed, and stays set, so that a builder checks once
 * at its end.  A zeroed struct is an empty buffer.
 */

#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* not NUL-terminated; use buf_text() for that */
	size_t len;
	size_t cap;
	bool failed;
};

/* Free the bytes; the buffer is empty and usable again. */
void buf_fini(struct buf *buf);

/* As buf_fini(), with the bytes wiped first: for secrets. */
void buf_wipe(struct buf *buf);

/* Forget the content, keep the memory. */
void buf_clear(struct buf *buf);

/* Take memory for `n` more bytes at once, where more than one is to come. */
void buf_reserve(struct buf *buf, size_t n);

/* Room for `n` more bytes, whose content is undefined; NULL when failed. */
char *buf_grow(struct buf *buf, size_t n);

void buf_add(struct buf *buf, const void *bytes, size_t n);
void buf_puts(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Big-endian integers, as PostgreSQL's binary format has them. */
void buf_be16(struct buf *buf, uint16_t value);
void buf_be32(struct buf *buf, uint32_t value);
void buf_be64(struct buf *buf, uint64_t value);

/*
 * The content as a NUL-terminated string, valid until the next change; ""
 * when failed, so check `failed` first where that matters.
 */
const char *buf_text(struct buf *buf);

#endif
