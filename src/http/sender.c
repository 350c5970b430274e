#include <arpa/inet.h>
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "base/err.h"
#include "pool.h"
#include "send.h"
#include "send_options.h"

struct sender {
	struct event_base *loop;
	struct sender_conf conf;
	struct own_address own;
	struct resolver *resolver;
	struct pool *pool;
	struct sockets *sockets;
	struct trust *trust;
	bool has_curl; /* curl_global_init() is to be undone */
	int in_flight;
	LIST_HEAD(, send) busy, idle;
};

static void
send_free(struct send *send)
{
	if (send == NULL)
		return;
	if (send->easy != NULL)
		curl_easy_cleanup(send->easy);
	buf_fini(&send->url);
	buf_wipe(&send->header_text);
	buf_fini(&send->header_nodes);
	buf_fini(&send->pin_text);
	buf_fini(&send->kept);
	buf_fini(&send->excerpt);
	free(send);
}

static void
release(struct send *send)
{
	struct sender *sender = send->sender;

	LIST_REMOVE(send, entry);
	LIST_INSERT_HEAD(&sender->idle, send, entry);
	send->state = SEND_IDLE;
	send_tls_clear(send);
}

/* Stop whatever is under way for `send`. */
static void
detach(struct send *send)
{
	switch (send->state) {
	case SEND_IDLE:
		return;
	case SEND_LOOKUP:
		lookup_cancel(send->lookup);
		break;
	case SEND_TRANSFER:
		multi_remove(send->multi, send->easy);
		break;
	}
	(void)event_del(&send->deadline);
	send->sender->in_flight--;
}

/* `send` has been detached; it is free for another once `done` returns. */
static void
finish(struct send *send, const struct send_result *result)
{
	send->done(send->arg, result);
	release(send);
}

static int begin_transfer(struct send *send, struct err *err);

/* Nothing was sent, and the connection is gone: take another.  One after the
 * other they run out. */
static int
begin_again(struct send *send)
{
	struct err err;

	send->stop = SEND_GOES_ON;
	send->error[0] = '\0';
	if (begin_transfer(send, &err) == 0)
		return 0;
	send->stop = SEND_STOP_SPOILT;
	return -1;
}

static void
on_transfer_done(CURL *easy, CURLcode code)
{
	struct send_result result;
	struct send *send;
	char *private;

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
	send = (struct send *)(void *)private;
	(void)event_del(&send->deadline);
	if (send->stop == SEND_STOP_SPOILT && begin_again(send) == 0)
		return;
	send->sender->in_flight--;
	send_result_fill(&result, send, code);
	finish(send, &result);
}

/* libcurl has the same deadline; this one does not depend on it. */
static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct send_result result;
	struct send *send = arg;

	(void)fd;
	(void)what;
	send_result_fill(&result, send, CURLE_OPERATION_TIMEDOUT);
	detach(send);
	finish(send, &result);
}

static struct send *
send_new(struct sender *sender, struct err *err)
{
	struct send *send;

	send = calloc(1, sizeof(*send));
	if (send == NULL) {
		(void)err_set(err, ERR_NOMEM, "send");
		return NULL;
	}
	send->sender = sender;
	send->policy = &sender->conf.policy;
	send->own = &sender->own;
	send->sockets = sender->sockets;
	send->trust = sender->trust;
	(void)evtimer_assign(&send->deadline, sender->loop, on_deadline, send);
	send->easy = curl_easy_init();
	if (send->easy == NULL) {
		(void)err_set(err, ERR_NOMEM, "an easy handle");
		goto fail;
	}
	if (send_options_set(send, send_options, err) != 0)
		goto fail;
	LIST_INSERT_HEAD(&sender->idle, send, entry);
	return send;

fail:
	send_free(send);
	return NULL;
}

static int
open_trust(struct sender *sender, struct err *err)
{
	const struct sender_conf *conf = &sender->conf;

	return trust_open(&sender->trust,
	    &(struct trust_conf){
		/* Development may do without the system's certificates. */
		.needs_system = !conf->policy.development,
		.ca_file = conf->ca_file,
		.revoked_file = conf->revoked_file,
	    },
	    err);
}

static int
open_pool(struct sender *sender, struct err *err)
{
	return pool_open(&sender->pool, sender->conf.max_in_flight,
	    &(struct multi_conf){
		.loop = sender->loop,
		.sockets = sender->sockets,
		.done = on_transfer_done,
	    },
	    err);
}

int
sender_open(struct sender **out, struct event_base *loop,
    const struct sender_conf *conf, struct err *err)
{
	struct sender *sender;

	/* libcurl would write the keys of every connection into it. */
	(void)unsetenv("SSLKEYLOGFILE");
	/* OpenSSL writes to connections that the other side has closed. */
	(void)signal(SIGPIPE, SIG_IGN);
	sender = calloc(1, sizeof(*sender));
	if (sender == NULL)
		return err_set(err, ERR_NOMEM, "sender");
	sender->loop = loop;
	sender->conf = *conf;
	LIST_INIT(&sender->busy);
	LIST_INIT(&sender->idle);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)err_set(err, ERR_BROKEN, "libcurl does not start");
		goto fail;
	}
	sender->has_curl = true;
	if (open_trust(sender, err) != 0 ||
	    sockets_new(&sender->sockets, err) != 0 ||
	    own_address_init(&sender->own, err) != 0 ||
	    open_pool(sender, err) != 0 ||
	    resolver_open(&sender->resolver, loop, conf->nameserver, err) != 0)
		goto fail;
	/* The first send is made now, to see that every option is taken. */
	if (send_new(sender, err) == NULL)
		goto fail;

	*out = sender;
	return 0;

fail:
	sender_close(sender);
	return err_wrap(err, "sender");
}

void
sender_close(struct sender *sender)
{
	struct send *send;

	if (sender == NULL)
		return;
	while ((send = LIST_FIRST(&sender->busy)) != NULL)
		send_cancel(send);
	while ((send = LIST_FIRST(&sender->idle)) != NULL) {
		LIST_REMOVE(send, entry);
		send_free(send);
	}
	pool_close(sender->pool);
	resolver_close(sender->resolver);
	own_address_fini(&sender->own);
	sockets_free(sender->sockets); /* after libcurl has closed them */
	trust_close(sender->trust);
	if (sender->has_curl)
		curl_global_cleanup();
	free(sender);
}

static int
set_request(struct send *send, long timeout_ms, struct err *err)
{
	CURL *easy = send->easy;
	struct curl_slist *pin = send->site.is_literal ? NULL : &send->pin;

	if (curl_easy_setopt(easy, CURLOPT_RESOLVE, pin) == 0 &&
	    curl_easy_setopt(
		easy, CURLOPT_HTTPHEADER, send_headers_list(send)) == 0 &&
	    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
		(curl_off_t)send->len) == 0 &&
	    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, send->body) == 0 &&
	    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms) == 0 &&
	    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, send->error) == 0)
		return 0;
	return err_set(err, ERR_RETRY, "libcurl does not take the request");
}

static int
begin_transfer(struct send *send, struct err *err)
{
	usec_t left = send->marks[MARK_START] + send->timeout - clock_now();
	struct timeval wait;

	if (left < USEC_PER_MS) /* 0 would be no limit at all */
		left = USEC_PER_MS;
	wait = clock_timeval(left);
	send->multi = pool_pick(
	    send->sender->pool, send->site.host, send->site.port, err);
	if (send->multi == NULL ||
	    set_request(send, (long)(left / USEC_PER_MS), err) != 0 ||
	    multi_add(send->multi, send->easy, err) != 0)
		return -1;
	(void)event_add(&send->deadline, &wait);
	send->state = SEND_TRANSFER;
	return 0;
}

/* Give libcurl the addresses, so that it has nothing to look up.  The + lets
 * it forget them. */
static int
pin_addresses(
    struct send *send, const struct lookup_result *found, struct err *err)
{
	struct buf *text = &send->pin_text;
	char address[INET6_ADDRSTRLEN];

	buf_clear(text);
	buf_printf(text, "+%s:%u", send->site.host, (unsigned)send->site.port);
	for (size_t i = 0; i < found->count; i++) {
		const union resolver_address *at = &found->addresses[i];
		bool is_v4 = at->any.sa_family == AF_INET;
		const void *octets = is_v4 ? (const void *)&at->v4.sin_addr
		                           : (const void *)&at->v6.sin6_addr;

		(void)inet_ntop(
		    at->any.sa_family, octets, address, sizeof(address));
		buf_printf(text, is_v4 ? "%c%s" : "%c[%s]", i == 0 ? ':' : ',',
		    address);
	}
	buf_add(text, "", 1);
	if (text->failed)
		return err_set(err, ERR_NOMEM, "addresses");
	send->pin = (struct curl_slist){ .data = text->data };
	return 0;
}

/* One bad address among a name's answers refuses them all. */
static const char *
refused_answer(const struct send *send, const struct lookup_result *found)
{
	const char *why = NULL;

	for (size_t i = 0; i < found->count && why == NULL; i++)
		why = send_refuses(send, &found->addresses[i].any);
	return why;
}

/* Go on with the addresses found.  0, or -1 with `result` filled. */
static int
go_on(struct send *send, const struct lookup_result *found,
    struct send_result *result)
{
	const char *why;
	struct err err;

	if (found->end == LOOKUP_TIMED_OUT) {
		send_result_fill(result, send, CURLE_OPERATION_TIMEDOUT);
		return -1;
	}
	if (found->end == LOOKUP_FAILED) {
		send_result_end(result, send, SEND_DNS_FAILED, "%s: %s",
		    send->site.host, found->reason);
		return -1;
	}
	why = refused_answer(send, found);
	if (why != NULL) {
		send_result_end(result, send, SEND_REFUSED,
		    "%s has an address that is not allowed: %s",
		    send->site.host, why);
		return -1;
	}
	if (clock_now() > send->not_after) {
		send_result_end(result, send, SEND_UNSENT,
		    "the name was found too late for the lease");
		return -1;
	}
	if (pin_addresses(send, found, &err) != 0 ||
	    begin_transfer(send, &err) != 0) {
		send_result_end(result, send, SEND_UNSENT, "%s", err.text);
		return -1;
	}
	return 0;
}

static void
on_lookup(void *arg, const struct lookup_result *found)
{
	struct send_result result;
	struct send *send = arg;

	send->lookup = NULL;
	send->marks[MARK_FOUND] = clock_now();
	if (go_on(send, found, &result) == 0)
		return;
	send->sender->in_flight--;
	finish(send, &result);
}

/* Forget the send before. */
static void
reset(struct send *send, const struct send_args *args)
{
	send->body = args->len > 0 ? args->body : "";
	send->len = args->len;
	memset(send->marks, 0, sizeof(send->marks));
	send->marks[MARK_START] = clock_now();
	send->timeout = args->timeout;
	send->not_after = args->not_after;
	send->stop = SEND_GOES_ON;
	send->refusal = NULL;
	send->requests = 0;
	send->interim = 0;
	send->status = 0;
	send_answer_reset(send);
	send->header_bytes = 0;
	send->body_bytes = 0;
	buf_clear(&send->excerpt);
	send->remote[0] = '\0';
	send->error[0] = '\0';
}

/* Judge the URL and give it to libcurl, which keeps a copy: unless it is the
 * one of the send before, on which the same policy has nothing new to say. */
static int
aim(struct send *send, const char *url, struct err *err)
{
	struct buf *text = &send->url;
	size_t len = strlen(url);
	struct target target;

	if (len + 1 == text->len && memcmp(text->data, url, len) == 0)
		return 0;
	buf_clear(text);
	if (target_parse(&target, url, len, send->policy, err) != 0)
		return -1;
	if (curl_easy_setopt(send->easy, CURLOPT_URL, target.url) != CURLE_OK)
		return err_set(err, ERR_NOMEM, "the URL");
	send->site = target.site;
	buf_add(text, url, len + 1);
	return 0;
}

static int
begin(struct send *send, struct err *err)
{
	if (send->site.is_literal)
		return begin_transfer(send, err);
	if (resolver_start(&send->lookup, send->sender->resolver,
		send->site.host, send->timeout, on_lookup, send, err) != 0)
		return -1;
	send->state = SEND_LOOKUP;
	return 0;
}

int
sender_start(struct send **out, struct sender *sender,
    const struct send_args *args, send_done_fn *done, void *arg,
    struct err *err)
{
	struct send *send = LIST_FIRST(&sender->idle);

	if (sender->in_flight >= sender->conf.max_in_flight)
		return err_set(err, ERR_RETRY, "%d sends are in flight",
		    sender->in_flight);
	if (send == NULL)
		send = send_new(sender, err);
	if (send == NULL)
		return -1;

	send->done = done;
	send->arg = arg;
	reset(send, args);
	if (aim(send, args->url, err) != 0 ||
	    send_headers_copy(send, args->headers, err) != 0 ||
	    send_tls_set(send, args->tls, err) != 0 || begin(send, err) != 0) {
		send_tls_clear(send);
		return -1;
	}
	LIST_REMOVE(send, entry);
	LIST_INSERT_HEAD(&sender->busy, send, entry);
	sender->in_flight++;
	*out = send;
	return 0;
}

void
send_cancel(struct send *send)
{
	assert(send->state != SEND_IDLE);
	detach(send);
	release(send);
}

int
sender_in_flight(const struct sender *sender)
{
	return sender->in_flight;
}
