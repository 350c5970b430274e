#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/subscription.h"
#include "store/subscription_test.h"

/* Between two looks for what came back. */
#define LOOK_EVERY (100 * USEC_PER_MS)

static int
ask(struct pg *pg, struct subscription_test_asked *asked, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	enum subscription_test_answer answer;
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "test");
	if (subscription_test_ask(batch, asked, err) != 0) {
		pg_batch_free(batch);
		return -1;
	}
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	answer = subscription_test_asked_read(rows[0]);
	pg_rows_free(rows);
	if (answer == SUBSCRIPTION_TEST_MISSING)
		return err_set(
		    err, ERR_REFUSED, "there is no such subscription");
	if (answer == SUBSCRIPTION_TEST_BUSY)
		return err_set(err, ERR_REFUSED,
		    "a test of it is under way or was asked for just now, or "
		    "too many of its tenant's others are");
	return 0;
}

static void
add_text(struct out *out, const struct pg_rows *rows, const char *name)
{
	out_text(out, name, pg_read_text_or_null(rows, 0, name));
}

static void
add_number(struct out *out, const struct pg_rows *rows, const char *name,
    const char *from)
{
	int column = pg_column(rows, from);

	if (pg_is_null(rows, 0, column))
		out_text(out, name, NULL);
	else
		out_number(out, name, pg_get_int(rows, 0, column));
}

static void
add(struct out *out, const struct pg_rows *rows, const char *event_id)
{
	static const char *const phases[] = { "dns_us", "connect_us", "tls_us",
		"wait_us", "receive_us" };

	out_text(out, "event_id", event_id);
	out_time(out, "started_at", pg_read_time(rows, 0, "started_at"));
	out_number(out, "duration_us", pg_read_bigint(rows, 0, "duration_us"));
	add_text(out, rows, "ended");
	add_number(out, rows, "status", "tried_status");
	add_text(out, rows, "reason");
	add_text(out, rows, "remote");
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
		add_number(out, rows, phases[i], phases[i]);
	add_text(out, rows, "excerpt");
	out_end(out);
}

/* One look.  Returns 1 if there is to be another, 0 if it is shown, -1. */
static int
look(struct pg *pg, const struct subscription_test_asked *asked,
    struct out *out, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	enum subscription_test_state state;
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "test");
	subscription_test_look(batch, asked->subscription_id, asked->event_id);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	state = subscription_test_look_read(rows[0]);
	if (state == SUBSCRIPTION_TEST_DONE)
		add(out, rows[0], asked->event_id);
	pg_rows_free(rows);
	if (state == SUBSCRIPTION_TEST_WAITS)
		return 1;
	if (state == SUBSCRIPTION_TEST_DONE)
		return 0;
	return err_set(err, ERR_RETRY, "%s", subscription_test_why(state));
}

static int
run(struct session *session, struct subscription_test_asked *asked,
    struct out *out, struct err *err)
{
	struct timeval wait = clock_timeval(LOOK_EVERY);
	int result;

	if (ask(session->pg, asked, err) != 0)
		return -1;
	while ((result = look(session->pg, asked, out, err)) == 1) {
		(void)event_base_loopexit(session->loop, &wait);
		(void)event_base_dispatch(session->loop);
	}
	return result;
}

enum status
cmd_subscription_test(const struct call *call, struct err *err)
{
	struct subscription_test_asked asked = {
		.tenant_id = SUBSCRIPTION_ANY_TENANT,
		.actor = "cli",
	};
	struct session session;
	struct out out;
	int result = -1;

	if (command_id(call, &asked.subscription_id, err) != STATUS_DONE)
		return STATUS_USAGE;
	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = run(&session, &asked, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
