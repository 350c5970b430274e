#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "key_form.h"
#include "pg/pg.h"
#include "problem.h"
#include "query.h"
#include "store/audit.h"
#include "store/tenant.h"
#include "tenants.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 200 };

static void
put_tenant(struct buf *out, const struct tenant *tenant)
{
	buf_puts(out, "{\"id\":");
	call_put_id(out, tenant->id);
	buf_puts(out, ",\"name\":");
	json_quote(out, tenant->name, strlen(tenant->name));
	buf_puts(out, ",\"created_at\":");
	call_put_time(out, tenant->created_at);
	buf_puts(out, "}");
}

static void
reply_tenant(struct call *call, int status, const struct tenant *tenant)
{
	struct buf body = { 0 };
	char location[64];

	if (status == 201) {
		(void)snprintf(location, sizeof(location),
		    "/v1/tenants/%" PRId64, tenant->id);
		request_add_header(call->request, "Location", location);
	}
	put_tenant(&body, tenant);
	call_json(call, status, &body);
}

static void
on_created(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct tenant tenant;

	if (err != NULL)
		problem_reply_err(call, err);
	else if (tenant_read(&tenant, rows[0], 0))
		reply_tenant(call, 201, &tenant);
	else
		problem_reply(
		    call, 409, "there is a tenant of this name already");
}

static int
create(struct call *call, const char *name, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct call_who who;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "tenant");
	call_who(&who, call);
	tenant_create(batch, name, who.actor);
	audit_from(batch, who.source);
	return desk_submit(call->ingest->desk, batch, on_created, call, err);
}

void
tenants_post(struct call *call)
{
	char pointer[KEY_POINTER_SIZE];
	struct buf name;
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (key_form_read_tenant(&name, text, len, pointer, &err) != 0) {
		if (err.code == ERR_REFUSED)
			problem_reply_at(call, pointer[0] == '\0' ? 400 : 422,
			    pointer, "%s", err.text);
		else
			problem_reply_err(call, &err);
	} else if (create(call, buf_text(&name), &err) != 0) {
		problem_reply_err(call, &err);
	}
	buf_fini(&name);
}

static void
missing(struct call *call)
{
	problem_reply(call, 404, "there is no such tenant");
}

static void
on_got(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct tenant tenant;

	if (err != NULL)
		problem_reply_err(arg, err);
	else if (tenant_read(&tenant, rows[0], 0))
		reply_tenant(arg, 200, &tenant);
	else
		missing(arg);
}

void
tenants_get(struct call *call)
{
	int64_t id = call_number(call->id, strlen(call->id));
	struct pg_batch *batch;
	struct err err;

	if (id < 0) {
		missing(call);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	tenant_get(batch, id);
	if (desk_submit(call->ingest->desk, batch, on_got, call, &err) != 0)
		problem_reply_err(call, &err);
}

static int
read_page(
    int64_t *after, int64_t *limit, const struct call *call, struct err *err)
{
	struct query_item items[] = { { .name = "after" },
		{ .name = "limit" } };

	*after = 0;
	*limit = LIMIT_DEFAULT;
	if (query_read(items, 2, request_query(call->request), err) != 0 ||
	    query_number(&items[0], 0, INT64_MAX, after, err) != 0 ||
	    query_number(&items[1], 1, LIMIT_MAX, limit, err) != 0)
		return -1;
	return 0;
}

/* One row more than the page has says that there is a next one. */
static void
put_page(struct buf *out, const struct pg_rows *rows, int limit)
{
	struct tenant tenant;
	int64_t last = 0;
	int n = 0;

	buf_puts(out, "{\"tenants\":[");
	for (; n < limit && tenant_read(&tenant, rows, n); n++) {
		buf_puts(out, n == 0 ? "" : ",");
		put_tenant(out, &tenant);
		last = tenant.id;
	}
	buf_puts(out, "],\"next_after\":");
	if (tenant_read(&tenant, rows, n))
		call_put_id(out, last);
	else
		buf_puts(out, "null");
	buf_puts(out, "}");
}

static void
on_listed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct buf body = { 0 };
	int64_t after, limit;
	struct err ignored;

	if (err != NULL) {
		problem_reply_err(call, err);
		return;
	}
	(void)read_page(&after, &limit, call, &ignored);
	put_page(&body, rows[0], (int)limit);
	call_json(call, 200, &body);
}

void
tenants_list(struct call *call)
{
	struct pg_batch *batch;
	int64_t after, limit;
	struct err err;

	if (read_page(&after, &limit, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	tenant_list(batch, after, (int)limit + 1);
	if (desk_submit(call->ingest->desk, batch, on_listed, call, &err) != 0)
		problem_reply_err(call, &err);
}
