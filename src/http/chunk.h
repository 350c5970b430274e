/*
 * chunk: the chunked coding of RFC 9112 7.1, as bytes come.
 *
 * Pure.  Extensions and trailers are checked, counted and dropped: nothing in
 * them means anything here, and a stranger must not make them long.
 */

#ifndef HTTP_CHUNK_H
#define HTTP_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "head.h"

struct buf;

enum {
	CHUNK_DIGITS_MAX = 16, /* of one size */
	CHUNK_EXTRA_MAX = 4096, /* octets of all extensions and trailers */
};

enum chunk_state {
	CHUNK_SIZE, /* before the first digit */
	CHUNK_DIGITS,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LINE, /* at the start of a trailer, or of the last line */
	CHUNK_NAME,
	CHUNK_VALUE,
	CHUNK_VALUE_LF,
	CHUNK_LAST_LF,
	CHUNK_END, /* the body is whole */
};

/* Zeroed to begin with. */
struct chunk {
	enum chunk_state state;
	uint64_t left; /* octets of the present chunk to come */
	int digits;
	size_t extra;
};

/*
 * Decode `bytes`, adding data to `body`, until they are used up, the body is
 * whole or something is wrong.  `*used` is how many were taken.  A body of
 * more than `max` octets is refused at the size that says so.
 */
struct refusal chunk_read(struct chunk *chunk, const char *bytes, size_t len,
    size_t *used, struct buf *body, size_t max);

#endif
