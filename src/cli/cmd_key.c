#include <stdio.h>

#include <openssl/crypto.h>

#include "base/err.h"
#include "command.h"
#include "list.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/key.h"
#include "store/tenant.h"

static void
add(struct out *out, const struct key_row *key)
{
	out_id(out, "id", key->id);
	out_text(out, "tenant", key->tenant);
	out_text(out, "role", key->role);
	out_text(out, "name", key->name);
	out_time(out, "created_at", key->created_at);
	out_time(out, "expires_at", key->expires_at);
	out_time(out, "revoked_at", key->revoked_at);
	out_time(out, "last_used_at", key->last_used_at);
	out_end(out);
}

static enum status
print_key(const struct call *call, const struct key_row *made, const char *key,
    struct err *err)
{
	bool is_json = command_value(call, "json") != NULL;
	struct out out;

	out_init(&out, OUT_RECORD, is_json);
	out_id(&out, "id", made->id);
	out_text(&out, "tenant", made->tenant);
	out_text(&out, "role", made->role);
	out_text(&out, "name", made->name);
	out_time(&out, "expires_at", made->expires_at);
	out_text(&out, "key", key);
	out_end(&out);
	if (out_print(&out, err) != 0)
		return STATUS_FAILED;
	if (!is_json)
		(void)puts("Keep the key: it is shown this once.");
	return STATUS_DONE;
}

static enum status
create(const struct call *call, struct pg *pg, const struct key_order *order,
    struct err *err)
{
	unsigned char hash[KEY_HASH];
	char key[KEY_LEN + 1] = "";
	enum status status = STATUS_FAILED;
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct key_row made;

	if (batch == NULL) {
		(void)err_set(err, ERR_NOMEM, "key");
		return STATUS_FAILED;
	}
	if (key_make(key, hash, err) != 0) {
		pg_batch_free(batch);
		return STATUS_FAILED;
	}
	key_create(batch, order, hash, "cli");
	if (pg_run(pg, batch, &rows, err) == 0) {
		if (key_read(&made, rows[0], 0))
			status = print_key(call, &made, key, err);
		else
			(void)err_set(
			    err, ERR_REFUSED, "there is no such tenant");
		pg_rows_free(rows);
	}
	OPENSSL_cleanse(key, sizeof(key));
	return status;
}

enum status
cmd_key_create(const struct call *call, struct err *err)
{
	struct key_order order = {
		.tenant = command_value(call, "tenant"),
		.role = command_value(call, "role"),
		.name = command_value(call, "name"),
	};
	enum status status = STATUS_FAILED;
	struct session session;

	if (order.name == NULL)
		order.name = order.role;
	if (command_time(call, "expires", &order.expires_at, err) !=
	    STATUS_DONE)
		return STATUS_USAGE;
	if (key_check(&order, err) != KEY_NO_FAULT)
		return STATUS_USAGE;
	if (session_open(&session, &call->settings, err) == 0)
		status = create(call, session.pg, &order, err);
	session_close(&session);
	return status;
}

static int
revoke(struct pg *pg, int64_t id, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result = 0;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "key");
	key_revoke(batch, id, "cli");
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	if (pg_count(rows[0]) == 0)
		result = err_set(err, ERR_REFUSED,
		    "there is no such key, or it is revoked already");
	pg_rows_free(rows);
	return result;
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
		result = revoke(session.pg, id, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;

	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	out_id(&out, "id", id);
	out_text(&out, "state", "revoked");
	out_end(&out);
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static void
ask(struct pg_batch *batch, void *arg, int64_t from)
{
	const char *const *tenant = arg;

	key_list(batch, *tenant, from, LIST_PAGE);
}

static int64_t
add_page(struct out *out, const struct pg_rows *rows, void *arg)
{
	struct key_row key = { 0 };

	(void)arg;
	for (int row = 0; key_read(&key, rows, row); row++)
		add(out, &key);
	return list_next(rows, key.id);
}

static int
add_all(struct pg *pg, const char *tenant, struct out *out, struct err *err)
{
	const struct list list = { "keys", ask, add_page, &tenant };
	int64_t id;

	if (tenant != NULL && tenant_find(pg, tenant, &id, err) != 0)
		return -1;
	return list_all(pg, &list, out, err);
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
		result = add_all(session.pg, tenant, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
