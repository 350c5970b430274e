#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

static bool
starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum err_code
error_code(const char *sqlstate)
{
	static const struct {
		const char *prefix;
		enum err_code code;
	} classes[] = {
		{ "08", ERR_RETRY }, /* connection */
		{ "22P03", ERR_BROKEN }, /* a parameter of another type */
		{ "22", ERR_REFUSED }, /* data */
		{ "23", ERR_REFUSED }, /* constraint */
		{ "25006", ERR_RETRY }, /* on a standby, after a failover */
		{ "25P03", ERR_RETRY }, /* idle in a transaction too long */
		{ "25P04", ERR_RETRY }, /* transaction too long */
		{ "40", ERR_RETRY }, /* deadlock, serialization */
		{ "53", ERR_RETRY }, /* disk, memory, connections */
		{ "54", ERR_REFUSED }, /* too big or too complex */
		{ "55P03", ERR_RETRY }, /* lock not available */
		{ "57", ERR_RETRY }, /* cancelled, shutting down */
		{ "58", ERR_RETRY }, /* the server's system */
		{ "P0", ERR_REFUSED }, /* raised by a function of ours */
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (starts_with(sqlstate, classes[i].prefix))
			return classes[i].code;
	return ERR_BROKEN;
}

/* The first line of `text`. */
static int
first_line(const char *text)
{
	return (int)strcspn(text, "\r\n");
}

static void
set_sqlstate(struct err *err, const char *sqlstate)
{
	(void)snprintf(err->sqlstate, sizeof(err->sqlstate), "%s", sqlstate);
}

bool
error_is_fatal(const PGresult *result)
{
	const char *severity =
	    PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	return severity == NULL || strcmp(severity, "ERROR") != 0;
}

bool
error_is_stale_plan(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *from = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

	/* The code alone stands for all that PostgreSQL cannot do. */
	return state != NULL && strcmp(state, "0A000") == 0 && from != NULL &&
	       strcmp(from, "RevalidateCachedQuery") == 0;
}

static enum err_code
code_of_result(const PGresult *result, const char *state)
{
	if (error_is_stale_plan(result))
		return ERR_RETRY;
	/* Parameters that do not fit their statement: our own mistake.  Of a
	 * session that ends, it is what poolers say of passing trouble. */
	if (strcmp(state, "08P01") == 0 && !error_is_fatal(result))
		return ERR_BROKEN;
	return error_code(state);
}

int
error_of_result(
    const PGresult *result, const char *name, bool hides_data, struct err *err)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	int len;

	if (state == NULL) {
		text = PQresultErrorMessage(result);
		return err_set(
		    err, ERR_RETRY, "%s: %.*s", name, first_line(text), text);
	}
	if (text == NULL)
		text = "";
	len = first_line(text);
	/* Data that is not taken is quoted in the message. */
	if (hides_data && starts_with(state, "22"))
		len = (int)strcspn(text, "\r\n\"");
	(void)err_set(err, code_of_result(result, state),
	    "%s: %.*s (SQLSTATE %s)", name, len, text, state);
	set_sqlstate(err, state);
	return -1;
}

int
error_of_connection(const PGconn *conn, struct err *err)
{
	const char *text = PQerrorMessage(conn);
	int len = first_line(text);

	if (len == 0)
		return err_set(err, ERR_RETRY, "connection lost");
	return err_set(err, ERR_RETRY, "connection lost: %.*s", len, text);
}

/* The SQLSTATE in "FATAL:  28P01: password ...", or NULL. */
static const char *
find_sqlstate(const char *text, size_t len)
{
	static const char set[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (size_t i = 0; i + 9 <= len; i++)
		if (memcmp(text + i, ":  ", 3) == 0 && text[i + 8] == ':' &&
		    strspn(text + i + 3, set) == 5)
			return text + i + 3;
	return NULL;
}

int
error_of_dial(const PGconn *conn, struct err *err)
{
	char text[sizeof(err->text)] = "";
	char state[6] = "";
	bool can_pass = false;
	size_t used = 0, len;

	/* One line an address that was tried; what stands below is advice. */
	for (const char *p = PQerrorMessage(conn); *p != '\0';
	     p += len + (p[len] != '\0')) {
		const char *found;

		len = (size_t)first_line(p);
		if (len == 0 || *p == '\t' || starts_with(p, "LOCATION:"))
			continue;
		if (used < sizeof(text))
			used +=
			    (size_t)snprintf(text + used, sizeof(text) - used,
				"%s%.*s", used ? "; " : "", (int)len, p);
		found = find_sqlstate(p, len);
		if (found == NULL)
			continue;
		(void)snprintf(state, sizeof(state), "%.5s", found);
		can_pass = can_pass || error_code(state) == ERR_RETRY;
	}
	(void)err_set(err, ERR_RETRY, "cannot connect: %s", text);
	set_sqlstate(err, state);
	if ((state[0] != '\0' && !can_pass) || PQconnectionNeedsPassword(conn))
		err->code = ERR_BROKEN;
	return -1;
}
