#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/private_file.h"

static int
check(int fd, const char *what, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return err_errno(err, ERR_BROKEN, "%s %s", what, path);
	if (!S_ISREG(st.st_mode))
		return err_set(
		    err, ERR_BROKEN, "%s %s is not a file", what, path);
	if ((st.st_mode & (S_IRWXO | S_IWGRP)) != 0 ||
	    ((st.st_mode & S_IRGRP) != 0 && st.st_uid != 0))
		return err_set(err, ERR_BROKEN,
		    "%s %s: others may read or change it; chmod 600 it", what,
		    path);
	return 0;
}

int
private_file_open(const char *what, const char *path, struct err *err)
{
	/* Without waiting for a pipe's other end. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return err_errno(err, ERR_BROKEN, "%s %s", what, path);
	if (check(fd, what, path, err) == 0)
		return fd;
	(void)close(fd);
	return -1;
}
