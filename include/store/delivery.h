/*
 * delivery: record the outcomes of attempts and move the lanes on, many in one
 * transaction.
 */

#ifndef STORE_DELIVERY_H
#define STORE_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/verdict.h"
#include "store/lane.h"

struct pg_batch;
struct pg_rows;

enum delivery_phase {
	DELIVERY_DNS,
	DELIVERY_CONNECT,
	DELIVERY_TLS,
	DELIVERY_WAIT, /* for the answer's first octet */
	DELIVERY_RECEIVE, /* from there to its last */
	DELIVERY_PHASES
};

/* Texts are valid UTF-8; "" or NULL is none. */
struct delivery_outcome {
	int64_t lane_id;
	int64_t subscription_id;
	int64_t version; /* of the subscription when it was leased */
	usec_t claimed_at; /* on clock_now(), or a little earlier */
	usec_t accepted_at; /* as lane_lease has it */
	unsigned char token[LANE_TOKEN]; /* the lease's */
	struct verdict verdict;
	enum send_end end;
	int status; /* 0: none */
	usec_t duration; /* -1: nobody knows */
	usec_t phases[DELIVERY_PHASES]; /* -1: there was no such phase */
	char remote[64];
	char reason[256];
	const char *headers; /* of the answer, a line each */
	const char *excerpt; /* how its body begins */
	bool is_bare; /* keep the outcome, not the attempt's record */
};

struct delivery_recorded {
	size_t nth; /* which of the outcomes, from 0 */
	bool hands_back; /* `next` is set: its head is ours to attempt */
	struct lane_lease next;
};

/* What may become of the lanes of outcomes that were taken. */
enum delivery_fate {
	DELIVERY_GOES_ON, /* their next heads come back, or nothing is recorded */
	DELIVERY_ANY, /* they come back, end, or let others go first */
	DELIVERY_LET_GO, /* none comes back */
};

/* Entries of the answer: what delivery_record_read() takes, and what
 * delivery_wake_read() does, and what lane_body_read() takes for each that
 * hands back, in their order. */
enum {
	DELIVERY_RECORD_ROWS = 1,
	DELIVERY_WAKE_ROWS = 3,
	DELIVERY_BODY_ROWS = 4,
};

/* The same of delivery_taken(): one before that, unless all go on.  Its first
 * are for delivery_wake_read() too. */
enum {
	DELIVERY_TAKEN_ROWS = 0,
	DELIVERY_TAKEN_BODY_ROWS = 1,
};

/*
 * One whole transaction for `n` outcomes.  With `hands_back`, the next heads
 * of the lanes come back leased, for the longest attempt and `margin`; but not
 * of a subscription whose endpoint is overloaded, as one of them says.
 */
void delivery_record(struct pg_batch *batch,
    const struct delivery_outcome *const *outcomes, size_t n, bool hands_back,
    usec_t margin);

/*
 * The same, cheaper, for outcomes that are nothing but taken (delivery_is_plain());
 * cheapest where all their lanes are thought to go on, above all if that is one.
 * What is not recorded by it is as it was, and delivery_record() decides.
 */
void delivery_taken(struct pg_batch *batch,
    const struct delivery_outcome *const *outcomes, size_t n,
    enum delivery_fate fate, usec_t margin);
bool delivery_is_plain(const struct delivery_outcome *outcome);

/* One row an outcome that was recorded, and a second one, which hands back,
 * for a lane that goes on; a lost lease has none.  Of delivery_taken() one row in
 * any case. */
void delivery_record_read(
    const struct pg_rows *rows, int row, struct delivery_recorded *out);

/* In how long there is work again that these outcomes made; -1: there is none. */
usec_t delivery_wake_read(const struct pg_rows *rows);

#endif
