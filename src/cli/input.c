#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "input.h"

/* Read what is left, up to `most` octets. */
static int
read_all(struct buf *out, int fd, size_t most)
{
	ssize_t n;

	do {
		size_t room = most - out->len;
		char *at = buf_grow(out, room);

		if (at == NULL)
			return -1;
		n = read(fd, at, room);
		out->len -= room - (n > 0 ? (size_t)n : 0);
	} while (n > 0 && out->len < most);
	return n < 0 ? -1 : 0;
}

int
input_read(struct buf *out, const char *path, size_t max, struct err *err)
{
	bool is_input = strcmp(path, "-") == 0;
	const char *name = is_input ? "standard input" : path;
	int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	int result = 0;

	if (fd < 0 || read_all(out, fd, max + 1) != 0)
		result = err_errno(err, ERR_REFUSED, "%s", name);
	else if (out->len > max)
		result = err_set(
		    err, ERR_REFUSED, "%s: more than %zu octets", name, max);
	if (fd >= 0 && !is_input)
		(void)close(fd);
	return result;
}
