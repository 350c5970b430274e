#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "core/envelope.h"
#include "core/json.h"
#include "input.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "session.h"
#include "store/outbox.h"
#include "store/stmt.h"
#include "store/tenant.h"

enum {
	TRIES_MAX = 5, /* of a transaction that met another */
	DELIVERIES_SHOWN = 1000, /* as by ingest's API */
};

/* An event on its way; the envelope lends from `text`. */
struct sending {
	struct buf text; /* as an app would post it */
	struct envelope envelope;
	struct buf body;
	struct outbox_event event;
};

static void
put_member(struct buf *out, const char *name, const char *value)
{
	if (value == NULL)
		return;
	buf_printf(out, "\"%s\":", name);
	json_quote(out, value, strlen(value));
	buf_puts(out, ",");
}

/* What the options say and what the file holds, as an app would post it, so that
 * the same is refused in the same words. */
static int
put_text(struct buf *out, const struct call *call, struct err *err)
{
	const char *to = command_value(call, "subscription");
	struct buf data = { 0 };
	struct json_slice value;
	int result = input_read(&data, call->operand, ENVELOPE_TEXT_MAX, err);

	if (result == 0 && json_check(&value, data.data, data.len, err) != 0)
		result = err_wrap(err, "data");
	if (result == 0) {
		buf_puts(out, "{");
		put_member(out, "id", command_value(call, "id"));
		put_member(out, "type", command_value(call, "type"));
		put_member(out, "asset", command_value(call, "asset"));
		if (to != NULL) {
			buf_puts(out, "\"subscriptions\":[");
			json_quote(out, to, strlen(to));
			buf_puts(out, "],");
		}
		buf_puts(out, "\"data\":");
		buf_add(out, value.at, value.len);
		buf_puts(out, "}");
	}
	buf_fini(&data);
	if (result == 0 && out->failed)
		result = err_set(err, ERR_NOMEM, "event");
	return result;
}

static void
fill(struct sending *sending)
{
	const struct envelope *envelope = &sending->envelope;

	sending->event = (struct outbox_event){
		.key_id = OUTBOX_NO_KEY,
		.id = envelope->id,
		.type = envelope->type,
		.asset = envelope->asset[0] == '\0' ? NULL : envelope->asset,
		.named = envelope->subscriptions,
		.nnamed = envelope->nsubscriptions,
		.fingerprint = envelope->fingerprint,
		.body = sending->body.data,
		.len = sending->body.len,
	};
}

/* What the file holds is a failure, what an option says a usage error. */
static enum status
prepare(struct sending *sending, const struct call *call, struct err *err)
{
	struct envelope *envelope = &sending->envelope;
	char pointer[ENVELOPE_POINTER_SIZE] = "";

	if (put_text(&sending->text, call, err) != 0)
		return STATUS_FAILED;
	if (sending->text.len > ENVELOPE_TEXT_MAX) {
		(void)err_set(err, ERR_REFUSED, "an event is at most %d bytes",
		    ENVELOPE_TEXT_MAX);
		return STATUS_FAILED;
	}
	if (envelope_parse(envelope, sending->text.data, sending->text.len,
		pointer, err) != 0)
		return pointer[0] == '\0' || strcmp(pointer, "/data") == 0
		           ? STATUS_FAILED
		           : STATUS_USAGE;
	if (envelope->id[0] == '\0' && envelope_make_id(envelope, err) != 0)
		return STATUS_FAILED;
	envelope_body(&sending->body, envelope, clock_wall());
	if (sending->body.failed) {
		(void)err_set(err, ERR_NOMEM, "event");
		return STATUS_FAILED;
	}
	fill(sending);
	return STATUS_DONE;
}

static int
ask(struct pg *pg, struct outbox *outbox, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "event");
	outbox_ask(outbox, batch);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	result = outbox_learn(outbox, rows, SIZE_MAX, err);
	pg_rows_free(rows);
	return result;
}

static int
ask_filters(struct pg *pg, struct outbox *outbox, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int result;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "event");
	if (outbox_filter(outbox, batch, err) != 0) {
		pg_batch_free(batch);
		return -1;
	}
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	result = outbox_filtered(outbox, rows, err);
	pg_rows_free(rows);
	return result;
}

static int
keep(struct pg *pg, struct outbox *outbox, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "event");
	if (outbox_write(outbox, batch, err) != 0) {
		pg_batch_free(batch);
		return -1;
	}
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	(void)outbox_settle(outbox, rows); /* nothing was guessed */
	pg_rows_free(rows);
	return 0;
}

static int
try(struct pg *pg, struct outbox_event *event, struct err *err)
{
	struct outbox *outbox;
	int result;

	if (outbox_open(&outbox, &event, 1, err) != 0)
		return -1;
	result = ask(pg, outbox, err);
	if (result == 0 && outbox_has_filters(outbox))
		result = ask_filters(pg, outbox, err);
	if (result == 0 && outbox_count(outbox) > 0)
		result = keep(pg, outbox, err);
	outbox_close(outbox);
	return result;
}

/* Another transaction was in the way: a deadlock, or it has just accepted this
 * id. */
static bool
met_another(const struct err *err)
{
	return err->code != ERR_UNKNOWN &&
	       (strncmp(err->sqlstate, "40", 2) == 0 ||
		   strcmp(err->sqlstate, "23505") == 0);
}

static int
send_event(struct pg *pg, const char *tenant, struct outbox_event *event,
    struct err *err)
{
	int result = -1;

	if (tenant_find(pg, tenant, &event->tenant_id, err) != 0)
		return -1;
	for (int i = 0; i < TRIES_MAX && result != 0; i++) {
		result = try(pg, event, err);
		if (result != 0 && !met_another(err))
			break;
	}
	if (result != 0 && err->code == ERR_UNKNOWN)
		return err_set(err, ERR_UNKNOWN,
		    "the database's answer was lost: the event may have been "
		    "accepted; send it again with --id %s, and the answer will "
		    "tell",
		    event->id);
	return result;
}

static int
judge(const struct outbox_event *event, struct err *err)
{
	switch (event->outcome) {
	case OUTBOX_ACCEPTED:
	case OUTBOX_REPEATED:
		return 0;
	case OUTBOX_CONFLICT:
		return err_set(err, ERR_REFUSED,
		    "another event was accepted under the id \"%s\"",
		    event->id);
	case OUTBOX_NOBODY:
		return err_set(err, ERR_REFUSED,
		    "there is no subscription \"%" PRId64 "\"", event->nobody);
	case OUTBOX_OPEN:
	case OUTBOX_LATER:
	case OUTBOX_REVOKED:
		break;
	}
	return err_set(err, ERR_RETRY, "try again in a moment");
}

static int
print_accepted(
    const struct call *call, const struct outbox_event *event, struct err *err)
{
	struct out out;

	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	out_text(&out, "id", event->id);
	out_time(&out, "accepted_at", event->accepted_at);
	out_number(&out, "deliveries", event->fan_out);
	out_bool(&out, "repeated", event->outcome == OUTBOX_REPEATED);
	out_end(&out);
	return out_print(&out, err);
}

enum status
cmd_event_send(const struct call *call, struct err *err)
{
	const char *tenant = command_value(call, "tenant");
	struct sending sending = { .envelope = { .id = "" } };
	struct session session;
	enum status status;

	if (tenant_check_name(tenant, err) != 0)
		return STATUS_USAGE;
	status = prepare(&sending, call, err);
	if (status == STATUS_DONE) {
		status = STATUS_FAILED;
		if (session_open(&session, &call->settings, err) == 0 &&
		    send_event(session.pg, tenant, &sending.event, err) == 0 &&
		    judge(&sending.event, err) == 0 &&
		    print_accepted(call, &sending.event, err) == 0)
			status = STATUS_DONE;
		session_close(&session);
	}
	buf_fini(&sending.text);
	buf_fini(&sending.body);
	return status;
}

static void
add_delivery(struct out *out, const struct pg_rows *rows, int row)
{
	int status = pg_column(rows, "status");

	out_id(out, "id", pg_read_bigint(rows, row, "delivery_id"));
	out_id(out, "subscription_id",
	    pg_read_bigint(rows, row, "subscription_id"));
	out_text(out, "state", pg_read_text(rows, row, "state"));
	out_number(out, "attempts", pg_read_int(rows, row, "attempts"));
	if (pg_is_null(rows, row, status))
		out_text(out, "status", NULL);
	else
		out_number(out, "status", pg_get_int(rows, row, status));
	out_end(out);
}

static void
add_deliveries(struct out *out, const struct pg_rows *rows)
{
	int delivery = pg_column(rows, "delivery_id");

	for (int i = 0; i < pg_count(rows); i++)
		if (!pg_is_null(rows, i, delivery))
			add_delivery(out, rows, i);
}

/* The event; as JSON it has its deliveries in it, for people a table follows. */
static int
print_event(
    const struct call *call, const struct pg_rows *rows, struct err *err)
{
	bool is_json = command_value(call, "json") != NULL;
	struct out event, deliveries;

	out_init(&event, OUT_RECORD, is_json);
	out_init(&deliveries, OUT_LIST, is_json);
	add_deliveries(&deliveries, rows);
	out_text(&event, "id", pg_read_text(rows, 0, "event_id"));
	out_text(&event, "type", pg_read_text(rows, 0, "type"));
	out_text(&event, "asset", pg_read_text_or_null(rows, 0, "asset"));
	out_time(&event, "accepted_at", pg_read_time(rows, 0, "accepted_at"));
	out_number(&event, "fan_out", pg_read_int(rows, 0, "fan_out"));
	if (is_json)
		out_list(&event, "deliveries", &deliveries);
	out_end(&event);
	if (out_print(&event, err) != 0)
		return -1;
	if (!is_json && deliveries.nrecords > 0)
		(void)putchar('\n');
	return is_json ? 0 : out_print(&deliveries, err);
}

static int
get_event(const struct call *call, struct pg *pg, struct err *err)
{
	struct pg_batch *batch;
	struct pg_rows **rows;
	int64_t tenant;
	int result;

	if (tenant_find(pg, command_value(call, "tenant"), &tenant, err) != 0)
		return -1;
	batch = pg_batch_new();
	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "event");
	pg_call(batch, STMT_EVENT_GET);
	pg_bigint(batch, tenant);
	pg_text(batch, call->operand);
	pg_int(batch, DELIVERIES_SHOWN);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	result = pg_count(rows[0]) == 0
	             ? err_set(err, ERR_REFUSED, "there is no such event")
	             : print_event(call, rows[0], err);
	pg_rows_free(rows);
	return result;
}

enum status
cmd_event_get(const struct call *call, struct err *err)
{
	struct session session;
	int result = -1;

	if (tenant_check_name(command_value(call, "tenant"), err) != 0)
		return STATUS_USAGE;
	if (session_open(&session, &call->settings, err) == 0)
		result = get_event(call, session.pg, err);
	session_close(&session);
	return result == 0 ? STATUS_DONE : STATUS_FAILED;
}
