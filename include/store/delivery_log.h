/*
 * delivery_log: a subscription's deliveries, without what was sent.
 *
 * A page looks at a bounded number of deliveries, so that one which asks for
 * what is rare among ten millions costs no more than another.  It may then be
 * short, or empty, and say from where to go on.
 */

#ifndef STORE_DELIVERY_LOG_H
#define STORE_DELIVERY_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct err;
struct pg_batch;
struct pg_rows;

/* Which deliveries, the newest first.  What is NULL or -1 does not matter. */
struct delivery_query {
	int64_t tenant_id;
	int64_t subscription_id; /* must be given */
	int64_t after; /* they come after this id, so theirs are smaller */
	const char *state;
	const char *type, *asset; /* of the event */
	const char *event_id;
	usec_t since, until; /* when it was accepted; since 1970 */
	int limit;
};

/* One delivery; its texts lend from the rows.  NULL, -1 for a number and a time,
 * and an id of 0 are null. */
struct delivery_entry {
	int64_t id;
	const char *event_id;
	const char *type;
	const char *asset;
	const char *state;
	const char *why; /* what it waits for */
	usec_t until;
	int64_t behind; /* the delivery that goes first */
	int generation;
	int attempts; /* in this generation */
	int status; /* of the attempt that finished it */
	usec_t accepted_at;
	usec_t finished_at;
	bool is_purged; /* the payload */
};

/* ERR_REFUSED if there is no such state. */
int delivery_log_check_state(const char *state, struct err *err);

/* Ask for one delivery of a tenant's subscription, with up to `attempts`. */
void delivery_log_get(struct pg_batch *batch, int64_t tenant_id,
    int64_t subscription_id, int64_t id, int attempts);

/* Ask for a page.  No row comes of it if there is no such subscription. */
void delivery_log_list(
    struct pg_batch *batch, const struct delivery_query *query);

/* Read a row of either; false behind the last. */
bool delivery_log_read(
    struct delivery_entry *out, const struct pg_rows *rows, int row);

/* How the last attempt at a page's row ended: its status, -1 for none; what was
 * wrong with it, NULL if it succeeded or there was none. */
int delivery_log_last_status(const struct pg_rows *rows, int row);
const char *delivery_log_last_error(const struct pg_rows *rows, int row);

/* After which delivery to go on when all rows of a page were read, 0 if that was
 * all: few rows do not mean that there are no more. */
int64_t delivery_log_more_after(const struct pg_rows *rows, int limit);

#endif
