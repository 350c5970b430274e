/*
 * rota: who is in the round, as far as a dispatcher knows, and whose turn is
 * next.
 *
 * Tenants have their turn one after the other, and of each the subscriptions one
 * after the other.  Nothing of it is written down: a dispatcher that starts anew
 * begins somewhere else, and the others go on where they were.  What it knows may
 * be stale: whoever takes a turn looks whether it is still to be had.
 */

#ifndef STORE_ROTA_H
#define STORE_ROTA_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct rota;

int rota_new(struct rota **out, struct err *err);

/* NULL is fine. */
void rota_free(struct rota *rota);

/*
 * A subscription is in the round.  One that is new is the next of its tenant, and
 * a tenant that is new is the next of all.  Without memory for it nothing is
 * kept: it will be found again.
 */
void rota_add(struct rota *rota, int64_t tenant_id, int64_t subscription_id);

/* It has left the round. */
void rota_remove(struct rota *rota, int64_t subscription_id);

/*
 * Whose turn it is: at most `max` to `out`, none of them twice, and how many.
 * Each tenant has an even share of `max`, at least one, whatever the number of
 * its subscriptions.  They go to the end of their lines.
 */
size_t rota_next(struct rota *rota, int64_t *out, size_t max);

/* How many are known to be in the round. */
size_t rota_count(const struct rota *rota);

#endif
