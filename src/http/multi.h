/*
 * multi: libcurl's multi interface, driven by the loop.
 *
 * libcurl's callbacks only arm events; it is entered from those events alone,
 * and what has ended is taken out once after each entry.
 */

#ifndef HTTP_MULTI_H
#define HTTP_MULTI_H

#include <curl/curl.h>

struct err;
struct event_base;
struct multi;
struct sockets;
struct watch;

/* `easy` has been removed already, and may be added again. */
typedef void multi_done_fn(CURL *easy, CURLcode code);

struct multi_conf {
	struct event_base *loop;
	struct sockets *sockets; /* outlives it */
	int kept; /* connections, busy and idle */
	multi_done_fn *done;
};

/* ERR_BROKEN names an option that cannot be set. */
int multi_open(
    struct multi **out, const struct multi_conf *conf, struct err *err);

/* All handles have been removed.  NULL is fine. */
void multi_close(struct multi *multi);

/* Begin a transfer: `done` is called once, from the loop, never from here. */
int multi_add(struct multi *multi, CURL *easy, struct err *err);

/* Transfers under way. */
int multi_transfers(const struct multi *multi);

/* Watch no more what sockets_drop() gave back. */
void multi_forget(struct watch *watch);

/* Break a transfer off: `done` is not called. */
void multi_remove(struct multi *multi, CURL *easy);

#endif
