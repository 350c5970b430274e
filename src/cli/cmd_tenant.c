#include "base/err.h"
#include "command.h"
#include "list.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/tenant.h"

static void
add(struct out *out, const struct tenant *tenant)
{
	out_id(out, "id", tenant->id);
	out_text(out, "name", tenant->name);
	out_time(out, "created_at", tenant->created_at);
	out_end(out);
}

static int
create(struct pg *pg, const char *name, struct out *out, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct tenant tenant;
	int result = 0;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenant");
	tenant_create(batch, name, "cli");
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	if (tenant_read(&tenant, rows[0], 0))
		add(out, &tenant);
	else
		result = err_set(
		    err, ERR_REFUSED, "there is a tenant %s already", name);
	pg_rows_free(rows);
	return result;
}

enum status
cmd_tenant_create(const struct call *call, struct err *err)
{
	const char *name = call->operand;
	struct session session;
	struct out out;
	int result = -1;

	if (tenant_check_name(name, err) != 0)
		return STATUS_USAGE;
	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = create(session.pg, name, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static void
ask(struct pg_batch *batch, void *arg, int64_t from)
{
	(void)arg;
	tenant_list(batch, from, LIST_PAGE);
}

static int64_t
add_page(struct out *out, const struct pg_rows *rows, void *arg)
{
	struct tenant tenant = { 0 };

	(void)arg;
	for (int row = 0; tenant_read(&tenant, rows, row); row++)
		add(out, &tenant);
	return list_next(rows, tenant.id);
}

enum status
cmd_tenant_list(const struct call *call, struct err *err)
{
	const struct list list = { "tenants", ask, add_page, NULL };
	struct session session;
	struct out out;
	int result = -1;

	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = list_all(session.pg, &list, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
