#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "outbox_memory.h"
#include "store/outbox.h"
#include "targets.h"

enum {
	PLACES = 1024, /* of two types that share a place the later is known */
	TARGETS_MAX = 64,
};

struct answer {
	int64_t tenant_id;
	char *type; /* NULL: the place is free */
	struct target *found;
	size_t n;
};

struct outbox_memory {
	struct answer answers[PLACES];
};

int
outbox_memory_new(struct outbox_memory **out, struct err *err)
{
	*out = calloc(1, sizeof(**out));
	return *out == NULL ? err_set(err, ERR_NOMEM, "memory of types") : 0;
}

static void
forget(struct answer *answer)
{
	free(answer->type);
	free(answer->found);
	*answer = (struct answer){ 0 };
}

void
outbox_memory_free(struct outbox_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; i < PLACES; i++)
		forget(&memory->answers[i]);
	free(memory);
}

static size_t
place(int64_t tenant_id, const char *type)
{
	uint64_t hash = (uint64_t)tenant_id;

	for (; *type != '\0'; type++)
		hash = hash * 31 + (unsigned char)*type;
	return hash % PLACES;
}

const struct target *
outbox_memory_find(const struct outbox_memory *memory, int64_t tenant_id,
    const char *type, size_t *n)
{
	const struct answer *answer = &memory->answers[place(tenant_id, type)];

	if (answer->type == NULL || answer->tenant_id != tenant_id ||
	    strcmp(answer->type, type) != 0)
		return NULL;
	*n = answer->n;
	return answer->found;
}

static bool
is_simple(const struct target *found, size_t n)
{
	if (n > TARGETS_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (found[i].filter_weight > 0)
			return false;
	return true;
}

void
outbox_memory_keep(struct outbox_memory *memory, int64_t tenant_id,
    const char *type, const struct target *found, size_t n)
{
	struct answer *answer = &memory->answers[place(tenant_id, type)];

	forget(answer);
	if (!is_simple(found, n))
		return;
	answer->tenant_id = tenant_id;
	answer->n = n;
	answer->type = strdup(type);
	answer->found = calloc(n + 1, sizeof(*answer->found));
	if (answer->type == NULL || answer->found == NULL) {
		forget(answer);
		return;
	}
	if (n > 0)
		memcpy(answer->found, found, n * sizeof(*found));
}
