#include <stdlib.h>

#include "base/err.h"
#include "call.h"
#include "change.h"
#include "desk.h"
#include "http/server.h"
#include "ingest.h"
#include "problem.h"
#include "store/audit.h"
#include "subscription_changes.h"
#include "subscriptions.h"

static void
free_change(struct change *change)
{
	subscription_form_fini(&change->form);
	rotation_form_fini(&change->rotation);
	sealed_fini(&change->sealed);
	free(change);
}

static void
on_changed(void *arg, struct pg_rows *const *rows, const struct err *err)
{
	struct change *change = arg;

	if (err != NULL)
		problem_reply_err(change->call, err);
	else
		change_reply(change, rows);
	free_change(change);
}

static void
put_patch(struct pg_batch *batch, const struct change *change,
    const struct subscription_change *which)
{
	const struct subscription_form *form = &change->form;

	subscription_update(batch, which, &form->fields,
	    &(struct subscription_secrets){
		.drops_headers = form->secret_headers.is_given,
		.drops_tls_key = form->tls_key.len > 0,
		.drops_signing_keys = form->ed25519 == FORM_OFF,
		.keeps_signing_key = !form->is_key_given,
		.sealed = &change->sealed,
	    });
}

static void
put_change(struct pg_batch *batch, const struct change *change)
{
	const struct call *call = change->call;
	const struct etag_match *match = &change->match;
	struct call_who who;
	const struct subscription_change which = {
		.tenant_id = call->key.tenant_id,
		.id = change->id,
		.actor = who.actor,
		.versions = match->is_any ? NULL : match->versions,
		.nversions = match->nversions,
	};

	call_who(&who, call);
	switch (change->kind) {
	case CHANGE_PATCH:
		put_patch(batch, change, &which);
		break;
	case CHANGE_MOVE:
		subscription_move(batch, &which, change->move);
		break;
	case CHANGE_ROTATION:
		subscription_rotate(batch, &which,
		    &(struct subscription_rotation){
			.overlap_seconds = change->rotation.overlap_seconds,
			.sealed = &change->sealed,
		    });
		break;
	}
	audit_from(batch, who.source);
}

/* Takes over `change`. */
static void
submit(struct change *change)
{
	struct call *call = change->call;
	struct pg_batch *batch = pg_batch_new();
	struct err err;

	if (batch == NULL) {
		problem_reply(call, 503, "out of memory");
		free_change(change);
		return;
	}
	put_change(batch, change);
	if (desk_submit(call->ingest->desk, batch, on_changed, change, &err) ==
	    0)
		return;
	problem_reply_err(call, &err);
	free_change(change);
}

/* A change of what the path names; NULL if the call has been answered. */
static struct change *
begin(struct call *call)
{
	struct change *change = calloc(1, sizeof(*change));
	struct err err;

	if (change == NULL) {
		problem_reply(call, 503, "out of memory");
		return NULL;
	}
	change->call = call;
	change->id = call_id(call);
	sealed_init(&change->sealed, &call->ingest->ring, change->id);
	if (change->id < 0)
		subscriptions_missing(call);
	else if (etag_read(&change->match, call->request, &err) != 0)
		problem_reply(call, 400, "%s", err.text);
	else
		return change;
	free(change);
	return NULL;
}

void
subscription_changes_patch(struct call *call)
{
	struct change *change = begin(call);
	char pointer[FORM_POINTER_SIZE];
	struct err err;
	const char *text;
	size_t len;

	if (change == NULL)
		return;
	text = request_body(call->request, &len);
	change->kind = CHANGE_PATCH;
	if (subscription_form_read_change(&change->form, text, len,
		&call->ingest->policy, pointer, &err) == 0 &&
	    subscription_form_seal(&change->form, &change->sealed, &err) == 0) {
		submit(change);
		return;
	}
	problem_reply_form(call, pointer, &err);
	free_change(change);
}

static int
seal_rotation(struct change *change, struct err *err)
{
	const struct rotation_form *form = &change->rotation;

	if (form->is_key)
		return sealed_add_key(&change->sealed, &form->key, err);
	return sealed_add(&change->sealed, SECRET_SIGNING, NULL,
	    form->secret.bytes, form->secret.len, err);
}

static void
rotate(struct call *call, bool is_key)
{
	struct change *change = begin(call);
	char pointer[FORM_POINTER_SIZE];
	struct err err;
	const char *text;
	size_t len;

	if (change == NULL)
		return;
	text = request_body(call->request, &len);
	change->kind = CHANGE_ROTATION;
	if (rotation_form_read(
		&change->rotation, is_key, text, len, pointer, &err) == 0 &&
	    seal_rotation(change, &err) == 0) {
		submit(change);
		return;
	}
	problem_reply_form(call, pointer, &err);
	free_change(change);
}

void
subscription_changes_rotate_secret(struct call *call)
{
	rotate(call, false);
}

void
subscription_changes_rotate_key(struct call *call)
{
	rotate(call, true);
}

static void
move(struct call *call, enum subscription_move move)
{
	struct change *change = begin(call);

	if (change == NULL)
		return;
	change->kind = CHANGE_MOVE;
	change->move = move;
	submit(change);
}

void
subscription_changes_pause(struct call *call)
{
	move(call, SUBSCRIPTION_PAUSE);
}

void
subscription_changes_resume(struct call *call)
{
	move(call, SUBSCRIPTION_RESUME);
}

void
subscription_changes_disable(struct call *call)
{
	move(call, SUBSCRIPTION_DISABLE);
}

void
subscription_changes_enable(struct call *call)
{
	move(call, SUBSCRIPTION_ENABLE);
}

void
subscription_changes_delete(struct call *call)
{
	move(call, SUBSCRIPTION_DELETE);
}
