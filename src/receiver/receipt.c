#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "http/server.h"
#include "receipt.h"

enum { EVENT_ID_MAX = 128 };

/* A header that is a whole number from `min`. */
static bool
read_number(
    int64_t *out, const struct request *request, const char *name, int64_t min)
{
	const char *text = request_header(request, name);
	char *end;
	long long value;

	if (text == NULL || !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno != 0 || *end != '\0' || value < min)
		return false;
	*out = value;
	return true;
}

/* The database takes no other text than this. */
static bool
is_event_id(const char *text)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789_:-";
	size_t len = strspn(text, alphabet);

	return len > 0 && len <= EVENT_ID_MAX && text[len] == '\0';
}

void
receipt_read(struct receipt *receipt, const struct request *request)
{
	const char *id = request_header(request, "webhook-id");
	int64_t attempt;

	receipt->path = request_path(request);
	if (id != NULL && is_event_id(id))
		receipt->event_id = id;
	receipt->has_position =
	    read_number(&receipt->position, request, "postrider-position", 0);
	if (read_number(&attempt, request, "postrider-attempt", 1) &&
	    attempt <= INT_MAX)
		receipt->attempt = (int)attempt;
	receipt->arrived_at = clock_wall();
	receipt->body = request_body(request, &receipt->len);
}

void
receipt_judge(struct receipt *receipt, const struct request *request,
    const struct verify_secret *secret, usec_t tolerance)
{
	const struct verify_request claim = {
		.id = request_header(request, "webhook-id"),
		.timestamp = request_header(request, "webhook-timestamp"),
		.signature = request_header(request, "webhook-signature"),
		.older_id = request_header(request, "x-event-id"),
		.older_timestamp =
		    request_header(request, "x-webhook-timestamp"),
		.older_signature =
		    request_header(request, "x-webhook-signature"),
		.body = receipt->body,
		.len = receipt->len,
	};

	receipt->verdict = verify_judge(&claim, secret,
	    receipt->arrived_at / USEC_PER_SEC, tolerance / USEC_PER_SEC);
	if (receipt->verdict == VERIFY_VALID && receipt->event_id == NULL)
		receipt->verdict = VERIFY_MALFORMED;
}
