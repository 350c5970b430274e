#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/err.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "query.h"
#include "receipts.h"
#include "recorder.h"
#include "stmt.h"

enum {
	EVENTS_MAX = 1000, /* of one answer */
	TEXT_SIZE = 1100, /* of a path or an event id */
};

#define DEADLINE (30 * USEC_PER_SEC)
#define RECONNECT_MIN (50 * USEC_PER_MS)
#define RECONNECT_MAX (2 * USEC_PER_SEC)

struct receipts {
	struct pg *pg;
	struct recorder *recorder;
	TAILQ_HEAD(, reading) waiting; /* the first one may be in flight */
};

/* One question to the database. */
struct reading {
	TAILQ_ENTRY(reading) entry;
	struct receipts *receipts;
	struct request *request;
	enum stmt statement;
	char path[TEXT_SIZE];
	char event_id[TEXT_SIZE];
	int64_t after, limit;
};

static void
reply_text(struct request *request, int status, const char *text)
{
	request_reply(request, status, "text/plain", text, strlen(text));
}

/* Take the reading out, and answer its request. */
static void
answer(struct reading *reading, int status, const char *type, const void *body,
    size_t len)
{
	struct request *request = reading->request;

	TAILQ_REMOVE(&reading->receipts->waiting, reading, entry);
	free(reading);
	request_reply(request, status, type, body, len);
}

static void
answer_text(struct reading *reading, int status, const char *text)
{
	answer(reading, status, "text/plain", text, strlen(text));
}

static void
answer_rows(struct reading *reading, const struct pg_rows *rows)
{
	const void *content;
	size_t len;

	if (pg_count(rows) == 0) {
		answer_text(reading, 404, "no such event came");
		return;
	}
	content = pg_get_bytes(rows, 0, 0, &len);
	answer(reading, 200,
	    reading->statement == STMT_RECEIPTS_BODY
		? "application/octet-stream"
		: "application/json",
	    content, len);
}

static void go_on(struct receipts *receipts);

static void
on_read(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct reading *reading = arg;
	struct receipts *receipts = reading->receipts;

	if (err != NULL)
		answer_text(reading, 503, err->text);
	else
		answer_rows(reading, rows[0]);
	go_on(receipts);
}

static void
put_parameters(struct pg_batch *batch, const struct reading *reading)
{
	pg_call(batch, (int)reading->statement);
	if (reading->statement == STMT_RECEIPTS_PATHS)
		return;
	pg_text(batch, reading->path);
	if (reading->statement == STMT_RECEIPTS_BODY) {
		pg_text(batch, reading->event_id);
		return;
	}
	pg_bigint(batch, reading->after);
	pg_bigint(batch, reading->limit);
}

static void
go_on(struct receipts *receipts)
{
	struct reading *reading;
	struct pg_batch *batch;
	struct err err;

	while (pg_is_ready(receipts->pg) &&
	       (reading = TAILQ_FIRST(&receipts->waiting)) != NULL) {
		batch = pg_batch_new();
		if (batch != NULL)
			put_parameters(batch, reading);
		if (pg_submit(receipts->pg, batch, on_read, reading, &err) != 0)
			answer_text(reading, 503, err.text);
	}
}

static void
on_ready(void *arg)
{
	go_on(arg);
}

static void
on_down(void *arg, const struct err *err)
{
	struct receipts *receipts = arg;
	struct reading *reading;

	while ((reading = TAILQ_FIRST(&receipts->waiting)) != NULL)
		answer_text(reading, 503, err->text);
}

static void
on_cleared(void *arg, const struct err *err)
{
	if (err != NULL)
		reply_text(arg, 503, err->text);
	else
		request_reply(arg, 204, NULL, "", 0);
}

static void
clear(struct receipts *receipts, struct request *request)
{
	struct err err;

	if (recorder_clear(receipts->recorder, on_cleared, request, &err) != 0)
		reply_text(request, 503, err.text);
}

static void
ask(struct receipts *receipts, const struct reading *question)
{
	struct reading *reading = malloc(sizeof(*reading));

	if (reading == NULL) {
		reply_text(question->request, 503, "out of memory");
		return;
	}
	*reading = *question;
	reading->receipts = receipts;
	TAILQ_INSERT_TAIL(&receipts->waiting, reading, entry);
	go_on(receipts);
}

/* Which events of which path, if any are asked for.  False if that is put
 * wrongly. */
static bool
parse_events(struct reading *reading, const char *query)
{
	int64_t events = 0;
	int path =
	    query_text(reading->path, sizeof(reading->path), query, "path");

	reading->limit = EVENTS_MAX;
	if (path < 0 || query_number(&events, 1, query, "events") < 0 ||
	    query_number(&reading->after, INT64_MAX, query, "after") < 0 ||
	    query_number(&reading->limit, EVENTS_MAX, query, "limit") < 0)
		return false;
	if (events == 1)
		reading->statement = STMT_RECEIPTS_EVENTS;
	return events == path && reading->limit > 0;
}

static void
list(struct receipts *receipts, struct request *request)
{
	struct reading question = {
		.request = request,
		.statement = STMT_RECEIPTS_PATHS,
	};

	if (parse_events(&question, request_query(request)))
		ask(receipts, &question);
	else
		reply_text(request, 400,
		    "/receipts takes path=P&events=1, after=CURSOR and "
		    "limit=1..1000");
}

static void
show_body(struct receipts *receipts, struct request *request)
{
	const char *query = request_query(request);
	struct reading question = {
		.request = request,
		.statement = STMT_RECEIPTS_BODY,
	};

	if (query_text(question.path, sizeof(question.path), query, "path") ==
		1 &&
	    query_text(question.event_id, sizeof(question.event_id), query,
		"event_id") == 1)
		ask(receipts, &question);
	else
		reply_text(
		    request, 400, "/receipts/body takes path=P&event_id=E");
}

static const struct {
	const char *method, *path;
	void (*take)(struct receipts *receipts, struct request *request);
} routes[] = {
	{ "GET", "/receipts", list },
	{ "GET", "/receipts/body", show_body },
	{ "DELETE", "/receipts", clear },
};

void
receipts_take(struct receipts *receipts, struct request *request)
{
	const char *path = request_path(request);
	const char *method = request_method(request);
	bool is_path = false;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(path, routes[i].path) != 0)
			continue;
		is_path = true;
		if (strcmp(method, routes[i].method) == 0) {
			routes[i].take(receipts, request);
			return;
		}
	}
	reply_text(request, is_path ? 405 : 404,
	    "there are GET and DELETE /receipts, GET /receipts/body");
}

int
receipts_open(struct receipts **out, struct event_base *loop,
    const char *conninfo, struct recorder *recorder, struct err *err)
{
	const struct pg_conf conf = {
		.conninfo = conninfo,
		.application = "postrider-receiver",
		.role = "",
		.channel = "",
		.statements = stmt_table,
		.statement_timeout = DEADLINE,
		.reconnect_min = RECONNECT_MIN,
		.reconnect_max = RECONNECT_MAX,
	};
	const struct pg_events events = { .ready = on_ready, .down = on_down };
	struct receipts *receipts = calloc(1, sizeof(*receipts));

	if (receipts == NULL)
		return err_set(err, ERR_NOMEM, "receipts");
	receipts->recorder = recorder;
	TAILQ_INIT(&receipts->waiting);
	if (pg_open(&receipts->pg, loop, &conf, &events, receipts, err) != 0) {
		receipts_close(receipts);
		return -1;
	}
	*out = receipts;
	return 0;
}

void
receipts_close(struct receipts *receipts)
{
	struct reading *reading;

	if (receipts == NULL)
		return;
	pg_close(receipts->pg);
	while ((reading = TAILQ_FIRST(&receipts->waiting)) != NULL) {
		TAILQ_REMOVE(&receipts->waiting, reading, entry);
		free(reading);
	}
	free(receipts);
}
