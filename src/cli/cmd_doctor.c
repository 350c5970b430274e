#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "command.h"
#include "core/seal.h"
#include "out.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "pg/script.h"
#include "session.h"
#include "store/schema.h"
#include "store/stmt.h"

enum {
	OLDEST_SERVER = 140000, /* as server_version_num */
};

/* A signature's timestamp is believed for five minutes. */
static const usec_t clock_tolerance = 30 * USEC_PER_SEC;

struct doctor {
	const struct settings *settings;
	struct out out;
	int nbad;
};

enum finding { FINE, BAD, SKIPPED };

static void
report(struct doctor *doctor, const char *check, enum finding finding,
    const char *detail)
{
	static const char *const words[] = { "ok", "bad", "skipped" };

	out_text(&doctor->out, "check", check);
	out_text(&doctor->out, "finding", words[finding]);
	out_text(&doctor->out, "detail", detail);
	out_end(&doctor->out);
	doctor->nbad += finding == BAD;
}

static void
check_server(struct doctor *doctor, const char *number, const char *version)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "PostgreSQL %.64s", version);
	if (strtol(number, NULL, 10) < OLDEST_SERVER) {
		report(doctor, "server", BAD,
		    "older than PostgreSQL 14: upgrade the server");
		return;
	}
	report(doctor, "server", FINE, text);
}

static void
check_encoding(struct doctor *doctor, const char *encoding)
{
	if (strcmp(encoding, "UTF8") == 0)
		report(doctor, "encoding", FINE, encoding);
	else
		report(doctor, "encoding", BAD,
		    "not UTF8: make a database with ENCODING 'UTF8'");
}

static void
check_clock(struct doctor *doctor, const char *clock)
{
	usec_t difference = strtoll(clock, NULL, 10) - clock_wall();
	char text[128];
	bool is_fine = llabs(difference) <= clock_tolerance;

	(void)snprintf(text, sizeof(text), "%+.1f s from the database's%s",
	    -(double)difference / (double)USEC_PER_SEC,
	    is_fine ? "" : ": receivers refuse old timestamps; use NTP");
	report(doctor, "clock", is_fine ? FINE : BAD, text);
}

static void
check_roles(struct doctor *doctor, const char *missing)
{
	char text[160];

	if (missing == NULL) {
		report(doctor, "roles", FINE, "all are here");
		return;
	}
	(void)snprintf(text, sizeof(text),
	    "%.100s: missing; run `postrider migrate`", missing);
	report(doctor, "roles", BAD, text);
}

static void
on_health(void *arg, const char *const *columns)
{
	struct doctor *doctor = arg;

	check_server(doctor, columns[0], columns[1]);
	check_clock(doctor, columns[2]);
	check_encoding(doctor, columns[3]);
	check_roles(doctor, columns[4]);
}

/* 0 if the database answers. */
static int
check_database(struct doctor *doctor)
{
	struct script *script = NULL;
	struct err err;
	int result;

	result = script_open(
	    &script, doctor->settings->database, "postrider doctor", &err);
	if (result != 0) {
		report(doctor, "database", BAD, err.text);
		return -1;
	}
	report(doctor, "database", FINE, "answers");
	result = script_query(script, script_table[SCRIPT_SCHEMA_HEALTH].text,
	    0, NULL, on_health, doctor, &err);
	script_close(script);
	if (result != 0)
		report(doctor, "server", BAD, err.text);
	return result;
}

/* How many secrets the key of this id does not open. */
static int64_t
count_closed(const struct pg_rows *rows, const char *key_id)
{
	int64_t n = 0;

	for (int i = 0; i < pg_count(rows); i++) {
		const char *id =
		    pg_get_text(rows, i, pg_column(rows, "key_id"));

		if (strcmp(id, key_id) != 0)
			n += pg_get_bigint(rows, i, pg_column(rows, "secrets"));
	}
	return n;
}

static void
check_secrets(struct doctor *doctor, struct pg *pg, const char *key_id)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	struct err err;
	char text[96];
	int64_t closed;

	if (batch == NULL)
		return;
	pg_call(batch, STMT_SECRET_KEYS);
	if (pg_run(pg, batch, &rows, &err) != 0) {
		report(doctor, "secrets", BAD, err.text);
		return;
	}
	closed = count_closed(rows[0], key_id);
	pg_rows_free(rows);
	(void)snprintf(text, sizeof(text),
	    "%lld are sealed under another key: find its file",
	    (long long)closed);
	report(doctor, "secrets", closed == 0 ? FINE : BAD,
	    closed == 0 ? "all open with this key" : text);
}

/* True if there is a key; its id is in `key`, itself no secret. */
static bool
check_key_file(struct doctor *doctor, struct seal_key *key)
{
	const char *path = doctor->settings->secret_key_file;
	struct err err;

	if (path[0] == '\0') {
		report(doctor, "key file", SKIPPED,
		    "secret_key_file is not set here");
		return false;
	}
	if (seal_key_read(key, path, &err) != 0) {
		report(doctor, "key file", BAD, err.text);
		return false;
	}
	report(doctor, "key file", FINE, path);
	return true;
}

static void
examine(struct doctor *doctor)
{
	struct seal_key key = { .id = "" };
	bool has_key = check_key_file(doctor, &key);
	struct session session;
	struct err err;

	if (check_database(doctor) == 0) {
		if (session_open(&session, doctor->settings, &err) != 0)
			report(doctor, "schema", BAD, err.text);
		else {
			report(doctor, "schema", FINE,
			    "is the one that this program knows");
			if (has_key)
				check_secrets(doctor, session.pg, key.id);
		}
		session_close(&session);
	}
	seal_key_fini(&key);
}

enum status
cmd_doctor(const struct call *call, struct err *err)
{
	struct doctor doctor = { .settings = &call->settings };

	out_init(&doctor.out, OUT_LIST, command_value(call, "json") != NULL);
	examine(&doctor);
	if (out_print(&doctor.out, err) != 0)
		return STATUS_FAILED;
	if (doctor.nbad == 0)
		return STATUS_DONE;
	(void)err_set(err, ERR_BROKEN, "what is bad above is to be mended");
	return STATUS_FAILED;
}
