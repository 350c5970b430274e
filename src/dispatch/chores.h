/*
 * chores: what a dispatcher does now and then beside its passes, in small
 * steps on the claimer's connection.
 *
 * A step that found something to do is followed by a rest of five times as long
 * as it took, so that passes have the connection to themselves for most of the
 * time, however much there is to be done.  The claimer asks whether a step is
 * due before each pass, so that one comes also under constant load.
 */

#ifndef DISPATCH_CHORES_H
#define DISPATCH_CHORES_H

#include <stdbool.h>

#include "base/clock.h"

struct chores;
struct err;
struct pg_batch;
struct pg_rows;
struct worker;

/* A step has fallen due, and nothing else may be going on. */
typedef void chores_due_fn(void *arg);

int chores_open(struct chores **out, struct worker *worker, chores_due_fn *due,
    void *arg, struct err *err);

/* NULL is fine. */
void chores_close(struct chores *chores);

/* There is a subscription: look now and then, from a moment on.  Nothing is due
 * before. */
void chores_start(struct chores *chores);

bool chores_are_due(const struct chores *chores);

/* Put the step that has been due for longest into `batch`, the whole of it. */
void chores_put(struct chores *chores, struct pg_batch *batch);

/* What came of it; NULL after an error. */
void chores_answered(struct chores *chores, struct pg_rows *const *rows);

/* Something was announced: look soon at what announces itself. */
void chores_notice(struct chores *chores);

#endif
