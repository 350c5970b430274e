#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "etag.h"
#include "http/server.h"

enum { DIGITS_MAX = 18 }; /* of a version: it fits */

/* What stands between the quotes; -1 if it is no version. */
static int64_t
parse_version(const char *text, size_t len)
{
	char digits[DIGITS_MAX + 1] = "";

	if (len == 0 || len > DIGITS_MAX || text[0] == '0')
		return -1;
	memcpy(digits, text, len);
	if (digits[strspn(digits, "0123456789")] != '\0')
		return -1;
	return strtoll(digits, NULL, 10);
}

/* Take one entity tag; returns where it ends, NULL if it is none.  A weak one
 * never matches here. */
static const char *
take_tag(struct etag_match *out, const char *text)
{
	bool is_weak = strncmp(text, "W/", 2) == 0;
	const char *begin, *end;
	int64_t version;

	text += is_weak ? 2 : 0;
	if (*text != '"')
		return NULL;
	begin = text + 1;
	end = strchr(begin, '"');
	if (end == NULL)
		return NULL;
	version = parse_version(begin, (size_t)(end - begin));
	if (version >= 0 && !is_weak) {
		if (out->nversions == ETAG_MAX)
			return NULL;
		out->versions[out->nversions++] = version;
	}
	return end + 1;
}

int
etag_read(
    struct etag_match *out, const struct request *request, struct err *err)
{
	const char *text = request_header(request, "If-Match");

	*out = (struct etag_match){ .is_any = text == NULL ||
		                              strcmp(text, "*") == 0 };
	while (!out->is_any && text != NULL) {
		text = take_tag(out, text + strspn(text, " \t"));
		if (text == NULL)
			break;
		text += strspn(text, " \t");
		if (*text == '\0')
			return 0;
		text = *text == ',' ? text + 1 : NULL;
	}
	if (out->is_any)
		return 0;
	return err_set(err, ERR_REFUSED,
	    "If-Match: want what ETag said, in its quotes, such as \"7\"");
}

void
etag_add(struct request *request, int64_t version)
{
	char tag[DIGITS_MAX + 8];

	(void)snprintf(tag, sizeof(tag), "\"%" PRId64 "\"", version);
	request_add_header(request, "ETag", tag);
}
