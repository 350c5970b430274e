#include "base/buf.h"
#include "call.h"
#include "http/server.h"
#include "page.h"
#include "pg/row.h"
#include "put.h"
#include "query.h"

enum { LIMIT_DEFAULT = 100 };

int
page_read(struct call *call, const char *cursor, struct query_item *items,
    size_t n, struct err *err)
{
	int64_t limit = LIMIT_DEFAULT;

	call->page.from = -1;
	items[0] = (struct query_item){ .name = cursor };
	items[1] = (struct query_item){ .name = "limit" };
	if (query_read(items, n, request_query(call->request), err) != 0 ||
	    query_number(&items[0], 0, INT64_MAX, &call->page.from, err) != 0 ||
	    query_number(&items[1], 1, PAGE_MAX, &limit, err) != 0)
		return -1;
	call->page.limit = (int)limit;
	return 0;
}

int
page_put(struct buf *out, const struct call *call, const char *name,
    const struct pg_rows *rows, page_put_fn *put, int64_t *last)
{
	int n = 0;

	put_name(out, name);
	buf_puts(out, "[");
	while (n < call->page.limit && n < pg_count(rows)) {
		buf_puts(out, n == 0 ? "" : ",");
		if (!put(out, rows, n, last))
			break;
		n++;
	}
	buf_puts(out, "]");
	return n;
}

void
page_reply(struct call *call, const char *name, const struct pg_rows *rows,
    page_put_fn *put)
{
	struct buf body = { 0 };
	int64_t last = 0;
	int n;

	buf_puts(&body, "{");
	n = page_put(&body, call, name, rows, put, &last);
	put_id(&body, "next_after", pg_count(rows) > n ? last : 0);
	buf_puts(&body, "}");
	call_json(call, 200, &body);
}
