#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "verify.h"

enum {
	MAC_SIZE = 32,
	BASE64_SIZE = 44, /* of a MAC */
	HEX_SIZE = 2 * MAC_SIZE,
	TIMESTAMP_DIGITS = 15, /* far beyond any date, far below overflow */
};

static const char *const names[] = {
	[VERIFY_VALID] = "valid",
	[VERIFY_NO_SECRET] = "no_secret",
	[VERIFY_MISSING] = "missing",
	[VERIFY_MALFORMED] = "malformed",
	[VERIFY_EXPIRED] = "expired",
	[VERIFY_WRONG] = "wrong",
};

const char *
verify_verdict_name(enum verify_verdict verdict)
{
	return names[verdict];
}

/* HMAC-SHA256 over `prefix` and the body.  False if OpenSSL fails. */
static bool
make_mac(unsigned char mac[MAC_SIZE], const struct verify_secret *secret,
    const char *const prefix[], const struct verify_request *request)
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(
	    EVP_PKEY_HMAC, NULL, secret->bytes, secret->len);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = MAC_SIZE;
	bool is_made = false;

	if (key == NULL || context == NULL ||
	    EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) != 1)
		goto end;
	for (; *prefix != NULL; prefix++)
		if (EVP_DigestSignUpdate(context, *prefix, strlen(*prefix)) !=
		    1)
			goto end;
	is_made =
	    EVP_DigestSignUpdate(context, request->body, request->len) == 1 &&
	    EVP_DigestSignFinal(context, mac, &size) == 1 && size == MAC_SIZE;
end:
	EVP_MD_CTX_free(context);
	EVP_PKEY_free(key);
	return is_made;
}

/* Is "v1,<expected>" among the signatures?  Others, of schemes that we do not
 * know, are passed over. */
static bool
has_signature(const char *list, const char *expected)
{
	const char *item = list;
	size_t len;
	bool found = false;

	for (; *item != '\0'; item += len) {
		item += strspn(item, " ");
		len = strcspn(item, " ");
		if (len == 3 + BASE64_SIZE && memcmp(item, "v1,", 3) == 0 &&
		    CRYPTO_memcmp(item + 3, expected, BASE64_SIZE) == 0)
			found = true;
	}
	return found;
}

static bool
standard_fits(
    const struct verify_request *request, const struct verify_secret *secret)
{
	const char *const prefix[] = { request->id, ".", request->timestamp,
		".", NULL };
	unsigned char mac[MAC_SIZE], expected[BASE64_SIZE + 1];

	if (!make_mac(mac, secret, prefix, request))
		return false;
	(void)EVP_EncodeBlock(expected, mac, MAC_SIZE);
	return has_signature(request->signature, (const char *)expected);
}

static bool
older_fits(
    const struct verify_request *request, const struct verify_secret *secret)
{
	const char *const prefix[] = { request->older_timestamp, ".", NULL };
	static const char digits[] = "0123456789abcdef";
	const char *given = request->older_signature;
	unsigned char mac[MAC_SIZE];
	char expected[HEX_SIZE];

	if (strncmp(given, "v1=", 3) != 0 || strlen(given + 3) != HEX_SIZE ||
	    !make_mac(mac, secret, prefix, request))
		return false;
	for (size_t i = 0; i < MAC_SIZE; i++) {
		expected[2 * i] = digits[mac[i] >> 4];
		expected[2 * i + 1] = digits[mac[i] & 15];
	}
	return CRYPTO_memcmp(given + 3, expected, HEX_SIZE) == 0;
}

/* Seconds since 1970 in plain digits; -1 if it is anything else. */
static int64_t
parse_timestamp(const char *text)
{
	size_t len = strspn(text, "0123456789");

	if (len == 0 || len > TIMESTAMP_DIGITS || text[len] != '\0')
		return -1;
	if (text[0] == '0' && len > 1)
		return -1;
	return strtoll(text, NULL, 10);
}

static enum verify_verdict
judge_time(const char *timestamp, int64_t now, int64_t tolerance)
{
	int64_t at = parse_timestamp(timestamp);

	if (at < 0)
		return VERIFY_MALFORMED;
	if (at < now - tolerance || at > now + tolerance)
		return VERIFY_EXPIRED;
	return VERIFY_VALID;
}

static bool
has_older(const struct verify_request *request)
{
	return request->older_id != NULL || request->older_timestamp != NULL ||
	       request->older_signature != NULL;
}

static enum verify_verdict
judge_standard(const struct verify_request *request,
    const struct verify_secret *secret, int64_t now, int64_t tolerance)
{
	enum verify_verdict verdict;

	if (request->id == NULL || request->timestamp == NULL ||
	    request->signature == NULL)
		return VERIFY_MISSING;
	/* A dot in the id would blur where it ends in what is signed. */
	if (request->id[0] == '\0' || strchr(request->id, '.') != NULL)
		return VERIFY_MALFORMED;
	verdict = judge_time(request->timestamp, now, tolerance);
	if (verdict != VERIFY_VALID)
		return verdict;
	return standard_fits(request, secret) ? VERIFY_VALID : VERIFY_WRONG;
}

static enum verify_verdict
judge_older(const struct verify_request *request,
    const struct verify_secret *secret, int64_t now, int64_t tolerance)
{
	enum verify_verdict verdict;

	if (request->older_id == NULL || request->older_timestamp == NULL ||
	    request->older_signature == NULL)
		return VERIFY_MISSING;
	/* Its signature does not cover the id, so the other one has to. */
	if (strcmp(request->older_id, request->id) != 0)
		return VERIFY_MALFORMED;
	verdict = judge_time(request->older_timestamp, now, tolerance);
	if (verdict != VERIFY_VALID)
		return verdict;
	return older_fits(request, secret) ? VERIFY_VALID : VERIFY_WRONG;
}

enum verify_verdict
verify_judge(const struct verify_request *request,
    const struct verify_secret *secret, int64_t now, int64_t tolerance)
{
	enum verify_verdict verdict;

	if (secret == NULL)
		return VERIFY_NO_SECRET;
	verdict = judge_standard(request, secret, now, tolerance);
	if (verdict == VERIFY_VALID && has_older(request))
		verdict = judge_older(request, secret, now, tolerance);
	return verdict;
}

/* Decode base64 as it should be: EVP_DecodeBlock() takes more than that, so
 * what it made has to encode to the same text.  -1 if it does not. */
static int
decode(unsigned char *out, const char *text, size_t len)
{
	enum { ENCODED_MAX = (VERIFY_SECRET_MAX + 2) / 3 * 4 };
	unsigned char bytes[ENCODED_MAX], again[ENCODED_MAX + 1];
	int n, result = -1;

	if (len == 0 || len % 4 != 0 || len > ENCODED_MAX)
		return -1;
	n = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)len);
	if (n < 0)
		return -1;
	n -= (text[len - 1] == '=') + (text[len - 2] == '=');
	(void)EVP_EncodeBlock(again, bytes, n);
	if (n <= VERIFY_SECRET_MAX && memcmp(again, text, len) == 0) {
		memcpy(out, bytes, (size_t)n);
		result = n;
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(again, sizeof(again));
	return result;
}

int
verify_secret_parse(
    struct verify_secret *out, const char *text, struct err *err)
{
	static const char prefix[] = "whsec_";
	size_t skip = sizeof(prefix) - 1;
	int n = -1;

	if (strncmp(text, prefix, skip) == 0)
		n = decode(out->bytes, text + skip, strlen(text + skip));
	if (n < VERIFY_SECRET_MIN)
		return err_set(err, ERR_REFUSED,
		    "a secret is whsec_ and the base64 of %d to %d bytes",
		    VERIFY_SECRET_MIN, VERIFY_SECRET_MAX);
	out->len = (size_t)n;
	return 0;
}
