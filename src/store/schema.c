#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/err.h"
#include "pg/row.h"
#include "pg/script.h"
#include "store/schema.h"
#include "store/stmt.h"

enum { CHECKSUM = 64 };

/* The record of migrations, judged row by row, oldest first. */
struct judge {
	int applied; /* so many agree with ours, from the first on */
	int newest; /* the last version recorded */
	bool is_faulty; /* then `err` has the first disagreement */
	struct err *err;
};

static const char *
script_text(enum script_id id)
{
	return script_table[id].text;
}

int
schema_version(void)
{
	int n = 0;

	while (migration_table[n].name != NULL)
		n++;
	return n;
}

static int
checksum(
    char out[CHECKSUM + 1], const struct embedded *migration, struct err *err)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (EVP_Digest(migration->text, migration->len, digest, NULL,
		EVP_sha256(), NULL) != 1)
		return err_set(err, ERR_NOMEM, "checksum of a migration");
	for (int i = 0; i < CHECKSUM / 2; i++)
		(void)snprintf(&out[2 * i], 3, "%02x", digest[i]);
	return 0;
}

/* One row that should be migration number `applied`, counted from 0. */
static int
judge_known(
    struct judge *judge, int version, const char *name, const char *recorded)
{
	const struct embedded *ours = &migration_table[judge->applied];
	char sum[CHECKSUM + 1];

	if (version != judge->applied + 1)
		return err_set(judge->err, ERR_BROKEN,
		    "migration %s is not on record here, though %s is: was a "
		    "row of postrider.schema_migration removed?",
		    ours->name, name);
	if (strcmp(name, ours->name) != 0)
		return err_set(judge->err, ERR_BROKEN,
		    "migration %d was %s when it was applied here, and is %s "
		    "in this program",
		    version, name, ours->name);
	if (checksum(sum, ours, judge->err) != 0)
		return -1;
	if (strcmp(recorded, sum) != 0)
		return err_set(judge->err, ERR_BROKEN,
		    "migration %s was changed after it was applied here: its "
		    "checksum is %.12s... in this program, and %.12s... on "
		    "record",
		    name, sum, recorded);
	judge->applied++;
	return 0;
}

static void
judge_row(
    struct judge *judge, int version, const char *name, const char *recorded)
{
	judge->newest = version;
	if (judge->is_faulty || version > schema_version())
		return;
	if (judge_known(judge, version, name, recorded) != 0)
		judge->is_faulty = true;
}

static int
judge_end(const struct judge *judge)
{
	if (judge->is_faulty)
		return -1;
	if (judge->newest > schema_version())
		return err_set(judge->err, ERR_BROKEN,
		    "the schema is at version %d, this program knows %d: "
		    "upgrade this program",
		    judge->newest, schema_version());
	return 0;
}

static void
on_recorded(void *arg, const char *const *columns)
{
	int version = (int)strtol(columns[0], NULL, 10);

	judge_row(arg, version, columns[1], columns[2]);
}

static void
on_exists(void *arg, const char *const *columns)
{
	*(bool *)arg = columns[0][0] == 't';
}

/* Say what gives the right that is missing, if that is the trouble. */
static int
explain_denied(struct err *err)
{
	if (strcmp(err->sqlstate, "42501") != 0)
		return -1;
	return err_wrap(err,
	    "this user may not act as postrider_owner: a superuser has to run "
	    "`GRANT postrider_owner TO ...`");
}

static int
exists(struct script *script, bool *out, struct err *err)
{
	*out = false;
	if (script_query(script, script_text(SCRIPT_SCHEMA_EXISTS), 0, NULL,
		on_exists, out, err) != 0)
		return explain_denied(err);
	return 0;
}

/* How many migrations the database has, all of them ours. */
static int
count_applied(struct script *script, int *out, struct err *err)
{
	struct judge judge = { .err = err };

	if (script_query(script, stmt_table[STMT_SCHEMA_VERSION].text, 0, NULL,
		on_recorded, &judge, err) != 0 ||
	    judge_end(&judge) != 0)
		return -1;
	*out = judge.applied;
	return 0;
}

static int
record(struct script *script, int version, const struct embedded *migration,
    struct err *err)
{
	char number[12], sum[CHECKSUM + 1];
	const char *params[] = { number, migration->name, sum };

	(void)snprintf(number, sizeof(number), "%d", version);
	if (checksum(sum, migration, err) != 0)
		return -1;
	return script_query(script, script_text(SCRIPT_SCHEMA_RECORD), 3,
	    params, NULL, NULL, err);
}

static int
apply(struct script *script, int version, const struct embedded *migration,
    struct err *err)
{
	if (script_run(script, script_text(SCRIPT_SCHEMA_BEGIN), err) != 0)
		return explain_denied(err);
	if (script_run(script, migration->text, err) != 0 ||
	    record(script, version, migration, err) != 0 ||
	    script_run(script, script_text(SCRIPT_SCHEMA_COMMIT), err) != 0)
		return err_wrap(err, "migration %s", migration->name);
	return 0;
}

int
schema_migrate(
    struct script *script, schema_step_fn *step, void *arg, struct err *err)
{
	bool is_there;
	int applied;

	if (script_query(script, script_text(SCRIPT_SCHEMA_LOCK), 0, NULL, NULL,
		NULL, err) != 0 ||
	    exists(script, &is_there, err) != 0)
		return -1;
	if (!is_there &&
	    script_run(script, script_text(SCRIPT_SCHEMA_PREPARE), err) != 0)
		return err_wrap(err, "making the schema");
	if (count_applied(script, &applied, err) != 0)
		return -1;
	for (int i = applied; i < schema_version(); i++) {
		const struct embedded *migration = &migration_table[i];

		if (apply(script, i + 1, migration, err) != 0)
			return -1;
		step(
		    arg, &(struct schema_step){ i + 1, migration->name, true });
	}
	return 0;
}

int
schema_status(
    struct script *script, schema_step_fn *step, void *arg, struct err *err)
{
	bool is_there;
	int applied = 0;

	if (exists(script, &is_there, err) != 0)
		return -1;
	if (is_there && count_applied(script, &applied, err) != 0)
		return -1;
	for (int i = 0; i < schema_version(); i++)
		step(arg, &(struct schema_step){
			      i + 1, migration_table[i].name, i < applied });
	return 0;
}

int
schema_check(const struct pg_rows *rows, struct err *err)
{
	struct judge judge = { .err = err };
	int version = pg_column(rows, "version");
	int name = pg_column(rows, "name");
	int sum = pg_column(rows, "checksum");

	for (int i = 0; i < pg_count(rows); i++)
		judge_row(&judge, pg_get_int(rows, i, version),
		    pg_get_text(rows, i, name), pg_get_text(rows, i, sum));
	if (judge_end(&judge) != 0)
		return -1;
	if (judge.applied < schema_version())
		return err_set(err, ERR_BROKEN,
		    "the schema is at version %d, this program needs %d: run "
		    "`postrider migrate`",
		    judge.applied, schema_version());
	return 0;
}

void
schema_explain(struct err *err)
{
	/* No such schema, table, column, function, type; no such role. */
	static const char *const states[] = { "3F000", "42P01", "42703",
		"42883", "42704", "22023" };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(err->sqlstate, states[i]) != 0)
			continue;
		err->code = ERR_BROKEN;
		(void)err_wrap(err,
		    "no schema here that this program knows: run `postrider "
		    "migrate`");
		return;
	}
}
