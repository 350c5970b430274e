#include <string.h>

#include "base/buf.h"
#include "call.h"
#include "core/json.h"
#include "deliveries.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "problem.h"
#include "put.h"
#include "store/stmt.h"

enum { ATTEMPTS_SHOWN = 1000 };

/* A row that is being shown. */
struct shown {
	struct buf *out;
	const struct pg_rows *rows;
	int row;
};

/* Columns, under the names that they have or are given. */
static void
put_count(const struct shown *shown, const char *name, const char *from)
{
	if (pg_is_null(shown->rows, shown->row, pg_column(shown->rows, from)))
		put_json(shown->out, name, "null");
	else
		put_number(shown->out, name,
		    pg_read_int(shown->rows, shown->row, from));
}

static void
put_moment(const struct shown *shown, const char *name)
{
	put_time(shown->out, name, pg_read_time(shown->rows, shown->row, name));
}

static void
put_words(const struct shown *shown, const char *name)
{
	put_text(shown->out, name,
	    pg_read_text_or_null(shown->rows, shown->row, name));
}

static void
put_timing(const struct shown *shown)
{
	static const char *const phases[] = { "dns_us", "connect_us", "tls_us",
		"wait_us", "receive_us" };

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		put_count(shown, phases[i], phases[i]);
}

/* A list, since a name may come more than once. */
static void
put_headers(const struct shown *shown)
{
	const char *line = pg_read_text(shown->rows, shown->row, "headers");
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
	usec_t duration = pg_read_time(shown->rows, shown->row, "duration_us");

	buf_puts(shown->out, "{");
	put_count(shown, "generation", "tried_generation");
	put_count(shown, "attempt", "attempt");
	put_moment(shown, "started_at");
	if (duration < 0)
		put_json(shown->out, "duration_us", "null");
	else
		put_number(shown->out, "duration_us", duration);
	put_words(shown, "ended");
	put_count(shown, "status", "tried_status");
	put_words(shown, "reason");
	put_words(shown, "remote");
	put_timing(shown);
	put_headers(shown);
	put_words(shown, "excerpt");
	buf_puts(shown->out, "}");
}

static void
put_history(struct shown *shown)
{
	int attempt = pg_column(shown->rows, "attempt");

	put_name(shown->out, "history");
	buf_puts(shown->out, "[");
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
	int generation = pg_read_int(rows, 0, "generation");

	buf_puts(out, "{");
	put_id(out, "id", call_inner_id(call));
	put_id(out, "subscription_id", call_id(call));
	put_words(&shown, "event_id");
	put_words(&shown, "type");
	put_words(&shown, "asset");
	put_words(&shown, "state");
	put_words(&shown, "why");
	put_moment(&shown, "until");
	put_id(out, "behind", pg_read_bigint(rows, 0, "behind"));
	put_number(out, "generation", generation);
	put_bool(out, "replayed", generation > 1);
	put_count(&shown, "attempts", "attempts");
	put_count(&shown, "status", "status");
	put_moment(&shown, "accepted_at");
	put_moment(&shown, "finished_at");
	put_bool(out, "payload_purged", pg_read_bool(rows, 0, "is_purged"));
	put_history(&shown);
	buf_puts(out, "}");
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };

	if (pg_count(rows[0]) == 0) {
		problem_reply(
		    call, 404, "this subscription has no such delivery");
		return;
	}
	put_delivery(&body, call, rows[0]);
	call_json(call, 200, &body);
}

void
deliveries_get(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	pg_call(batch, STMT_DELIVERY_GET);
	pg_bigint(batch, call->key.tenant_id);
	pg_bigint(batch, call_id(call));
	pg_bigint(batch, call_inner_id(call));
	pg_int(batch, ATTEMPTS_SHOWN);
	call_ask(call, batch, on_got);
}
