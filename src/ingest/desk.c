#include <stdlib.h>
#include <sys/queue.h>

#include "base/err.h"
#include "desk.h"
#include "ingest.h"

enum { QUEUE_MAX = 256 };

struct errand {
	TAILQ_ENTRY(errand) link;
	struct desk *desk;
	struct pg_batch *batch;
	pg_done_fn *done;
	void *arg;
};

struct desk {
	struct ingest *ingest;
	struct session *session; /* NULL: closing */
	TAILQ_HEAD(, errand) waiting;
	size_t nwaiting;
	struct errand *current;
};

static void
free_errand(struct errand *errand)
{
	if (errand == NULL)
		return;
	pg_batch_free(errand->batch);
	free(errand);
}

static struct errand *
take(struct desk *desk)
{
	struct errand *errand = TAILQ_FIRST(&desk->waiting);

	if (errand == NULL)
		return NULL;
	TAILQ_REMOVE(&desk->waiting, errand, link);
	desk->nwaiting--;
	return errand;
}

static void next(struct desk *desk);

/* The errand is off the desk before its owner hears of it, who may come with
 * another. */
static void
on_done(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct errand *errand = arg;
	struct desk *desk = errand->desk;

	desk->current = NULL;
	errand->done(errand->arg, rows, err);
	free_errand(errand);
	next(desk);
}

static void
next(struct desk *desk)
{
	while (desk->current == NULL && desk_is_up(desk)) {
		struct errand *errand = take(desk);
		struct pg_batch *batch;
		struct err err;

		if (errand == NULL)
			return;
		batch = errand->batch;
		errand->batch = NULL;
		desk->current = errand;
		if (session_submit(
			desk->session, batch, on_done, errand, &err) == 0)
			return;
		desk->current = NULL;
		errand->done(errand->arg, NULL, &err);
		free_errand(errand);
	}
}

static void
on_ready(void *arg)
{
	struct desk *desk = arg;

	ingest_session_up(desk->ingest);
	next(desk);
}

static void
tell(struct errand *errand, enum err_code code)
{
	struct err err;

	if (errand == NULL)
		return;
	(void)err_set(&err, code, "the database is away");
	errand->done(errand->arg, NULL, &err);
	free_errand(errand);
}

static void
refuse_all(struct desk *desk)
{
	struct errand *errand;

	while ((errand = take(desk)) != NULL)
		tell(errand, ERR_RETRY);
}

static void
on_down(void *arg, const struct err *err)
{
	struct desk *desk = arg;

	ingest_session_down(desk->ingest, err);
	refuse_all(desk);
}

static void
on_failed(void *arg, const struct err *err)
{
	struct desk *desk = arg;

	ingest_fail(desk->ingest, err);
}

int
desk_open(struct desk **out, struct ingest *ingest, struct err *err)
{
	const struct session_events events = {
		.ready = on_ready,
		.down = on_down,
		.failed = on_failed,
	};
	struct desk *desk = calloc(1, sizeof(*desk));
	struct session_conf conf;

	if (desk == NULL)
		return err_set(err, ERR_NOMEM, "desk");
	TAILQ_INIT(&desk->waiting);
	desk->ingest = ingest;
	conf = ingest_session_conf(ingest, "postrider-ingest desk");
	if (session_open(
		&desk->session, ingest->loop, &conf, &events, desk, err) != 0) {
		free(desk);
		return -1;
	}
	*out = desk;
	return 0;
}

void
desk_close(struct desk *desk)
{
	if (desk == NULL)
		return;
	session_close(desk->session);
	desk->session = NULL;
	tell(desk->current, ERR_UNKNOWN);
	refuse_all(desk);
	free(desk);
}

bool
desk_is_up(const struct desk *desk)
{
	return desk->session != NULL && session_is_up(desk->session);
}

size_t
desk_queued(const struct desk *desk)
{
	return desk->nwaiting;
}

static int
check_room(const struct desk *desk, bool is_first, struct err *err)
{
	if (!desk_is_up(desk))
		return err_set(err, ERR_RETRY, "the database is away");
	if (!is_first && desk->nwaiting >= QUEUE_MAX)
		return err_set(
		    err, ERR_RETRY, "too much waits for the database");
	return 0;
}

static int
submit(struct desk *desk, const struct errand *wanted, bool is_first,
    struct err *err)
{
	struct errand *errand = NULL;

	if (check_room(desk, is_first, err) == 0) {
		errand = malloc(sizeof(*errand));
		if (errand == NULL)
			(void)err_set(err, ERR_NOMEM, "errand");
	}
	if (errand == NULL) {
		pg_batch_free(wanted->batch);
		return -1;
	}
	*errand = *wanted;
	if (is_first)
		TAILQ_INSERT_HEAD(&desk->waiting, errand, link);
	else
		TAILQ_INSERT_TAIL(&desk->waiting, errand, link);
	desk->nwaiting++;
	next(desk);
	return 0;
}

int
desk_submit(struct desk *desk, struct pg_batch *batch, pg_done_fn *done,
    void *arg, struct err *err)
{
	const struct errand errand = {
		.desk = desk, .batch = batch, .done = done, .arg = arg
	};

	return submit(desk, &errand, false, err);
}

int
desk_submit_first(struct desk *desk, struct pg_batch *batch, pg_done_fn *done,
    void *arg, struct err *err)
{
	const struct errand errand = {
		.desk = desk, .batch = batch, .done = done, .arg = arg
	};

	return submit(desk, &errand, true, err);
}
