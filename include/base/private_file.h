/* private_file: files that hold secrets, and that nobody else may read. */

#ifndef BASE_PRIVATE_FILE_H
#define BASE_PRIVATE_FILE_H

struct err;

/*
 * Open `path` to read it: a descriptor for the caller to close, or -1.
 * ERR_BROKEN if it cannot be opened, is no regular file, or may be read or
 * changed by others: only root's own file may let its group read it.  `what`
 * names the file in the error's text: "key file".
 */
int private_file_open(const char *what, const char *path, struct err *err);

#endif
