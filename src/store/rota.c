#include "store/rota.h"

static size_t
find(const struct rota *rota, int64_t tenant_id)
{
	size_t i = 0;

	while (i < rota->n && rota->tenants[i] != tenant_id)
		i++;
	return i;
}

static void
forget(struct rota *rota, size_t i)
{
	rota->n--;
	rota->tenants[i] = rota->tenants[rota->n];
	rota->last[i] = rota->last[rota->n];
}

void
rota_served(struct rota *rota, int64_t tenant_id, int64_t last_id)
{
	size_t i = find(rota, tenant_id);

	rota->tenant_id = tenant_id;
	if (last_id == 0) {
		if (i < rota->n)
			forget(rota, i);
		return;
	}
	if (i == ROTA_TENANTS) {
		i = rota->oldest;
		rota->oldest = (rota->oldest + 1) % ROTA_TENANTS;
	} else if (i == rota->n)
		rota->n++;
	rota->tenants[i] = tenant_id;
	rota->last[i] = last_id;
}
