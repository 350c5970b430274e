/*
 * recorder: keeps outcomes, many in one transaction.
 *
 * While a commit is under way, what arrives waits and goes into the next: no
 * timer, and no delay when idle.  Heads that come back leased are attempted at
 * once.
 */

#ifndef DISPATCH_RECORDER_H
#define DISPATCH_RECORDER_H

#include <stdbool.h>

struct attempt;
struct err;
struct recorder;
struct worker;

/* Connect.  The worker's parts are all there when the loop begins. */
int recorder_open(
    struct recorder **out, struct worker *worker, struct err *err);

/* Free it with every attempt in it: their leases run out.  NULL is fine. */
void recorder_close(struct recorder *recorder);

/* Take over an attempt that is done. */
void recorder_add(struct recorder *recorder, struct attempt *attempt);

/* Some are being recorded: claimer_recorded() tells when they are. */
bool recorder_is_busy(const struct recorder *recorder);

/* Outcomes cannot be kept at present: more of them would only pile up. */
bool recorder_is_failing(const struct recorder *recorder);

#endif
