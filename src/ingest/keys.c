#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "key_form.h"
#include "keys.h"
#include "pg/pg.h"
#include "problem.h"
#include "query.h"
#include "store/audit.h"
#include "store/key.h"
#include "store/tenant.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 200 };

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

static void
put_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text == NULL)
		buf_puts(out, "null");
	else
		json_quote(out, text, strlen(text));
}

static void
put_time(struct buf *out, const char *name, usec_t time)
{
	buf_printf(out, ",\"%s\":", name);
	if (time < 0)
		buf_puts(out, "null");
	else
		call_put_time(out, time);
}

/* All its members; the caller closes the object. */
static void
put_key(struct buf *out, const struct key_row *key)
{
	buf_puts(out, "{\"id\":");
	call_put_id(out, key->id);
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
	char location[64];

	(void)snprintf(
	    location, sizeof(location), "/v1/keys/%" PRId64, made->id);
	request_add_header(call->request, "Location", location);
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

static void
refuse_form(struct call *call, const char *pointer, const struct err *err)
{
	if (err->code != ERR_REFUSED)
		problem_reply_err(call, err);
	else
		problem_reply_at(call, pointer[0] == '\0' ? 400 : 422, pointer,
		    "%s", err->text);
}

void
keys_post(struct call *call)
{
	struct making *making = calloc(1, sizeof(*making));
	char pointer[KEY_POINTER_SIZE];
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
		refuse_form(call, pointer, &err);
		free_making(making);
	} else if (create(making, &form.order, &err) != 0) {
		problem_reply_err(call, &err);
		free_making(making);
	}
	key_form_fini(&form);
}

static void
missing(struct call *call)
{
	problem_reply(call, 404, "there is no such key");
}

/* One key, the last answer of the batch. */
static void
reply_key(struct call *call, const struct pg_rows *rows)
{
	struct buf body = { 0 };
	struct key_row key;

	if (!key_read(&key, rows, 0)) {
		missing(call);
		return;
	}
	put_key(&body, &key);
	buf_puts(&body, "}");
	call_json(call, 200, &body);
}

static void
on_got(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	if (err != NULL)
		problem_reply_err(arg, err);
	else
		reply_key(arg, rows[0]);
}

static void
on_revoked(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	if (err != NULL)
		problem_reply_err(arg, err);
	else
		reply_key(arg, rows[1]);
}

/* Send a batch about the key that the path names. */
static void
submit(struct call *call, bool revokes)
{
	int64_t id = call_number(call->id, strlen(call->id));
	struct pg_batch *batch = pg_batch_new();
	struct call_who who;
	struct err err;

	if (id < 0 || batch == NULL) {
		pg_batch_free(batch);
		if (id < 0)
			missing(call);
		else
			problem_reply(call, 503, "out of memory");
		return;
	}
	call_who(&who, call);
	if (revokes)
		key_revoke(batch, id, who.actor);
	key_get(batch, id);
	audit_from(batch, who.source);
	if (desk_submit(call->ingest->desk, batch,
		revokes ? on_revoked : on_got, call, &err) != 0)
		problem_reply_err(call, &err);
}

void
keys_get(struct call *call)
{
	submit(call, false);
}

void
keys_revoke(struct call *call)
{
	submit(call, true);
}

enum { TENANT, AFTER, LIMIT, NITEMS };

/* What a page is asked for with. */
struct page {
	struct query_item items[NITEMS];
	int64_t after, limit;
};

static int
read_page(struct page *page, const struct call *call, struct err *err)
{
	*page = (struct page){
		.items = { [TENANT] = { .name = "tenant" },
		    [AFTER] = { .name = "after" },
		    [LIMIT] = { .name = "limit" } },
		.limit = LIMIT_DEFAULT,
	};
	if (query_read(
		page->items, NITEMS, request_query(call->request), err) != 0 ||
	    query_number(
		&page->items[AFTER], 0, INT64_MAX, &page->after, err) != 0 ||
	    query_number(
		&page->items[LIMIT], 1, LIMIT_MAX, &page->limit, err) != 0)
		return -1;
	return 0;
}

/* One row more than the page has says that there is a next one. */
static void
put_page(struct buf *out, const struct pg_rows *rows, int limit)
{
	struct key_row key = { 0 };
	int64_t last = 0;
	int n = 0;

	buf_puts(out, "{\"keys\":[");
	for (; n < limit && key_read(&key, rows, n); n++) {
		buf_puts(out, n == 0 ? "" : ",");
		put_key(out, &key);
		buf_puts(out, "}");
		last = key.id;
	}
	buf_puts(out, "],\"next_after\":");
	if (key_read(&key, rows, n))
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
	struct page page;
	struct err ignored;

	if (err != NULL) {
		problem_reply_err(call, err);
		return;
	}
	(void)read_page(&page, call, &ignored);
	put_page(&body, rows[0], (int)page.limit);
	call_json(call, 200, &body);
}

void
keys_list(struct call *call)
{
	struct pg_batch *batch;
	struct page page;
	struct err err;

	if (read_page(&page, call, &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	key_list(batch, query_text(&page.items[TENANT]), page.after,
	    (int)page.limit + 1);
	if (desk_submit(call->ingest->desk, batch, on_listed, call, &err) != 0)
		problem_reply_err(call, &err);
}
