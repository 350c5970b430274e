#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/seal.h"
#include "doctor.h"
#include "pg/pg.h"
#include "pg/row.h"
#include "store/secret.h"
#include "store/stmt.h"

enum { PAGE = 500, MANY = 1000 /* lane_stuck counts so far */ };

/* What was found among the secrets so far. */
struct walk {
	const struct seal_ring *ring;
	int64_t after; /* the last secret that was seen */
	int64_t nolder; /* open, and not under the first key */
	int64_t nother, first_other; /* under a key that is not in the ring */
	int64_t nspoilt, first_spoilt; /* under one that is; do not open */
	char other_key[SEAL_KEY_ID + 1]; /* of the first */
};

/* Run `batch`, of one call, which may be NULL; NULL after a report. */
static struct pg_rows **
ask(struct doctor *doctor, const char *check, struct pg *pg,
    struct pg_batch *batch)
{
	struct pg_rows **rows;
	struct err err;

	if (batch == NULL)
		doctor_report(doctor, check, BAD, "out of memory");
	else if (pg_run(pg, batch, &rows, &err) != 0)
		doctor_report(doctor, check, BAD, "%s", err.text);
	else
		return rows;
	return NULL;
}

static struct pg_batch *
call(enum stmt statement)
{
	struct pg_batch *batch = pg_batch_new();

	if (batch != NULL)
		pg_call(batch, (int)statement);
	return batch;
}

void
doctor_check_subscriptions(struct doctor *doctor, struct pg *pg)
{
	static const char check[] = "subscriptions";
	struct pg_rows **rows =
	    ask(doctor, check, pg, call(STMT_SECRET_MISSING));
	int64_t n;

	if (rows == NULL)
		return;
	n = pg_read_bigint(rows[0], 0, "subscriptions");
	if (n == 0)
		doctor_report(
		    doctor, check, FINE, "each has a secret to sign with");
	else
		doctor_report(doctor, check, BAD,
		    "%" PRId64 " without a secret to sign with, the first is "
		    "%" PRId64 ": nothing is sent there; register the "
		    "endpoint again",
		    n, pg_read_bigint(rows[0], 0, "first"));
	pg_rows_free(rows);
}

static void
look_at(struct walk *walk, const struct pg_rows *rows, int row)
{
	struct buf plain = { 0 };
	struct secret secret;
	struct err err;

	walk->after = pg_read_bigint(rows, row, "id");
	secret_read(&secret, rows, row, "subscription_id");
	if (secret_open(&plain, &secret, walk->ring, &err) == 0) {
		walk->nolder +=
		    strcmp(secret.key_id, walk->ring->keys[0].id) != 0;
	} else if (err.code == ERR_RETRY) {
		if (walk->nother++ == 0) {
			walk->first_other = secret.subscription_id;
			(void)snprintf(walk->other_key, sizeof(walk->other_key),
			    "%.*s", SEAL_KEY_ID, secret.key_id);
		}
	} else if (walk->nspoilt++ == 0)
		walk->first_spoilt = secret.subscription_id;
	buf_wipe(&plain);
}

/* Look at one page; returns how many that were, -1 after a report. */
static int
look_at_page(struct doctor *doctor, struct pg *pg, struct walk *walk)
{
	struct pg_batch *batch = pg_batch_new();
	struct pg_rows **rows;
	int n;

	if (batch != NULL)
		secret_page(batch, walk->after, NULL, PAGE);
	rows = ask(doctor, "secrets", pg, batch);
	if (rows == NULL)
		return -1;
	n = pg_count(rows[0]);
	for (int i = 0; i < n; i++)
		look_at(walk, rows[0], i);
	pg_rows_free(rows);
	return n;
}

static void
report_secrets(struct doctor *doctor, const struct walk *walk)
{
	if (walk->nother > 0)
		doctor_report(doctor, "secrets", BAD,
		    "%" PRId64 " sealed under another key, the first is %s of "
		    "subscription %" PRId64 ": add that key's line to the key "
		    "file, or name its file in secret_key_file",
		    walk->nother, walk->other_key, walk->first_other);
	if (walk->nspoilt > 0)
		doctor_report(doctor, "secrets", BAD,
		    "%" PRId64 " do not open under the key that they name, "
		    "the first is of subscription %" PRId64 ": restore the "
		    "row, or register the endpoint again",
		    walk->nspoilt, walk->first_spoilt);
	if (walk->nolder > 0)
		doctor_report(doctor, "secrets", WARNED,
		    "%" PRId64 " sealed under an older key: run `postrider "
		    "rekey`",
		    walk->nolder);
	else if (walk->nother == 0 && walk->nspoilt == 0)
		doctor_report(
		    doctor, "secrets", FINE, "all open with the first key");
}

void
doctor_check_secrets(
    struct doctor *doctor, struct pg *pg, const struct seal_ring *ring)
{
	struct walk walk = { .ring = ring };
	int n;

	do {
		n = look_at_page(doctor, pg, &walk);
	} while (n == PAGE);
	if (n >= 0)
		report_secrets(doctor, &walk);
}

void
doctor_check_lanes(struct doctor *doctor, struct pg *pg)
{
	struct pg_rows **rows = ask(doctor, "lanes", pg, call(STMT_LANE_STUCK));
	int64_t n;

	if (rows == NULL)
		return;
	n = pg_read_bigint(rows[0], 0, "lanes");
	if (n == 0)
		doctor_report(doctor, "lanes", FINE, "none is stuck");
	else
		doctor_report(doctor, "lanes", WARNED,
		    "%" PRId64 "%s should move and do not: the view "
		    "postrider.stuck says which, and why",
		    n, n == MANY ? " or more" : "");
	pg_rows_free(rows);
}
