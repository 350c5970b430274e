#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/stmt.h"

enum {
	COUNT_MAX = 10000, /* where each count stops */
	ROWS_DEFAULT = 20, /* endpoints, where there is no window */
	ROWS_LEAST = 3,
	LINES_BESIDES = 6, /* of a window, for all but endpoints */
};

/* The answers of one look. */
enum { TOTALS, BESIDES, ENDPOINTS };

#define HOME "\033[H\033[J\033[?7l" /* and lines are cut, not wrapped */
#define WRAP "\033[?7h"

/* A view that is looked at again and again. */
struct view {
	struct session session;
	bool is_json, is_live;
	bool is_window; /* of a terminal that can move its cursor */
	bool is_over;
	/* The last look, for rates; at is 0 if there was none. */
	usec_t at;
	int64_t accepted, tried;
};

static int
count_rows(const struct view *view)
{
	struct winsize size;

	if (!view->is_window || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
	    size.ws_row == 0)
		return ROWS_DEFAULT;
	return size.ws_row < ROWS_LEAST + LINES_BESIDES
	           ? ROWS_LEAST
	           : size.ws_row - LINES_BESIDES;
}

/* A rate since the last look, with one digit behind the point. */
static void
add_rate(struct out *out, const char *name, int64_t n, usec_t time)
{
	char text[32];

	if (time <= 0) {
		out_text(out, name, NULL);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.1f",
	    (double)(n < 0 ? 0 : n) * (double)USEC_PER_SEC / (double)time);
	out_raw(out, name, text);
}

static void
add_rates(
    struct out *out, struct view *view, usec_t at, const struct pg_rows *rows)
{
	int64_t accepted = pg_read_bigint(rows, 0, "accepted");
	int64_t tried = pg_read_bigint(rows, 0, "tried");
	usec_t time = view->at == 0 ? 0 : at - view->at;

	add_rate(out, "accepted_per_second", accepted - view->accepted, time);
	add_rate(out, "tried_per_second", tried - view->tried, time);
	view->at = at;
	view->accepted = accepted;
	view->tried = tried;
}

static void
add_totals(struct out *out, struct view *view, struct pg_rows *const *rows)
{
	static const struct {
		const char *name;
		int answer;
	} counts[] = {
		{ "ingests", BESIDES },
		{ "dispatchers", BESIDES },
		{ "subscriptions", TOTALS },
		{ "due", TOTALS },
		{ "later", TOTALS },
		{ "held", TOTALS },
		{ "in_flight", TOTALS },
		{ "dead", TOTALS },
		{ "stuck", BESIDES },
		{ "replays", BESIDES },
	};
	usec_t at = pg_read_time(rows[TOTALS], 0, "at");

	out_time(out, "at", at);
	add_rates(out, view, at, rows[BESIDES]);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		out_number(out, counts[i].name,
		    pg_read_bigint(rows[counts[i].answer], 0, counts[i].name));
}

static void
add_endpoint(struct out *out, const struct pg_rows *rows, int row)
{
	const char *success = pg_read_text_or_null(rows, row, "success");

	out_id(out, "subscription_id",
	    pg_read_bigint(rows, row, "subscription_id"));
	out_text(out, "tenant", pg_read_text(rows, row, "tenant"));
	out_text(out, "state", pg_read_text(rows, row, "state"));
	out_text(out, "why", pg_read_text_or_null(rows, row, "why"));
	out_time(out, "until", pg_read_time(rows, row, "until"));
	out_number(out, "due", pg_read_bigint(rows, row, "due"));
	out_number(out, "later", pg_read_bigint(rows, row, "later"));
	out_number(out, "held", pg_read_bigint(rows, row, "held"));
	out_number(out, "in_flight", pg_read_bigint(rows, row, "in_flight"));
	out_number(
	    out, "in_flight_limit", pg_read_int(rows, row, "in_flight_limit"));
	out_number(out, "dead", pg_read_bigint(rows, row, "dead"));
	out_text(out, "circuit", pg_read_text(rows, row, "circuit"));
	out_number(out, "failures", pg_read_int(rows, row, "failures"));
	if (success == NULL)
		out_text(out, "success", NULL);
	else
		out_raw(out, "success", success);
	out_time(out, "oldest_accepted_at",
	    pg_read_time(rows, row, "oldest_accepted_at"));
	out_text(
	    out, "last_error", pg_read_text_or_null(rows, row, "last_error"));
	out_text(out, "url", pg_read_text(rows, row, "url"));
	out_end(out);
}

static int
show(struct view *view, struct pg_rows *const *rows, struct err *err)
{
	struct out totals, endpoints;

	out_init(&totals, view->is_json ? OUT_RECORD : OUT_LIST, view->is_json);
	out_init(&endpoints, OUT_LIST, view->is_json);
	for (int i = 0; i < pg_count(rows[ENDPOINTS]); i++)
		add_endpoint(&endpoints, rows[ENDPOINTS], i);
	add_totals(&totals, view, rows);
	if (view->is_json)
		out_list(&totals, "endpoints", &endpoints);
	out_end(&totals);
	if (view->is_window)
		(void)fputs(HOME, stdout);
	if (out_print(&totals, err) != 0)
		return -1;
	if (view->is_json)
		return 0;
	if (endpoints.nrecords > 0)
		(void)putchar('\n');
	return out_print(&endpoints, err);
}

static int
look(struct view *view, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "status");
	/* Of all tenants. */
	pg_call(batch, STMT_STATE_TOTALS);
	pg_null(batch);
	pg_null(batch);
	pg_int(batch, COUNT_MAX);
	pg_call(batch, STMT_STATUS_TOTALS);
	pg_int(batch, COUNT_MAX);
	pg_call(batch, STMT_STATE_ENDPOINTS);
	pg_null(batch);
	pg_null(batch);
	pg_int(batch, count_rows(view));
	if (pg_run(view->session.pg, batch, &rows, err) != 0)
		return -1;
	result = show(view, rows, err);
	pg_rows_free(rows);
	return result;
}

static void
on_end(evutil_socket_t signal, short what, void *arg)
{
	struct view *view = arg;

	(void)signal;
	(void)what;
	view->is_over = true;
	(void)event_base_loopbreak(view->session.loop);
}

/* Trouble that passes is shown in the view's place. */
static int
draw(struct view *view, struct err *err)
{
	int result = look(view, err);

	if (result != 0 && (err->code == ERR_RETRY || err->code == ERR_UNKNOWN))
		result =
		    printf("%s%s\n", view->is_window ? HOME : "", err->text) < 0
			? -1
			: 0;
	(void)fputs(view->is_window ? WRAP : "\n", stdout);
	if (fflush(stdout) != 0)
		return err_errno(err, ERR_RETRY, "standard output");
	return result;
}

static int
watch(struct view *view, struct err *err)
{
	const struct timeval second = { .tv_sec = 1 };
	struct event *ends[] = {
		evsignal_new(view->session.loop, SIGINT, on_end, view),
		evsignal_new(view->session.loop, SIGTERM, on_end, view),
	};
	int result = 0;

	if (ends[0] == NULL || ends[1] == NULL ||
	    event_add(ends[0], NULL) != 0 || event_add(ends[1], NULL) != 0)
		result = err_set(err, ERR_NOMEM, "status");
	while (result == 0 && !view->is_over) {
		result = draw(view, err);
		if (result != 0 || view->is_over)
			break;
		(void)event_base_loopexit(view->session.loop, &second);
		(void)event_base_dispatch(view->session.loop);
	}
	for (size_t i = 0; i < 2; i++)
		if (ends[i] != NULL)
			event_free(ends[i]);
	return result;
}

/* Can it move its cursor?  What is no terminal gets one view after the other. */
static bool
has_window(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) == 1 && term != NULL && term[0] != '\0' &&
	       strcmp(term, "dumb") != 0;
}

enum status
cmd_status(const struct call *call, struct err *err)
{
	struct view view = {
		.is_json = command_value(call, "json") != NULL,
		.is_live = command_value(call, "once") == NULL,
	};
	int result = -1;

	view.is_live &= !view.is_json;
	view.is_window = view.is_live && has_window();
	if (session_open(&view.session, &call->settings, err) == 0)
		result = view.is_live ? watch(&view, err) : look(&view, err);
	session_close(&view.session);
	return result == 0 ? STATUS_DONE : STATUS_FAILED;
}
