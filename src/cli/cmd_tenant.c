#include "base/err.h"
#include "command.h"
#include "out.h"
#include "session.h"
#include "store/tenant.h"

static void
on_tenant(void *arg, const struct tenant *tenant)
{
	struct out *out = arg;

	out_id(out, "id", tenant->id);
	out_text(out, "name", tenant->name);
	out_time(out, "created_at", tenant->created_at);
	out_end(out);
}

enum status
cmd_tenant_create(const struct call *call, struct err *err)
{
	const char *name = call->operand;
	struct session session;
	struct out out;
	int64_t id;
	int result = -1;

	if (tenant_check_name(name, err) != 0)
		return STATUS_USAGE;
	if (session_open(&session, &call->settings, err) == 0)
		result = tenant_create(session.pg, name, &id, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;

	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	out_id(&out, "id", id);
	out_text(&out, "name", name);
	out_end(&out);
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

enum status
cmd_tenant_list(const struct call *call, struct err *err)
{
	struct session session;
	struct out out;
	int result = -1;

	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = tenant_list(session.pg, on_tenant, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
