#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "base/private_file.h"
#include "http/tls.h"
#include "wire_tls.h"

struct tls {
	SSL_CTX *context;
};

/* A file is wrong: say how, in OpenSSL's words. */
static int
refuse_file(struct err *err, const char *setting, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	(void)err_set(err, ERR_BROKEN, "%s %s: %s", setting, path,
	    why == NULL ? "it cannot be read" : why);
	ERR_clear_error();
	return -1;
}

/* A key behind a password would ask for it on the terminal. */
static int
no_password(char *out, int size, int is_write, void *arg)
{
	(void)is_write;
	(void)arg;
	if (size > 0)
		out[0] = '\0';
	return 0;
}

static EVP_PKEY *
read_key(const char *path, struct err *err)
{
	int fd = private_file_open("tls_key", path, err);
	EVP_PKEY *key = NULL;
	BIO *file;

	if (fd < 0)
		return NULL;
	file = BIO_new_fd(fd, BIO_CLOSE); /* keeps no copy of what it reads */
	if (file == NULL) {
		(void)close(fd);
		(void)err_set(err, ERR_NOMEM, "tls_key");
	} else {
		key = PEM_read_bio_PrivateKey(file, NULL, no_password, NULL);
		if (key == NULL)
			(void)refuse_file(err, "tls_key", path);
	}
	(void)BIO_free(file);
	return key;
}

static int
use_key(SSL_CTX *context, const struct tls_files *files, struct err *err)
{
	EVP_PKEY *key = read_key(files->key, err);
	int used;

	if (key == NULL)
		return -1;
	used = SSL_CTX_use_PrivateKey(context, key);
	EVP_PKEY_free(key);
	/* It also fails if the key is not the certificate's. */
	return used == 1 ? 0 : refuse_file(err, "tls_key", files->key);
}

static int
use_certificate(
    SSL_CTX *context, const struct tls_files *files, struct err *err)
{
	SSL_CTX_set_default_passwd_cb(context, no_password);
	if (SSL_CTX_use_certificate_chain_file(context, files->certificate) ==
	    1)
		return use_key(context, files, err);
	return refuse_file(err, "tls_certificate", files->certificate);
}

static int
ask_clients(SSL_CTX *context, const char *path, struct err *err)
{
	STACK_OF(X509_NAME) * names;

	if (path[0] == '\0')
		return 0;
	names = SSL_load_client_CA_file(path);
	if (names == NULL || SSL_CTX_load_verify_file(context, path) != 1) {
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return refuse_file(err, "tls_client_ca", path);
	}
	SSL_CTX_set_client_CA_list(context, names);
	SSL_CTX_set_verify(
	    context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	/* A ticket would stand for a certificate that has expired since. */
	SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	(void)SSL_CTX_set_num_tickets(context, 0);
	return 0;
}

/* RFC 7301 3.2: who speaks something else only is told so at once. */
static int
choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *in, unsigned int in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in,
		in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int
set_rules(SSL_CTX *context)
{
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_CLEANSE_PLAINTEXT |
					 SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
				      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	/* A client that sends records without data gets a turn, not the loop. */
	SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
	(void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	               SSL_CTX_set_cipher_list(
			   context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
	               SSL_CTX_set_num_tickets(context, 1) == 1
	           ? 0
	           : -1;
}

int
tls_read(struct tls **out, const struct tls_files *files, struct err *err)
{
	struct tls *tls = calloc(1, sizeof(*tls));

	ERR_clear_error();
	if (tls != NULL)
		tls->context = SSL_CTX_new(TLS_server_method());
	if (tls == NULL || tls->context == NULL ||
	    set_rules(tls->context) != 0) {
		tls_free(tls);
		return err_set(err, ERR_NOMEM, "TLS");
	}
	if (use_certificate(tls->context, files, err) != 0 ||
	    ask_clients(tls->context, files->client_ca, err) != 0) {
		tls_free(tls);
		return -1;
	}
	*out = tls;
	return 0;
}

void
tls_free(struct tls *tls)
{
	if (tls == NULL)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}

usec_t
tls_expires_at(const struct tls *tls)
{
	const X509 *own = SSL_CTX_get0_certificate(tls->context);
	struct tm tm = { 0 };
	time_t at;

	if (ASN1_TIME_to_tm(X509_get0_notAfter(own), &tm) != 1)
		return 0;
	at = timegm(&tm);
	return at < 0 ? 0 : (usec_t)at * USEC_PER_SEC;
}

SSL *
wire_tls_open(const struct tls *tls, int fd)
{
	SSL *ssl = SSL_new(tls->context);

	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1) {
		ERR_clear_error();
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}
