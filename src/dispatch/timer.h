/* timer: runs once, at the soonest of the times that it was asked for. */

#ifndef DISPATCH_TIMER_H
#define DISPATCH_TIMER_H

#include <event2/event.h>

#include "base/clock.h"

struct timer {
	struct event *event;
	usec_t at; /* when it runs, on clock_now() */
};

/* `run` is called from the loop, before what comes from connections.  -1 if
 * memory is short. */
int timer_open(struct timer *timer, struct event_base *loop,
    event_callback_fn run, void *arg);

/* Run within `wait`: sooner, if that was asked for before.  If libevent has no
 * memory nothing comes of it, so whoever asks asks again. */
void timer_within(struct timer *timer, usec_t wait);

/* Also one that was not opened, all zero. */
void timer_close(struct timer *timer);

#endif
