#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "flight.h"
#include "rows.h"

/* Of an operation, or of the sync that is a batch's end. */
static const char *
op_name(const struct flight *flight, const struct op *op)
{
	if (op == NULL || op->kind == OP_COMMIT)
		return "commit";
	return op->kind == OP_COMMAND ? op->name
	                              : flight->statements[op->statement].name;
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
	case OP_COMMIT:
		return PQpipelineSync(conn);
	case OP_COMMAND:
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

/* Nothing but a sync answers this. */
static bool
is_sync(const struct op *op)
{
	return op == NULL || op->kind == OP_COMMIT;
}

static enum flight_step
take_answer(struct flight *flight, const struct op *op, PGresult *result,
    struct err *why)
{
	if (is_sync(op) || flight->has_result) {
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
	PQclear(result);
	return FLIGHT_ON;
}

/* All that stands before it is answered, and done if nothing has failed. */
static enum flight_step
take_sync(struct flight *flight, const struct op *op, struct err *why)
{
	struct err err;

	if (!is_sync(op))
		return out_of_step(why);
	if (flight->is_unsure) {
		(void)err_set(&err, ERR_UNKNOWN,
		    "commit: the standbys have not confirmed it");
		fail(flight, &err, false);
	}
	if (op == NULL)
		return FLIGHT_LANDED;
	flight->is_committed = !flight->failed;
	flight->op++;
	return FLIGHT_ON;
}

/* An error may also come with the sync, from what a commit checks. */
static enum flight_step
take_error(struct flight *flight, const struct op *op, PGresult *result,
    struct err *why)
{
	enum flight_step step = FLIGHT_ON;

	(void)error_of_result(result, op_name(flight, op),
	    is_sync(op) || op->kind == OP_CALL, why);
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
	if (!is_sync(op)) {
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

int
flight_lost(const struct flight *flight, const struct err *why, struct err *err)
{
	if (flight->failed && !flight->is_fatal) {
		*err = flight->err;
		return -1;
	}
	if (!flight->failed && flight->is_committed &&
	    flight->op == batch_count(flight->batch))
		return 0;
	*err = flight->failed ? flight->err : *why;
	err->code = ERR_UNKNOWN;
	return -1;
}

void
flight_fini(struct flight *flight)
{
	pg_batch_free(flight->batch);
	pg_rows_free(flight->rows);
	*flight = (struct flight){ 0 };
}
