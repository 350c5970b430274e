#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/tenant.h"

enum { PAGE = 200 };

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

/* Add the page after the id `*after`, and move it.  Returns how many rows that
 * were, -1 on failure. */
static int
add_page(struct pg *pg, int64_t *after, struct out *out, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct tenant tenant;
	int n = 0;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenants");
	tenant_list(batch, *after, PAGE);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	for (; tenant_read(&tenant, rows[0], n); n++) {
		add(out, &tenant);
		*after = tenant.id;
	}
	pg_rows_free(rows);
	return n;
}

enum status
cmd_tenant_list(const struct call *call, struct err *err)
{
	struct session session;
	struct out out;
	int64_t after = 0;
	int n = -1;

	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0) {
		do {
			n = add_page(session.pg, &after, &out, err);
		} while (n == PAGE);
	}
	session_close(&session);
	if (n < 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
