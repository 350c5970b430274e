/* tenant: customers, as those who look after them see them. */

#ifndef STORE_TENANT_H
#define STORE_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg;
struct pg_batch;
struct pg_rows;

/* One row; its name lives as long as the rows. */
struct tenant {
	int64_t id;
	const char *name;
	usec_t created_at; /* since 1970 */
};

/* ERR_REFUSED, in words for people, if no tenant can be called so. */
int tenant_check_name(const char *name, struct err *err);

/* Make one; no row if there is one of this name already. */
void tenant_create(struct pg_batch *batch, const char *name, const char *actor);

/* Ask for one; for the first `limit` after the id `after`. */
void tenant_get(struct pg_batch *batch, int64_t id);
void tenant_list(struct pg_batch *batch, int64_t after, int limit);

/* Read a row of any of these three; false behind the last. */
bool tenant_read(struct tenant *out, const struct pg_rows *rows, int row);

/* For the command: the id of the tenant of this name.  ERR_REFUSED if there is
 * none. */
int tenant_find(struct pg *pg, const char *name, int64_t *id, struct err *err);

#endif
