#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"

/* Length of an array without elements: it has no dimension. */
enum { EMPTY_ARRAY = 12 };

/* Of pg_type, which has them fixed for ever. */
static const uint32_t type_oids[] = {
	[PG_BOOL] = 16,
	[PG_INT] = 23,
	[PG_BIGINT] = 20,
	[PG_TEXT] = 25,
	[PG_BYTEA] = 17,
	[PG_UUID] = 2950,
};

struct pg_batch *
pg_batch_new(void)
{
	return calloc(1, sizeof(struct pg_batch));
}

void
pg_batch_free(struct pg_batch *batch)
{
	if (batch == NULL)
		return;
	buf_fini(&batch->ops);
	buf_fini(&batch->params);
	buf_fini(&batch->bytes);
	buf_fini(&batch->text);
	free(batch);
}

bool
batch_failed(const struct pg_batch *batch)
{
	return batch->ops.failed || batch->params.failed ||
	       batch->bytes.failed || batch->text.failed;
}

size_t
batch_count(const struct pg_batch *batch)
{
	return batch->ops.len / sizeof(struct op);
}

static struct op *
op_at(const struct pg_batch *batch, size_t index)
{
	return (struct op *)(void *)batch->ops.data + index;
}

const struct op *
batch_op(const struct pg_batch *batch, size_t index)
{
	return op_at(batch, index);
}

const struct param *
batch_param(const struct pg_batch *batch, size_t index)
{
	return (const struct param *)(void *)batch->params.data + index;
}

static void
add_op(struct pg_batch *batch, struct op op)
{
	assert(!batch->array.is_open);
	assert(!batch->commits || op.kind == OP_CALL);
	op.first_param = batch->params.len / sizeof(struct param);
	buf_add(&batch->ops, &op, sizeof(op));
}

void
pg_commit(struct pg_batch *batch)
{
	add_op(batch, (struct op){ .kind = OP_COMMIT });
	batch->commits = true;
}

void
pg_call(struct pg_batch *batch, int statement)
{
	add_op(batch, (struct op){ .kind = OP_CALL, .statement = statement });
	batch->ncalls++;
}

void
batch_command(struct pg_batch *batch, const char *name, const char *text)
{
	add_op(batch,
	    (struct op){ .kind = OP_COMMAND, .name = name, .text = text });
}

static bool
is_missing(const struct op *op, const bool *prepared)
{
	return op->kind == OP_CALL && !prepared[op->statement];
}

static bool
has_prepare(const struct buf *ops, int statement)
{
	const struct op *op = (const struct op *)(void *)ops->data;

	for (size_t i = 0; i < ops->len / sizeof(*op); i++)
		if (op[i].kind == OP_PREPARE && op[i].statement == statement)
			return true;
	return false;
}

int
batch_prepare(struct pg_batch *batch, const bool *prepared)
{
	struct buf ops = { 0 };
	size_t n = 0;

	while (n < batch_count(batch) && !is_missing(op_at(batch, n), prepared))
		n++;
	if (n == batch_count(batch))
		return 0;
	for (size_t i = 0; i < batch_count(batch); i++) {
		const struct op *op = op_at(batch, i);
		const struct op before = { .kind = OP_PREPARE,
			.statement = op->statement };

		if (is_missing(op, prepared) &&
		    !has_prepare(&ops, op->statement))
			buf_add(&ops, &before, sizeof(before));
		buf_add(&ops, op, sizeof(*op));
	}
	if (ops.failed) {
		buf_fini(&ops);
		return -1;
	}
	buf_fini(&batch->ops);
	batch->ops = ops;
	return 0;
}

static void
add_param(struct pg_batch *batch, struct param param)
{
	struct op *op;

	if (batch->ops.failed)
		return;
	assert(batch->ops.len > 0);
	op = op_at(batch, batch_count(batch) - 1);
	assert(op->nparams < BATCH_MAX_PARAMS);
	op->nparams++;
	buf_add(&batch->params, &param, sizeof(param));
}

/*
 * Begin a value of `len` bytes, which the caller adds to `bytes`: an element of
 * the array that is open, or else a parameter.
 */
static void
start_value(struct pg_batch *batch, size_t len)
{
	if (len > INT_MAX) {
		batch->bytes.failed = true;
	} else if (batch->array.is_open) {
		batch->array.count++;
		buf_be32(&batch->bytes, (uint32_t)len);
	} else {
		add_param(batch,
		    (struct param){ .at = batch->bytes.len, .len = (int)len });
	}
}

/* In an array every element has its type. */
static bool
fits(const struct pg_batch *batch, enum pg_type type)
{
	return !batch->array.is_open || batch->array.element == type;
}

void
pg_null(struct pg_batch *batch)
{
	if (batch->array.is_open) {
		batch->array.count++;
		batch->array.has_null = true;
		buf_be32(&batch->bytes, UINT32_MAX);
	} else {
		add_param(batch, (struct param){ .len = -1 });
	}
}

void
pg_bool(struct pg_batch *batch, bool value)
{
	assert(fits(batch, PG_BOOL));
	start_value(batch, 1);
	buf_add(&batch->bytes, value ? "\1" : "\0", 1);
}

void
pg_int(struct pg_batch *batch, int32_t value)
{
	assert(fits(batch, PG_INT));
	start_value(batch, sizeof(value));
	buf_be32(&batch->bytes, (uint32_t)value);
}

void
pg_bigint(struct pg_batch *batch, int64_t value)
{
	assert(fits(batch, PG_BIGINT));
	start_value(batch, sizeof(value));
	buf_be64(&batch->bytes, (uint64_t)value);
}

static void
add_bytes(struct pg_batch *batch, const void *bytes, size_t len)
{
	start_value(batch, len);
	buf_add(&batch->bytes, bytes, len);
}

void
pg_text(struct pg_batch *batch, const char *text)
{
	assert(fits(batch, PG_TEXT));
	if (text == NULL)
		pg_null(batch);
	else
		add_bytes(batch, text, strlen(text));
}

void
pg_time(struct pg_batch *batch, usec_t time)
{
	if (time < 0)
		pg_null(batch);
	else
		pg_bigint(batch, time);
}

void
pg_bytes(struct pg_batch *batch, const void *bytes, size_t len)
{
	assert(fits(batch, PG_BYTEA) || fits(batch, PG_TEXT) ||
	       (fits(batch, PG_UUID) && len == 16));
	add_bytes(batch, bytes, len);
}

/* One dimension, counted from 1; how many elements, and whether one is null,
 * is put in at the end. */
void
pg_array(struct pg_batch *batch, enum pg_type element)
{
	assert(!batch->array.is_open);
	add_param(batch, (struct param){ .at = batch->bytes.len });
	batch->array.is_open = true;
	batch->array.element = element;
	batch->array.at = batch->bytes.len;
	batch->array.count = 0;
	batch->array.has_null = false;
	buf_be32(&batch->bytes, 1); /* dimensions */
	buf_be32(&batch->bytes, 0); /* has a null */
	buf_be32(&batch->bytes, type_oids[element]);
	buf_be32(&batch->bytes, 0); /* elements */
	buf_be32(&batch->bytes, 1); /* the first one's index */
}

static void
put_be32(char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(unsigned char)(value >> (24 - 8 * i));
}

void
pg_array_end(struct pg_batch *batch)
{
	struct param *param;
	char *header;

	assert(batch->array.is_open);
	batch->array.is_open = false;
	if (batch_failed(batch))
		return;

	header = batch->bytes.data + batch->array.at;
	if (batch->array.count == 0) {
		put_be32(header, 0);
		batch->bytes.len = batch->array.at + EMPTY_ARRAY;
	} else {
		put_be32(header + 4, batch->array.has_null);
		put_be32(header + 12, (uint32_t)batch->array.count);
	}
	/* A batch's bytes end at 1 GiB, so this fits. */
	param =
	    (struct param *)(void *)(batch->params.data + batch->params.len) -
	    1;
	param->len = (int)(batch->bytes.len - batch->array.at);
}
