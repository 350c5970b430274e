/*
 * Any octets as an answer, line by line and then as a body, as libcurl hands
 * them over: what is kept of it is bounded, and safe to store and to show.
 */

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/http/send.h"
#include "core/retry_after.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A callback's own copy of just that size, for the sanitizer to guard. */
static size_t
hand_over(
    curl_write_callback to, const uint8_t *from, size_t len, struct send *send)
{
	char *copy = malloc(len > 0 ? len : 1);
	size_t taken;

	assert(copy != NULL);
	memcpy(copy, from, len);
	taken = to(copy, 1, len, send);
	/* Whoever takes less says why. */
	assert(taken == len || (taken == 0 && send->stop != SEND_GOES_ON));
	free(copy);
	return taken;
}

static void
check_counts(const struct send *send)
{
	assert(
	    send->status == 0 || (send->status >= 100 && send->status <= 999));
	assert(send->status != 101 || send->stop != SEND_GOES_ON);
	assert(send->interim <= SEND_INTERIM_MAX || send->stop != SEND_GOES_ON);
	assert(send->header_bytes <= SEND_HEADER_MAX ||
	       send->stop != SEND_GOES_ON);
	assert(send->body_bytes <= SEND_BODY_MAX || send->stop != SEND_GOES_ON);
	assert(send->retry_after >= -1 && send->retry_after <= RETRY_AFTER_MAX);
	assert(send->excerpt.len <= SEND_EXCERPT_MAX);
	assert(send->kept.len <= SEND_HEADERS_KEPT);
}

/* How many octets the character at `at` has; 0 for what is none, or one that
 * a terminal would obey. */
static int
character(const unsigned char *at)
{
	int n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

	if (at[0] < 0x20 || at[0] == 0x7f || at[0] > 0xf4 ||
	    (at[0] >= 0x80 && at[0] < 0xc2))
		return 0;
	for (int i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* C1 controls; overlong forms and surrogates; the bidi controls. */
	if ((at[0] == 0xc2 && at[1] < 0xa0) ||
	    (at[0] == 0xe0 && at[1] < 0xa0) ||
	    (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	if (at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae)
		return 0;
	return n;
}

static void
check_text(const char *text, bool has_lines)
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at != '\0') {
		int n = has_lines && *at == '\n' ? 1 : character(at);

		assert(n > 0);
		at += n;
	}
}

static void
check_result(const struct send *send, CURLcode code)
{
	struct send_result result;

	send_result_fill(&result, send, code);
	check_text(result.reason, false);
	check_text(result.headers, true);
	check_text(result.excerpt, false);
	assert(strlen(result.headers) == send->kept.len);
	assert(result.end == SEND_ANSWERED || result.reason[0] != '\0');
	assert(result.end != SEND_ANSWERED ||
	       (code == CURLE_OK && send->header_ended));
	assert(result.status == send->status);
}

static bool
is_body(const struct send *send)
{
	return send->header_ended && send->status >= 200;
}

/* Lines up to the end of the last head, then the rest; where it stopped. */
static void
read_answer(struct send *send, const uint8_t *data, size_t size)
{
	size_t at = 0, n;

	while (at < size && !is_body(send)) {
		const uint8_t *end = memchr(data + at, '\n', size - at);

		n = end == NULL ? size - at : (size_t)(end + 1 - data) - at;
		if (hand_over(send_answer_header, data + at, n, send) != n)
			return;
		check_counts(send);
		at += n;
	}
	for (; at < size; at += n) {
		n = size - at < 700 ? size - at : 700;
		if (hand_over(send_answer_body, data + at, n, send) != n)
			return;
		check_counts(send);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct send send = {
		.state = SEND_TRANSFER,
		.requests = 1,
		.timeout = USEC_PER_SEC,
		.marks = { [MARK_START] = 1, [MARK_REQUEST] = 1 },
	};

	send_answer_reset(&send);
	read_answer(&send, data, size);
	check_counts(&send);
	check_result(&send, CURLE_OK);
	check_result(&send, CURLE_WRITE_ERROR);
	check_result(&send, CURLE_OPERATION_TIMEDOUT);
	buf_fini(&send.kept);
	buf_fini(&send.excerpt);
	return 0;
}
