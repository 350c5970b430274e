#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>

#include <event2/event.h>

#include "base/err.h"
#include "desk.h"
#include "ingest.h"
#include "key_uses.h"
#include "pg/pg.h"
#include "store/key.h"

struct key_uses {
	struct ingest *ingest;
	struct event *timer; /* pending while keys gather */
	int64_t ids[KEY_USED_MAX];
	size_t n;
};

/* A failure is no matter: the next look-up says again that it is due. */
static void
on_written(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	(void)arg;
	(void)rows;
	(void)err;
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct key_uses *uses = arg;
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	(void)fd;
	(void)what;
	if (batch != NULL) {
		key_used(batch, uses->ids, uses->n);
		(void)desk_submit(
		    uses->ingest->desk, batch, on_written, NULL, &err);
	}
	uses->n = 0;
}

int
key_uses_open(struct key_uses **out, struct ingest *ingest, struct err *err)
{
	struct key_uses *uses = calloc(1, sizeof(*uses));

	if (uses == NULL)
		return err_set(err, ERR_NOMEM, "key_uses");
	uses->ingest = ingest;
	uses->timer = evtimer_new(ingest->loop, on_time, uses);
	if (uses->timer == NULL) {
		free(uses);
		return err_set(err, ERR_NOMEM, "key_uses");
	}
	*out = uses;
	return 0;
}

void
key_uses_close(struct key_uses *uses)
{
	if (uses == NULL)
		return;
	event_free(uses->timer);
	free(uses);
}

static bool
has(const struct key_uses *uses, int64_t key_id)
{
	for (size_t i = 0; i < uses->n; i++)
		if (uses->ids[i] == key_id)
			return true;
	return false;
}

void
key_uses_note(struct key_uses *uses, int64_t key_id)
{
	static const struct timeval second = { .tv_sec = 1 };

	if (uses->n == KEY_USED_MAX || has(uses, key_id))
		return;
	uses->ids[uses->n++] = key_id;
	if (!event_pending(uses->timer, EV_TIMEOUT, NULL) &&
	    event_add(uses->timer, &second) != 0)
		uses->n = 0;
}
