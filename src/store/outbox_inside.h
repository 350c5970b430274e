/* outbox_inside: an outbox as its own files see it. */

#ifndef STORE_OUTBOX_INSIDE_H
#define STORE_OUTBOX_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/outbox.h"

struct target;
struct targets;

/* One event, and where its targets are. */
struct entry {
	struct outbox_event *ev;
	size_t question;
	const struct entry *first; /* the open one before it that has its id */
	int32_t place; /* among those that are written, from 1 */
	size_t work; /* of all its filters; 0: there are none */
	bool
	    *skips; /* of its targets, those that a filter keeps out; or NULL */
};

/* Is this event for this one of its targets? */
struct question_of_filter {
	struct entry *entry;
	size_t nth;
};

struct outbox {
	struct entry *entries; /* as they came */
	struct entry **sorted; /* the open ones, by tenant and id */
	size_t n, nsorted;
	struct targets *targets;
	int64_t *keys; /* that the events came with, each once, ascending */
	size_t nkeys;
	struct question_of_filter *asked; /* in the order of events */
	size_t nasked;
	bool is_guessed; /* what it goes by has yet to be verified */
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
	return entry_is_open(entry) && entry->first == NULL;
}

/* The work of all filters among an event's targets. */
size_t outbox_weigh(
    const struct outbox_event *ev, const struct target *found, size_t n);

/* Order of ids, for qsort() and bsearch(). */
int outbox_compare_ids(const void *a, const void *b);

#endif
