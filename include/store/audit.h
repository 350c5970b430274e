/*
 * audit: who changed what, when and from where, as a chain that only grows.
 *
 * Entries are written by the statements that change something.  The database
 * links each to the one before it, by a hash over both, as the transaction
 * ends; see migrations/0012_audit.sql.
 */

#ifndef STORE_AUDIT_H
#define STORE_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg;
struct pg_batch;
struct pg_rows;

enum { AUDIT_HASH = 32 }; /* SHA-256 */

/*
 * Say where what this batch changes comes from; it may be the last that is put
 * into it.  NULL: that is not known, and the database says which of its clients
 * it was.  audit_from_session() says it of all that a session will change.
 */
void audit_from(struct pg_batch *batch, const char *source);
void audit_from_session(struct pg_batch *batch, const char *source);

/* Note what a command does that is no single statement of its own.  `detail` is a
 * JSON object. */
void audit_note(struct pg_batch *batch, const char *action, const char *subject,
    const char *detail);

/* Which entries, the newest first.  What is NULL or -1 does not matter. */
struct audit_query {
	int64_t before; /* their numbers are below */
	const char *tenant; /* its name */
	const char *actor, *action, *subject;
	usec_t since, until; /* since 1970 */
	int limit;
};

/* One entry; its texts lend from the rows. */
struct audit_entry {
	int64_t number;
	usec_t at;
	const char *actor;
	const char *source; /* NULL for one that is older than sources */
	const char *tenant; /* NULL for none */
	const char *action;
	const char *subject;
	const char *detail; /* a JSON object */
	const char *hash; /* in hex */
};

/* Ask for entries. */
void audit_list(struct pg_batch *batch, const struct audit_query *query);

/* Read a row; false behind the last. */
bool audit_read(struct audit_entry *out, const struct pg_rows *rows, int row);

/* Before which number to go on when all rows were read, 0 if that was all: few
 * rows do not mean that there are no more. */
int64_t audit_more_before(const struct pg_rows *rows);

/* An entry's place in the chain, and its hash. */
struct audit_link {
	int64_t number;
	unsigned char hash[AUDIT_HASH];
};

/*
 * Recompute the chain from its first entry to its head, which goes to `*head`.
 * ERR_BROKEN names the first entry that does not fit, or says that the end is
 * missing.  With `earlier`, an earlier head, the chain must lead through it: so
 * it shows too if somebody made it all anew.
 */
int audit_verify(struct pg *pg, const struct audit_link *earlier,
    struct audit_link *head, struct err *err);

#endif
