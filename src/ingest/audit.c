#include <string.h>

#include "audit.h"
#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/pg.h"
#include "problem.h"
#include "query.h"
#include "store/audit.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 200 };

enum {
	BEFORE,
	LIMIT,
	TENANT,
	ACTOR,
	ACTION,
	SUBJECT,
	SINCE,
	UNTIL,
	NITEMS,
};

/* What is asked for; the texts of `query` lend from `items`. */
struct asked {
	struct query_item items[NITEMS];
	struct audit_query query;
};

static int
read_asked(struct asked *asked, const struct call *call, struct err *err)
{
	struct query_item *items = asked->items;
	struct audit_query *query = &asked->query;
	int64_t limit = LIMIT_DEFAULT;

	*asked = (struct asked){
		.items = { [BEFORE] = { .name = "before" },
		    [LIMIT] = { .name = "limit" },
		    [TENANT] = { .name = "tenant" },
		    [ACTOR] = { .name = "actor" },
		    [ACTION] = { .name = "action" },
		    [SUBJECT] = { .name = "subject" },
		    [SINCE] = { .name = "since" },
		    [UNTIL] = { .name = "until" } },
		.query = { .before = -1, .since = -1, .until = -1 },
	};
	if (query_read(items, NITEMS, request_query(call->request), err) != 0 ||
	    query_number(&items[BEFORE], 0, INT64_MAX, &query->before, err) !=
		0 ||
	    query_number(&items[LIMIT], 1, LIMIT_MAX, &limit, err) != 0 ||
	    query_time(&items[SINCE], &query->since, err) != 0 ||
	    query_time(&items[UNTIL], &query->until, err) != 0)
		return -1;
	query->tenant = query_text(&items[TENANT]);
	query->actor = query_text(&items[ACTOR]);
	query->action = query_text(&items[ACTION]);
	query->subject = query_text(&items[SUBJECT]);
	query->limit = (int)limit;
	return 0;
}

static void
put_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text == NULL)
		buf_puts(out, "null");
	else
		json_quote(out, text, strlen(text));
}

static void
put_entry(struct buf *out, const struct audit_entry *entry)
{
	buf_puts(out, "{\"id\":");
	call_put_id(out, entry->number);
	buf_puts(out, ",\"at\":");
	call_put_time(out, entry->at);
	put_text(out, "actor", entry->actor);
	put_text(out, "source", entry->source);
	put_text(out, "tenant", entry->tenant);
	put_text(out, "action", entry->action);
	put_text(out, "subject", entry->subject);
	buf_puts(out, ",\"detail\":");
	buf_puts(out, entry->detail);
	put_text(out, "hash", entry->hash);
	buf_puts(out, "}");
}

static void
put_page(struct buf *out, const struct pg_rows *rows, int limit)
{
	struct audit_entry entry;
	int64_t more_before = audit_more_before(rows);
	int n = 0;

	buf_puts(out, "{\"audit\":[");
	for (; n < limit && audit_read(&entry, rows, n); n++) {
		buf_puts(out, n == 0 ? "" : ",");
		put_entry(out, &entry);
		if (n + 1 == limit)
			more_before = entry.number > 1 ? entry.number : 0;
	}
	buf_puts(out, "],\"next_before\":");
	if (more_before == 0)
		buf_puts(out, "null");
	else
		call_put_id(out, more_before);
	buf_puts(out, "}");
}

static void
on_listed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct buf body = { 0 };
	struct asked asked;
	struct err ignored;

	if (err != NULL) {
		problem_reply_err(call, err);
		return;
	}
	(void)read_asked(&asked, call, &ignored);
	put_page(&body, rows[0], asked.query.limit);
	call_json(call, 200, &body);
}

void
audit_get(struct call *call)
{
	struct pg_batch *batch;
	struct asked asked;
	struct err err;

	if (read_asked(&asked, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	audit_list(batch, &asked.query);
	if (desk_submit(call->ingest->desk, batch, on_listed, call, &err) != 0)
		problem_reply_err(call, &err);
}
