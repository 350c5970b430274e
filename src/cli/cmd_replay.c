#include <inttypes.h>
#include <string.h>

#include <event2/event.h>

#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "progress.h"
#include "session.h"
#include "store/replay.h"

enum { JOBS_SHOWN = 100 };

/* What is asked for, and where the answer stands among the rows. */
struct request {
	const struct call *call;
	struct replay_asked asked;
	struct replay_order order;
	void (*put)(struct pg_batch *batch, const struct request *request);
	int (*add)(struct out *out, const struct pg_rows *rows,
	    const struct request *request, struct err *err);
	int rows;
	enum out_shape shape;
};

static int
exchange(struct pg *pg, const struct request *request, struct out *out,
    struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "replay");
	request->put(batch, request);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	result = request->add(out, rows[request->rows], request, err);
	pg_rows_free(rows);
	return result;
}

static void
add_job(struct out *out, const struct replay_job *job)
{
	out_id(out, "id", job->id);
	out_text(out, "what", job->what);
	out_text(out, "state", job->state);
	out_time(out, "since", job->since);
	out_time(out, "until", job->until);
	out_number(out, "rate_per_second", job->rate_per_second);
	out_number(out, "examined", job->examined);
	out_number(out, "replayed", job->replayed);
	out_number(out, "refused", job->refused);
	out_text(out, "created_by", job->created_by);
	out_time(out, "created_at", job->created_at);
	out_time(out, "finished_at", job->finished_at);
	out_end(out);
}

/* How a replay is now. */
static int
look(struct pg *pg, const struct request *request, struct pg_rows ***rows,
    struct replay_job *job, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch == NULL) {
		(void)err_set(err, ERR_NOMEM, "replay");
		return -1;
	}
	replay_get(batch, &request->asked);
	if (pg_run(pg, batch, rows, err) != 0)
		return -1;
	if (replay_job_read(job, (*rows)[0], 0))
		return 0;
	pg_rows_free(*rows);
	(void)err_set(err, ERR_REFUSED, "there is no such replay any more");
	return -1;
}

/* Wait until it is over, and add how it ended. */
static int
wait_for(struct session *session, const struct request *request,
    const struct replay_job *begun, struct out *out, struct err *err)
{
	const struct timeval pause = { .tv_usec = 500000 };
	struct progress progress;
	struct pg_rows **rows;
	struct replay_job job;
	bool is_over = false;
	int64_t first, last;

	if (replay_span(session->pg, begun, &first, &last, err) != 0)
		return -1;
	progress_begin(&progress);
	while (!is_over) {
		if (look(session->pg, request, &rows, &job, err) != 0)
			break;
		is_over = strcmp(job.state, "running") != 0;
		progress_draw(&progress,
		    strcmp(job.state, "done") == 0 ? 1 : job.reached - first,
		    strcmp(job.state, "done") == 0 ? 1 : last - first + 1,
		    "%" PRId64 " replayed", job.replayed);
		if (is_over)
			add_job(out, &job);
		pg_rows_free(rows);
		if (!is_over) {
			(void)event_base_loopexit(session->loop, &pause);
			(void)event_base_dispatch(session->loop);
		}
	}
	progress_end(&progress);
	return is_over ? 0 : -1;
}

/* Begin one, and come back when it is over.  Whoever does not wait so long leaves
 * it running. */
static int
start_and_wait(struct session *session, struct request *request,
    struct out *out, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct replay_job job;
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "replay");
	request->put(batch, request);
	if (pg_run(session->pg, batch, &rows, err) != 0)
		return -1;
	if (replay_job_read(&job, rows[request->rows], 0)) {
		request->asked.id = job.id;
		result = wait_for(session, request, &job, out, err);
	} else {
		result =
		    err_set(err, ERR_REFUSED, "there is no such subscription");
	}
	pg_rows_free(rows);
	return result;
}

static enum status
run(struct request *request, struct err *err)
{
	const struct call *call = request->call;
	struct session session;
	struct out out;
	int result = -1;

	request->asked.actor = "cli";
	out_init(&out, request->shape, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = command_value(call, "wait") == NULL
		             ? exchange(session.pg, request, &out, err)
		             : start_and_wait(&session, request, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static int
refuse(const struct replay_answer *answer, struct err *err)
{
	if (strcmp(answer->state, "dead") != 0)
		return err_set(err, ERR_REFUSED, "it is no dead letter, but %s",
		    answer->state);
	if (answer->is_purged)
		return err_set(err, ERR_REFUSED,
		    "its payload was purged, so it cannot be sent again");
	return err_set(err, ERR_RETRY, "it changed just now; try again");
}

static int
add_delivery(struct out *out, const struct pg_rows *rows,
    const struct request *request, struct err *err)
{
	struct replay_answer answer;

	if (!replay_answer_read(&answer, rows))
		return err_set(
		    err, ERR_REFUSED, "the subscription has no such delivery");
	if (!answer.is_done)
		return refuse(&answer, err);
	out_id(out, "id", request->asked.id);
	out_text(out, "state", answer.state);
	out_number(out, "generation", answer.generation);
	if (answer.held_by == 0)
		out_text(out, "held_by", NULL);
	else
		out_id(out, "held_by", answer.held_by);
	out_end(out);
	return 0;
}

static void
put_retry(struct pg_batch *batch, const struct request *request)
{
	replay_retry(batch, &request->asked);
}

static void
put_discard(struct pg_batch *batch, const struct request *request)
{
	replay_discard(batch, &request->asked);
}

/* Read the two ids that most commands take. */
static enum status
take_ids(struct request *request, struct err *err)
{
	enum status status =
	    command_id(request->call, &request->asked.subscription_id, err);

	if (status != STATUS_DONE)
		return status;
	return command_second_id(request->call, &request->asked.id, err);
}

enum status
cmd_retry(const struct call *call, struct err *err)
{
	struct request request = {
		.call = call,
		.put = put_retry,
		.add = add_delivery,
		.rows = REPLAY_RETRY_ROWS,
	};
	enum status status = take_ids(&request, err);

	return status == STATUS_DONE ? run(&request, err) : status;
}

enum status
cmd_discard(const struct call *call, struct err *err)
{
	struct request request = {
		.call = call,
		.put = put_discard,
		.add = add_delivery,
		.rows = REPLAY_DISCARD_ROWS,
	};
	enum status status = take_ids(&request, err);

	return status == STATUS_DONE ? run(&request, err) : status;
}

static int
add_one(struct out *out, const struct pg_rows *rows,
    const struct request *request, struct err *err)
{
	struct replay_job job;

	if (!replay_job_read(&job, rows, 0))
		return err_set(err, ERR_REFUSED,
		    request->asked.id == 0 ? "there is no such subscription"
					   : "it has no such replay");
	add_job(out, &job);
	return 0;
}

static int
add_all(struct out *out, const struct pg_rows *rows,
    const struct request *request, struct err *err)
{
	struct replay_job job;

	(void)request;
	if (pg_count(rows) == 0)
		return err_set(
		    err, ERR_REFUSED, "there is no such subscription");
	for (int i = 0; replay_job_read(&job, rows, i); i++)
		add_job(out, &job);
	return 0;
}

static void
put_cancel(struct pg_batch *batch, const struct request *request)
{
	replay_cancel(batch, &request->asked);
}

static void
put_list(struct pg_batch *batch, const struct request *request)
{
	replay_list(batch, &request->asked, JOBS_SHOWN);
}

static void
put_start(struct pg_batch *batch, const struct request *request)
{
	replay_start(batch, &request->asked, &request->order);
}

enum status
cmd_replay_cancel(const struct call *call, struct err *err)
{
	struct request request = {
		.call = call,
		.put = put_cancel,
		.add = add_one,
		.rows = REPLAY_CANCEL_ROWS,
	};
	enum status status = take_ids(&request, err);

	return status == STATUS_DONE ? run(&request, err) : status;
}

enum status
cmd_replay_list(const struct call *call, struct err *err)
{
	struct request request = {
		.call = call,
		.put = put_list,
		.add = add_all,
		.shape = OUT_LIST,
	};
	enum status status =
	    command_id(call, &request.asked.subscription_id, err);

	return status == STATUS_DONE ? run(&request, err) : status;
}

static enum status
start(const struct call *call, const char *what, struct err *err)
{
	struct request request = {
		.call = call,
		.order.what = what,
		.put = put_start,
		.add = add_one,
	};
	struct replay_order *order = &request.order;
	enum status status =
	    command_id(call, &request.asked.subscription_id, err);

	if (status != STATUS_DONE)
		return status;
	if (command_time(call, "since", &order->since, err) != STATUS_DONE ||
	    command_time(call, "until", &order->until, err) != STATUS_DONE)
		return STATUS_USAGE;
	if (order->until >= 0 && order->until <= order->since)
		return command_misused(
		    call, err, "--until must be after --since");
	if (command_number(call, "rate", REPLAY_RATE_MAX,
		&order->rate_per_second, err) != STATUS_DONE)
		return STATUS_USAGE;
	return run(&request, err);
}

enum status
cmd_replay_dead(const struct call *call, struct err *err)
{
	return start(call, "dead", err);
}

enum status
cmd_replay_events(const struct call *call, struct err *err)
{
	return start(call, "events", err);
}
