/*
 * history: what has been seen of each event and each lane.
 *
 * An event's number of requests at a path decides what the endpoint does.  A
 * lane is the stream of one asset to one path: the first request of an event
 * must not come after that of a later one, and no request while another of
 * the lane is unanswered.
 *
 * It is a copy of what the database holds, save for the requests unanswered
 * now, and is loaded from there after anything that may have parted the two.
 */

#ifndef RECEIVER_HISTORY_H
#define RECEIVER_HISTORY_H

#include <stdint.h>

struct err;
struct history;
struct lane;
struct receipt;

int history_new(struct history **out, struct err *err);
void history_free(struct history *history);

/* Take in a valid request: set the fields of `receipt` that say so.  Whoever
 * sees an asset's request calls history_answered() when it is over. */
int history_see(
    struct history *history, struct receipt *receipt, struct err *err);

/* The request that saw `lane` is answered, or its client has gone.  NULL does
 * nothing. */
void history_answered(struct lane *lane);

/* Forget all but the requests unanswered now. */
void history_forget(struct history *history);

/* Take in what the database holds. */
int history_load_event(struct history *history, const char *path,
    const char *event_id, int requests, struct err *err);
int history_load_lane(struct history *history, const char *path,
    const char *asset, int64_t highest, struct err *err);

#endif
