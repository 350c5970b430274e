#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/err.h"
#include "resolver_channel.h"
#include "resolver_files.h"
#include "resolver_inside.h"

/* How long the second family is waited for once the first is there. */
#define SKEW (500 * USEC_PER_MS)

enum {
	LATE_IN_A_ROW = 4, /* then another name server is asked first */
	UNANSWERED = -1, /* no status of c-ares */
};

/* What is known of one family. */
struct family {
	struct resolver_question question;
	int status; /* of c-ares, or UNANSWERED */
	size_t count;
	union resolver_address addresses[RESOLVER_ANSWERS_MAX];
};

/* It lives until `done` was called or it was cancelled, and c-ares has
 * answered both questions: they cannot be taken back. */
struct lookup {
	LIST_ENTRY(lookup) entry; /* until it is over for its owner */
	struct resolver *resolver;
	struct event timer; /* delivers: when all is there, or time is up */
	usec_t deadline;
	int waiting; /* questions that c-ares has */
	lookup_done_fn *done; /* NULL once it is over for its owner */
	void *arg;
	struct family v4, v6;
};

struct resolver {
	struct event_base *loop;
	struct resolver_servers servers;
	struct resolver_files files;
	struct resolver_channel_list channels;
	int late; /* answers in a row that came from another server */
	bool is_stale; /* the channels ask servers that others replace */
	LIST_HEAD(, lookup) lookups;
};

int
resolver_open_at(struct resolver **out, struct event_base *loop,
    const struct resolver_places *places, struct err *err)
{
	struct resolver *resolver;

	resolver = calloc(1, sizeof(*resolver));
	if (resolver == NULL)
		return err_set(err, ERR_NOMEM, "resolver");
	resolver->loop = loop;
	resolver->servers.list = places->nameserver;
	resolver->servers.resolv_conf = places->resolv_conf;
	resolver->servers.port = places->port;
	LIST_INIT(&resolver->channels);
	LIST_INIT(&resolver->lookups);
	resolver_files_init(
	    &resolver->files, places->hosts, places->resolv_conf);
	if (resolver_channel_open(
		&resolver->channels, loop, &resolver->servers, err) != 0) {
		resolver_close(resolver);
		return -1;
	}
	*out = resolver;
	return 0;
}

int
resolver_open(struct resolver **out, struct event_base *loop,
    const char *nameserver, struct err *err)
{
	const struct resolver_places places = {
		.nameserver = nameserver,
		.hosts = "/etc/hosts",
		.resolv_conf = "/etc/resolv.conf",
		.port = 53,
	};

	return resolver_open_at(out, loop, &places, err);
}

void
resolver_close(struct resolver *resolver)
{
	if (resolver == NULL)
		return;
	while (!LIST_EMPTY(&resolver->lookups))
		lookup_cancel(LIST_FIRST(&resolver->lookups));
	while (!LIST_EMPTY(&resolver->channels))
		resolver_channel_close(LIST_FIRST(&resolver->channels));
	resolver_files_fini(&resolver->files);
	free(resolver);
}

static void
release(struct lookup *lookup)
{
	if (lookup->done == NULL && lookup->waiting == 0)
		free(lookup);
}

/* Over for its owner. */
static void
detach(struct lookup *lookup)
{
	LIST_REMOVE(lookup, entry);
	(void)event_del(&lookup->timer);
	lookup->done = NULL;
	release(lookup);
}

static void
add(struct lookup_result *result, const struct family *family, size_t i)
{
	if (i < family->count && result->count < RESOLVER_ANSWERS_MAX)
		result->addresses[result->count++] = family->addresses[i];
}

static bool
says_no(const struct family *family)
{
	return family->status == ARES_ENOTFOUND ||
	       family->status == ARES_ENODATA;
}

static const char *
reason_of(const struct family *v4, const struct family *v6)
{
	if (says_no(v4) && says_no(v6))
		return v4->status == ARES_ENOTFOUND ||
		               v6->status == ARES_ENOTFOUND
		           ? "no such name"
		           : "the name has no address";
	if (v4->status == ARES_ETIMEOUT || v6->status == ARES_ETIMEOUT)
		return "no answer from the name servers";
	return "the name servers cannot say now";
}

/* The families take turns, so that neither crowds out the other. */
static void
fill(struct lookup_result *result, const struct lookup *lookup)
{
	const struct family *v4 = &lookup->v4, *v6 = &lookup->v6;

	*result = (struct lookup_result){ .reason = "" };
	for (size_t i = 0; i < RESOLVER_ANSWERS_MAX; i++) {
		add(result, v4, i);
		add(result, v6, i);
	}
	if (result->count > 0)
		return;
	if (lookup->waiting > 0) {
		result->end = LOOKUP_TIMED_OUT;
		result->reason = "no answer from the name servers in time";
		return;
	}
	result->end = LOOKUP_FAILED;
	result->reason = reason_of(v4, v6);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *lookup = arg;
	struct lookup_result result;
	lookup_done_fn *done = lookup->done;
	void *done_arg = lookup->arg;

	(void)fd;
	(void)what;
	fill(&result, lookup);
	detach(lookup);
	done(done_arg, &result);
}

static int
read_v4(struct family *family, const struct resolver_answer *answer)
{
	struct ares_addrttl list[RESOLVER_ANSWERS_MAX];
	int count = RESOLVER_ANSWERS_MAX;
	int status =
	    ares_parse_a_reply(answer->octets, answer->len, NULL, list, &count);

	for (int i = 0; status == ARES_SUCCESS && i < count; i++)
		family->addresses[family->count++].v4 = (struct sockaddr_in){
			.sin_family = AF_INET,
			.sin_addr = list[i].ipaddr,
		};
	return status;
}

static int
read_v6(struct family *family, const struct resolver_answer *answer)
{
	struct ares_addr6ttl list[RESOLVER_ANSWERS_MAX];
	int count = RESOLVER_ANSWERS_MAX;
	int status = ares_parse_aaaa_reply(
	    answer->octets, answer->len, NULL, list, &count);

	for (int i = 0; status == ARES_SUCCESS && i < count; i++) {
		struct sockaddr_in6 *to =
		    &family->addresses[family->count++].v6;

		*to = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
		memcpy(&to->sin6_addr, &list[i].ip6addr, sizeof(to->sin6_addr));
	}
	return status;
}

/* c-ares begins each question with the first name server.  If that is down,
 * every name costs a wait: let another be the first. */
static void
watch_servers(struct resolver *resolver,
    const struct resolver_question *question,
    const struct resolver_answer *answer)
{
	if (answer->status != ARES_SUCCESS || question->channel->is_retired)
		return;
	resolver->late = answer->timeouts > 0 ? resolver->late + 1 : 0;
	if (resolver->late < LATE_IN_A_ROW || question->channel->servers < 2)
		return;
	resolver->late = 0;
	resolver->servers.first++;
	resolver->is_stale = true;
}

/* From within c-ares: nothing of it may be called, nor anything of ours that
 * could.  The timer delivers. */
static void
on_answer(
    struct resolver_question *question, const struct resolver_answer *answer)
{
	struct lookup *lookup = question->arg;
	bool is_v4 = question->family == AF_INET;
	struct family *family = is_v4 ? &lookup->v4 : &lookup->v6;
	struct timeval wait;

	lookup->waiting--;
	if (lookup->done == NULL) {
		release(lookup);
		return;
	}
	watch_servers(lookup->resolver, question, answer);
	family->status = answer->status;
	if (answer->status == ARES_SUCCESS)
		family->status =
		    is_v4 ? read_v4(family, answer) : read_v6(family, answer);
	/* Aliases without an end. */
	if (family->status == ARES_SUCCESS && family->count == 0)
		family->status = ARES_ENODATA;
	if (lookup->waiting == 0) {
		event_active(&lookup->timer, EV_TIMEOUT, 1);
	} else if (family->count > 0) {
		usec_t left = lookup->deadline - clock_now();

		wait = clock_timeval(left < SKEW ? left : SKEW);
		(void)event_add(&lookup->timer, &wait);
	}
}

/* Channels of other servers than those of now are let run dry. */
static void
retire_stale(struct resolver *resolver)
{
	struct resolver_channel *channel, *next;

	if (resolver_files_look(&resolver->files))
		resolver->is_stale = true;
	if (!resolver->is_stale)
		return;
	resolver->is_stale = false;
	for (channel = LIST_FIRST(&resolver->channels); channel != NULL;
	     channel = next) {
		next = LIST_NEXT(channel, entry);
		resolver_channel_retire(channel);
	}
}

static struct resolver_channel *
pick(struct resolver *resolver, struct err *err)
{
	struct resolver_channel *channel;

	LIST_FOREACH (channel, &resolver->channels, entry)
		if (!channel->is_retired &&
		    channel->questions + 2 <= RESOLVER_CHANNEL_QUESTIONS)
			return channel;
	if (resolver_channel_open(&resolver->channels, resolver->loop,
		&resolver->servers, err) != 0)
		return NULL;
	return LIST_FIRST(&resolver->channels);
}

/* Both families at once. */
static int
ask(struct lookup *lookup, const char *name, struct err *err)
{
	struct resolver_channel *channel = pick(lookup->resolver, err);

	if (channel == NULL)
		return -1;
	lookup->waiting = 2;
	resolver_channel_ask(channel, name, &lookup->v4.question);
	resolver_channel_ask(channel, name, &lookup->v6.question);
	return 0;
}

static struct lookup *
lookup_new(struct resolver *resolver, lookup_done_fn *done, void *arg)
{
	struct lookup *lookup;

	lookup = calloc(1, sizeof(*lookup));
	if (lookup == NULL)
		return NULL;
	lookup->resolver = resolver;
	lookup->done = done;
	lookup->arg = arg;
	lookup->v4.question = (struct resolver_question){
		.on_answer = on_answer, .arg = lookup, .family = AF_INET
	};
	lookup->v6.question = (struct resolver_question){
		.on_answer = on_answer, .arg = lookup, .family = AF_INET6
	};
	lookup->v4.status = UNANSWERED;
	lookup->v6.status = UNANSWERED;
	(void)evtimer_assign(&lookup->timer, resolver->loop, on_timer, lookup);
	LIST_INSERT_HEAD(&resolver->lookups, lookup, entry);
	return lookup;
}

int
resolver_start(struct lookup **out, struct resolver *resolver, const char *name,
    usec_t timeout, lookup_done_fn *done, void *arg, struct err *err)
{
	const struct timeval wait = clock_timeval(timeout);
	struct lookup *lookup = lookup_new(resolver, done, arg);

	if (lookup == NULL)
		return err_set(err, ERR_NOMEM, "lookup");
	retire_stale(resolver);
	lookup->deadline = clock_now() + timeout;
	(void)event_add(&lookup->timer, &wait);
	lookup->v4.count = resolver_files_find(
	    &resolver->files, name, lookup->v4.addresses, RESOLVER_ANSWERS_MAX);
	if (lookup->v4.count > 0) {
		event_active(&lookup->timer, EV_TIMEOUT, 1);
	} else if (ask(lookup, name, err) != 0) {
		detach(lookup);
		return -1;
	}
	*out = lookup;
	return 0;
}

void
lookup_cancel(struct lookup *lookup)
{
	detach(lookup);
}
