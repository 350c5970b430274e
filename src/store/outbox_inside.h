/* outbox_inside: an outbox as its own two files see it. */

#ifndef STORE_OUTBOX_INSIDE_H
#define STORE_OUTBOX_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/outbox.h"

struct targets;

/* One event, and where its targets are. */
struct entry {
	struct outbox_event *ev;
	size_t question;
	bool is_repeat; /* another open one before it has its id */
};

struct outbox {
	struct entry *entries;
	size_t n;
	struct targets *targets;
	int64_t *keys; /* that the events came with, each once, ascending */
	size_t nkeys;
};

static inline bool
entry_is_open(const struct entry *entry)
{
	return entry->ev->outcome == OUTBOX_OPEN;
}

/* Of several open events with one id the first is written, and the others are
 * held against it. */
static inline bool
entry_is_written(const struct entry *entry)
{
	return entry_is_open(entry) && !entry->is_repeat;
}

/* Order of ids, for qsort() and bsearch(). */
int outbox_compare_ids(const void *a, const void *b);

#endif
