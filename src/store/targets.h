/*
 * targets: which subscriptions the events of an outbox go to.
 *
 * A question is asked once for each tenant and type among the events that go
 * to all who match, and once for each event that names its subscriptions.
 */

#ifndef STORE_TARGETS_H
#define STORE_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct outbox_event;
struct outbox_memory;
struct pg_batch;
struct pg_rows;
struct targets;

struct target {
	int64_t subscription_id;
	bool is_ordered; /* it wants the events of an asset in order */
	bool takes_events; /* false: it is disabled */
	int filter_weight; /* of its filter, which has yet to judge; 0: none */
};

/* Number the questions of `n` events; questions[i] is that of the i-th. */
int targets_new(struct targets **out, struct outbox_event *const *events,
    size_t n, size_t *questions, struct err *err);

void targets_free(struct targets *targets);

/* Add the calls that ask all questions. */
void targets_ask(const struct targets *targets, struct pg_batch *batch);

/* Read the answers to these calls. */
int targets_learn(
    struct targets *targets, struct pg_rows *const *rows, struct err *err);

/* The same from memory; false if that does not have all answers, or if memory is
 * short.  Remember the answers that were read. */
bool targets_guess(struct targets *targets, const struct outbox_memory *memory);
void targets_remember(
    const struct targets *targets, struct outbox_memory *memory);

/* Six parameters: what was guessed (question, subscription, whether it is ordered),
 * and the questions as targets_ask() puts them. */
void targets_put_guess(const struct targets *targets, struct pg_batch *batch);

/* The answer to a question, ascending by subscription. */
const struct target *targets_of(
    const struct targets *targets, size_t question, size_t *n);

#endif
