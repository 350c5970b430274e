/*
 * put: the members of a JSON object in an answer.
 *
 * Each appends `"name":value`, behind a comma unless it is the first of its
 * object.  What is missing is null: NULL, a time below 0, an id 0.  Failures of
 * memory stick to the buffer.
 */

#ifndef INGEST_PUT_H
#define INGEST_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct buf;

void put_text(struct buf *out, const char *name, const char *text);
void put_bool(struct buf *out, const char *name, bool value);
void put_number(struct buf *out, const char *name, int64_t value);

/* RFC 3339 in UTC, to the microsecond. */
void put_time(struct buf *out, const char *name, usec_t time);

/* A number in a string, since JavaScript's numbers lose digits. */
void put_id(struct buf *out, const char *name, int64_t id);

/* JSON as it is. */
void put_json(struct buf *out, const char *name, const char *json);

/* The name alone: its value is to follow. */
void put_name(struct buf *out, const char *name);

#endif
