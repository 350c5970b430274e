#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/err.h"
#include "command.h"
#include "out.h"
#include "core/seal.h"

enum {
	LINE = 2 * SEAL_KEY + 1, /* a key's hex digits and a newline */
	TEXT_MAX = SEAL_KEYS_MAX * LINE,
};

/* What is to be in the file. */
struct text {
	char bytes[TEXT_MAX + 1];
	size_t len;
};

static void
add_line(struct text *text, const unsigned char key[SEAL_KEY])
{
	char *at = text->bytes + text->len;

	for (int i = 0; i < SEAL_KEY; i++)
		(void)snprintf(&at[2 * i], 3, "%02x", key[i]);
	at[LINE - 1] = '\n';
	text->len += LINE;
}

static int
add_new_key(struct text *text, struct err *err)
{
	unsigned char key[SEAL_KEY];

	if (RAND_priv_bytes(key, sizeof(key)) != 1)
		return err_set(err, ERR_RETRY, "no random bytes for a key");
	add_line(text, key);
	OPENSSL_cleanse(key, sizeof(key));
	return 0;
}

/* The keys that are in the file now. */
static int
add_old_keys(struct text *text, const char *path, struct err *err)
{
	struct seal_ring ring;
	int result = seal_ring_read(&ring, path, err);

	if (result == 0 && ring.n == SEAL_KEYS_MAX)
		result = err_set(err, ERR_REFUSED,
		    "%s holds %d keys, and no more fit: take out those that "
		    "nothing is sealed under",
		    path, SEAL_KEYS_MAX);
	for (size_t i = 0; result == 0 && i < ring.n; i++)
		add_line(text, ring.keys[i].bytes);
	seal_ring_fini(&ring);
	return result;
}

/* Make a file that was not there, for us alone; -1. */
static int
open_new(const char *path, struct err *err)
{
	int fd = open(
	    path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);

	if (fd < 0)
		return err_errno(err, ERR_REFUSED, "%s", path);
	return fd;
}

/* Write it and close it.  `like` is whose mode and owner it gets, unless NULL.
 */
static int
write_close(int fd, const char *path, const struct text *text,
    const struct stat *like, struct err *err)
{
	bool ok = write(fd, text->bytes, text->len) == (ssize_t)text->len;

	if (ok && like != NULL)
		ok = fchown(fd, like->st_uid, like->st_gid) == 0 &&
		     fchmod(fd, like->st_mode & ALLPERMS) == 0;
	ok = ok && fsync(fd) == 0;
	if (close(fd) != 0 || !ok)
		return err_errno(err, ERR_RETRY, "%s", path);
	return 0;
}

/* A name is on disk once its folder is. */
static int
sync_folder(const char *path, struct err *err)
{
	char copy[PATH_MAX];
	int fd;
	bool ok;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = fd >= 0 && fsync(fd) == 0;
	if (!ok)
		(void)err_errno(err, ERR_RETRY, "the folder of %s", path);
	if (fd >= 0)
		(void)close(fd);
	return ok ? 0 : -1;
}

static int
make(struct text *text, const char *path, struct err *err)
{
	int fd;

	if (add_new_key(text, err) != 0)
		return -1;
	fd = open_new(path, err);
	if (fd < 0)
		return -1;
	if (write_close(fd, path, text, NULL, err) != 0) {
		(void)unlink(path);
		return -1;
	}
	return sync_folder(path, err);
}

/* Fill the file beside `path`, `fd`, and close it. */
static int
fill(struct text *text, const char *path, const char *beside, int fd,
    struct err *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		(void)err_errno(err, ERR_REFUSED, "%s", path);
	else if (add_new_key(text, err) == 0 &&
		 add_old_keys(text, path, err) == 0)
		return write_close(fd, beside, text, &st, err);
	(void)close(fd);
	return -1;
}

/*
 * Put a new key before those in the file at `path`.  At no time is there less
 * in it than before.  While there is a file beside it, nobody else reads what
 * is to be replaced.
 */
static int
add(struct text *text, const char *path, struct err *err)
{
	char beside[PATH_MAX];
	int n = snprintf(beside, sizeof(beside), "%s.new", path);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(beside))
		return err_set(err, ERR_REFUSED, "%s: too long a name", path);
	fd = open_new(beside, err);
	if (fd < 0)
		return err_wrap(err,
		    "another keygen is at it, or was killed and left this");
	if (fill(text, path, beside, fd, err) != 0) {
		(void)unlink(beside);
		return -1;
	}
	if (rename(beside, path) != 0) {
		(void)err_errno(err, ERR_RETRY, "%s", path);
		(void)unlink(beside);
		return -1;
	}
	return sync_folder(path, err);
}

/* `path` with links followed: what is replaced is the file, not a link to it.
 */
static int
add_to(struct text *text, const char *path, struct err *err)
{
	char *real = realpath(path, NULL);
	int result;

	if (real == NULL)
		return err_errno(err, ERR_REFUSED, "%s", path);
	result = add(text, real, err);
	free(real);
	return result;
}

enum status
cmd_keygen(const struct call *call, struct err *err)
{
	const char *path = call->operand;
	bool is_added = command_value(call, "add") != NULL;
	struct text text = { .len = 0 };
	struct out out;
	int result;

	result = is_added ? add_to(&text, path, err) : make(&text, path, err);
	OPENSSL_cleanse(&text, sizeof(text));
	if (result != 0)
		return STATUS_FAILED;
	if (command_value(call, "json") != NULL) {
		out_init(&out, OUT_RECORD, true);
		out_text(&out, "file", path);
		out_bool(&out, "added", is_added);
		out_end(&out);
		return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
	}
	if (is_added)
		(void)printf(
		    "Put a new key first in %s.  Give the file to every "
		    "dispatcher and\nrestart it, then to every ingest, and "
		    "run `postrider rekey`.\n",
		    path);
	else
		(void)printf(
		    "Wrote a new key to %s.  Every ingest and dispatcher "
		    "needs this file;\nwithout it the stored secrets are "
		    "lost.\n",
		    path);
	return STATUS_DONE;
}
