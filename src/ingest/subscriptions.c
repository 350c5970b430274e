#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "page.h"
#include "pg/row.h"
#include "problem.h"
#include "query.h"
#include "store/audit.h"
#include "store/sealed.h"
#include "subscription_form.h"
#include "subscription_json.h"
#include "subscriptions.h"

/* A registration under way. */
struct registration {
	struct call *call;
	struct subscription_form form;
	int64_t id;
	struct sealed sealed;
};

static void
free_registration(struct registration *reg)
{
	if (reg == NULL)
		return;
	subscription_form_fini(&reg->form);
	sealed_fini(&reg->sealed);
	free(reg);
}

static void
reply_created(const struct registration *reg, const struct pg_rows *rows)
{
	const struct subscription_form *form = &reg->form;
	struct subscription made;
	struct buf secrets = { 0 };

	subscription_read(&made, rows, 0);
	subscription_json_put_secrets(&secrets, &form->secret,
	    form->ed25519 == FORM_ON ? &form->signing_key : NULL);
	call_add_location(reg->call, "/v1/subscriptions/%" PRId64, reg->id);
	subscription_json_answer(reg->call, 201, &made, &secrets);
}

static void
on_inserted(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct registration *reg = arg;

	if (err != NULL)
		problem_reply_err(reg->call, err);
	else
		reply_created(reg, rows[1]);
	free_registration(reg);
}

static void
put_insert(struct pg_batch *batch, const struct registration *reg)
{
	const struct call *call = reg->call;
	struct call_who who;

	call_who(&who, call);
	subscription_insert(batch, &(struct subscription_new){
				       .id = reg->id,
				       .tenant_id = call->key.tenant_id,
				       .actor = who.actor,
				       .fields = reg->form.fields,
				       .sealed = &reg->sealed,
				   });
	audit_from(batch, who.source);
}

static int
insert(struct registration *reg, struct err *err)
{
	struct ingest *ingest = reg->call->ingest;
	struct pg_batch *batch;

	sealed_init(&reg->sealed, &ingest->ring, reg->id);
	if (subscription_form_seal(&reg->form, &reg->sealed, err) != 0)
		return -1;
	batch = pg_batch_new();
	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "subscription");
	put_insert(batch, reg);
	return desk_submit(ingest->desk, batch, on_inserted, reg, err);
}

/* The secrets are sealed for this id, so that they open for no other. */
static void
on_id(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct registration *reg = arg;
	struct err wrong;

	if (err == NULL) {
		reg->id = pg_read_bigint(rows[0], 0, "id");
		if (insert(reg, &wrong) == 0)
			return;
		err = &wrong;
	}
	problem_reply_err(reg->call, err);
	free_registration(reg);
}

static int
ask_id(struct registration *reg, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "subscription");
	subscription_id(batch);
	return desk_submit(reg->call->ingest->desk, batch, on_id, reg, err);
}

void
subscriptions_post(struct call *call)
{
	struct registration *reg = calloc(1, sizeof(*reg));
	char pointer[FORM_POINTER_SIZE];
	struct err err;
	size_t len;
	const char *text = request_body(call->request, &len);

	if (reg == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	reg->call = call;
	if (subscription_form_read(&reg->form, text, len, &call->ingest->policy,
		pointer, &err) != 0) {
		problem_reply_form(call, pointer, &err);
	} else if (ask_id(reg, &err) != 0) {
		problem_reply_err(call, &err);
	} else {
		return;
	}
	free_registration(reg);
}

void
subscriptions_missing(struct call *call)
{
	problem_reply(call, 404, "there is no such subscription");
}

static void
on_got(struct call *call, struct pg_rows *const *rows)
{
	struct subscription s;

	if (pg_count(rows[0]) == 0) {
		subscriptions_missing(call);
	} else {
		subscription_read(&s, rows[0], 0);
		subscription_json_reply(call, &s);
	}
}

void
subscriptions_get(struct call *call)
{
	struct pg_batch *batch = call_batch(call);

	if (batch == NULL)
		return;
	subscription_get(batch, call->key.tenant_id, call_id(call));
	call_ask(call, batch, on_got);
}

static bool
put_row(struct buf *out, const struct pg_rows *rows, int row, int64_t *id)
{
	struct subscription s;

	subscription_read(&s, rows, row);
	*id = s.id;
	buf_puts(out, "{");
	subscription_json_put(out, &s);
	buf_puts(out, "}");
	return true;
}

static void
on_listed(struct call *call, struct pg_rows *const *rows)
{
	page_reply(call, "subscriptions", rows[0], put_row);
}

void
subscriptions_list(struct call *call)
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
	subscription_list(
	    batch, call->key.tenant_id, call->page.from, call->page.limit + 1);
	call_ask(call, batch, on_listed);
}
