#include <inttypes.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "http/server.h"
#include "key_form.h"
#include "page.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "store/audit.h"
#include "store/tenant.h"
#include "tenants.h"

static void
put_tenant(struct buf *out, const struct tenant *tenant)
{
	buf_puts(out, "{");
	put_id(out, "id", tenant->id);
	put_text(out, "name", tenant->name);
	put_time(out, "created_at", tenant->created_at);
	buf_puts(out, "}");
}

static void
reply_tenant(struct call *call, int status, const struct tenant *tenant)
{
	struct buf body = { 0 };

	if (status == 201)
		call_add_location(call, "/v1/tenants/%" PRId64, tenant->id);
	put_tenant(&body, tenant);
	call_json(call, status, &body);
}

static void
on_created(struct call *call, struct pg_rows *const *rows)
{
	struct tenant tenant;

	if (tenant_read(&tenant, rows[0], 0))
		reply_tenant(call, 201, &tenant);
	else
		problem_reply(call, 409,
		    "there is a tenant of this name already: choose another");
}

static void
create(struct call *call, const char *name)
{
	struct pg_batch *batch = call_batch(call);
	struct call_who who;

	if (batch == NULL)
		return;
	call_who(&who, call);
	tenant_create(batch, name, who.actor);
	audit_from(batch, who.source);
	call_ask(call, batch, on_created);
}

void
tenants_post(struct call *call)
{
	char pointer[FORM_POINTER_SIZE];
	struct buf name;
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (key_form_read_tenant(&name, text, len, pointer, &err) != 0)
		problem_reply_form(call, pointer, &err);
	else
		create(call, buf_text(&name));
	buf_fini(&name);
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	struct tenant tenant;

	if (tenant_read(&tenant, rows[0], 0))
		reply_tenant(call, 200, &tenant);
	else
		problem_reply(call, 404, "there is no such tenant");
}

void
tenants_get(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	tenant_get(batch, call_id(call));
	call_ask(call, batch, on_got);
}

static bool
put_row(struct buf *out, const struct pg_rows *rows, int row, int64_t *id)
{
	struct tenant tenant;

	if (!tenant_read(&tenant, rows, row))
		return false;
	*id = tenant.id;
	put_tenant(out, &tenant);
	return true;
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	page_reply(call, "tenants", rows[0], put_row);
}

void
tenants_list(struct call *call)
{
	struct query_item items[PAGE_ITEMS];
	struct pg_batch *batch;
	struct err err;

	if (page_read(call, "after", items, PAGE_ITEMS, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	tenant_list(batch, call->page.from, call->page.limit + 1);
	call_ask(call, batch, on_listed);
}
