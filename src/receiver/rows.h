/* rows: receipts as the parameters of statements, and history from rows. */

#ifndef RECEIVER_ROWS_H
#define RECEIVER_ROWS_H

#include <stdint.h>

#include "base/clock.h"
#include "receipt.h"

struct buf;
struct err;
struct history;
struct pg_batch;
struct pg_rows;

/* An answer that was given after its receipt was kept. */
struct rows_answer {
	int64_t id;
	int status;
	usec_t answered_at;
};

/* Call request_insert and effect_insert for `queue`, as far as they have
 * something to do. */
void rows_insert(struct pg_batch *batch, const struct receipts_queue *queue);

/* Call request_answer for the struct rows_answer in `answers`, if any. */
void rows_answer(struct pg_batch *batch, const struct buf *answers);

int rows_load_events(
    struct history *history, const struct pg_rows *rows, struct err *err);
int rows_load_lanes(
    struct history *history, const struct pg_rows *rows, struct err *err);

#endif
