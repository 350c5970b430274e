/*
 * text: what strangers wrote, made safe to store and to show.
 *
 * The result is valid UTF-8 of one line, which no terminal, browser or psql
 * obeys: nothing in it moves a cursor, changes the direction of what follows,
 * hides, or breaks the line.
 */

#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stddef.h>

/*
 * Copy up to `len` bytes at `from` into the `size` at `out`, as many whole
 * characters as fit, ended by a NUL.  Tabs and line ends become spaces; other
 * controls, invisible and invalid characters become U+FFFD.  Returns the
 * length without the NUL.
 */
size_t text_make_safe(char *out, size_t size, const char *from, size_t len);

#endif
