#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "command.h"
#include "out.h"
#include "pg/pg.h"
#include "session.h"
#include "store/audit.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000000, PAGE = 500 };

/* "17:" and the hash in hex. */
enum { LINK_TEXT = 20 + 1 + 2 * AUDIT_HASH };

static void
add(struct out *out, const struct audit_entry *entry)
{
	out_id(out, "id", entry->number);
	out_time(out, "at", entry->at);
	out_text(out, "actor", entry->actor);
	out_text(out, "source", entry->source);
	out_text(out, "tenant", entry->tenant);
	out_text(out, "action", entry->action);
	out_text(out, "subject", entry->subject);
	out_raw(out, "detail", entry->detail);
	out_end(out);
}

/* Add a page, and move the query behind it.  Returns 1 if there may be more, 0,
 * or -1. */
static int
add_page(
    struct pg *pg, struct audit_query *query, struct out *out, struct err *err)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct audit_entry entry;
	int n = 0;

	if (batch == NULL)
		return err_set(err, ERR_NOMEM, "audit");
	audit_list(batch, query);
	if (pg_run(pg, batch, &rows, err) != 0)
		return -1;
	for (; audit_read(&entry, rows[0], n); n++) {
		add(out, &entry);
		query->before = entry.number;
	}
	if (n < query->limit)
		query->before = audit_more_before(rows[0]);
	pg_rows_free(rows);
	return query->before != 0;
}

static int
add_all(struct pg *pg, struct audit_query *query, int wanted, struct out *out,
    struct err *err)
{
	int more = 1;

	while (more > 0 && out->nrecords < wanted) {
		int room = wanted - out->nrecords;

		query->limit = room < PAGE ? room : PAGE;
		more = add_page(pg, query, out, err);
	}
	return more < 0 ? -1 : 0;
}

static enum status
take_limit(const struct call *call, int *out, struct err *err)
{
	const char *text = command_value(call, "limit");
	char *end;
	long limit = LIMIT_DEFAULT;

	errno = 0;
	if (text != NULL)
		limit = strtol(text, &end, 10);
	if (text != NULL &&
	    (errno != 0 || *end != '\0' || limit < 1 || limit > LIMIT_MAX))
		return command_misused(
		    call, err, "--limit is a number from 1 to 1000000");
	*out = (int)limit;
	return STATUS_DONE;
}

enum status
cmd_audit_list(const struct call *call, struct err *err)
{
	struct audit_query query = {
		.before = -1,
		.tenant = command_value(call, "tenant"),
		.actor = command_value(call, "actor"),
		.action = command_value(call, "action"),
		.subject = command_value(call, "subject"),
	};
	struct session session;
	struct out out;
	int wanted = LIMIT_DEFAULT, result = -1;

	if (command_time(call, "since", &query.since, err) != STATUS_DONE ||
	    command_time(call, "until", &query.until, err) != STATUS_DONE ||
	    take_limit(call, &wanted, err) != STATUS_DONE)
		return STATUS_USAGE;
	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = add_all(session.pg, &query, wanted, &out, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}

static void
print_link(char out[LINK_TEXT], const struct audit_link *link)
{
	int len = snprintf(out, LINK_TEXT, "%" PRId64 ":", link->number);

	for (int i = 0; i < AUDIT_HASH; i++)
		(void)snprintf(&out[len + 2 * i], 3, "%02x", link->hash[i]);
}

/* Two hex digits; -1 if they are none. */
static int
hex_byte(const char *at)
{
	char digits[3] = { at[0], at[1], '\0' };

	if (strspn(digits, "0123456789abcdef") != 2)
		return -1;
	return (int)strtol(digits, NULL, 16);
}

static enum status
take_earlier(const struct call *call, const char *text, struct audit_link *out,
    struct err *err)
{
	char *end = NULL;
	int byte = 0;

	errno = 0;
	out->number = strtoll(text, &end, 10);
	if (errno != 0 || out->number < 0 || *end != ':' ||
	    strlen(end + 1) != (size_t)2 * AUDIT_HASH)
		byte = -1;
	for (int i = 0; byte >= 0 && i < AUDIT_HASH; i++) {
		byte = hex_byte(end + 1 + 2 * i);
		out->hash[i] = (unsigned char)byte;
	}
	return byte >= 0 ? STATUS_DONE
	                 : command_misused(call, err,
			       "--earlier is a head that it once printed");
}

enum status
cmd_audit_verify(const struct call *call, struct err *err)
{
	const char *text = command_value(call, "earlier");
	struct audit_link earlier, head;
	struct session session;
	struct out out;
	char printed[LINK_TEXT];
	int result = -1;

	if (text != NULL &&
	    take_earlier(call, text, &earlier, err) != STATUS_DONE)
		return STATUS_USAGE;
	if (session_open(&session, &call->settings, err) == 0)
		result = audit_verify(
		    session.pg, text == NULL ? NULL : &earlier, &head, err);
	session_close(&session);
	if (result != 0)
		return STATUS_FAILED;

	print_link(printed, &head);
	out_init(&out, OUT_RECORD, command_value(call, "json") != NULL);
	out_number(&out, "entries", head.number);
	out_text(&out, "head", printed);
	out_end(&out);
	return out_print(&out, err) == 0 ? STATUS_DONE : STATUS_FAILED;
}
