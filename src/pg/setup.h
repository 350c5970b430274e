/* setup: what a new connection is told before it is ready. */

#ifndef PG_SETUP_H
#define PG_SETUP_H

#include <libpq-fe.h>

#include "pg/pg.h"

/* The settings, the role, every statement, the channel, as one batch; NULL if
 * memory is short. */
struct pg_batch *setup_new(PGconn *conn, const struct pg_conf *conf);

#endif
