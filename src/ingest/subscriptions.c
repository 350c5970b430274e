#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "pg/row.h"
#include "problem.h"
#include "store/audit.h"
#include "store/sealed.h"
#include "subscription_form.h"
#include "subscription_json.h"
#include "subscriptions.h"

enum {
	LIMIT_DEFAULT = 100,
	LIMIT_MAX = 200,
};

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
add_location(struct call *call, int64_t id)
{
	char location[64];

	(void)snprintf(
	    location, sizeof(location), "/v1/subscriptions/%" PRId64, id);
	request_add_header(call->request, "Location", location);
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
	add_location(reg->call, reg->id);
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
		reg->id = pg_get_bigint(rows[0], 0, pg_column(rows[0], "id"));
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
subscriptions_refuse_form(
    struct call *call, const char *pointer, const struct err *err)
{
	if (err->code == ERR_REFUSED)
		problem_reply_at(call, pointer[0] == '\0' ? 400 : 422, pointer,
		    "%s", err->text);
	else
		problem_reply_err(call, err);
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
		subscriptions_refuse_form(call, pointer, &err);
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
on_got(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct call *call = arg;
	struct subscription s;

	if (err != NULL) {
		problem_reply_err(call, err);
	} else if (pg_count(rows[0]) == 0) {
		subscriptions_missing(call);
	} else {
		subscription_read(&s, rows[0], 0);
		subscription_json_reply(call, &s);
	}
}

int64_t
subscriptions_id(const struct call *call)
{
	return call_number(call->id, strlen(call->id));
}

void
subscriptions_get(struct call *call)
{
	int64_t id = subscriptions_id(call);
	struct pg_batch *batch;
	struct err err;

	if (id < 0) {
		subscriptions_missing(call);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	subscription_get(batch, call->key.tenant_id, id);
	if (desk_submit(call->ingest->desk, batch, on_got, call, &err) != 0)
		problem_reply_err(call, &err);
}

struct page {
	int64_t after;
	int64_t limit;
};

/* One `name=number` of the query. */
static int
take_pair(struct page *page, const char *pair, size_t len, struct err *err)
{
	const char *equals = memchr(pair, '=', len);
	size_t name = equals == NULL ? len : (size_t)(equals - pair);
	int64_t value =
	    equals == NULL ? -1 : call_number(equals + 1, len - name - 1);

	if (name == 5 && memcmp(pair, "after", 5) == 0) {
		page->after = value;
		if (value < 0)
			return err_set(err, ERR_REFUSED,
			    "after: want the id that a page ended with");
	} else if (name == 5 && memcmp(pair, "limit", 5) == 0) {
		page->limit = value;
		if (value < 1 || value > LIMIT_MAX)
			return err_set(
			    err, ERR_REFUSED, "limit: want 1 to %d", LIMIT_MAX);
	} else {
		return err_set(err, ERR_REFUSED,
		    "the query may have after and limit, and nothing else");
	}
	return 0;
}

static int
parse_query(struct page *page, const char *query, struct err *err)
{
	*page = (struct page){ .limit = LIMIT_DEFAULT };
	while (*query != '\0') {
		size_t len = strcspn(query, "&");

		if (take_pair(page, query, len, err) != 0)
			return -1;
		query += len + (query[len] == '&');
	}
	return 0;
}

/* One row more than the page has says that there is a next one. */
static void
put_page(struct buf *out, const struct pg_rows *rows, int limit)
{
	struct subscription s = { 0 };
	int n = pg_count(rows);

	buf_puts(out, "{\"subscriptions\":[");
	for (int row = 0; row < n && row < limit; row++) {
		subscription_read(&s, rows, row);
		buf_puts(out, row == 0 ? "{" : ",{");
		subscription_json_put(out, &s);
		buf_puts(out, "}");
	}
	buf_puts(out, "],\"next_after\":");
	if (n > limit)
		call_put_id(out, s.id);
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
	(void)parse_query(&page, request_query(call->request), &ignored);
	put_page(&body, rows[0], (int)page.limit);
	call_json(call, 200, &body);
}

void
subscriptions_list(struct call *call)
{
	struct pg_batch *batch;
	struct page page;
	struct err err;

	if (parse_query(&page, request_query(call->request), &err) != 0) {
		problem_reply(call, 400, "%s", err.text);
		return;
	}
	batch = pg_batch_new();
	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		return;
	}
	subscription_list(
	    batch, call->key.tenant_id, page.after, (int)page.limit + 1);
	if (desk_submit(call->ingest->desk, batch, on_listed, call, &err) != 0)
		problem_reply_err(call, &err);
}
