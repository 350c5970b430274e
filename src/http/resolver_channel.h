/*
 * resolver_channel: a channel of c-ares on the loop.
 *
 * c-ares 1.18 walks a channel's questions to find the next timeout, draws ids
 * until one is free, and moves all of a server's questions when one of its
 * sockets breaks.  So a channel takes a bounded number of them, and the
 * resolver has as many channels as it needs.
 *
 * Answers are reported from within c-ares, to functions that must not call it.
 */

#ifndef HTTP_RESOLVER_CHANNEL_H
#define HTTP_RESOLVER_CHANNEL_H

#include <stdbool.h>
#include <sys/queue.h>

#include <ares.h>
#include <event2/event_struct.h>

struct err;
struct event_base;
struct resolver_channel;
struct resolver_question;
struct resolver_socket;

enum { RESOLVER_CHANNEL_QUESTIONS = 256 };

/* What c-ares made of a question; all of it lends. */
struct resolver_answer {
	int status; /* ARES_SUCCESS, ARES_ENOTFOUND ... */
	int timeouts; /* how often it had to ask again */
	const unsigned char *octets;
	int len;
};

/* Called exactly once, perhaps before resolver_channel_ask() returns. */
typedef void resolver_answer_fn(
    struct resolver_question *question, const struct resolver_answer *answer);

/* One name and family; it stays where it is until it is answered. */
struct resolver_question {
	resolver_answer_fn *on_answer;
	void *arg;
	int family; /* AF_INET or AF_INET6 */
	struct resolver_channel *channel; /* set by resolver_channel_ask() */
};

LIST_HEAD(resolver_channel_list, resolver_channel);

struct resolver_channel {
	LIST_ENTRY(resolver_channel) entry;
	struct event_base *loop;
	ares_channel ares;
	struct event timer; /* when c-ares wants to ask again or give up */
	LIST_HEAD(, resolver_socket) sockets;
	int servers; /* how many name servers it knows */
	int questions; /* asked and not answered */
	bool is_retired; /* takes no more: it frees itself with the last */
};

/* What a channel is made of. */
struct resolver_servers {
	const char *list; /* "address:port,...", or "" for resolv.conf's */
	const char *resolv_conf; /* its path */
	unsigned short port; /* where the servers in it listen */
	int first; /* which of them is asked first, modulo their number */
};

/* Make a channel and put it into `channels`.  ERR_REFUSED if the list of
 * servers is none. */
int resolver_channel_open(struct resolver_channel_list *channels,
    struct event_base *loop, const struct resolver_servers *servers,
    struct err *err);

/* Every question under way is answered with ARES_EDESTRUCTION. */
void resolver_channel_close(struct resolver_channel *channel);

/* Ask no more of it, and free it once nothing is under way. */
void resolver_channel_retire(struct resolver_channel *channel);

void resolver_channel_ask(struct resolver_channel *channel, const char *name,
    struct resolver_question *question);

#endif
