#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>

#include "base/err.h"
#include "http/resolver.h"

struct lookup {
	LIST_ENTRY(lookup) entry;
	struct evdns_getaddrinfo_request *request; /* NULL once answered */
	struct event timer; /* the timeout; or delivers an early answer */
	bool is_answered;
	lookup_done_fn *done; /* NULL once cancelled */
	void *arg;
	struct lookup_result result;
};

struct resolver {
	struct event_base *loop;
	struct evdns_base *dns;
	LIST_HEAD(, lookup) lookups;
};

/* What evdns would do otherwise: 64 questions at a time, so that silent name
 * servers of one tenant hold up all others; 5 s before it asks again; 3 s for
 * the second family once the first is there. */
static const struct {
	const char *name, *value;
} options[] = {
	{ "max-inflight:", "16384" },
	{ "timeout:", "1" },
	{ "attempts:", "5" },
	{ "max-timeouts:", "16" },
	{ "getaddrinfo-allow-skew:", "0.5" },
};

static int
set_options(struct resolver *resolver, struct err *err)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (evdns_base_set_option(
			resolver->dns, options[i].name, options[i].value) != 0)
			return err_set(err, ERR_BROKEN,
			    "evdns does not take %s", options[i].name);
	return 0;
}

static int
set_nameservers(
    struct resolver *resolver, const char *nameserver, struct err *err)
{
	if (nameserver[0] != '\0') {
		(void)evdns_base_load_hosts(resolver->dns, "/etc/hosts");
		if (evdns_base_nameserver_ip_add(resolver->dns, nameserver) !=
		    0)
			return err_set(err, ERR_REFUSED,
			    "the name server must be address:port, not \"%s\"",
			    nameserver);
		return 0;
	}
	/* Without DNS_OPTION_SEARCH: a name is what its tenant wrote.  When
	 * the file is missing evdns takes the server on this machine. */
	(void)evdns_base_resolv_conf_parse(resolver->dns,
	    DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC | DNS_OPTION_HOSTSFILE,
	    "/etc/resolv.conf");
	return 0;
}

/* A name server that is late is no news for a library to write out. */
static void
say_nothing(int is_warning, const char *message)
{
	(void)is_warning;
	(void)message;
}

int
resolver_open(struct resolver **out, struct event_base *loop,
    const char *nameserver, struct err *err)
{
	struct resolver *resolver;

	evdns_set_log_fn(say_nothing);
	resolver = calloc(1, sizeof(*resolver));
	if (resolver == NULL)
		return err_set(err, ERR_NOMEM, "resolver");
	resolver->loop = loop;
	LIST_INIT(&resolver->lookups);
	resolver->dns = evdns_base_new(loop, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
	if (resolver->dns == NULL) {
		(void)err_set(err, ERR_NOMEM, "resolver");
		goto fail;
	}
	if (set_nameservers(resolver, nameserver, err) != 0 ||
	    set_options(resolver, err) != 0)
		goto fail;

	*out = resolver;
	return 0;

fail:
	resolver_close(resolver);
	return -1;
}

void
resolver_close(struct resolver *resolver)
{
	if (resolver == NULL)
		return;
	while (!LIST_EMPTY(&resolver->lookups))
		lookup_cancel(LIST_FIRST(&resolver->lookups));
	if (resolver->dns != NULL)
		evdns_base_free(resolver->dns, 1);
	free(resolver);
}

static void
finish(struct lookup *lookup)
{
	LIST_REMOVE(lookup, entry);
	(void)event_del(&lookup->timer);
	lookup->done(lookup->arg, &lookup->result);
	free(lookup);
}

static void
keep_addresses(struct lookup_result *result, const struct addrinfo *list)
{
	for (const struct addrinfo *at = list;
	     at != NULL && result->count < RESOLVER_ANSWERS_MAX;
	     at = at->ai_next) {
		union resolver_address *to = &result->addresses[result->count];

		if (at->ai_family == AF_INET)
			memcpy(&to->v4, at->ai_addr, sizeof(to->v4));
		else if (at->ai_family == AF_INET6)
			memcpy(&to->v6, at->ai_addr, sizeof(to->v6));
		else
			continue;
		result->count++;
	}
}

static const char *
reason_of(int code)
{
	if (code == EVUTIL_EAI_NONAME || code == EVUTIL_EAI_NODATA)
		return "no such name";
	if (code == EVUTIL_EAI_AGAIN)
		return "the name servers cannot say now";
	return "the name servers failed";
}

static void
on_answer(int code, struct evutil_addrinfo *list, void *arg)
{
	static const struct timeval at_once = { 0, 0 };
	struct lookup *lookup = arg;
	struct lookup_result *result = &lookup->result;
	bool is_early = lookup->request == NULL;

	lookup->request = NULL;
	lookup->is_answered = true;
	if (code == 0)
		keep_addresses(result, list);
	if (list != NULL)
		evutil_freeaddrinfo(list);
	if (lookup->done == NULL) { /* cancelled */
		free(lookup);
		return;
	}
	result->end = result->count > 0 ? LOOKUP_FOUND : LOOKUP_FAILED;
	result->reason = result->count > 0 ? "" : reason_of(code);
	if (is_early) /* inside resolver_start(): from the hosts file */
		(void)event_add(&lookup->timer, &at_once);
	else
		finish(lookup);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *lookup = arg;
	struct lookup_result result = { .end = LOOKUP_TIMED_OUT };
	lookup_done_fn *done = lookup->done;
	void *done_arg = lookup->arg;

	(void)fd;
	(void)what;
	if (lookup->is_answered) {
		finish(lookup);
		return;
	}
	lookup_cancel(lookup);
	result.reason = "no answer from the name servers in time";
	done(done_arg, &result);
}

int
resolver_start(struct lookup **out, struct resolver *resolver, const char *name,
    usec_t timeout, lookup_done_fn *done, void *arg, struct err *err)
{
	static const struct evutil_addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_protocol = IPPROTO_TCP,
	};
	const struct timeval wait = clock_timeval(timeout);
	struct lookup *lookup;

	lookup = calloc(1, sizeof(*lookup));
	if (lookup == NULL)
		return err_set(err, ERR_NOMEM, "lookup");
	lookup->done = done;
	lookup->arg = arg;
	(void)evtimer_assign(&lookup->timer, resolver->loop, on_timer, lookup);
	LIST_INSERT_HEAD(&resolver->lookups, lookup, entry);

	/* NULL also when it has been answered already: see on_answer(). */
	lookup->request = evdns_getaddrinfo(
	    resolver->dns, name, NULL, &hints, on_answer, lookup);
	if (!lookup->is_answered)
		(void)event_add(&lookup->timer, &wait);
	*out = lookup;
	return 0;
}

void
lookup_cancel(struct lookup *lookup)
{
	LIST_REMOVE(lookup, entry);
	(void)event_del(&lookup->timer);
	lookup->done = NULL;
	if (lookup->request != NULL)
		evdns_getaddrinfo_cancel(lookup->request); /* on_answer frees */
	else
		free(lookup);
}
