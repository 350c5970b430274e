#include "dispatch/timer.h"

int
timer_open(struct timer *timer, struct event_base *loop, event_callback_fn run,
    void *arg)
{
	timer->event = event_new(loop, -1, 0, run, arg);
	if (timer->event == NULL || event_priority_set(timer->event, 0) != 0)
		return -1;
	return 0;
}

void
timer_within(struct timer *timer, usec_t wait)
{
	struct timeval tv = clock_timeval(wait);
	usec_t at = clock_now() + wait;

	if (event_pending(timer->event, EV_TIMEOUT, NULL) && timer->at <= at)
		return;
	timer->at = at;
	(void)event_add(timer->event, &tv);
}

void
timer_close(struct timer *timer)
{
	if (timer->event != NULL)
		event_free(timer->event);
	timer->event = NULL;
}
