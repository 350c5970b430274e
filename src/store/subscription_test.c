#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/stmt.h"
#include "store/subscription.h"
#include "store/subscription_test.h"

/* Its type is one that nobody can post. */
static const char posted[] =
    "{\"type\":\"test\",\"data\":{\"message\":"
    "\"A test of this subscription, which somebody asked for.\"}}";

static int
make_event(struct envelope *envelope, struct buf *body, struct err *err)
{
	if (envelope_parse(envelope, posted, strlen(posted), NULL, err) != 0 ||
	    envelope_make_id(envelope, err) != 0)
		return -1;
	memcpy(envelope->type, SUBSCRIPTION_TEST_TYPE,
	    sizeof(SUBSCRIPTION_TEST_TYPE));
	envelope_body(body, envelope, clock_wall());
	return body->failed ? err_set(err, ERR_NOMEM, "test event") : 0;
}

int
subscription_test_ask(struct pg_batch *batch,
    struct subscription_test_asked *asked, struct err *err)
{
	struct envelope envelope;
	struct buf body = { 0 };
	int result = make_event(&envelope, &body, err);

	if (result == 0) {
		memcpy(asked->event_id, envelope.id, sizeof(asked->event_id));
		pg_call(batch, STMT_SUBSCRIPTION_TEST_ASK);
		if (asked->tenant_id == SUBSCRIPTION_ANY_TENANT)
			pg_null(batch);
		else
			pg_bigint(batch, asked->tenant_id);
		pg_bigint(batch, asked->subscription_id);
		pg_text(batch, asked->event_id);
		pg_bytes(batch, body.data, body.len);
		pg_text(batch, asked->actor);
	}
	buf_fini(&body);
	return result;
}

enum subscription_test_answer
subscription_test_asked_read(const struct pg_rows *rows)
{
	if (pg_count(rows) == 0)
		return SUBSCRIPTION_TEST_MISSING;
	return pg_get_bool(rows, 0, pg_column(rows, "is_asked"))
	           ? SUBSCRIPTION_TEST_ASKED
	           : SUBSCRIPTION_TEST_BUSY;
}

void
subscription_test_look(
    struct pg_batch *batch, int64_t subscription_id, const char *event_id)
{
	pg_call(batch, STMT_SUBSCRIPTION_TEST_LOOK);
	pg_bigint(batch, subscription_id);
	pg_text(batch, event_id);
}

enum subscription_test_state
subscription_test_look_read(const struct pg_rows *rows)
{
	if (pg_count(rows) == 0)
		return SUBSCRIPTION_TEST_LOST;
	if (pg_get_bool(rows, 0, pg_column(rows, "is_finished")))
		return SUBSCRIPTION_TEST_DONE;
	if (!pg_get_bool(rows, 0, pg_column(rows, "is_over")))
		return SUBSCRIPTION_TEST_WAITS;
	return pg_get_bool(rows, 0, pg_column(rows, "is_taken"))
	           ? SUBSCRIPTION_TEST_LOST
	           : SUBSCRIPTION_TEST_NOT_TAKEN;
}

const char *
subscription_test_why(enum subscription_test_state state)
{
	if (state == SUBSCRIPTION_TEST_NOT_TAKEN)
		return "no dispatcher took it within ten seconds, so nothing "
		       "was sent: see that one runs, and try again";
	return "the dispatcher that took it did not say what came of it, so it "
	       "may have been sent: try again";
}

void
subscription_test_take(struct pg_batch *batch, const char *worker, int limit)
{
	pg_call(batch, STMT_SUBSCRIPTION_TEST_TAKE);
	pg_text(batch, worker);
	pg_int(batch, limit);
}

void
subscription_test_take_read(
    const struct pg_rows *rows, int row, struct subscription_test_task *out)
{
	out->subscription_id =
	    pg_get_bigint(rows, row, pg_column(rows, "subscription_id"));
	out->event_id = pg_get_text(rows, row, pg_column(rows, "event_id"));
	out->body = pg_get_bytes(rows, row, pg_column(rows, "body"), &out->len);
}

static void
text_or_null(struct pg_batch *batch, const char *text)
{
	pg_text(batch, text[0] == '\0' ? NULL : text);
}

void
subscription_test_record(struct pg_batch *batch, int64_t subscription_id,
    const char *event_id, const struct subscription_test_outcome *outcome)
{
	pg_call(batch, STMT_SUBSCRIPTION_TEST_RECORD);
	pg_bigint(batch, subscription_id);
	pg_text(batch, event_id);
	pg_text(batch, send_end_name(outcome->end));
	if (outcome->status == 0)
		pg_null(batch);
	else
		pg_int(batch, outcome->status);
	pg_bigint(batch, outcome->duration);
	text_or_null(batch, outcome->remote);
	text_or_null(batch, outcome->reason);
	for (int i = 0; i < DELIVERY_PHASES; i++) {
		if (outcome->phases[i] < 0)
			pg_null(batch);
		else
			pg_int(batch, (int32_t)outcome->phases[i]);
	}
	text_or_null(batch, outcome->headers);
	text_or_null(batch, outcome->excerpt);
}
