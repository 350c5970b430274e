#include <string.h>

#include "assets.h"
#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "columns.h"
#include "core/utf8.h"
#include "http/server.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "store/stmt.h"

enum {
	LANES_SHOWN = 100,
	WAITING_DEFAULT = 20,
	WAITING_MAX = 100,
	FINISHED_SHOWN = 5,
};

enum { SUBSCRIPTION, LIMIT, NITEMS };

/* What a delivery is in its lane, as the statement says it. */
enum part { PART_HEAD = 1, PART_REPLAY, PART_BEHIND, PART_FINISHED };

struct asked {
	int64_t subscription_id; /* -1: of all */
	int64_t limit;
};

static int
read_asked(struct asked *asked, const struct call *call, struct err *err)
{
	struct query_item items[NITEMS] = {
		[SUBSCRIPTION] = { .name = "subscription" },
		[LIMIT] = { .name = "limit" },
	};

	*asked =
	    (struct asked){ .subscription_id = -1, .limit = WAITING_DEFAULT };
	if (query_read(items, NITEMS, request_query(call->request), err) != 0 ||
	    query_number(&items[SUBSCRIPTION], 0, INT64_MAX,
		&asked->subscription_id, err) != 0 ||
	    query_number(&items[LIMIT], 1, WAITING_MAX, &asked->limit, err) !=
		0)
		return -1;
	return 0;
}

/* Rows of one answer, of which `row` is the next. */
struct reader {
	const struct pg_rows *rows;
	int row;
};

static int64_t
lane_at(const struct reader *reader, int row)
{
	return pg_read_bigint(reader->rows, row, "subscription_id");
}

static enum part
part_at(const struct reader *reader)
{
	return (enum part)pg_read_int(reader->rows, reader->row, "part");
}

static void
put_delivery(struct buf *out, struct reader *reader)
{
	static const struct column delivery[] = {
		{ "id", COLUMN_ID },
		{ "event_id", COLUMN_TEXT },
		{ "type", COLUMN_TEXT },
		{ "state", COLUMN_TEXT },
		{ "generation", COLUMN_INT },
		{ "replayed", COLUMN_BOOL },
		{ "attempts", COLUMN_INT },
		{ "status", COLUMN_INT },
		{ "last_error", COLUMN_TEXT },
		{ "last_attempt_at", COLUMN_TIME },
		{ "accepted_at", COLUMN_TIME },
		{ "finished_at", COLUMN_TIME },
	};

	buf_puts(out, "{");
	columns_put(out, reader->rows, reader->row++, delivery,
	    sizeof(delivery) / sizeof(delivery[0]));
	buf_puts(out, "}");
}

/* Up to `limit` of this lane's deliveries whose part is one of these. */
static void
put_list(struct buf *out, struct reader *reader, int64_t lane, enum part first,
    enum part last, int64_t limit)
{
	int64_t n = 0;

	for (; reader->row < pg_count(reader->rows) &&
	       lane_at(reader, reader->row) == lane &&
	       part_at(reader) >= first && part_at(reader) <= last;
	     n++) {
		if (n >= limit) {
			reader->row++;
			continue;
		}
		buf_puts(out, n == 0 ? "" : ",");
		put_delivery(out, reader);
	}
}

static void
put_lane(struct buf *out, struct reader *reader, int64_t limit)
{
	static const struct column lane[] = {
		{ "subscription_id", COLUMN_ID },
		{ "url", COLUMN_TEXT },
		{ "why", COLUMN_TEXT },
		{ "until", COLUMN_TIME },
		{ "behind", COLUMN_BIGINT },
		{ "replays", COLUMN_BIGINT },
	};
	int64_t id = lane_at(reader, reader->row);

	buf_puts(out, "{");
	columns_put(out, reader->rows, reader->row, lane,
	    sizeof(lane) / sizeof(lane[0]));
	buf_puts(out, ",\"head\":");
	if (part_at(reader) == PART_HEAD)
		put_delivery(out, reader);
	else
		buf_puts(out, "null"); /* somebody removed it by hand */
	buf_puts(out, ",\"waiting\":[");
	put_list(out, reader, id, PART_REPLAY, PART_BEHIND, limit);
	buf_puts(out, "],\"finished\":[");
	put_list(out, reader, id, PART_FINISHED, PART_FINISHED, FINISHED_SHOWN);
	buf_puts(out, "]}");
}

/* One lane more than is shown says that there are more. */
static void
put_asset(struct buf *out, const char *asset, const struct pg_rows *rows,
    int64_t limit)
{
	struct reader reader = { .rows = rows };
	int n = 0;

	buf_puts(out, "{");
	put_text(out, "asset", asset);
	buf_puts(out, ",\"lanes\":[");
	for (; reader.row < pg_count(rows) && n < LANES_SHOWN; n++) {
		buf_puts(out, n == 0 ? "" : ",");
		put_lane(out, &reader, limit);
	}
	buf_puts(out, "]");
	put_bool(out, "more", reader.row < pg_count(rows));
	buf_puts(out, "}");
}

static void
on_found(struct call *call, struct pg_rows *const *rows)
{
	struct buf body = { 0 };
	struct asked asked;
	struct err ignored;

	(void)read_asked(&asked, call, &ignored);
	put_asset(&body, call->id, rows[0], asked.limit);
	call_json(call, 200, &body);
}

void
assets_get(struct call *call)
{
	struct pg_batch *batch;
	struct asked asked;
	struct err err;

	if (!utf8_is_valid(call->id, strlen(call->id))) {
		problem_reply(
		    call, 400, "the asset is not UTF-8, percent-encoded");
		return;
	}
	if (read_asked(&asked, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	pg_call(batch, STMT_ASSET_LANES);
	pg_bigint(batch, call->key.tenant_id);
	pg_text(batch, call->id);
	query_put_id(batch, asked.subscription_id);
	pg_int(batch, LANES_SHOWN + 1);
	pg_int(batch, (int32_t)asked.limit);
	pg_int(batch, FINISHED_SHOWN);
	call_ask(call, batch, on_found);
}
