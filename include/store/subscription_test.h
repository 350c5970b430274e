/*
 * subscription_test: a test event for one subscription, sent at once and beside
 * the queue.
 *
 *	subscription_test_ask     ingest or the command: a row is on offer
 *	subscription_test_take    some dispatcher takes it, and sends
 *	subscription_test_record  and writes down what came back
 *	subscription_test_look    who asked reads that, again and again till then
 *
 * It is sent once, whatever comes of it, and is in no lane: no limit, circuit or
 * state of the subscription holds it up or learns of it.  If a dispatcher vanishes
 * its time runs out, by the database's clock.
 */

#ifndef STORE_SUBSCRIPTION_TEST_H
#define STORE_SUBSCRIPTION_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/envelope.h"
#include "core/verdict.h"
#include "store/delivery.h"

struct err;
struct pg_batch;
struct pg_rows;

#define SUBSCRIPTION_TEST_TYPE "postrider.test"

/* How long a dispatcher has for one besides the subscription's timeout. */
#define SUBSCRIPTION_TEST_MARGIN (10 * USEC_PER_SEC)

/* Who asks, for which one. */
struct subscription_test_asked {
	int64_t tenant_id; /* or SUBSCRIPTION_ANY_TENANT */
	int64_t subscription_id;
	const char *actor; /* for the audit */
	char event_id[ENVELOPE_ID_MAX + 1]; /* out: what is sent has it */
};

enum subscription_test_answer {
	SUBSCRIPTION_TEST_ASKED,
	SUBSCRIPTION_TEST_BUSY, /* too many are under way, or it came too soon */
	SUBSCRIPTION_TEST_MISSING, /* there is no such subscription */
};

/* Make a fresh event and ask for it to be sent. */
int subscription_test_ask(struct pg_batch *batch,
    struct subscription_test_asked *asked, struct err *err);
enum subscription_test_answer subscription_test_asked_read(
    const struct pg_rows *rows);

enum subscription_test_state {
	SUBSCRIPTION_TEST_WAITS,
	SUBSCRIPTION_TEST_DONE, /* the row has what came back, as an attempt's */
	SUBSCRIPTION_TEST_NOT_TAKEN, /* no dispatcher came in time */
	SUBSCRIPTION_TEST_LOST, /* the one that took it says nothing */
};

void subscription_test_look(
    struct pg_batch *batch, int64_t subscription_id, const char *event_id);
enum subscription_test_state subscription_test_look_read(
    const struct pg_rows *rows);

/* Why there is nothing to show, for people. */
const char *subscription_test_why(enum subscription_test_state state);

/* What a dispatcher is to send.  It lends from the rows. */
struct subscription_test_task {
	int64_t subscription_id;
	const char *event_id;
	const void *body;
	size_t len;
};

/* Take at most `limit`; forget what is over. */
void subscription_test_take(
    struct pg_batch *batch, const char *worker, int limit);
void subscription_test_take_read(
    const struct pg_rows *rows, int row, struct subscription_test_task *out);

/* What came back.  Texts are valid UTF-8; "" is none. */
struct subscription_test_outcome {
	enum send_end end;
	int status; /* 0: none */
	usec_t duration;
	usec_t phases[DELIVERY_PHASES]; /* -1: there was no such phase */
	const char *remote, *reason, *headers, *excerpt;
};

void subscription_test_record(struct pg_batch *batch, int64_t subscription_id,
    const char *event_id, const struct subscription_test_outcome *outcome);

#endif
