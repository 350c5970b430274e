/* input: a file that a command is given. */

#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <stddef.h>

struct buf;
struct err;

/* Append all of the file at `path`, of the standard input if it is "-".
 * ERR_REFUSED if that cannot be, or if it has more than `max` octets. */
int input_read(struct buf *out, const char *path, size_t max, struct err *err);

#endif
