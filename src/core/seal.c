#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"

enum { KEY_DIGITS = 2 * SEAL_KEY, OWNER = 8 };

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
parse_key(unsigned char out[SEAL_KEY], const char *text, size_t len)
{
	if (len == KEY_DIGITS + 1 && text[KEY_DIGITS] == '\n')
		len--;
	if (len != KEY_DIGITS)
		return -1;
	for (size_t i = 0; i < SEAL_KEY; i++) {
		int high = hex_value(text[2 * i]);
		int low = hex_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

static int
set_id(struct seal_key *key)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (EVP_Digest(
		key->bytes, SEAL_KEY, digest, NULL, EVP_sha256(), NULL) != 1)
		return -1;
	for (int i = 0; i < SEAL_KEY_ID / 2; i++)
		(void)snprintf(&key->id[2 * i], 3, "%02x", digest[i]);
	return 0;
}

int
seal_key_read(struct seal_key *out, const char *path, struct err *err)
{
	char text[KEY_DIGITS + 2];
	struct stat st;
	ssize_t n = -1;
	int result = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, ERR_BROKEN, "key file %s", path);
	if (fstat(fd, &st) != 0) {
		(void)err_errno(err, ERR_BROKEN, "key file %s", path);
		goto fail;
	}
	if ((st.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
		(void)err_set(err, ERR_BROKEN,
		    "key file %s: others may read or change it; chmod 600 it",
		    path);
		goto fail;
	}
	n = read(fd, text, sizeof(text));
	if (n < 0) {
		(void)err_errno(err, ERR_BROKEN, "key file %s", path);
		goto fail;
	}
	if (parse_key(out->bytes, text, (size_t)n) != 0 || set_id(out) != 0) {
		(void)err_set(err, ERR_BROKEN,
		    "key file %s: want %d hex digits; make one with "
		    "`postrider keygen FILE`",
		    path, KEY_DIGITS);
		goto fail;
	}
	result = 0;

fail:
	if (result != 0)
		seal_key_fini(out);
	OPENSSL_cleanse(text, sizeof(text));
	(void)close(fd);
	return result;
}

void
seal_key_fini(struct seal_key *key)
{
	OPENSSL_cleanse(key, sizeof(*key));
}

/* The owner as associated data: a sealed secret cannot be moved to another. */
static void
put_owner(unsigned char out[OWNER], int64_t owner)
{
	for (int i = 0; i < OWNER; i++)
		out[i] = (unsigned char)((uint64_t)owner >> (56 - 8 * i));
}

int
seal_close(struct buf *out, unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const void *secret, size_t len,
    struct err *err)
{
	unsigned char aad[OWNER];
	EVP_CIPHER_CTX *ctx = NULL;
	unsigned char *at;
	int n, ok;

	if (len > SEAL_MAX)
		return err_set(
		    err, ERR_REFUSED, "secret over %d bytes", SEAL_MAX);
	at = (unsigned char *)buf_grow(out, len + SEAL_TAG);
	ctx = EVP_CIPHER_CTX_new();
	if (at == NULL || ctx == NULL) {
		EVP_CIPHER_CTX_free(ctx);
		return err_set(err, ERR_NOMEM, "seal");
	}
	put_owner(aad, owner);
	ok = RAND_bytes(nonce, SEAL_NONCE) == 1 &&
	     EVP_EncryptInit_ex(
		 ctx, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	     EVP_EncryptUpdate(ctx, NULL, &n, aad, OWNER) == 1 &&
	     EVP_EncryptUpdate(ctx, at, &n, secret, (int)len) == 1 &&
	     EVP_EncryptFinal_ex(ctx, at + len, &n) == 1 &&
	     EVP_CIPHER_CTX_ctrl(
		 ctx, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, at + len) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : err_set(err, ERR_RETRY, "seal: OpenSSL failed");
}

int
seal_open(struct buf *out, const unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const void *sealed, size_t len,
    struct err *err)
{
	unsigned char aad[OWNER], tag[SEAL_TAG];
	EVP_CIPHER_CTX *ctx = NULL;
	unsigned char *at;
	int n, ok;

	if (len < SEAL_TAG || len > SEAL_MAX + SEAL_TAG)
		return err_set(
		    err, ERR_BROKEN, "sealed secret of a wrong size");
	len -= SEAL_TAG;
	memcpy(tag, (const char *)sealed + len, SEAL_TAG);
	at = (unsigned char *)buf_grow(out, len + 1);
	ctx = EVP_CIPHER_CTX_new();
	if (at == NULL || ctx == NULL) {
		EVP_CIPHER_CTX_free(ctx);
		return err_set(err, ERR_NOMEM, "seal");
	}
	put_owner(aad, owner);
	ok = EVP_DecryptInit_ex(
		 ctx, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	     EVP_DecryptUpdate(ctx, NULL, &n, aad, OWNER) == 1 &&
	     EVP_DecryptUpdate(ctx, at, &n, sealed, (int)len) == 1 &&
	     EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, SEAL_TAG, tag) ==
	         1 &&
	     EVP_DecryptFinal_ex(ctx, at + len, &n) == 1;
	EVP_CIPHER_CTX_free(ctx);
	out->len--;
	if (ok)
		return 0;
	OPENSSL_cleanse(at, len);
	out->len -= len;
	return err_set(err, ERR_BROKEN,
	    "a secret does not open: sealed under another key, or changed");
}
