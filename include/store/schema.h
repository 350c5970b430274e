/*
 * schema: the migrations that this program carries, against those that a
 * database records.
 *
 * A database is at version N when exactly the first N migrations are recorded,
 * each with the checksum of the text that this program carries.  Anything else
 * (a gap, a text that changed, a version that we do not know) is ERR_BROKEN,
 * and the error names it.
 */

#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include <stdbool.h>

struct err;
struct pg_rows;
struct script;

struct schema_step {
	int version;
	const char *name; /* as "0001_queue" */
	bool is_applied;
};

typedef void schema_step_fn(void *arg, const struct schema_step *step);

/* The version of a database that this program works with. */
int schema_version(void);

/*
 * Bring the database to our version, each missing migration in a transaction
 * of its own, and tell `step` of each that was applied.  One session at a time
 * does so: a second waits for the first, and finds nothing left.  On failure
 * those before the one at fault stay; `script` is then to be closed.
 */
int schema_migrate(
    struct script *script, schema_step_fn *step, void *arg, struct err *err);

/* Tell `step` of every migration, in order; change nothing. */
int schema_status(
    struct script *script, schema_step_fn *step, void *arg, struct err *err);

/* 0 if `rows`, the answer to STMT_SCHEMA_VERSION, is our version exactly. */
int schema_check(const struct pg_rows *rows, struct err *err);

/*
 * If `*err` comes from preparing our statements, or becoming our role, where
 * the schema is missing or another: say which command mends that.
 */
void schema_explain(struct err *err);

#endif
