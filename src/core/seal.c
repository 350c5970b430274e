#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"

enum { OWNER = 8 };

/*
 * The owner and the label as associated data: a sealed secret cannot be moved
 * to another subscription, nor be passed off as something else.
 */
struct aad {
	unsigned char owner[OWNER];
	const unsigned char *label;
	int len;
};

static void
aad_set(struct aad *out, int64_t owner, const char *label)
{
	for (int i = 0; i < OWNER; i++)
		out->owner[i] =
		    (unsigned char)((uint64_t)owner >> (56 - 8 * i));
	out->label = (const unsigned char *)label;
	out->len = (int)strlen(label);
}

int
seal_close(struct buf *out, unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const char *label,
    const void *secret, size_t len, struct err *err)
{
	struct aad aad;
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
	aad_set(&aad, owner, label);
	ok = RAND_bytes(nonce, SEAL_NONCE) == 1 &&
	     EVP_EncryptInit_ex(
		 ctx, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	     EVP_EncryptUpdate(ctx, NULL, &n, aad.owner, OWNER) == 1 &&
	     EVP_EncryptUpdate(ctx, NULL, &n, aad.label, aad.len) == 1 &&
	     EVP_EncryptUpdate(ctx, at, &n, secret, (int)len) == 1 &&
	     EVP_EncryptFinal_ex(ctx, at + len, &n) == 1 &&
	     EVP_CIPHER_CTX_ctrl(
		 ctx, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, at + len) == 1;
	EVP_CIPHER_CTX_free(ctx);
	return ok ? 0 : err_set(err, ERR_RETRY, "seal: OpenSSL failed");
}

int
seal_open(struct buf *out, const unsigned char nonce[SEAL_NONCE],
    const struct seal_key *key, int64_t owner, const char *label,
    const void *sealed, size_t len, struct err *err)
{
	unsigned char tag[SEAL_TAG];
	struct aad aad;
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
	aad_set(&aad, owner, label);
	ok = EVP_DecryptInit_ex(
		 ctx, EVP_aes_256_gcm(), NULL, key->bytes, nonce) == 1 &&
	     EVP_DecryptUpdate(ctx, NULL, &n, aad.owner, OWNER) == 1 &&
	     EVP_DecryptUpdate(ctx, NULL, &n, aad.label, aad.len) == 1 &&
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
