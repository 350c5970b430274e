/*
 * out: what a command prints: records, for people or as JSON.
 *
 * For people a list is a table and a single record is lines of name and value.
 * As JSON a list is an array and a single record an object, printed whole or
 * not at all.  All records of one output have the same fields in the same
 * order.
 */

#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

struct err;

enum out_shape { OUT_RECORD, OUT_LIST };

struct out {
	enum out_shape shape;
	bool is_json;
	int nrecords;
	int nfields; /* of the first record */
	struct buf names; /* each with its NUL */
	struct buf cells; /* each with its NUL, as text or as JSON */
};

void out_init(struct out *out, enum out_shape shape, bool is_json);

/* A field of the record being made.  NULL, and a time below 0, are null. */
void out_text(struct out *out, const char *name, const char *value);
void out_number(struct out *out, const char *name, int64_t value);
void out_bool(struct out *out, const char *name, bool value);
void out_time(struct out *out, const char *name, usec_t value);
/* An id is a number in a string, since JavaScript rounds large numbers. */
void out_id(struct out *out, const char *name, int64_t value);
/* JSON text as it is. */
void out_raw(struct out *out, const char *name, const char *json);

/* A list, as JSON only; it is used up. */
void out_list(struct out *out, const char *name, struct out *list);

void out_end(struct out *out);

/* Print it all, wipe it.  Fails if memory was short. */
int out_print(struct out *out, struct err *err);

#endif
