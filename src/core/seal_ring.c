#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/err.h"
#include "base/private_file.h"
#include "core/seal.h"

enum {
	DIGITS = 2 * SEAL_KEY,
	LINE = DIGITS + 1,
	FILE_MAX = SEAL_KEYS_MAX * LINE,
};

/* A file's text, and where it comes from for what is said of it. */
struct source {
	const char *path;
	char text[FILE_MAX + 1]; /* one more shows that it is too long */
	size_t len;
};

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int
parse_key(struct seal_key *out, const char *text, size_t len)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (len != DIGITS)
		return -1;
	for (size_t i = 0; i < SEAL_KEY; i++) {
		int high = hex_value(text[2 * i]);
		int low = hex_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		out->bytes[i] = (unsigned char)(high << 4 | low);
	}
	if (EVP_Digest(
		out->bytes, SEAL_KEY, digest, NULL, EVP_sha256(), NULL) != 1)
		return -1;
	for (size_t i = 0; i < SEAL_KEY_ID / 2; i++)
		(void)snprintf(&out->id[2 * i], 3, "%02x", digest[i]);
	return 0;
}

static int
parse_line(struct seal_ring *ring, const struct source *source,
    const char *text, size_t len, struct err *err)
{
	struct seal_key key;
	int line = (int)ring->n + 1;
	int result = -1;

	if (ring->n == SEAL_KEYS_MAX)
		(void)err_set(err, ERR_BROKEN,
		    "key file %s: more than %d keys; drop those that nothing "
		    "is sealed under",
		    source->path, SEAL_KEYS_MAX);
	else if (parse_key(&key, text, len) != 0)
		(void)err_set(err, ERR_BROKEN,
		    "key file %s, line %d: want %d hex digits, as `postrider "
		    "keygen` writes them",
		    source->path, line, DIGITS);
	else if (seal_ring_find(ring, key.id) != NULL)
		(void)err_set(err, ERR_BROKEN,
		    "key file %s, line %d: this key (%s) is there already",
		    source->path, line, key.id);
	else {
		ring->keys[ring->n++] = key;
		result = 0;
	}
	OPENSSL_cleanse(&key, sizeof(key));
	return result;
}

static int
parse(struct seal_ring *out, const struct source *source, struct err *err)
{
	const char *at = source->text, *end = source->text + source->len;

	if (source->len == 0)
		return err_set(err, ERR_BROKEN,
		    "key file %s is empty: make a new one with `postrider "
		    "keygen`, or restore it",
		    source->path);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline == NULL ? end : newline) - at);

		if (parse_line(out, source, at, len, err) != 0)
			return -1;
		at += len + 1;
	}
	return 0;
}

static int
read_file(struct source *source, int fd, struct err *err)
{
	size_t room;
	ssize_t n;

	while ((room = sizeof(source->text) - source->len) > 0) {
		n = read(fd, source->text + source->len, room);
		if (n < 0 && errno != EINTR)
			return err_errno(
			    err, ERR_BROKEN, "key file %s", source->path);
		if (n == 0)
			return 0;
		source->len += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int
seal_ring_read(struct seal_ring *out, const char *path, struct err *err)
{
	struct source source = { .path = path };
	int fd = private_file_open("key file", path, err);
	int result = -1;

	*out = (struct seal_ring){ 0 };
	if (fd < 0)
		return -1;
	if (read_file(&source, fd, err) == 0 && parse(out, &source, err) == 0)
		result = 0;
	if (result != 0)
		seal_ring_fini(out);
	OPENSSL_cleanse(&source, sizeof(source));
	(void)close(fd);
	return result;
}

const struct seal_key *
seal_ring_find(const struct seal_ring *ring, const char *key_id)
{
	for (size_t i = 0; i < ring->n; i++)
		if (strcmp(ring->keys[i].id, key_id) == 0)
			return &ring->keys[i];
	return NULL;
}

void
seal_ring_fini(struct seal_ring *ring)
{
	OPENSSL_cleanse(ring, sizeof(*ring));
}
