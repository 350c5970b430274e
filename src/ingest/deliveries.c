#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "deliveries.h"
#include "page.h"
#include "pg/row.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "store/delivery_log.h"

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
put_try(const struct shown *shown)
{
	usec_t duration = pg_read_time(shown->rows, shown->row, "duration_us");

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
}

void
deliveries_put_try(struct buf *out, const struct pg_rows *rows, int row)
{
	put_try(&(struct shown){ .out = out, .rows = rows, .row = row });
}

static void
put_attempt(const struct shown *shown)
{
	buf_puts(shown->out, "{");
	put_count(shown, "generation", "tried_generation");
	put_count(shown, "attempt", "attempt");
	put_try(shown);
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

static void
put_status(struct buf *out, const char *name, int status)
{
	if (status < 0)
		put_json(out, name, "null");
	else
		put_number(out, name, status);
}

/* What a list and the detail have in common. */
static void
put_entry(struct buf *out, int64_t subscription_id,
    const struct delivery_entry *entry)
{
	put_id(out, "id", entry->id);
	put_id(out, "subscription_id", subscription_id);
	put_text(out, "event_id", entry->event_id);
	put_text(out, "type", entry->type);
	put_text(out, "asset", entry->asset);
	put_text(out, "state", entry->state);
	put_text(out, "why", entry->why);
	put_time(out, "until", entry->until);
	put_id(out, "behind", entry->behind);
	put_number(out, "generation", entry->generation);
	put_bool(out, "replayed", entry->generation > 1);
	put_number(out, "attempts", entry->attempts);
	put_status(out, "status", entry->status);
	put_time(out, "accepted_at", entry->accepted_at);
	put_time(out, "finished_at", entry->finished_at);
	put_bool(out, "payload_purged", entry->is_purged);
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	struct delivery_entry entry;
	struct buf body = { 0 };
	struct shown shown = { .out = &body, .rows = rows[0] };

	if (!delivery_log_read(&entry, rows[0], 0)) {
		problem_reply(
		    call, 404, "this subscription has no such delivery");
		return;
	}
	buf_puts(&body, "{");
	put_entry(&body, call_id(call), &entry);
	put_history(&shown);
	buf_puts(&body, "}");
	call_json(call, 200, &body);
}

void
deliveries_get(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	delivery_log_get(batch, call->key.tenant_id, call_id(call),
	    call_inner_id(call), ATTEMPTS_SHOWN);
	call_ask(call, batch, on_got);
}

enum {
	STATE = PAGE_ITEMS,
	TYPE,
	ASSET,
	EVENT,
	SINCE,
	UNTIL,
	NITEMS,
};

/* What is asked for; the texts of `query` lend from `items`. */
struct asked {
	struct query_item items[NITEMS];
	struct delivery_query query;
};

static int
read_asked(struct asked *asked, struct call *call, struct err *err)
{
	struct query_item *items = asked->items;
	struct delivery_query *query = &asked->query;

	*asked = (struct asked){
		.items = { [STATE] = { .name = "state" },
		    [TYPE] = { .name = "type" },
		    [ASSET] = { .name = "asset", .is_text = true },
		    [EVENT] = { .name = "event" },
		    [SINCE] = { .name = "since" },
		    [UNTIL] = { .name = "until" } },
		.query = { .tenant_id = call->key.tenant_id,
		    .subscription_id = call_id(call),
		    .since = -1,
		    .until = -1 },
	};
	if (page_read(call, "after", items, NITEMS, err) != 0 ||
	    query_time(&items[SINCE], &query->since, err) != 0 ||
	    query_time(&items[UNTIL], &query->until, err) != 0)
		return -1;
	query->after = call->page.from;
	query->limit = call->page.limit;
	query->state = query_text(&items[STATE]);
	query->type = query_text(&items[TYPE]);
	query->asset = query_text(&items[ASSET]);
	query->event_id = query_text(&items[EVENT]);
	return query->state == NULL
	           ? 0
	           : delivery_log_check_state(query->state, err);
}

static void
put_page(struct buf *out, int64_t subscription_id, const struct pg_rows *rows)
{
	struct delivery_entry entry;

	put_name(out, "deliveries");
	buf_puts(out, "[");
	for (int n = 0; delivery_log_read(&entry, rows, n); n++) {
		buf_puts(out, n == 0 ? "{" : ",{");
		put_entry(out, subscription_id, &entry);
		put_status(
		    out, "last_status", delivery_log_last_status(rows, n));
		put_text(out, "last_error", delivery_log_last_error(rows, n));
		buf_puts(out, "}");
	}
	buf_puts(out, "]");
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };

	if (pg_count(rows[0]) == 0) {
		problem_reply(call, 404, "there is no such subscription");
		return;
	}
	buf_puts(&body, "{");
	put_page(&body, call_id(call), rows[0]);
	put_id(&body, "next_after",
	    delivery_log_more_after(rows[0], call->page.limit));
	buf_puts(&body, "}");
	call_json(call, 200, &body);
}

void
deliveries_list(struct call *call)
{
	struct pg_batch *batch;
	struct asked asked;
	struct err err;

	if (read_asked(&asked, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	delivery_log_list(batch, &asked.query);
	call_ask(call, batch, on_listed);
}
