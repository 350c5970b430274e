#include "audit.h"
#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "page.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "store/audit.h"

enum {
	TENANT = PAGE_ITEMS,
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
read_asked(struct asked *asked, struct call *call, struct err *err)
{
	struct query_item *items = asked->items;
	struct audit_query *query = &asked->query;

	*asked = (struct asked){
		.items = { [TENANT] = { .name = "tenant" },
		    [ACTOR] = { .name = "actor" },
		    [ACTION] = { .name = "action" },
		    [SUBJECT] = { .name = "subject" },
		    [SINCE] = { .name = "since" },
		    [UNTIL] = { .name = "until" } },
		.query = { .since = -1, .until = -1 },
	};
	if (page_read(call, "before", items, NITEMS, err) != 0 ||
	    query_time(&items[SINCE], &query->since, err) != 0 ||
	    query_time(&items[UNTIL], &query->until, err) != 0)
		return -1;
	query->before = call->page.from;
	query->limit = call->page.limit;
	query->tenant = query_text(&items[TENANT]);
	query->actor = query_text(&items[ACTOR]);
	query->action = query_text(&items[ACTION]);
	query->subject = query_text(&items[SUBJECT]);
	return 0;
}

static bool
put_entry(struct buf *out, const struct pg_rows *rows, int row, int64_t *id)
{
	struct audit_entry entry;

	if (!audit_read(&entry, rows, row))
		return false;
	*id = entry.number;
	buf_puts(out, "{");
	put_id(out, "id", entry.number);
	put_time(out, "at", entry.at);
	put_text(out, "actor", entry.actor);
	put_text(out, "source", entry.source);
	put_text(out, "tenant", entry.tenant);
	put_text(out, "action", entry.action);
	put_text(out, "subject", entry.subject);
	put_json(out, "detail", entry.detail);
	put_text(out, "hash", entry.hash);
	buf_puts(out, "}");
	return true;
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	int64_t last = 0, more_before = audit_more_before(rows[0]);
	struct buf body = { 0 };

	buf_puts(&body, "{");
	if (page_put(&body, call, "audit", rows[0], put_entry, &last) ==
	    call->page.limit)
		more_before = last > 1 ? last : 0;
	put_id(&body, "next_before", more_before);
	buf_puts(&body, "}");
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
	batch = call_batch(call);
	if (batch == NULL)
		return;
	audit_list(batch, &asked.query);
	call_ask(call, batch, on_listed);
}
