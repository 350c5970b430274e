/*
 * script: run SQL text of several statements, blocking: for migrations and the
 * making of databases, never for a daemon at work.
 */

#ifndef PG_SCRIPT_H
#define PG_SCRIPT_H

struct err;
struct script; /* a connection of its own */

/* Connect.  ERR_RETRY if the server cannot be reached, ERR_BROKEN if it
 * refuses us. */
int script_open(struct script **out, const char *conninfo,
    const char *application, struct err *err);
void script_close(struct script *script);

/* Run `sql`: one or more statements, in one implicit transaction unless they
 * say otherwise.  After an error no transaction is open.  It names the SQLSTATE
 * and, where the server knows it, the line. */
int script_run(struct script *script, const char *sql, struct err *err);

/*
 * Run one statement with `nparams` text parameters and hand each row to `row`
 * as text columns (NULL for null), at most 64.  `row` may be NULL.
 */
int script_query(struct script *script, const char *sql, int nparams,
    const char *const *params,
    void (*row)(void *arg, const char *const *columns), void *arg,
    struct err *err);

#endif
