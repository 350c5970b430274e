#include <search.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/err.h"
#include "store/rota.h"

/* Both begin with what they are found by. */
struct member {
	int64_t subscription_id;
	struct line *line;
	TAILQ_ENTRY(member) entry;
};

/* A tenant's, the next in front. */
struct line {
	int64_t tenant_id;
	size_t n;
	TAILQ_HEAD(, member) members;
	TAILQ_ENTRY(line) entry;
};

struct rota {
	void *members, *lines; /* search trees */
	size_t nmembers, nlines;
	TAILQ_HEAD(, line) order;
};

static int
compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

/* What stands in `tree` under `id`, or NULL. */
static void *
find(void *const *tree, int64_t id)
{
	void **at = tfind(&id, tree, compare);

	return at == NULL ? NULL : *at;
}

int
rota_new(struct rota **out, struct err *err)
{
	struct rota *rota = calloc(1, sizeof(*rota));

	if (rota == NULL)
		return err_set(err, ERR_NOMEM, "rota");
	TAILQ_INIT(&rota->order);
	*out = rota;
	return 0;
}

static void
remove_line(struct rota *rota, struct line *line)
{
	(void)tdelete(line, &rota->lines, compare);
	TAILQ_REMOVE(&rota->order, line, entry);
	rota->nlines--;
	free(line);
}

static void
remove_member(struct rota *rota, struct member *member)
{
	struct line *line = member->line;

	(void)tdelete(member, &rota->members, compare);
	TAILQ_REMOVE(&line->members, member, entry);
	rota->nmembers--;
	free(member);
	if (--line->n == 0)
		remove_line(rota, line);
}

void
rota_free(struct rota *rota)
{
	struct line *line;

	if (rota == NULL)
		return;
	while ((line = TAILQ_FIRST(&rota->order)) != NULL)
		remove_member(rota, TAILQ_FIRST(&line->members));
	free(rota);
}

static struct line *
line_of(struct rota *rota, int64_t tenant_id)
{
	struct line *line = find(&rota->lines, tenant_id);

	if (line != NULL)
		return line;
	line = calloc(1, sizeof(*line));
	if (line == NULL)
		return NULL;
	line->tenant_id = tenant_id;
	TAILQ_INIT(&line->members);
	if (tsearch(line, &rota->lines, compare) == NULL) {
		free(line);
		return NULL;
	}
	TAILQ_INSERT_HEAD(&rota->order, line, entry);
	rota->nlines++;
	return line;
}

void
rota_add(struct rota *rota, int64_t tenant_id, int64_t subscription_id)
{
	struct member *member;
	struct line *line;

	if (find(&rota->members, subscription_id) != NULL)
		return;
	line = line_of(rota, tenant_id);
	if (line == NULL)
		return;
	member = calloc(1, sizeof(*member));
	if (member == NULL)
		goto fail;
	member->subscription_id = subscription_id;
	member->line = line;
	if (tsearch(member, &rota->members, compare) == NULL)
		goto fail;
	TAILQ_INSERT_HEAD(&line->members, member, entry);
	line->n++;
	rota->nmembers++;
	return;

fail:
	free(member);
	if (line->n == 0)
		remove_line(rota, line);
}

void
rota_remove(struct rota *rota, int64_t subscription_id)
{
	struct member *member = find(&rota->members, subscription_id);

	if (member != NULL)
		remove_member(rota, member);
}

/* The next `max` of `line`, which go to its end. */
static size_t
take_from(struct line *line, int64_t *out, size_t max)
{
	size_t n = line->n < max ? line->n : max;

	for (size_t i = 0; i < n; i++) {
		struct member *member = TAILQ_FIRST(&line->members);

		TAILQ_REMOVE(&line->members, member, entry);
		TAILQ_INSERT_TAIL(&line->members, member, entry);
		out[i] = member->subscription_id;
	}
	return n;
}

size_t
rota_next(struct rota *rota, int64_t *out, size_t max)
{
	size_t share = rota->nlines == 0 ? 0 : max / rota->nlines;
	size_t n = 0;

	if (share == 0)
		share = 1;
	for (size_t i = 0; i < rota->nlines && n < max; i++) {
		struct line *line = TAILQ_FIRST(&rota->order);

		n += take_from(line, out + n, share);
		TAILQ_REMOVE(&rota->order, line, entry);
		TAILQ_INSERT_TAIL(&rota->order, line, entry);
	}
	return n;
}

size_t
rota_count(const struct rota *rota)
{
	return rota->nmembers;
}
