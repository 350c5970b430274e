#include "base/err.h"
#include "command.h"
#include "list.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/subscription.h"
#include "store/tenant.h"

static void
add(struct out *out, const struct subscription *s)
{
	out_id(out, "id", s->id);
	out_text(out, "state", s->state);
	out_text(out, "state_reason",
	    s->state_reason[0] == '\0' ? NULL : s->state_reason);
	out_text(out, "ordering", s->ordering);
	out_text(out, "on_dead", s->on_dead);
	out_number(out, "max_attempts", s->max_attempts);
	out_number(out, "max_in_flight", s->max_in_flight);
	if (s->rate_per_second[0] == '\0')
		out_text(out, "rate_per_second", NULL);
	else
		out_raw(out, "rate_per_second", s->rate_per_second);
	out_number(out, "circuit_after", s->circuit_after);
	out_time(out, "created_at", s->created_at);
	out_raw(out, "event_types", s->event_types);
	out_text(out, "filter", s->filter[0] == '\0' ? NULL : s->filter);
	out_text(out, "url", s->url);
	out_end(out);
}

static void
ask(struct pg_batch *batch, void *arg, int64_t from)
{
	const int64_t *tenant = arg;

	subscription_list(batch, *tenant, from, LIST_PAGE);
}

static int64_t
add_page(struct out *out, const struct pg_rows *rows, void *arg)
{
	struct subscription s = { 0 };

	(void)arg;
	for (int row = 0; row < pg_count(rows); row++) {
		subscription_read(&s, rows, row);
		add(out, &s);
	}
	return list_next(rows, s.id);
}

static int
add_all(struct pg *pg, const char *name, struct out *out, struct err *err)
{
	int64_t tenant;
	const struct list list = { "subscriptions", ask, add_page, &tenant };

	if (tenant_find(pg, name, &tenant, err) != 0)
		return -1;
	return list_all(pg, &list, out, err);
}

enum status
cmd_subscription_list(const struct call *call, struct err *err)
{
	const char *name = command_value(call, "tenant");
	struct session session;
	struct out out;
	int result = -1;

	if (tenant_check_name(name, err) != 0)
		return STATUS_USAGE;
	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = add_all(session.pg, name, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static int
judge(const struct subscription_outcome *outcome, enum subscription_move move,
    struct err *err)
{
	if (outcome->answer == SUBSCRIPTION_MISSING)
		return err_set(
		    err, ERR_REFUSED, "there is no such subscription");
	if (outcome->answer == SUBSCRIPTION_REFUSED)
		return err_set(err, ERR_REFUSED, "it is %s: %s it first",
		    outcome->now.state,
		    move == SUBSCRIPTION_ENABLE ? "resume" : "enable");
	return 0;
}

static int
run_move(struct pg *pg, int64_t id, enum subscription_move move,
    struct out *out, struct err *err)
{
	const struct subscription_change which = {
		.tenant_id = SUBSCRIPTION_ANY_TENANT,
		.id = id,
		.actor = "cli",
	};
	struct pg_batch *batch = pg_batch_new();
	struct subscription_outcome outcome;
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "subscription");
	subscription_move(batch, &which, move);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	subscription_changed(&outcome, rows);
	result = judge(&outcome, move, err);
	if (result == 0 && move == SUBSCRIPTION_DELETE) {
		out_id(out, "id", id);
		out_text(out, "state", "deleted");
		out_end(out);
	} else if (result == 0) {
		add(out, &outcome.now);
	}
	pg_rows_free(rows);
	return result;
}

static enum status
move(const struct call *call, enum subscription_move move, struct err *err)
{
	struct session session;
	struct out out;
	int64_t id;
	int result = -1;

	if (command_id(call, &id, err) != STATUS_DONE)
		return STATUS_USAGE;
	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = run_move(session.pg, id, move, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

enum status
cmd_subscription_pause(const struct call *call, struct err *err)
{
	return move(call, SUBSCRIPTION_PAUSE, err);
}

enum status
cmd_subscription_resume(const struct call *call, struct err *err)
{
	return move(call, SUBSCRIPTION_RESUME, err);
}

enum status
cmd_subscription_disable(const struct call *call, struct err *err)
{
	return move(call, SUBSCRIPTION_DISABLE, err);
}

enum status
cmd_subscription_enable(const struct call *call, struct err *err)
{
	return move(call, SUBSCRIPTION_ENABLE, err);
}

enum status
cmd_subscription_delete(const struct call *call, struct err *err)
{
	return move(call, SUBSCRIPTION_DELETE, err);
}
