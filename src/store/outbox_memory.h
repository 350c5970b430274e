/*
 * outbox_memory: where events of a tenant and a type went when somebody last asked.
 *
 * It may be out of date, and forgets: what is guessed by it is verified.
 */

#ifndef STORE_OUTBOX_MEMORY_H
#define STORE_OUTBOX_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct outbox_memory;
struct target;

/* The targets, as targets_of() has them; NULL if nothing is remembered.  They are
 * the memory's, until it is told something new. */
const struct target *outbox_memory_find(const struct outbox_memory *memory,
    int64_t tenant_id, const char *type, size_t *n);

/* Remember them, or nothing of this type if they are too many, or filtered, or
 * memory is short. */
void outbox_memory_keep(struct outbox_memory *memory, int64_t tenant_id,
    const char *type, const struct target *found, size_t n);

#endif
