#include <inttypes.h>
#include <stdlib.h>

#include <openssl/crypto.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "key_form.h"
#include "keys.h"
#include "page.h"
#include "pg/pg.h"
#include "problem.h"
#include "put.h"
#include "query.h"
#include "store/audit.h"
#include "store/key.h"

/* A key that is being made, and shown to the one who asked for it. */
struct making {
	struct call *call;
	char key[KEY_LEN + 1];
};

static void
free_making(struct making *making)
{
	OPENSSL_cleanse(making->key, sizeof(making->key));
	free(making);
}

/* All its members; the caller closes the object. */
static void
put_key(struct buf *out, const struct key_row *key)
{
	buf_puts(out, "{");
	put_id(out, "id", key->id);
	put_text(out, "tenant", key->tenant);
	put_text(out, "role", key->role);
	put_text(out, "name", key->name);
	put_time(out, "created_at", key->created_at);
	put_time(out, "expires_at", key->expires_at);
	put_time(out, "revoked_at", key->revoked_at);
	put_time(out, "last_used_at", key->last_used_at);
}

static void
reply_created(const struct making *making, const struct key_row *made)
{
	struct call *call = making->call;
	struct buf body = { 0 };

	call_add_location(call, "/v1/keys/%" PRId64, made->id);
	put_key(&body, made);
	put_text(&body, "key", making->key);
	buf_puts(&body, "}");
	call_json(call, 201, &body);
}

static void
on_created(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct making *making = arg;
	struct key_row made;

	if (err != NULL)
		problem_reply_err(making->call, err);
	else if (key_read(&made, rows[0], 0))
		reply_created(making, &made);
	else
		problem_reply_at(making->call, 422, "/tenant",
		    "tenant: there is no such tenant");
	free_making(making);
}

static int
create(struct making *making, const struct key_order *order, struct err *err)
{
	struct ingest *ingest = making->call->ingest;
	unsigned char hash[KEY_HASH];
	struct pg_batch *batch;
	struct call_who who;

	if (key_make(making->key, hash, err) != 0)
		return -1;
	batch = pg_batch_new();
	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "key");
	call_who(&who, making->call);
	key_create(batch, order, hash, who.actor);
	audit_from(batch, who.source);
	return desk_submit(ingest->desk, batch, on_created, making, err);
}

void
keys_post(struct call *call)
{
	struct making *making = calloc(1, sizeof(*making));
	char pointer[FORM_POINTER_SIZE];
	struct key_form form;
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (making == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	making->call = call;
	if (key_form_read(&form, text, len, pointer, &err) != 0) {
		problem_reply_form(call, pointer, &err);
		free_making(making);
	} else if (create(making, &form.order, &err) != 0) {
		problem_reply_err(call, &err);
		free_making(making);
	}
	key_form_fini(&form);
}

/* One key, the last answer of the batch. */
static void
reply_key(struct call *call, const struct pg_rows *rows)
{
	struct buf body = { 0 };
	struct key_row key;

	if (!key_read(&key, rows, 0)) {
		problem_reply(call, 404, "there is no such key");
		return;
	}
	put_key(&body, &key);
	buf_puts(&body, "}");
	call_json(call, 200, &body);
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	reply_key(call, rows[0]);
}

static void
ask(struct call *call, int64_t id)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	key_get(batch, id);
	call_ask(call, batch, on_got);
}

void
keys_get(struct call *call)
{
	ask(call, call_id(call));
}

void
keys_get_own(struct call *call)
{
	ask(call, call->key.id);
}

static void
on_revoked(struct call *call, struct pg_rows *const *rows)
{
	reply_key(call, rows[1]);
}

void
keys_revoke(struct call *call)
{
	struct pg_batch *batch = call_batch(call);
	struct call_who who;

	if (batch == NULL)
		return;
	call_who(&who, call);
	key_revoke(batch, call_id(call), who.actor);
	key_get(batch, call_id(call));
	audit_from(batch, who.source);
	call_ask(call, batch, on_revoked);
}

static bool
put_row(struct buf *out, const struct pg_rows *rows, int row, int64_t *id)
{
	struct key_row key;

	if (!key_read(&key, rows, row))
		return false;
	*id = key.id;
	put_key(out, &key);
	buf_puts(out, "}");
	return true;
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	page_reply(call, "keys", rows[0], put_row);
}

enum { TENANT = PAGE_ITEMS, NITEMS };

void
keys_list(struct call *call)
{
	struct query_item items[NITEMS] = { [TENANT] = { .name = "tenant" } };
	struct pg_batch *batch;
	struct err err;

	if (page_read(call, "after", items, NITEMS, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = call_batch(call);
	if (batch == NULL)
		return;
	key_list(batch, query_text(&items[TENANT]), call->page.from,
	    call->page.limit + 1);
	call_ask(call, batch, on_listed);
}
