/*
 * envelope: an event as an app posts it, and the body that is sent.
 *
 * In:  {"id"?, "type", "asset"?, "data", "subscriptions"?}, nothing else.
 * Out: {"id":..., "type":..., "asset":..., "timestamp":..., "data":<raw>},
 *      with "asset" left out if there is none.  `data` is the very bytes that
 *      came.
 */

#ifndef CORE_ENVELOPE_H
#define CORE_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "core/json.h"

struct err;

enum {
	ENVELOPE_TEXT_MAX = 65536, /* octets that whoever takes events takes */
	ENVELOPE_ID_MAX = 128, /* [A-Za-z0-9_:-] */
	ENVELOPE_TYPE_MAX = 256, /* words of [A-Za-z0-9_-] with dots between */
	ENVELOPE_ASSET_MAX = 256, /* bytes of UTF-8, no control characters */
	ENVELOPE_SUBSCRIPTIONS_MAX = 32,
	ENVELOPE_FINGERPRINT = 32, /* SHA-256 */
	ENVELOPE_POINTER_SIZE = 64,
};

struct envelope {
	char id[ENVELOPE_ID_MAX + 1]; /* "" if none was given */
	char type[ENVELOPE_TYPE_MAX + 1];
	char asset[ENVELOPE_ASSET_MAX + 1]; /* "" if none: never empty else */
	struct json_slice data; /* lends from the text */
	int64_t subscriptions[ENVELOPE_SUBSCRIPTIONS_MAX]; /* sorted, unique */
	size_t nsubscriptions; /* 0: all that match by type */
	unsigned char fingerprint[ENVELOPE_FINGERPRINT];
};

/*
 * Parse one event.  ERR_REFUSED says what is wrong and where; `pointer` (may
 * be NULL) receives the JSON pointer of the field at fault, "" for the whole.
 * Unknown and repeated members are refused, save inside data.  An asset of null
 * is none.  Subscriptions are ids as strings of digits ("17"), for a number of
 * 64 bits does not survive JavaScript; an empty list is refused.  A type is
 * words with dots between them, so that prefix patterns are plain; one that begins
 * with "postrider." is an operational event's, and is refused.
 *
 * The fingerprint is SHA-256 over the canonical form of type, asset, data and
 * the set of named subscriptions: what must be equal for a repeat of the id.
 */
int envelope_parse(struct envelope *out, const char *text, size_t len,
    char pointer[ENVELOPE_POINTER_SIZE], struct err *err);

/* Give an event without an id a fresh random one: "evt_" and 32 hex digits. */
int envelope_make_id(struct envelope *envelope, struct err *err);

/* Append the body that is sent, with `timestamp` as RFC 3339 in UTC, to the
 * millisecond. */
void envelope_body(
    struct buf *out, const struct envelope *envelope, usec_t timestamp);

#endif
