/*
 * delivery_inside: what statements about outcomes are told: of one as it is, of many
 * an array each, in their order.  An array with a star is null if it would hold
 * nothing but nulls.
 */

#ifndef STORE_DELIVERY_INSIDE_H
#define STORE_DELIVERY_INSIDE_H

#include <stddef.h>

#include "store/delivery.h"

struct pg_batch;

typedef const struct delivery_outcome *const *outcomes_t;

void delivery_put_lanes(struct pg_batch *batch, outcomes_t outcomes, size_t n);
void delivery_put_tokens(struct pg_batch *batch, outcomes_t outcomes, size_t n);
void delivery_put_versions(
    struct pg_batch *batch, outcomes_t outcomes, size_t n);

/* Three: HTTP status, duration, address. */
void delivery_put_result(
    struct pg_batch *batch, const struct delivery_outcome *outcome);
void delivery_put_results(
    struct pg_batch *batch, outcomes_t outcomes, size_t n);

/* Eight: of each phase its time*; the answer's headers*, how its body begins*;
 * when the event was accepted. */
void delivery_put_answer(
    struct pg_batch *batch, const struct delivery_outcome *outcome);
void delivery_put_answers(
    struct pg_batch *batch, outcomes_t outcomes, size_t n);

#endif
