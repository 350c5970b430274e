/*
 * attempt: one try at the head of a leased lane.
 *
 *	         endpoint known        sent             outcome kept
 *	LEASED ----------------> SENDING ------> DONE ---------------> freed
 *	   |                         |             ^
 *	   +-- cannot be sent -------+-- cancel ---+
 *
 * Its durable side is the lane's lease and, later, the attempt's row.  If we
 * vanish at any point the lease runs out, which consumes the attempt, and
 * another dispatcher tries again.
 */

#ifndef DISPATCH_ATTEMPT_H
#define DISPATCH_ATTEMPT_H

#include <sys/queue.h>

#include "store/delivery.h"
#include "store/lane.h"

struct endpoint_ref;
struct err;
struct worker;

enum attempt_state { ATTEMPT_LEASED, ATTEMPT_SENDING, ATTEMPT_DONE };

struct attempt {
	enum attempt_state state;
	struct worker *worker;
	struct lane_lease lease; /* its texts are copies, owned */
	usec_t leased_at; /* on clock_now(), before the claim was sent */
	struct endpoint_ref *endpoint; /* NULL until known */
	struct send *send; /* while SENDING */
	struct delivery_outcome outcome; /* once DONE */
	bool is_recorded; /* the recorder's: it is kept, */
	bool is_intricate; /* or not what delivery_taken() is for */
	TAILQ_ENTRY(attempt) entry; /* of its owner's list */
};

TAILQ_HEAD(attempt_list, attempt);

/*
 * Make an attempt of a lease, which is copied.  It belongs to the caller until
 * attempt_start().  ERR_NOMEM leaves the lease to run out.
 */
int attempt_new(struct attempt **out, struct worker *worker,
    const struct lane_lease *lease, usec_t leased_at, struct err *err);

/*
 * Begin to send.  Whatever comes of it goes to the recorder, which owns the
 * attempt from then on; the recorder is never called before this returns but
 * for what cannot be sent at all.
 */
void attempt_start(struct attempt *attempt);

/* Give the lease back unused, through the recorder. */
void attempt_unsent(struct attempt *attempt);

/* Its lease was another worker's, who vanished: record that. */
void attempt_expired(
    struct attempt *attempt, const struct retry_policy *policy);

/* Stop every request under way; their outcome is a time-out. */
void attempt_cancel_all(struct worker *worker);

void attempt_free(struct attempt *attempt);

#endif
