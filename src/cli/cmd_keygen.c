#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/err.h"
#include "command.h"
#include "core/seal.h"

enum { LINE = 2 * SEAL_KEY + 1 }; /* its hex digits and a newline */

static int
make_line(char line[LINE + 1], struct err *err)
{
	unsigned char key[SEAL_KEY];

	if (RAND_bytes(key, sizeof(key)) != 1)
		return err_set(err, ERR_RETRY, "no random bytes for a key");
	for (int i = 0; i < SEAL_KEY; i++)
		(void)snprintf(&line[2 * i], 3, "%02x", key[i]);
	line[LINE - 1] = '\n';
	OPENSSL_cleanse(key, sizeof(key));
	return 0;
}

/* Write a file that was not there, and nothing but it. */
static int
write_new(const char *path, const char line[LINE], struct err *err)
{
	int fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	int ok;

	if (fd < 0)
		return err_errno(err, ERR_REFUSED, "%s", path);
	ok = write(fd, line, LINE) == LINE && fsync(fd) == 0;
	if (close(fd) != 0 || !ok) {
		(void)err_errno(err, ERR_RETRY, "%s", path);
		(void)unlink(path);
		return -1;
	}
	return 0;
}

enum status
cmd_keygen(const struct call *call, struct err *err)
{
	const char *path = call->operand;
	char line[LINE + 1];
	int result;

	result = make_line(line, err);
	if (result == 0)
		result = write_new(path, line, err);
	OPENSSL_cleanse(line, sizeof(line));
	if (result != 0)
		return STATUS_FAILED;
	(void)printf(
	    "Wrote a new key to %s.  Every ingest and dispatcher needs "
	    "this file;\nwithout it the stored secrets are lost.\n",
	    path);
	return STATUS_DONE;
}
