#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "send.h"

/* From one mark to the next; what is not over lasts until `now`. */
static usec_t
phase_time(
    const struct send *send, enum send_mark from, enum send_mark to, usec_t now)
{
	usec_t end = send->marks[to] != 0 ? send->marks[to] : now;

	return send->marks[from] == 0 ? -1 : end - send->marks[from];
}

static struct send_timing
timing_of(const struct send *send, usec_t now)
{
	bool has_tls = send->site.is_https;

	return (struct send_timing){
		.dns = send->site.is_literal
		           ? -1
		           : phase_time(send, MARK_START, MARK_FOUND, now),
		.connect = phase_time(
		    send, MARK_SOCKET, has_tls ? MARK_TLS : MARK_REQUEST, now),
		.tls = phase_time(send, MARK_TLS, MARK_REQUEST, now),
		.wait = phase_time(send, MARK_REQUEST, MARK_ANSWER, now),
		.receive = phase_time(send, MARK_ANSWER, MARK_END, now),
	};
}

/* The texts are the receiver's. */
static void
fill(struct send_result *out, const struct send *send, enum send_end end)
{
	usec_t now = clock_now();

	out->end = end;
	out->status = send->status;
	out->retry_after = send->retry_after;
	out->duration = now - send->marks[MARK_START];
	out->timing = timing_of(send, now);
	memcpy(out->remote, send->remote, sizeof(out->remote));
	out->reason[0] = '\0';
	if (send->kept.len > 0)
		memcpy(out->headers, send->kept.data, send->kept.len);
	out->headers[send->kept.len] = '\0';
	(void)text_make_safe(out->excerpt, sizeof(out->excerpt),
	    send->excerpt.data, send->excerpt.len);
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
	(void)text_make_safe(
	    out->reason, sizeof(out->reason), text, strlen(text));
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
	case SEND_STOP_SPOILT:
		send_result_end(out, send, SEND_UNSENT,
		    "the connection spoke before it was asked");
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
	case SEND_STOP_STATUS:
		send_result_end(
		    out, send, SEND_BROKEN, "a status line without a status");
		break;
	case SEND_STOP_LENGTH:
		send_result_end(out, send, SEND_BROKEN,
		    "a Content-Length that is no number, or several");
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
		return send->marks[MARK_TLS] == 0 ? "connecting"
		                                  : "in the TLS handshake";
	if (send->header_bytes == 0)
		return "waiting for an answer";
	return "reading the answer";
}

/* OpenSSL's own words, which libcurl passes on in the middle of others:
 * "error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0". */
static bool
find_tls_words(const char *text, const char **words, int *len)
{
	const char *at = strstr(text, "error:");

	at = at == NULL ? NULL : strstr(at, "::");
	if (at == NULL)
		return false;
	*words = at + 2;
	*len = (int)strcspn(*words, ",");
	return *len > 0;
}

/* The other side has broken TLS off, be it after our request: with TLS 1.3 it
 * looks at our certificate only then. */
static bool
is_tls_alert(const struct send *send)
{
	return send->site.is_https && send->header_bytes == 0 &&
	       strstr(send->error, "SSL routines") != NULL &&
	       strstr(send->error, " alert ") != NULL;
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
	case CURLE_SSL_CLIENTCERT:
	case CURLE_SSL_ENGINE_NOTFOUND:
	case CURLE_SSL_ENGINE_SETFAILED:
	case CURLE_SSL_ENGINE_INITFAILED:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CRL_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
		return SEND_TLS_FAILED;
	case CURLE_SSL_CERTPROBLEM: /* our own, not the receiver's */
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_URL_MALFORMAT:
		return SEND_IMPOSSIBLE;
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
		return send->requests > 0 ? SEND_BROKEN : SEND_UNSENT;
	}
	if (is_tls_alert(send))
		return SEND_TLS_FAILED;
	return send->requests > 0 ? SEND_BROKEN : SEND_CONNECT_FAILED;
}

static void
fill_failed(struct send_result *out, const struct send *send, CURLcode code)
{
	enum send_end end = end_of(send, code);
	const char *words;
	int len;

	if (code == CURLE_SSL_CERTPROBLEM)
		send_result_end(out, send, end,
		    "its client certificate or key cannot be used");
	else if (code == CURLE_SSL_CACERT_BADFILE)
		send_result_end(out, send, end,
		    "its authority's certificate cannot be used");
	else if (code == CURLE_SSL_CONNECT_ERROR &&
		 strstr(send->error, "SSL_connect: ") != NULL)
		send_result_end(out, send, end,
		    "the connection closed in the TLS handshake");
	else if (find_tls_words(send->error, &words, &len))
		send_result_end(out, send, end, "TLS: %.*s", len, words);
	else
		send_result_end(out, send, end, "%s",
		    send->error[0] != '\0' ? send->error
					   : curl_easy_strerror(code));
}

void
send_result_fill(
    struct send_result *out, const struct send *send, CURLcode code)
{
	/* libcurl is content with headers that were cut short. */
	if (code == CURLE_OK && !send->header_ended)
		send_result_end(out, send, SEND_BROKEN,
		    "the connection closed amid the headers");
	else if (code == CURLE_OK)
		fill(out, send, SEND_ANSWERED);
	else if (send->stop != SEND_GOES_ON)
		fill_stopped(out, send);
	else if (code == CURLE_OPERATION_TIMEDOUT)
		send_result_end(out, send, SEND_TIMED_OUT,
		    "timed out after %lld ms while %s",
		    (long long)(send->timeout / USEC_PER_MS), phase(send));
	else
		fill_failed(out, send, code);
}
