/* receipt: one request, as it is kept. */

#ifndef RECEIVER_RECEIPT_H
#define RECEIVER_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "verify.h"

struct err;
struct lane;
struct request;

enum { RECEIPT_SHA256 = 32 };

/* After an error nothing was kept, save by ERR_UNKNOWN; else `err` is NULL. */
typedef void receipt_done_fn(void *arg, const struct err *err);

struct receipt {
	/* What came.  The texts and the body are lent by the request. */
	const char *path; /* without the query */
	const char *event_id; /* NULL if it has none that could be one */
	const char *asset; /* NULL if none, or if the request is rejected */
	bool has_position;
	int64_t position; /* along its lane */
	int attempt; /* 0 if it does not say */
	usec_t arrived_at;
	const void *body;
	size_t len;
	unsigned char sha256[RECEIPT_SHA256];
	enum verify_verdict verdict;

	/* What history_see() found, for a request that is valid. */
	int nth; /* of this event at this path, from 1; 0 if rejected */
	bool out_of_order; /* the event's first, behind a later one */
	bool overlaps; /* another of its lane was unanswered */
	struct lane *lane;

	/* What is done. */
	int status; /* given at the commit; 0: later, or never */
	bool takes_effect;

	/* The recorder's. */
	int64_t id; /* in the order of arrival */
	TAILQ_ENTRY(receipt) entry;
	receipt_done_fn *done;
	void *arg;
};

TAILQ_HEAD(receipts_queue, receipt);

/* Fill in what came, into a zeroed receipt. */
void receipt_read(struct receipt *receipt, const struct request *request);

/* Set the verdict, by the secret for its path; NULL if none is known. */
void receipt_judge(struct receipt *receipt, const struct request *request,
    const struct verify_secret *secret, usec_t tolerance);

#endif
