#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign.h"

#define PREFIX "whsec_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

enum {
	MAC_SIZE = 32, /* SHA-256 */
	STAMP_SIZE = 24, /* any int64_t between two dots, and NUL */
};

/* How many characters of base64 `n` bytes take. */
#define BASE64_LEN(n) (((size_t)(n) + 2) / 3 * 4)

int
sign_secret_new(struct sign_secret *out, struct err *err)
{
	*out = (struct sign_secret){ 0 };
	if (RAND_priv_bytes(out->bytes, SIGN_SECRET_NEW) != 1)
		return err_set(err, ERR_RETRY, "no randomness for a secret");
	out->len = SIGN_SECRET_NEW;
	return 0;
}

/*
 * OpenSSL takes spaces, stray padding and leftover bits for base64.  What
 * encodes to other than it was decoded from is refused: one secret, one text.
 */
static bool
decode(struct sign_secret *out, const char *text, size_t len)
{
	unsigned char bytes[SIGN_SECRET_MAX + 2];
	unsigned char again[BASE64_LEN(sizeof(bytes)) + 1];
	size_t padding = 0;
	bool good = false;
	int n;

	if (len < BASE64_LEN(SIGN_SECRET_MIN) ||
	    len > BASE64_LEN(SIGN_SECRET_MAX))
		return false;
	while (padding < 2 && text[len - 1 - padding] == '=')
		padding++;
	n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len);
	if (n > 0) {
		out->len = (size_t)n - padding;
		n = EVP_EncodeBlock(again, bytes, (int)out->len);
		good = out->len >= SIGN_SECRET_MIN &&
		       out->len <= SIGN_SECRET_MAX && (size_t)n == len &&
		       CRYPTO_memcmp(again, text, len) == 0;
	}
	if (good)
		memcpy(out->bytes, bytes, out->len);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(again, sizeof(again));
	return good;
}

int
sign_secret_parse(
    struct sign_secret *out, const char *text, size_t len, struct err *err)
{
	*out = (struct sign_secret){ 0 };
	if (len >= PREFIX_LEN && memcmp(text, PREFIX, PREFIX_LEN) == 0) {
		text += PREFIX_LEN;
		len -= PREFIX_LEN;
	}
	if (decode(out, text, len))
		return 0;
	sign_secret_fini(out);
	return err_set(err, ERR_REFUSED,
	    "a secret is \"%s\" and %d to %d bytes as padded base64", PREFIX,
	    SIGN_SECRET_MIN, SIGN_SECRET_MAX);
}

void
sign_secret_print(struct buf *out, const struct sign_secret *secret)
{
	unsigned char text[BASE64_LEN(SIGN_SECRET_MAX) + 1];
	int n = EVP_EncodeBlock(text, secret->bytes, (int)secret->len);

	buf_puts(out, PREFIX);
	buf_add(out, text, (size_t)n);
	OPENSSL_cleanse(text, sizeof(text));
}

void
sign_secret_fini(struct sign_secret *secret)
{
	EVP_MAC_CTX_free(secret->mac);
	OPENSSL_cleanse(secret, sizeof(*secret));
}

/* A run of what is signed. */
struct part {
	const void *bytes;
	size_t len;
};

static bool
update(EVP_MAC_CTX *context, const struct part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!EVP_MAC_update(context, parts[i].bytes, parts[i].len))
			return false;
	return true;
}

/* HMAC-SHA256, keyed. */
static EVP_MAC_CTX *
mac_new(const struct sign_secret *secret)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(
		    OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *mac = EVP_MAC_CTX_new(algorithm);

	EVP_MAC_free(algorithm); /* the context holds it */
	if (mac != NULL &&
	    EVP_MAC_init(mac, secret->bytes, secret->len, params))
		return mac;
	EVP_MAC_CTX_free(mac);
	return NULL;
}

/* The MAC of `parts` in a row.  To fetch the algorithm and to key it takes
 * longer than a body of a kilobyte: that is done once. */
static bool
hmac(unsigned char out[MAC_SIZE], struct sign_secret *secret,
    const struct part *parts, size_t n)
{
	if (secret->mac == NULL)
		secret->mac = mac_new(secret);
	return secret->mac != NULL &&
	       EVP_MAC_init(secret->mac, NULL, 0, NULL) && /* begins anew */
	       update(secret->mac, parts, n) &&
	       EVP_MAC_final(secret->mac, out, NULL, MAC_SIZE);
}

void
sign_standard(struct buf *out, struct sign_secret *secret, const char *id,
    int64_t timestamp, const void *body, size_t len)
{
	char stamp[STAMP_SIZE];
	unsigned char mac[MAC_SIZE];
	unsigned char text[BASE64_LEN(MAC_SIZE) + 1];
	int n = snprintf(stamp, sizeof(stamp), ".%" PRId64 ".", timestamp);
	const struct part parts[] = {
		{ id, strlen(id) },
		{ stamp, (size_t)n },
		{ body, len },
	};

	if (!hmac(mac, secret, parts, sizeof(parts) / sizeof(parts[0]))) {
		out->failed = true;
		return;
	}
	n = EVP_EncodeBlock(text, mac, sizeof(mac));
	buf_puts(out, "v1,");
	buf_add(out, text, (size_t)n);
}

void
sign_older(struct buf *out, struct sign_secret *secret, int64_t timestamp,
    const void *body, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	char stamp[STAMP_SIZE];
	unsigned char mac[MAC_SIZE];
	int n = snprintf(stamp, sizeof(stamp), "%" PRId64 ".", timestamp);
	const struct part parts[] = {
		{ stamp, (size_t)n },
		{ body, len },
	};

	if (!hmac(mac, secret, parts, sizeof(parts) / sizeof(parts[0]))) {
		out->failed = true;
		return;
	}
	buf_puts(out, "v1=");
	for (size_t i = 0; i < sizeof(mac); i++)
		buf_add(out,
		    (const char[]){ hex[mac[i] >> 4], hex[mac[i] & 15] }, 2);
}
