#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flight.h"
#include "rows.h"

static const char *
op_name(const struct flight *flight, const struct op *op)
{
	return op->kind == OP_CALL || op->kind == OP_PREPARE
	           ? flight->statements[op->statement].name
	           : op->name;
}

/* Bind a call's parameters, all binary, and ask for a binary answer. */
static int
send_op(PGconn *conn, const struct flight *flight, const struct op *op)
{
	const char *values[BATCH_MAX_PARAMS];
	int lengths[BATCH_MAX_PARAMS], formats[BATCH_MAX_PARAMS];
	const char *base = flight->batch->bytes.data;

	for (int i = 0; i < op->nparams; i++) {
		const struct param *param =
		    batch_param(flight->batch, op->first_param + (size_t)i);

		/* Of no bytes at all is not null. */
		values[i] = param->len < 0 ? NULL
		            : base == NULL ? ""
		                           : base + param->at;
		lengths[i] = param->len;
		formats[i] = 1;
	}
	switch (op->kind) {
	case OP_CALL:
		return PQsendQueryPrepared(conn, op_name(flight, op),
		    op->nparams, values, lengths, formats, 1);
	case OP_PREPARE:
		return PQsendPrepare(conn, op_name(flight, op),
		    flight->statements[op->statement].text, 0, NULL);
	case OP_COMMAND:
	case OP_BEGIN:
	case OP_COMMIT:
	case OP_ROLLBACK:
		break;
	}
	return PQsendQueryParams(
	    conn, op->text, op->nparams, NULL, values, lengths, formats, 1);
}

int
flight_start(struct flight *flight, PGconn *conn, struct pg_batch *batch,
    const struct embedded *statements, bool *prepared, struct err *err)
{
	bool sent = true;

	assert(!batch->array.is_open);
	*flight = (struct flight){
		.batch = batch,
		.statements = statements,
		.prepared = prepared,
		.was_open = PQtransactionStatus(conn) != PQTRANS_IDLE,
	};
	if (!batch_failed(batch) && batch_prepare(batch, prepared) == 0)
		flight->rows = rows_new(batch->ncalls);
	if (flight->rows == NULL) {
		flight_fini(flight);
		return err_set(err, ERR_NOMEM, "batch");
	}

	for (size_t i = 0; sent && i < batch_count(batch); i++)
		sent = send_op(conn, flight, batch_op(batch, i)) == 1;
	if (!sent || PQpipelineSync(conn) != 1) {
		flight->failed = flight->is_fatal = true;
		(void)error_of_connection(conn, &flight->err);
	}
	buf_fini(&batch->bytes); /* libpq has copied them */
	return 0;
}

static void
fail(struct flight *flight, const struct err *err, bool is_fatal)
{
	if (flight->failed)
		return;
	flight->failed = true;
	flight->is_fatal = is_fatal;
	flight->err = *err;
	if (flight->is_committed)
		flight->err.code = ERR_UNKNOWN;
}

static enum flight_step
out_of_step(struct err *why)
{
	(void)err_set(why, ERR_RETRY, "answers are out of step");
	return FLIGHT_LOST;
}

static enum flight_step
take_answer(struct flight *flight, const struct op *op, PGresult *result,
    struct err *why)
{
	struct err err;

	if (op == NULL || flight->has_result) {
		PQclear(result);
		return out_of_step(why);
	}
	flight->has_result = true;
	if (op->kind == OP_PREPARE)
		flight->prepared[op->statement] = true;
	if (op->kind == OP_CALL) {
		flight->rows[flight->call]->result = result;
		return FLIGHT_ON;
	}
	/* It says so, unless the transaction had failed before. */
	if (op->kind == OP_COMMIT) {
		flight->is_committed =
		    strcmp(PQcmdStatus(result), "COMMIT") == 0;
		if (!flight->is_committed) {
			(void)err_set(&err, ERR_RETRY, "commit: rolled back");
			fail(flight, &err, false);
		}
	}
	PQclear(result);
	return FLIGHT_ON;
}

/* All is answered, and done if nothing has failed. */
static enum flight_step
take_sync(struct flight *flight, const struct op *op, struct err *why)
{
	struct err err;

	if (op != NULL)
		return out_of_step(why);
	if (flight->is_unsure) {
		(void)err_set(&err, ERR_UNKNOWN,
		    "commit: the standbys have not confirmed it");
		fail(flight, &err, false);
	}
	return FLIGHT_LANDED;
}

/* An error may also come with the sync, from what a commit checks. */
static enum flight_step
take_error(struct flight *flight, const struct op *op, PGresult *result,
    struct err *why)
{
	enum flight_step step = FLIGHT_ON;

	(void)error_of_result(result,
	    op != NULL ? op_name(flight, op) : "commit",
	    op == NULL || op->kind == OP_CALL, why);
	if (why->sqlstate[0] != '\0')
		fail(flight, why, error_is_fatal(result));
	if (why->sqlstate[0] == '\0' || error_is_stale_plan(result))
		step = FLIGHT_LOST;
	PQclear(result);
	return step;
}

/* Between two answers, and after an error that came with the sync. */
static enum flight_step
take_end(struct flight *flight, const struct op *op, struct err *why)
{
	if (!flight->has_result)
		return out_of_step(why);
	flight->has_result = false;
	if (op != NULL) {
		flight->call += op->kind == OP_CALL;
		flight->op++;
	}
	return FLIGHT_ON;
}

enum flight_step
flight_take(struct flight *flight, PGresult *result, struct err *why)
{
	const struct op *op = NULL;

	if (flight->op < batch_count(flight->batch))
		op = batch_op(flight->batch, flight->op);
	if (result == NULL)
		return take_end(flight, op, why);

	switch (PQresultStatus(result)) {
	case PGRES_PIPELINE_SYNC:
		PQclear(result);
		return take_sync(flight, op, why);
	case PGRES_TUPLES_OK:
	case PGRES_COMMAND_OK:
		return take_answer(flight, op, result, why);
	case PGRES_PIPELINE_ABORTED:
		flight->has_result = true;
		PQclear(result);
		return FLIGHT_ON;
	case PGRES_FATAL_ERROR:
		flight->has_result = true;
		return take_error(flight, op, result, why);
	default: /* an empty statement, COPY: none that a program of ours has */
		PQclear(result);
		(void)err_set(why, ERR_BROKEN, "%s: not a statement to call",
		    op != NULL ? op_name(flight, op) : "sync");
		return FLIGHT_LOST;
	}
}

/* Whether it may have been committed, with the answer lost. */
static bool
is_in_doubt(const struct flight *flight)
{
	const struct pg_batch *batch = flight->batch;

	if (batch->rolls_back)
		return false;
	/* Without a transaction around it, a batch is committed at its sync. */
	return batch->commits || (!batch->begins && !flight->was_open);
}

int
flight_lost(const struct flight *flight, const struct err *why, struct err *err)
{
	const struct pg_batch *batch = flight->batch;

	if (flight->failed && !flight->is_fatal) {
		*err = flight->err;
		return -1;
	}
	if (!flight->failed && batch->commits &&
	    flight->op == batch_count(batch) && !flight->is_unsure)
		return 0;
	*err = flight->failed ? flight->err : *why;
	err->code = is_in_doubt(flight) ? ERR_UNKNOWN : ERR_RETRY;
	return -1;
}

void
flight_fini(struct flight *flight)
{
	pg_batch_free(flight->batch);
	pg_rows_free(flight->rows);
	*flight = (struct flight){ 0 };
}
