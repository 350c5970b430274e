#include <errno.h>
#include <event2/event.h>
#include <limits.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "wire.h"
#include "wire_tls.h"

/* What the program may tell its log; NULL for what needs no word: a client
 * that has just gone. */
static const char *
explain(SSL *ssl)
{
	unsigned long error = ERR_peek_error();
	int reason = ERR_GET_REASON(error);

	if (error == 0 || ERR_GET_LIB(error) != ERR_LIB_SSL ||
	    reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return NULL;
	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return X509_verify_cert_error_string(
		    SSL_get_verify_result(ssl));
	return ERR_reason_error_string(error);
}

static ssize_t
fail(struct wire *wire)
{
	wire->has_failed = true;
	wire->failure = explain(wire->ssl);
	ERR_clear_error();
	errno = EPROTO;
	return -1;
}

/* What became of a read or a write that gave `result`. */
static ssize_t
judge(struct wire *wire, int result)
{
	switch (SSL_get_error(wire->ssl, result)) {
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_WRITE:
		event_add(&wire->writable, NULL);
		errno = EAGAIN;
		return -1;
	default:
		return fail(wire);
	}
}

ssize_t
wire_tls_recv(struct wire *wire, void *at, size_t n)
{
	int result;

	ERR_clear_error();
	result = SSL_read(wire->ssl, at, n > INT_MAX ? INT_MAX : (int)n);
	if (result <= 0)
		return judge(wire, result);
	if (wire_tls_has_more(wire))
		event_active(&wire->readable, EV_READ, 0);
	return result;
}

ssize_t
wire_tls_send(struct wire *wire, const void *at, size_t n)
{
	int result;

	ERR_clear_error();
	result = SSL_write(wire->ssl, at, n > INT_MAX ? INT_MAX : (int)n);
	if (result > 0)
		return result;
	return judge(wire, result) == 0 ? fail(wire) : -1;
}

bool
wire_tls_has_more(const struct wire *wire)
{
	return SSL_pending(wire->ssl) > 0;
}

void
wire_tls_resume(struct wire *wire)
{
	if (SSL_want_write(wire->ssl))
		event_active(&wire->readable, EV_READ, 0);
}

void
wire_tls_end(struct wire *wire)
{
	if (wire->has_failed || SSL_in_init(wire->ssl) ||
	    (SSL_get_shutdown(wire->ssl) & SSL_SENT_SHUTDOWN) != 0)
		return;
	/* It may not fit now: an answer says by itself where it ends. */
	ERR_clear_error();
	(void)SSL_shutdown(wire->ssl);
	ERR_clear_error();
}
