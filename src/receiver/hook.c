#include <ctype.h>
#include <event2/event.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "asset.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "behaviour.h"
#include "history.h"
#include "hook.h"
#include "http/server.h"
#include "receipt.h"
#include "recorder.h"
#include "secrets.h"
#include "verify.h"

enum {
	PATH_MAX_LEN = 1024,
	PIECE_SIZE = 16384, /* of an endless body */
};

struct hooks {
	struct event_base *loop;
	struct hooks_conf conf;
	LIST_HEAD(, hook) all;
	bool is_draining;
};

struct hook {
	LIST_ENTRY(hook) entry;
	struct hooks *hooks;
	struct request *request;
	struct receipt receipt;
	struct behaviour plan;
	char *asset;
	const char *detail; /* why it is refused, a constant */
	struct event *delay;
	usec_t due_at; /* on clock_now(): the end of the delay */
	bool is_kept; /* committed; else the recorder has it */
	bool is_gone; /* the client is, before the answer */
};

int
hooks_open(struct hooks **out, struct event_base *loop,
    const struct hooks_conf *conf, struct err *err)
{
	struct hooks *hooks = calloc(1, sizeof(*hooks));

	if (hooks == NULL)
		return err_set(err, ERR_NOMEM, "hooks");
	hooks->loop = loop;
	hooks->conf = *conf;
	LIST_INIT(&hooks->all);
	*out = hooks;
	return 0;
}

static void
hook_free(struct hook *hook)
{
	LIST_REMOVE(hook, entry);
	history_answered(hook->receipt.lane);
	if (hook->delay != NULL)
		event_free(hook->delay);
	free(hook->asset);
	free(hook);
}

void
hooks_close(struct hooks *hooks)
{
	struct hook *hook;

	if (hooks == NULL)
		return;
	while ((hook = LIST_FIRST(&hooks->all)) != NULL)
		hook_free(hook);
	free(hooks);
}

static void
reply_text(struct request *request, int status, const char *text)
{
	request_reply(request, status, "text/plain", text, strlen(text));
}

/* -- The end of a hook: each of these frees it. -- */

static void
hang_up(struct hook *hook)
{
	struct request *request = hook->request;

	hook_free(hook);
	request_abort(request);
}

static void
answer(struct hook *hook, int status, const char *detail)
{
	struct request *request = hook->request;

	if (hook->plan.header != NULL)
		request_add_header(
		    request, hook->plan.header, hook->plan.value);
	hook_free(hook);
	if (detail != NULL)
		reply_text(request, status, detail);
	else
		request_reply(request, status, NULL, "", 0);
}

static void
answer_late(struct hook *hook)
{
	recorder_answered(
	    hook->hooks->conf.recorder, hook->receipt.id, hook->plan.status);
	answer(hook, hook->plan.status, hook->detail);
}

static bool
add_piece(void *arg, struct buf *out)
{
	const struct hooks *hooks = arg;
	char *piece;

	if (hooks->is_draining)
		return false;
	piece = buf_grow(out, PIECE_SIZE);
	if (piece != NULL)
		memset(piece, '.', PIECE_SIZE);
	return piece != NULL;
}

static void
stream(struct hook *hook)
{
	struct request *request = hook->request;
	struct hooks *hooks = hook->hooks;
	int status = hook->plan.status;

	hook_free(hook);
	request_stream(request, status, "text/plain", add_piece, hooks);
}

/* -- Acting, once the receipt is committed. -- */

static void
start_delay(struct hook *hook)
{
	struct timeval wait = clock_timeval(hook->due_at - clock_now());

	if (event_add(hook->delay, &wait) != 0)
		hang_up(hook);
}

/* The loop counts from when its turn began, so it may be early. */
static void
on_delay(evutil_socket_t fd, short what, void *arg)
{
	struct hook *hook = arg;

	(void)fd;
	(void)what;
	if (clock_now() < hook->due_at)
		start_delay(hook);
	else
		answer_late(hook);
}

static void
hold(struct hook *hook)
{
	if (hook->hooks->is_draining) {
		hang_up(hook);
		return;
	}
	if (hook->plan.kind == BEHAVIOUR_HOLD)
		return; /* until the client or we go */
	hook->due_at = clock_now() + hook->plan.delay;
	hook->delay = evtimer_new(hook->hooks->loop, on_delay, hook);
	if (hook->delay == NULL)
		hang_up(hook);
	else
		start_delay(hook);
}

static void
act(struct hook *hook)
{
	switch (hook->plan.kind) {
	case BEHAVIOUR_ANSWER:
		if (hook->plan.delay > 0)
			hold(hook);
		else
			answer(hook, hook->plan.status, hook->detail);
		break;
	case BEHAVIOUR_HANG_UP:
		hang_up(hook);
		break;
	case BEHAVIOUR_HOLD:
		hold(hook);
		break;
	case BEHAVIOUR_STREAM:
		stream(hook);
		break;
	}
}

static void
on_kept(void *arg, const struct err *err)
{
	struct hook *hook = arg;

	hook->is_kept = true;
	if (hook->is_gone) {
		hang_up(hook);
	} else if (err != NULL) {
		hook->plan = (struct behaviour){ 0 };
		answer(hook, 503, "the receipt could not be kept");
	} else {
		act(hook);
	}
}

/* The sender has given up on this request: the next one of its lane does not
 * overlap it. */
static void
on_gone(void *arg)
{
	struct hook *hook = arg;

	if (hook->is_kept) {
		hang_up(hook);
		return;
	}
	hook->is_gone = true;
	history_answered(hook->receipt.lane);
	hook->receipt.lane = NULL;
}

/* -- From the request to its receipt. -- */

static void
judge(struct hook *hook)
{
	const struct hooks_conf *conf = &hook->hooks->conf;
	struct receipt *receipt = &hook->receipt;
	struct err err;

	if (secrets_refresh(conf->secrets, &err) != 0)
		log_warn("the secrets were not read", "reason", err.text, NULL);
	receipt_judge(receipt, hook->request,
	    secrets_find(conf->secrets, receipt->path), conf->tolerance);
}

static void
refuse(struct hook *hook, int status, const char *detail)
{
	hook->plan =
	    (struct behaviour){ .kind = BEHAVIOUR_ANSWER, .status = status };
	hook->detail = detail;
}

static int
plan(struct hook *hook, struct err *err)
{
	struct receipt *receipt = &hook->receipt;

	judge(hook);
	if (EVP_Digest(receipt->body, receipt->len, receipt->sha256, NULL,
		EVP_sha256(), NULL) != 1)
		return err_set(err, ERR_RETRY, "SHA-256 fails");
	if (receipt->verdict != VERIFY_VALID) {
		refuse(hook, 401, verify_verdict_name(receipt->verdict));
		return 0;
	}
	if (asset_read(&hook->asset, receipt->body, receipt->len, err) != 0) {
		refuse(hook, 400, "the body is no event");
		return err->code == ERR_REFUSED ? 0 : -1;
	}
	receipt->asset = hook->asset;
	if (history_see(hook->hooks->conf.history, receipt, err) != 0)
		return -1;
	hook->plan = behaviour_decide(
	    receipt->path, request_query(hook->request), receipt->nth);
	return 0;
}

static void
log_request(const struct hook *hook)
{
	const struct receipt *receipt = &hook->receipt;
	char status[16];

	(void)snprintf(status, sizeof(status), "%d", hook->plan.status);
	log_debug("webhook", "path", receipt->path, "event", receipt->event_id,
	    "asset", receipt->asset, "signature",
	    verify_verdict_name(receipt->verdict), "status", status, NULL);
}

static void
start(struct hook *hook)
{
	struct receipt *receipt = &hook->receipt;
	struct err err;

	receipt_read(&hook->receipt, hook->request);
	if (plan(hook, &err) != 0) {
		hook->plan = (struct behaviour){ 0 };
		answer(hook, 503, "not now");
		return;
	}
	if (hook->plan.delay == 0)
		receipt->status = hook->plan.status;
	receipt->takes_effect = hook->plan.takes_effect;
	log_request(hook);
	request_on_gone(hook->request, on_gone, hook);
	recorder_keep(hook->hooks->conf.recorder, receipt, on_kept, hook);
}

static bool
is_endpoint(const struct request *request)
{
	const char *path = request_path(request);
	size_t len = strlen(path);

	/* The database takes only text in UTF-8; plain ASCII is that. */
	for (const char *p = path; *p != '\0'; p++)
		if (!isgraph((unsigned char)*p))
			return false;
	return len <= PATH_MAX_LEN &&
	       behaviour_is_known(path, request_query(request));
}

void
hooks_take(struct hooks *hooks, struct request *request)
{
	struct hook *hook;

	if (!is_endpoint(request)) {
		reply_text(request, 404, "no endpoint behaves like that");
		return;
	}
	if (strcmp(request_method(request), "POST") != 0) {
		request_add_header(request, "Allow", "POST");
		reply_text(request, 405, "a webhook is a POST");
		return;
	}
	hook = recorder_is_ready(hooks->conf.recorder)
	           ? calloc(1, sizeof(*hook))
	           : NULL;
	if (hook == NULL) {
		reply_text(request, 503, "receipts cannot be kept now");
		return;
	}
	hook->hooks = hooks;
	hook->request = request;
	LIST_INSERT_HEAD(&hooks->all, hook, entry);
	start(hook);
}

void
hooks_drain(struct hooks *hooks)
{
	struct hook *hook, *next;

	hooks->is_draining = true;
	for (hook = LIST_FIRST(&hooks->all); hook != NULL; hook = next) {
		next = LIST_NEXT(hook, entry);
		if (!hook->is_kept)
			continue; /* on_kept() comes, and acts */
		if (hook->plan.kind == BEHAVIOUR_HOLD)
			hang_up(hook);
		else
			answer_late(hook);
	}
}
