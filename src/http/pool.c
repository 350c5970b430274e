#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "pool.h"

enum {
	/* Transfers in one multi: a search of so many costs little beside
	 * the rest of a send, and a multi's own memory little beside theirs. */
	SHARE = 128,
	/* Connections that one keeps: idle ones have room beside a full
	 * share. */
	KEPT = SHARE + SHARE / 2,
};

struct pool {
	struct multi_conf conf;
	size_t count;
	struct multi *multis[]; /* NULL until needed */
};

static int
open_at(struct pool *pool, size_t place, struct err *err)
{
	return multi_open(&pool->multis[place], &pool->conf, err);
}

int
pool_open(
    struct pool **out, int max, const struct multi_conf *conf, struct err *err)
{
	size_t count = ((size_t)max + SHARE - 1) / SHARE;
	struct pool *pool;

	pool = calloc(1, sizeof(*pool) + count * sizeof(struct multi *));
	if (pool == NULL)
		return err_set(err, ERR_NOMEM, "pool");
	pool->conf = *conf;
	pool->conf.kept = KEPT;
	pool->count = count;
	/* One is opened now, to see that every option is taken. */
	if (open_at(pool, 0, err) != 0) {
		pool_close(pool);
		return -1;
	}
	*out = pool;
	return 0;
}

void
pool_close(struct pool *pool)
{
	if (pool == NULL)
		return;
	for (size_t i = 0; i < pool->count; i++)
		multi_close(pool->multis[i]);
	free(pool);
}

/* FNV-1a. */
static size_t
place_of(const struct pool *pool, const char *host, uint16_t port)
{
	uint64_t hash = 14695981039346656037U ^ port;

	for (; *host != '\0'; host++)
		hash = (hash ^ (unsigned char)*host) * 1099511628211U;
	return (size_t)(hash % pool->count);
}

struct multi *
pool_pick(struct pool *pool, const char *host, uint16_t port, struct err *err)
{
	size_t place = place_of(pool, host, port), tried = 0;

	while (pool->multis[place] != NULL &&
	       multi_transfers(pool->multis[place]) >= SHARE) {
		tried++;
		assert(tried < pool->count);
		place = (place + 1) % pool->count;
	}
	if (pool->multis[place] == NULL && open_at(pool, place, err) != 0)
		return NULL;
	return pool->multis[place];
}
