/* utf8: one character of UTF-8, as RFC 3629 has it. */

#ifndef CORE_UTF8_H
#define CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The length of the well-formed character that the `left` bytes at `text`
 * begin with; 0 if it is cut short, overlong, a surrogate or past U+10FFFF.
 */
size_t utf8_len(const char *text, size_t left);

/* True if all of it is well-formed. */
bool utf8_is_valid(const char *text, size_t len);

/* Read the well-formed character at `*text`, and step over it. */
uint32_t utf8_get(const char **text);

/* Write `c` to `out`.  Returns how many bytes it took. */
size_t utf8_put(char out[4], uint32_t c);

#endif
