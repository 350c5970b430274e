#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "deliveries.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/row.h"
#include "problem.h"
#include "store/stmt.h"
#include "subscriptions.h"

enum { ATTEMPTS_SHOWN = 1000 };

/* A row that is being shown. */
struct shown {
	struct buf *out;
	const struct pg_rows *rows;
	int row;
};

/* `,"name":`, and null if `column` is; true if its value is to follow. */
static bool
begin(const struct shown *shown, const char *name, int column)
{
	buf_printf(shown->out, ",\"%s\":", name);
	if (!pg_is_null(shown->rows, shown->row, column))
		return true;
	buf_puts(shown->out, "null");
	return false;
}

static void
put_number(const struct shown *shown, const char *name, const char *from)
{
	int column = pg_column(shown->rows, from);

	if (begin(shown, name, column))
		buf_printf(shown->out, "%d",
		    pg_get_int(shown->rows, shown->row, column));
}

static void
put_long(const struct shown *shown, const char *name)
{
	int column = pg_column(shown->rows, name);

	if (begin(shown, name, column))
		buf_printf(shown->out, "%lld",
		    (long long)pg_get_bigint(shown->rows, shown->row, column));
}

static void
put_id(const struct shown *shown, const char *name)
{
	int column = pg_column(shown->rows, name);

	if (begin(shown, name, column))
		call_put_id(
		    shown->out, pg_get_bigint(shown->rows, shown->row, column));
}

static void
put_time(const struct shown *shown, const char *name)
{
	int column = pg_column(shown->rows, name);

	if (begin(shown, name, column))
		call_put_time(
		    shown->out, pg_get_bigint(shown->rows, shown->row, column));
}

static void
put_text(const struct shown *shown, const char *name)
{
	int column = pg_column(shown->rows, name);
	const char *text = pg_get_text(shown->rows, shown->row, column);

	if (begin(shown, name, column))
		json_quote(shown->out, text, strlen(text));
}

static void
put_timing(const struct shown *shown)
{
	static const char *const phases[] = { "dns_us", "connect_us", "tls_us",
		"wait_us", "receive_us" };

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		put_number(shown, phases[i], phases[i]);
}

/* A list, since a name may come more than once. */
static void
put_headers(const struct shown *shown)
{
	const char *line = pg_get_text(
	    shown->rows, shown->row, pg_column(shown->rows, "headers"));
	const char *separator = "";

	buf_puts(shown->out, ",\"headers\":[");
	while (*line != '\0') {
		size_t len = strcspn(line, "\n");
		size_t name = strcspn(line, ":\n");
		const char *value = line + name + (line[name] == ':');

		value += strspn(value, " ");
		buf_puts(shown->out, separator);
		buf_puts(shown->out, "{\"name\":");
		json_quote(shown->out, line, name);
		buf_puts(shown->out, ",\"value\":");
		json_quote(shown->out, value, (size_t)(line + len - value));
		buf_puts(shown->out, "}");
		separator = ",";
		line += len + (line[len] == '\n');
	}
	buf_puts(shown->out, "]");
}

static void
put_attempt(const struct shown *shown)
{
	buf_printf(shown->out, "{\"generation\":%d",
	    pg_get_int(shown->rows, shown->row,
		pg_column(shown->rows, "tried_generation")));
	put_number(shown, "attempt", "attempt");
	put_time(shown, "started_at");
	put_long(shown, "duration_us");
	put_text(shown, "ended");
	put_number(shown, "status", "tried_status");
	put_text(shown, "reason");
	put_text(shown, "remote");
	put_timing(shown);
	put_headers(shown);
	put_text(shown, "excerpt");
	buf_puts(shown->out, "}");
}

static void
put_history(struct shown *shown)
{
	int attempt = pg_column(shown->rows, "attempt");

	buf_puts(shown->out, ",\"history\":[");
	for (; shown->row < pg_count(shown->rows); shown->row++) {
		if (pg_is_null(shown->rows, shown->row, attempt))
			break;
		buf_puts(shown->out, shown->row == 0 ? "" : ",");
		put_attempt(shown);
	}
	buf_puts(shown->out, "]");
}

/* The ids of the path, which named it. */
static void
put_delivery(
    struct buf *out, const struct call *call, const struct pg_rows *rows)
{
	struct shown shown = { .out = out, .rows = rows };
	int generation = pg_get_int(rows, 0, pg_column(rows, "generation"));

	buf_puts(out, "{\"id\":");
	call_put_id(out, call_number(call->inner_id, strlen(call->inner_id)));
	buf_puts(out, ",\"subscription_id\":");
	call_put_id(out, subscriptions_id(call));
	put_text(&shown, "event_id");
	put_text(&shown, "type");
	put_text(&shown, "asset");
	put_text(&shown, "state");
	put_text(&shown, "why");
	put_time(&shown, "until");
	put_id(&shown, "behind");
	buf_printf(out, ",\"generation\":%d,\"replayed\":%s", generation,
	    generation > 1 ? "true" : "false");
	put_number(&shown, "attempts", "attempts");
	put_number(&shown, "status", "status");
	put_time(&shown, "accepted_at");
	put_time(&shown, "finished_at");
	buf_printf(out, ",\"payload_purged\":%s",
	    pg_get_bool(rows, 0, pg_column(rows, "is_purged")) ? "true"
							       : "false");
	put_history(&shown);
	buf_puts(out, "}");
}

static void
on_got(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct buf body = { 0 };

	if (err != NULL) {
		problem_reply_err(call, err);
	} else if (pg_count(rows[0]) == 0) {
		problem_reply(
		    call, 404, "this subscription has no such delivery");
	} else {
		put_delivery(&body, call, rows[0]);
		call_json(call, 200, &body);
	}
}

void
deliveries_get(struct call *call)
{
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	pg_call(batch, STMT_DELIVERY_GET);
	pg_bigint(batch, call->key.tenant_id);
	pg_bigint(batch, subscriptions_id(call));
	pg_bigint(batch, call_number(call->inner_id, strlen(call->inner_id)));
	pg_int(batch, ATTEMPTS_SHOWN);
	if (desk_submit(call->ingest->desk, batch, on_got, call, &err) != 0)
		problem_reply_err(call, &err);
}
