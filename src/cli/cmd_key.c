#include <stdio.h>

#include <openssl/crypto.h>

#include "base/err.h"
#include "command.h"
#include "out.h"
#include "session.h"
#include "store/tenant.h"

static void
on_key(void *arg, const struct tenant_key *key)
{
	struct out *out = arg;

	out_id(out, "id", key->id);
	out_text(out, "tenant", key->tenant);
	out_text(out, "role", key->role);
	out_text(out, "name", key->name);
	out_time(out, "created_at", key->created_at);
	out_time(out, "expires_at", key->expires_at);
	out_time(out, "revoked_at", key->revoked_at);
	out_end(out);
}

static enum status
print_key(const struct call *call, const struct tenant_key_args *args,
    int64_t id, const char *key, struct err *err)
{
	bool is_json = command_value(call, "json") != NULL;
	struct out out;

	out_init(&out, OUT_RECORD, is_json);
	out_id(&out, "id", id);
	out_text(&out, "tenant", args->tenant);
	out_text(&out, "role", args->role);
	out_text(&out, "name", args->name);
	out_text(&out, "key", key);
	out_end(&out);
	if (out_print(&out, err) != 0)
		return STATUS_FAILED;
	if (!is_json)
		(void)puts("Keep the key: it is shown this once.");
	return STATUS_DONE;
}

enum status
cmd_key_create(const struct call *call, struct err *err)
{
	struct tenant_key_args args = {
		.tenant = command_value(call, "tenant"),
		.role = command_value(call, "role"),
		.name = command_value(call, "name"),
	};
	char key[TENANT_KEY_LEN + 1];
	enum status status = STATUS_FAILED;
	struct session session;
	int64_t id;

	if (args.name == NULL)
		args.name = args.role;
	if (tenant_check_key(&args, err) != 0)
		return STATUS_USAGE;

	if (session_open(&session, &call->settings, err) == 0 &&
	    tenant_key_create(session.pg, &args, key, &id, err) == 0)
		status = print_key(call, &args, id, key, err);
	session_close(&session);
	OPENSSL_cleanse(key, sizeof(key));
	return status;
}

enum status
cmd_key_revoke(const struct call *call, struct err *err)
{
	struct session session;
	struct out out;
	int64_t id;
	int result = -1;

	if (command_id(call, &id, err) != STATUS_DONE)
		return STATUS_USAGE;
	if (session_open(&session, &call->settings, err) == 0)
		result = tenant_key_revoke(session.pg, id, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;

	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	out_id(&out, "id", id);
	out_text(&out, "state", "revoked");
	out_end(&out);
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

enum status
cmd_key_list(const struct call *call, struct err *err)
{
	const char *tenant = command_value(call, "tenant");
	struct session session;
	struct out out;
	int result = -1;

	if (tenant != NULL && tenant_check_name(tenant, err) != 0)
		return STATUS_USAGE;
	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = tenant_key_list(session.pg, tenant, on_key, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
