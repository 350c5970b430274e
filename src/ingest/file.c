#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/buf.h"
#include "base/embed.h"
#include "call.h"
#include "file.h"
#include "http/server.h"
#include "problem.h"

enum {
	HASH = 32, /* SHA-256 */
	TAG_BYTES = 16, /* of it, in the entity tag */
	TAG_SIZE = 2 * TAG_BYTES + 3, /* in hex, quotes and a NUL */
};

static bool
make_tag(char out[TAG_SIZE], const struct embedded *file)
{
	unsigned char hash[HASH];
	char *at = out;

	if (EVP_Digest(file->text, file->len, hash, NULL, EVP_sha256(), NULL) !=
	    1)
		return false;
	*at++ = '"';
	for (int i = 0; i < TAG_BYTES; i++, at += 2)
		(void)snprintf(at, 3, "%02x", hash[i]);
	*at++ = '"';
	*at = '\0';
	return true;
}

/* Weak or not, in a list or not: no other tag has ours in it. */
static bool
has_tag(const struct request *request, const char *tag)
{
	const char *known = request_header(request, "If-None-Match");

	return known != NULL &&
	       (strcmp(known, "*") == 0 || strstr(known, tag) != NULL);
}

void
file_answer(struct call *call, const struct embedded *file, const char *type,
    const char *cache)
{
	struct buf body = { 0 };
	char tag[TAG_SIZE];

	if (!make_tag(tag, file)) {
		problem_reply(call, 503, "SHA-256 failed");
		return;
	}
	request_add_header(call->request, "ETag", tag);
	request_add_header(call->request, "Cache-Control", cache);
	if (has_tag(call->request, tag)) {
		call_answer(call, 304, NULL, &body);
		return;
	}
	buf_add(&body, file->text, file->len);
	call_answer(call, 200, type, &body);
}
