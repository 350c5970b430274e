/* error: what the server or libpq complains about, as ours. */

#ifndef PG_ERROR_H
#define PG_ERROR_H

#include <libpq-fe.h>
#include <stdbool.h>

#include "base/err.h"

/* The code that an SQLSTATE stands for. */
enum err_code error_code(const char *sqlstate);

/*
 * Fill `*err` from an error of the statement or command `name`; with
 * `hides_data` no value that it was given gets into the text.  ERR_RETRY
 * without an SQLSTATE means that the error is libpq's own: the connection is
 * lost.  Returns -1.
 */
int error_of_result(
    const PGresult *result, const char *name, bool hides_data, struct err *err);

/* True if the server ends the session after this error. */
bool error_is_fatal(const PGresult *result);

/* True if the session is of no more use after this error: what a statement
 * returns has changed since it was prepared. */
bool error_is_stale_plan(const PGresult *result);

/* Fill `*err` for a connection that is lost.  Returns -1. */
int error_of_connection(const PGconn *conn, struct err *err);

/*
 * Fill `*err` for one that could not be made: ERR_BROKEN if the server refuses
 * us for good.  Needs PQERRORS_VERBOSE: libpq tells the SQLSTATE of a failed
 * connect in its text alone.  Returns -1.
 */
int error_of_dial(const PGconn *conn, struct err *err);

#endif
