/*
 * verify: was this request signed by one who knows the secret, and just now?
 *
 * Standard Webhooks: HMAC-SHA256 over "id.timestamp.body", one or more
 * signatures "v1,<base64>" with spaces between.  The older scheme, checked
 * besides where its headers are there: HMAC-SHA256 over "timestamp.body",
 * written "v1=<hex>".
 *
 * Written for itself, with OpenSSL alone: a judge that shares code with the
 * accused proves nothing.
 */

#ifndef RECEIVER_VERIFY_H
#define RECEIVER_VERIFY_H

#include <stddef.h>
#include <stdint.h>

struct err;

enum { VERIFY_SECRET_MIN = 24, VERIFY_SECRET_MAX = 64 };

struct verify_secret {
	unsigned char bytes[VERIFY_SECRET_MAX];
	size_t len;
};

enum verify_verdict {
	VERIFY_VALID,
	VERIFY_NO_SECRET, /* we know none for this endpoint */
	VERIFY_MISSING, /* a header is not there */
	VERIFY_MALFORMED, /* a header is not what it should be */
	VERIFY_EXPIRED, /* the timestamp is too far from now, either way */
	VERIFY_WRONG, /* no signature fits */
};

/* A request's headers, NULL where absent, and its body. */
struct verify_request {
	const char *id, *timestamp, *signature;
	const char *older_id, *older_timestamp, *older_signature;
	const void *body;
	size_t len;
};

/*
 * Judge `request` at `now` (seconds since 1970); `tolerance` is in seconds.
 * `secret` may be NULL.  A request without the headers of Standard Webhooks is
 * not valid, whatever the older ones say.
 */
enum verify_verdict verify_judge(const struct verify_request *request,
    const struct verify_secret *secret, int64_t now, int64_t tolerance);

/* "valid", "no_secret", ... */
const char *verify_verdict_name(enum verify_verdict verdict);

/* Parse "whsec_" and base64.  ERR_REFUSED never repeats what was given. */
int verify_secret_parse(
    struct verify_secret *out, const char *text, struct err *err);

#endif
