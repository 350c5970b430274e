/* inside: what run.c needs of a connection beyond pg.h. */

#ifndef PG_INSIDE_H
#define PG_INSIDE_H

#include "pg/pg.h"

struct event_base *pg_loop(const struct pg *pg);

/* What `down` was last told; its code is ERR_NONE if never. */
const struct err *pg_trouble(const struct pg *pg);

/* True if it will not be tried again. */
bool pg_gave_up(const struct pg *pg);

/* Hand the rows of the batch in flight over to `*out` after its `done`, if it
 * succeeds. */
void pg_keep_rows(struct pg *pg, struct pg_rows ***out);

#endif
