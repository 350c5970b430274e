#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "call.h"
#include "core/json.h"
#include "events.h"
#include "http/server.h"
#include "post.h"
#include "problem.h"

enum {
	LINE_MAX_BYTES = 65536, /* as for an event posted alone */
	FAULTS_SHOWN = 20,
};

/* What is wrong with a batch, line by line. */
struct faults {
	struct buf list; /* elements of a JSON array */
	size_t n;
	int status; /* of the first */
};

static void
add_fault(struct faults *faults, size_t line, int status, const char *pointer,
    const char *detail)
{
	struct buf *out = &faults->list;

	if (faults->n == 0)
		faults->status = status;
	if (faults->n++ >= FAULTS_SHOWN)
		return;
	buf_puts(out, faults->n == 1 ? "" : ",");
	buf_printf(out, "{\"line\":%zu,\"pointer\":", line);
	json_quote(out, pointer, strlen(pointer));
	buf_puts(out, ",\"detail\":");
	json_quote(out, detail, strlen(detail));
	buf_puts(out, "}");
}

static void
reply_faults(struct call *call, struct faults *faults)
{
	struct buf more = { 0 }, detail = { 0 };

	buf_puts(&more, ",\"errors\":[");
	buf_add(&more, faults->list.data, faults->list.len);
	buf_puts(&more, "]");
	more.failed |= faults->list.failed;
	buf_printf(&detail, "%zu of the lines %s wrong: nothing was kept",
	    faults->n, faults->n == 1 ? "is" : "are");
	problem_reply_with(call, faults->status, buf_text(&detail), &more);
	buf_fini(&detail);
	buf_fini(&faults->list);
}

/* A line of the body; empty ones are passed over, and counted. */
struct line {
	const char *at;
	size_t len;
	size_t number;
};

static bool
is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
			return false;
	return true;
}

static bool
next_line(struct line *line, const char **text, size_t *left)
{
	while (*left > 0) {
		const char *end = memchr(*text, '\n', *left);
		size_t len = end == NULL ? *left : (size_t)(end - *text);
		size_t used = end == NULL ? len : len + 1;

		*line = (struct line){ *text, len, line->number + 1 };
		*text += used;
		*left -= used;
		if (!is_blank(line->at, line->len))
			return true;
	}
	return false;
}

static size_t
count_lines(const char *text, size_t len)
{
	struct line line = { 0 };
	size_t n = 0;

	while (next_line(&line, &text, &len))
		n++;
	return n;
}

/* -1 only for what is not the line's fault. */
static int
take_line(struct post *post, const struct line *line, struct faults *faults,
    struct err *err)
{
	char pointer[ENVELOPE_POINTER_SIZE] = "";

	if (line->len > LINE_MAX_BYTES) {
		add_fault(faults, line->number, 413, "",
		    "an event is at most 65536 bytes");
		return 0;
	}
	if (post_add(post, line->at, line->len, pointer, err) == 0)
		return 0;
	if (err->code != ERR_REFUSED)
		return -1;
	add_fault(faults, line->number, pointer[0] == '\0' ? 400 : 422, pointer,
	    err->text);
	return 0;
}

static int
take_lines(struct post *post, const char *text, size_t len,
    struct faults *faults, struct err *err)
{
	struct line line = { 0 };

	while (next_line(&line, &text, &len))
		if (take_line(post, &line, faults, err) != 0)
			return -1;
	return 0;
}

static void
judge(struct faults *faults, size_t line, const struct outbox_event *ev)
{
	char detail[128];

	switch (ev->outcome) {
	case OUTBOX_CONFLICT:
		add_fault(faults, line, 409, "/id",
		    "another event was accepted under this id: give "
		    "this one an id of its own");
		break;
	case OUTBOX_NOBODY:
		(void)snprintf(detail, sizeof(detail),
		    "there is no subscription \"%lld\"", (long long)ev->nobody);
		add_fault(faults, line, 422, "/subscriptions", detail);
		break;
	case OUTBOX_REVOKED:
		add_fault(faults, line, 401, "",
		    "this key was revoked, or has expired");
		break;
	case OUTBOX_LATER:
		add_fault(faults, line, 503, "", "try again in a moment");
		break;
	case OUTBOX_OPEN:
	case OUTBOX_ACCEPTED:
	case OUTBOX_REPEATED:
		break;
	}
}

static void
judge_lines(struct faults *faults, const struct post *post)
{
	struct line line = { 0 };
	size_t left;
	const char *text = request_body(post->call->request, &left);

	for (size_t i = 0; i < post->n; i++)
		if (next_line(&line, &text, &left))
			judge(faults, line.number, &post->events[i]);
}

static void
reply_accepted(const struct post *post)
{
	struct buf body = { 0 };
	int status = 200;

	buf_puts(&body, "{\"events\":[");
	for (size_t i = 0; i < post->n; i++) {
		const struct outbox_event *ev = &post->events[i];
		bool is_new = ev->outcome == OUTBOX_ACCEPTED;

		if (is_new)
			status = 202;
		buf_puts(&body, i == 0 ? "{" : ",{");
		events_put_accepted(&body, ev);
		buf_printf(&body, ",\"new\":%s}", is_new ? "true" : "false");
	}
	buf_puts(&body, "]}");
	call_json(post->call, status, &body);
}

/* The ids, in the order of the lines: who let us make them needs them to ask
 * again. */
static void
reply_unknown(const struct post *post)
{
	struct buf more = { 0 };

	buf_puts(&more, ",\"ids\":[");
	for (size_t i = 0; i < post->n; i++) {
		buf_puts(&more, i == 0 ? "" : ",");
		json_quote(
		    &more, post->events[i].id, strlen(post->events[i].id));
	}
	buf_puts(&more, "]");
	problem_reply_with(post->call, 504,
	    "the database's answer was lost: all the events may have been "
	    "accepted, or none; post them again with the same ids, and the "
	    "answer will tell",
	    &more);
}

static void
on_posted(struct post *post, const struct err *err)
{
	struct faults faults = { 0 };

	if (err != NULL && err->code == ERR_UNKNOWN) {
		reply_unknown(post);
		return;
	}
	if (err != NULL) {
		problem_reply_err(post->call, err);
		return;
	}
	judge_lines(&faults, post);
	if (faults.n > 0)
		reply_faults(post->call, &faults);
	else
		reply_accepted(post);
}

/* True if the writer has the lines; else the call is answered. */
static bool
hand_over(struct call *call, struct post *post, const char *text, size_t len)
{
	struct faults faults = { 0 };
	struct err err;
	int rc = take_lines(post, text, len, &faults, &err);

	if (rc == 0 && faults.n > 0) {
		reply_faults(call, &faults);
		return false;
	}
	if (rc == 0 && post_submit(post, true, on_posted, &err) == 0)
		return true;
	problem_reply_err(call, &err);
	buf_fini(&faults.list);
	return false;
}

void
events_post_batch(struct call *call)
{
	size_t len;
	const char *text = request_body(call->request, &len);
	size_t n = count_lines(text, len);
	struct post *post;
	struct err err;

	if (n == 0)
		problem_reply(call, 400, "there is no event in the body");
	else if (n > OUTBOX_EVENTS_MAX)
		problem_reply(call, 413, "%zu events, of at most %d", n,
		    OUTBOX_EVENTS_MAX);
	else if (post_new(&post, call, n, &err) != 0)
		problem_reply_err(call, &err);
	else if (!hand_over(call, post, text, len))
		post_free(post);
}
