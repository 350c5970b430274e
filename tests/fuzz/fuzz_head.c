/* Whatever comes, and however it is cut: one reading, and a sound one. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/http/chunk.h"
#include "../../src/http/head.h"
#include "base/buf.h"

enum { BODY_MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
check_value(const char *value)
{
	for (; *value != '\0'; value++)
		check(!head_is_control((unsigned char)*value));
}

static void
check_head(const struct head *head)
{
	const char *host = head_value(head, "host", NULL);

	check(head->method[0] != '\0');
	check(head->path[0] == '/' || strcmp(head->path, "*") == 0);
	check(strpbrk(head->path, " ?#") == NULL);
	check(host != NULL || head->minor == 0);
	check(host == NULL || head_is_host(host, strlen(host)));
	check(!head->is_chunked ||
	      head_value(head, "content-length", NULL) == NULL);
	check(head->nfields <= HEAD_FIELDS_MAX);
	for (int i = 0; i < head->nfields; i++) {
		check(head->fields[i].name[0] != '\0');
		check_value(head->fields[i].value);
	}
}

/* What a chunked body came to. */
struct reading {
	struct chunk chunk;
	struct refusal refusal;
	struct buf body;
	size_t used;
};

static void
read_body(struct reading *r, const char *bytes, size_t len, size_t piece)
{
	size_t n, used;

	for (size_t at = 0;
	     at < len && r->refusal.status == 0 && r->chunk.state != CHUNK_END;
	     at += used) {
		n = len - at < piece ? len - at : piece;
		r->refusal = chunk_read(
		    &r->chunk, bytes + at, n, &used, &r->body, BODY_MAX);
		check(used <= n);
		r->used += used;
	}
	check(r->body.len <= BODY_MAX);
}

/* In one piece or octet by octet: the same. */
static void
check_body(const char *bytes, size_t len)
{
	struct reading whole = { 0 }, octets = { 0 };

	read_body(&whole, bytes, len, SIZE_MAX);
	read_body(&octets, bytes, len, 1);
	check(whole.refusal.status == octets.refusal.status);
	check(whole.chunk.state == octets.chunk.state);
	check(whole.used == octets.used);
	check(whole.body.len == octets.body.len);
	check(whole.body.len == 0 ||
	      memcmp(whole.body.data, octets.body.data, whole.body.len) == 0);
	buf_fini(&whole.body);
	buf_fini(&octets.body);
}

static enum head_found
scan_octets(struct head_scan *scan, const char *bytes, size_t size)
{
	enum head_found found = HEAD_MORE;

	for (size_t len = 1; len <= size && found == HEAD_MORE; len++)
		found = head_scan(scan, bytes, len);
	return found;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head_scan whole = { 0 }, octets = { 0 };
	struct head head;
	char *bytes = malloc(size + 1);
	enum head_found found;

	check(bytes != NULL);
	if (size > 0)
		memcpy(bytes, data, size);
	check_body(bytes, size);
	found = head_scan(&whole, bytes, size);
	check(found == scan_octets(&octets, bytes, size));
	if (found == HEAD_WHOLE) {
		/* A copy of just that size, for the sanitizer to guard. */
		char *text = malloc(whole.at);

		check(text != NULL && whole.at == octets.at);
		memcpy(text, bytes, whole.at);
		if (head_parse(&head, text, whole.at).status == 0)
			check_head(&head);
		else
			check(head.nfields == 0 && head.method[0] == '\0');
		if (head.is_chunked)
			check_body(bytes + whole.at, size - whole.at);
		free(text);
	}
	free(bytes);
	return 0;
}
