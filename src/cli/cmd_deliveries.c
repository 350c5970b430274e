#include "base/err.h"
#include "command.h"
#include "list.h"
#include "out.h"
#include "pg/row.h"
#include "session.h"
#include "store/delivery_log.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000000 };

static void
add_status(struct out *out, const char *name, int status)
{
	if (status < 0)
		out_text(out, name, NULL);
	else
		out_number(out, name, status);
}

/* The members that ingest's API has, under the same names. */
static void
add(struct out *out, const struct pg_rows *rows, int row,
    const struct delivery_entry *entry)
{
	out_id(out, "id", entry->id);
	out_text(out, "event_id", entry->event_id);
	out_text(out, "type", entry->type);
	out_text(out, "asset", entry->asset);
	out_text(out, "state", entry->state);
	out_text(out, "why", entry->why);
	out_time(out, "until", entry->until);
	if (entry->behind == 0)
		out_text(out, "behind", NULL);
	else
		out_id(out, "behind", entry->behind);
	out_number(out, "generation", entry->generation);
	out_number(out, "attempts", entry->attempts);
	add_status(out, "status", entry->status);
	out_time(out, "accepted_at", entry->accepted_at);
	out_time(out, "finished_at", entry->finished_at);
	out_bool(out, "payload_purged", entry->is_purged);
	add_status(out, "last_status", delivery_log_last_status(rows, row));
	out_text(out, "last_error", delivery_log_last_error(rows, row));
	out_end(out);
}

/* A query, and how many more deliveries are wanted. */
struct wanted {
	struct delivery_query query;
	int left;
	bool is_missing; /* the subscription */
};

static void
ask(struct pg_batch *batch, void *arg, int64_t from)
{
	struct wanted *wanted = arg;

	wanted->query.after = from == 0 ? -1 : from;
	wanted->query.limit =
	    wanted->left < LIST_PAGE ? wanted->left : LIST_PAGE;
	delivery_log_list(batch, &wanted->query);
}

static int64_t
add_page(struct out *out, const struct pg_rows *rows, void *arg)
{
	struct wanted *wanted = arg;
	struct delivery_entry entry;
	int n = 0;

	wanted->is_missing = pg_count(rows) == 0;
	for (; delivery_log_read(&entry, rows, n); n++)
		add(out, rows, n, &entry);
	wanted->left -= n;
	return wanted->left == 0
	           ? 0
	           : delivery_log_more_after(rows, wanted->query.limit);
}

static int
list(struct pg *pg, struct wanted *wanted, struct out *out, struct err *err)
{
	const struct list list = { "deliveries", ask, add_page, wanted };

	if (list_all(pg, &list, out, err) != 0)
		return -1;
	if (wanted->is_missing)
		return err_set(
		    err, ERR_REFUSED, "there is no such subscription");
	return 0;
}

static enum status
take_query(const struct call *call, struct wanted *wanted, struct err *err)
{
	struct delivery_query *query = &wanted->query;

	*query = (struct delivery_query){
		.tenant_id = -1,
		.state = command_value(call, "state"),
		.type = command_value(call, "type"),
		.asset = command_value(call, "asset"),
		.event_id = command_value(call, "event"),
	};
	if (query->state != NULL &&
	    delivery_log_check_state(query->state, err) != 0)
		return STATUS_USAGE;
	if (command_id(call, &query->subscription_id, err) != STATUS_DONE ||
	    command_time(call, "since", &query->since, err) != STATUS_DONE ||
	    command_time(call, "until", &query->until, err) != STATUS_DONE)
		return STATUS_USAGE;
	return command_number(call, "limit", LIMIT_MAX, &wanted->left, err);
}

enum status
cmd_deliveries(const struct call *call, struct err *err)
{
	struct wanted wanted = { .left = LIMIT_DEFAULT };
	struct session session;
	struct out out;
	int result = -1;

	if (take_query(call, &wanted, err) != STATUS_DONE)
		return STATUS_USAGE;
	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = list(session.pg, &wanted, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
