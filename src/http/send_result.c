#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "send.h"

/* Receivers choose this text: keep it to one line that no terminal obeys. */
static void
copy_printable(char *to, size_t size, const char *from, size_t len)
{
	size_t i;

	for (i = 0; i < len && i + 1 < size; i++)
		to[i] = from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '.';
	to[i] = '\0';
}

static void
fill(struct send_result *out, const struct send *send, enum send_end end)
{
	out->end = end;
	out->status = send->status;
	out->retry_after = send->retry_after;
	out->duration = clock_now() - send->started;
	memcpy(out->remote, send->remote, sizeof(out->remote));
	out->reason[0] = '\0';
	copy_printable(out->excerpt, sizeof(out->excerpt), send->excerpt.data,
	    send->excerpt.len);
}

void
send_result_end(struct send_result *out, const struct send *send,
    enum send_end end, const char *format, ...)
{
	char text[sizeof(out->reason)];
	va_list args;

	fill(out, send, end);
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	copy_printable(out->reason, sizeof(out->reason), text, strlen(text));
}

static void
fill_stopped(struct send_result *out, const struct send *send)
{
	switch (send->stop) {
	case SEND_GOES_ON:
		break;
	case SEND_STOP_REFUSED:
		send_result_end(out, send, SEND_REFUSED,
		    "the address is not allowed: %s", send->refusal);
		break;
	case SEND_STOP_LATE:
		send_result_end(out, send, SEND_UNSENT,
		    "the connection was ready too late for the lease");
		break;
	case SEND_STOP_TWICE:
		send_result_end(out, send, SEND_BROKEN,
		    "the connection closed before any answer");
		break;
	case SEND_STOP_HEADER:
		send_result_end(out, send, SEND_BROKEN,
		    "more than %d octets of headers", SEND_HEADER_MAX);
		break;
	case SEND_STOP_BODY:
		send_result_end(out, send, SEND_BROKEN,
		    "more than %d octets of body", SEND_BODY_MAX);
		break;
	case SEND_STOP_INTERIM:
		send_result_end(out, send, SEND_BROKEN,
		    send->status == 101 ? "101 without having been asked"
					: "too many 1xx responses");
		break;
	}
}

/* Where `send` was when its time was up. */
static const char *
phase(const struct send *send)
{
	if (send->state == SEND_LOOKUP)
		return "looking up the name";
	if (send->requests == 0)
		return "connecting";
	if (send->header_bytes == 0)
		return "waiting for an answer";
	return "reading the answer";
}

static enum send_end
end_of(const struct send *send, CURLcode code)
{
	switch ((int)code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return SEND_DNS_FAILED;
	case CURLE_COULDNT_CONNECT:
		return SEND_CONNECT_FAILED;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_SETFAILED:
	case CURLE_SSL_ENGINE_INITFAILED:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
		return SEND_TLS_FAILED;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		return send->requests > 0 ? SEND_BROKEN : SEND_UNSENT;
	case CURLE_URL_MALFORMAT:
		return SEND_IMPOSSIBLE;
	}
	return send->requests > 0 ? SEND_BROKEN : SEND_CONNECT_FAILED;
}

void
send_result_fill(
    struct send_result *out, const struct send *send, CURLcode code)
{
	/* libcurl is content with headers that were cut short. */
	if (code == CURLE_OK && !send->header_ended) {
		send_result_end(out, send, SEND_BROKEN,
		    "the connection closed amid the headers");
		return;
	}
	if (code == CURLE_OK) {
		fill(out, send, SEND_ANSWERED);
		return;
	}
	if (send->stop != SEND_GOES_ON) {
		fill_stopped(out, send);
		return;
	}
	if (code == CURLE_OPERATION_TIMEDOUT) {
		send_result_end(out, send, SEND_TIMED_OUT,
		    "timed out after %lld ms while %s",
		    (long long)(send->timeout / USEC_PER_MS), phase(send));
		return;
	}
	send_result_end(out, send, end_of(send, code), "%s",
	    send->error[0] != '\0' ? send->error : curl_easy_strerror(code));
}
