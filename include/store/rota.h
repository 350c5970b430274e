/*
 * rota: where a dispatcher goes on in the round: after the tenant that was
 * served last and, for tenants with more in the round than they had turns, after
 * the subscription that was.
 *
 * Nothing of it is written down: a dispatcher that starts anew begins somewhere
 * else, and the others go on where they were.
 */

#ifndef STORE_ROTA_H
#define STORE_ROTA_H

#include <stddef.h>
#include <stdint.h>

enum { ROTA_TENANTS = 256 };

/* All zero to begin with. */
struct rota {
	int64_t tenant_id; /* served last */
	size_t n;
	size_t oldest; /* makes way when there is no more room */
	int64_t tenants[ROTA_TENANTS];
	int64_t last[ROTA_TENANTS]; /* subscription served last, of each */
};

/* A tenant had its turns, the last of them `last_id`; 0 if that was all that it
 * has in the round. */
void rota_served(struct rota *rota, int64_t tenant_id, int64_t last_id);

#endif
