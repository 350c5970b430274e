#include <event2/event.h>

#include "base/err.h"
#include "inside.h"

struct run {
	bool is_over;
	bool failed;
	struct err err;
};

static void
on_done(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct run *run = arg;

	(void)rows;
	run->is_over = true;
	run->failed = err != NULL;
	if (err != NULL)
		run->err = *err;
}

int
pg_run(struct pg *pg, struct pg_batch *batch, struct pg_rows ***out,
    struct err *err)
{
	struct run run = { 0 };

	if (pg_submit(pg, batch, on_done, &run, err) != 0)
		return -1;
	pg_keep_rows(pg, out);
	while (!run.is_over)
		(void)event_base_loop(pg_loop(pg), EVLOOP_ONCE);
	if (!run.failed)
		return 0;
	*err = run.err;
	return -1;
}

/* Nothing to do but to wake the loop. */
static void
on_patience(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int
pg_wait_ready(struct pg *pg, usec_t patience, struct err *err)
{
	usec_t end = clock_now() + patience;
	struct timeval tv = clock_timeval(patience);
	struct event *alarm = evtimer_new(pg_loop(pg), on_patience, NULL);

	if (alarm == NULL)
		return err_set(err, ERR_NOMEM, "connection");
	(void)event_add(alarm, &tv);
	while (!pg_is_ready(pg) && !pg_gave_up(pg) && clock_now() < end)
		(void)event_base_loop(pg_loop(pg), EVLOOP_ONCE);
	event_free(alarm);

	if (pg_is_ready(pg))
		return 0;
	*err = *pg_trouble(pg);
	if (err->code != ERR_NONE)
		return -1;
	return err_set(err, ERR_RETRY, "the database does not answer");
}
