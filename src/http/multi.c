#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/clock.h"
#include "base/err.h"
#include "multi.h"
#include "sockets.h"

/* Should libcurl forget its timer (fixed in 8.11), no transfer may hang. */
#define TICK USEC_PER_SEC

/*
 * A socket that libcurl wants watched.  It wants each connection's unwatched
 * after a request, and watched again for the next: as long as the connection
 * is known to be closed through our own hands, that is put off, which saves
 * two system calls a request.
 */
struct watch {
	SLIST_ENTRY(watch) entry; /* in `spare` when not in use */
	struct event event;
	struct multi *multi;
	short what; /* EV_READ, EV_WRITE; 0: the event is not added */
	bool is_idle; /* libcurl believes it is not watched */
};

struct multi {
	struct multi_conf conf;
	CURLM *curl;
	struct event timer;
	struct event tick;
	int transfers;
	SLIST_HEAD(, watch) spare;
};

/* Take out what has ended.  A `done` may add and remove others. */
static void
drain(struct multi *multi)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi->curl, &left)) != NULL) {
		/* Gone with the removal, so copied. */
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;

		multi_remove(multi, easy);
		multi->conf.done(easy, code);
	}
}

static void
enter(struct multi *multi, curl_socket_t fd, int what)
{
	int running;

	(void)curl_multi_socket_action(multi->curl, fd, what, &running);
	drain(multi);
}

static void
stop(struct watch *watch)
{
	if (watch->what != 0)
		(void)event_del(&watch->event);
	watch->what = 0;
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct watch *watch = arg;

	/* What comes to a connection at rest is for no request; before it is
	 * used again it is looked at. */
	if (watch->is_idle)
		stop(watch);
	else
		enter(watch->multi, fd,
		    (what & EV_READ ? CURL_CSELECT_IN : 0) |
			(what & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	enter(arg, CURL_SOCKET_TIMEOUT, 0);
}

/* The one that was left with `fd`, or another. */
static struct watch *
take(struct multi *multi, curl_socket_t fd)
{
	struct watch *watch = sockets_unpark(multi->conf.sockets, fd);

	if (watch != NULL)
		return watch;
	watch = SLIST_FIRST(&multi->spare);
	if (watch == NULL)
		watch = calloc(1, sizeof(*watch));
	else
		SLIST_REMOVE_HEAD(&multi->spare, entry);
	if (watch != NULL)
		watch->multi = multi;
	return watch;
}

void
multi_forget(struct watch *watch)
{
	stop(watch);
	SLIST_INSERT_HEAD(&watch->multi->spare, watch, entry);
}

/* A socket that is not known may be closed already. */
static void
leave(struct watch *watch, curl_socket_t fd)
{
	watch->is_idle = true;
	if (watch->what != EV_READ ||
	    !sockets_park(watch->multi->conf.sockets, fd, watch))
		multi_forget(watch);
}

static int
await(struct watch *watch, curl_socket_t fd, short what)
{
	watch->is_idle = false;
	if (watch->what == what)
		return 0;
	stop(watch);
	(void)event_assign(&watch->event, watch->multi->conf.loop, fd,
	    (short)(EV_PERSIST | what), on_ready, watch);
	if (event_add(&watch->event, NULL) != 0)
		return -1;
	watch->what = what;
	return 0;
}

/* Called by libcurl from inside: arm, and nothing else. */
static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *watch_arg)
{
	struct multi *multi = arg;
	struct watch *watch = watch_arg;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (watch != NULL)
			leave(watch, fd);
		(void)curl_multi_assign(multi->curl, fd, NULL);
		return 0;
	}
	if (watch == NULL) {
		watch = take(multi, fd);
		if (watch == NULL)
			return -1;
		(void)curl_multi_assign(multi->curl, fd, watch);
	}
	return await(watch, fd,
	    (short)((what & CURL_POLL_IN ? EV_READ : 0) |
		    (what & CURL_POLL_OUT ? EV_WRITE : 0)));
}

/* The same. */
static int
on_timer(CURLM *curl, long ms, void *arg)
{
	struct multi *multi = arg;
	struct timeval wait;

	(void)curl;
	if (ms < 0)
		return event_del(&multi->timer);
	wait = clock_timeval((usec_t)ms * USEC_PER_MS);
	return event_add(&multi->timer, &wait);
}

#define SET(curl, option, value, err)                                          \
	(curl_multi_setopt(curl, option, value) == CURLM_OK                    \
		? 0                                                            \
		: err_set(                                                     \
		      err, ERR_BROKEN, "libcurl does not take %s", #option))

static int
set_options(struct multi *multi, struct err *err)
{
	CURLM *curl = multi->curl;

	if (SET(curl, CURLMOPT_SOCKETFUNCTION, on_socket, err) != 0 ||
	    SET(curl, CURLMOPT_SOCKETDATA, multi, err) != 0 ||
	    SET(curl, CURLMOPT_TIMERFUNCTION, on_timer, err) != 0 ||
	    SET(curl, CURLMOPT_TIMERDATA, multi, err) != 0 ||
	    SET(curl, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING, err) != 0 ||
	    SET(curl, CURLMOPT_MAXCONNECTS, (long)multi->conf.kept, err) != 0)
		return -1;
	return 0;
}

int
multi_open(struct multi **out, const struct multi_conf *conf, struct err *err)
{
	struct multi *multi;

	multi = calloc(1, sizeof(*multi));
	if (multi == NULL)
		return err_set(err, ERR_NOMEM, "multi");
	multi->conf = *conf;
	SLIST_INIT(&multi->spare);
	(void)evtimer_assign(&multi->timer, conf->loop, on_time, multi);
	(void)event_assign(
	    &multi->tick, conf->loop, -1, EV_PERSIST, on_time, multi);
	multi->curl = curl_multi_init();
	if (multi->curl == NULL) {
		(void)err_set(err, ERR_NOMEM, "a multi handle");
		goto fail;
	}
	if (set_options(multi, err) != 0)
		goto fail;

	*out = multi;
	return 0;

fail:
	multi_close(multi);
	return -1;
}

void
multi_close(struct multi *multi)
{
	struct watch *watch;

	if (multi == NULL)
		return;
	if (multi->curl != NULL)
		(void)curl_multi_cleanup(multi->curl);
	(void)event_del(&multi->timer);
	(void)event_del(&multi->tick);
	while ((watch = SLIST_FIRST(&multi->spare)) != NULL) {
		SLIST_REMOVE_HEAD(&multi->spare, entry);
		free(watch);
	}
	free(multi);
}

int
multi_add(struct multi *multi, CURL *easy, struct err *err)
{
	const struct timeval tick = clock_timeval(TICK);
	CURLMcode code;

	code = curl_multi_add_handle(multi->curl, easy);
	if (code != CURLM_OK)
		return err_set(
		    err, ERR_RETRY, "libcurl: %s", curl_multi_strerror(code));
	if (multi->transfers++ == 0)
		(void)event_add(&multi->tick, &tick);
	return 0;
}

int
multi_transfers(const struct multi *multi)
{
	return multi->transfers;
}

void
multi_remove(struct multi *multi, CURL *easy)
{
	(void)curl_multi_remove_handle(multi->curl, easy);
	if (--multi->transfers == 0)
		(void)event_del(&multi->tick);
}
