#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/sign_key.h"

#define PREFIX "whsk_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

enum {
	SIGNATURE = 64,
	PADDING = 2, /* of 64 bytes in base64 */
};

/* How many characters of base64 `n` bytes take. */
#define BASE64_LEN(n) (((size_t)(n) + 2) / 3 * 4)

static EVP_PKEY *
load(const struct sign_key *key)
{
	return EVP_PKEY_new_raw_private_key(
	    EVP_PKEY_ED25519, NULL, key->bytes, SIGN_KEY_SEED);
}

/* The public key that belongs to the seed. */
static bool
derive(unsigned char out[SIGN_KEY_PUBLIC], const struct sign_key *key)
{
	EVP_PKEY *pkey = load(key);
	size_t len = SIGN_KEY_PUBLIC;
	bool done = pkey != NULL &&
	            EVP_PKEY_get_raw_public_key(pkey, out, &len) == 1 &&
	            len == SIGN_KEY_PUBLIC;

	EVP_PKEY_free(pkey);
	return done;
}

int
sign_key_new(struct sign_key *out, struct err *err)
{
	*out = (struct sign_key){ 0 };
	if (RAND_priv_bytes(out->bytes, SIGN_KEY_SEED) == 1 &&
	    derive(out->bytes + SIGN_KEY_SEED, out))
		return 0;
	sign_key_fini(out);
	return err_set(err, ERR_RETRY, "no randomness for a key");
}

/* One key, one text: OpenSSL takes spaces and leftover bits for base64. */
static bool
decode(struct sign_key *out, const char *text, size_t len)
{
	unsigned char bytes[SIGN_KEY_SIZE + PADDING];
	unsigned char again[BASE64_LEN(SIGN_KEY_SIZE) + 1];
	bool good = false;

	if (len != BASE64_LEN(SIGN_KEY_SIZE))
		return false;
	if (EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len) ==
	    (int)sizeof(bytes)) {
		EVP_EncodeBlock(again, bytes, SIGN_KEY_SIZE);
		good = CRYPTO_memcmp(again, text, len) == 0;
	}
	if (good)
		memcpy(out->bytes, bytes, SIGN_KEY_SIZE);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(again, sizeof(again));
	return good;
}

int
sign_key_parse(
    struct sign_key *out, const char *text, size_t len, struct err *err)
{
	unsigned char public[SIGN_KEY_PUBLIC];

	*out = (struct sign_key){ 0 };
	if (len > PREFIX_LEN && memcmp(text, PREFIX, PREFIX_LEN) == 0 &&
	    decode(out, text + PREFIX_LEN, len - PREFIX_LEN) &&
	    derive(public, out) &&
	    memcmp(public, out->bytes + SIGN_KEY_SEED, sizeof(public)) == 0)
		return 0;
	sign_key_fini(out);
	return err_set(err, ERR_REFUSED,
	    "a signing key is \"%s\" and, as padded base64, an Ed25519 seed "
	    "and its public key",
	    PREFIX);
}

static void
print(struct buf *out, const char *prefix, const void *bytes, size_t len)
{
	unsigned char text[BASE64_LEN(SIGN_KEY_SIZE) + 1];
	int n = EVP_EncodeBlock(text, bytes, (int)len);

	buf_puts(out, prefix);
	buf_add(out, text, (size_t)n);
	OPENSSL_cleanse(text, sizeof(text));
}

void
sign_key_print(struct buf *out, const struct sign_key *key)
{
	print(out, PREFIX, key->bytes, SIGN_KEY_SIZE);
}

void
sign_key_print_public(struct buf *out, const struct sign_key *key)
{
	print(out, "whpk_", key->bytes + SIGN_KEY_SEED, SIGN_KEY_PUBLIC);
}

void
sign_key_fini(struct sign_key *key)
{
	OPENSSL_cleanse(key, sizeof(*key));
}

/* Ed25519 reads what it signs twice, so that has to be in one piece. */
static bool
sign(unsigned char out[SIGNATURE], const struct sign_key *key,
    const struct buf *text)
{
	EVP_PKEY *pkey = load(key);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t len = SIGNATURE;
	bool done;

	done = pkey != NULL && context != NULL &&
	       EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
	       EVP_DigestSign(context, out, &len,
		   (const unsigned char *)text->data, text->len) == 1 &&
	       len == SIGNATURE;
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return done;
}

void
sign_key_sign(struct buf *out, const struct sign_key *key, const char *id,
    int64_t timestamp, const void *body, size_t len)
{
	unsigned char signature[SIGNATURE];
	struct buf text = { 0 };

	buf_printf(&text, "%s.%" PRId64 ".", id, timestamp);
	buf_add(&text, body, len);
	if (!text.failed && sign(signature, key, &text))
		print(out, "v1a,", signature, sizeof(signature));
	else
		out->failed = true;
	buf_fini(&text);
}
