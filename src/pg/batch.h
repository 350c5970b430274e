/* batch: what is sent in one go, as the rest of the room sees it. */

#ifndef PG_BATCH_H
#define PG_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/embed.h"
#include "pg/pg.h"

enum {
	BATCH_MAX_PARAMS = 64, /* of one call */
};

enum op_kind {
	OP_CALL, /* of a prepared statement; the only kind with rows */
	OP_PREPARE,
	OP_COMMAND, /* SQL of this room's own */
	OP_COMMIT, /* a sync, and no command */
};

struct op {
	enum op_kind kind;
	int statement; /* of a call, or to prepare */
	const char *name; /* of a command, for errors */
	const char *text; /* of a command */
	size_t first_param;
	int nparams;
};

struct param {
	size_t at; /* in `bytes` */
	int len; /* -1 for null */
};

struct pg_batch {
	struct buf ops; /* of struct op */
	struct buf params; /* of struct param */
	struct buf bytes; /* the parameters' values */
	struct buf text; /* of the one command whose text is made */
	size_t ncalls;
	struct {
		bool is_open;
		enum pg_type element;
		size_t at; /* where its header stands */
		int32_t count;
		bool has_null;
	} array;
	bool commits; /* not only at its end */
};

/* True if memory ran out while it was built. */
bool batch_failed(const struct pg_batch *batch);

size_t batch_count(const struct pg_batch *batch);
const struct op *batch_op(const struct pg_batch *batch, size_t index);
const struct param *batch_param(const struct pg_batch *batch, size_t index);

/* Add a command, called `name` in errors; its parameters follow.  Both texts
 * must outlive the batch. */
void batch_command(struct pg_batch *batch, const char *name, const char *text);

/* Have each statement that is called, and is not among the `prepared`, prepared
 * under its name before its first call.  -1 if memory is short. */
int batch_prepare(struct pg_batch *batch, const bool *prepared);

#endif
