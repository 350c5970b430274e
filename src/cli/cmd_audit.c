#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "command.h"
#include "list.h"
#include "out.h"
#include "session.h"
#include "store/audit.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAX = 1000000 };

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

/* A query, and how many more entries are wanted. */
struct wanted {
	struct audit_query query;
	int left;
};

static void
ask(struct pg_batch *batch, void *arg, int64_t from)
{
	struct wanted *wanted = arg;

	wanted->query.before = from == 0 ? -1 : from;
	wanted->query.limit =
	    wanted->left < LIST_PAGE ? wanted->left : LIST_PAGE;
	audit_list(batch, &wanted->query);
}

static int64_t
add_page(struct out *out, const struct pg_rows *rows, void *arg)
{
	struct wanted *wanted = arg;
	struct audit_entry entry = { 0 };
	int n = 0;

	for (; audit_read(&entry, rows, n); n++)
		add(out, &entry);
	wanted->left -= n;
	if (wanted->left == 0)
		return 0;
	return n == wanted->query.limit ? entry.number
	                                : audit_more_before(rows);
}

enum status
cmd_audit_list(const struct call *call, struct err *err)
{
	struct wanted wanted = {
		.left = LIMIT_DEFAULT,
		.query.tenant = command_value(call, "tenant"),
		.query.actor = command_value(call, "actor"),
		.query.action = command_value(call, "action"),
		.query.subject = command_value(call, "subject"),
	};
	const struct list list = { "audit", ask, add_page, &wanted };
	struct session session;
	struct out out;
	int result = -1;

	if (command_time(call, "since", &wanted.query.since, err) !=
		STATUS_DONE ||
	    command_time(call, "until", &wanted.query.until, err) !=
		STATUS_DONE ||
	    command_number(call, "limit", LIMIT_MAX, &wanted.left, err) !=
		STATUS_DONE)
		return STATUS_USAGE;
	out_init(&out, OUT_LIST, command_value(call, "json") != NULL);
	if (session_open(&session, &call->settings, err) == 0)
		result = list_all(session.pg, &list, &out, err);
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
