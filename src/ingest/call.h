/*
 * call: one request being answered.
 *
 * A handler owns its call until it answers it, exactly once, with any of the
 * functions below; after that the call is gone.
 */

#ifndef INGEST_CALL_H
#define INGEST_CALL_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "store/key.h"

struct buf;
struct err;
struct ingest;
struct request;
struct route;

enum { CALL_ID_MAX = 128 };

struct call {
	TAILQ_ENTRY(call) link; /* while it waits for its key */
	struct ingest *ingest;
	struct request *request;
	const struct route *route; /* NULL if it fits none */
	struct key key; /* who asks, where the route takes a key */
	char id[CALL_ID_MAX + 1]; /* what stands for {id} in the path */
	char inner_id[CALL_ID_MAX + 1]; /* and for a second {id} */
};

TAILQ_HEAD(calls, call);

/* NULL if memory is short. */
struct call *call_new(struct ingest *ingest, struct request *request);

/* Answer with JSON.  `body` is used up, and wiped. */
void call_json(struct call *call, int status, struct buf *body);

/* Answer with anything, `type` being its content type. */
void call_answer(
    struct call *call, int status, const char *type, struct buf *body);

/* Append a time as a JSON string, RFC 3339 in UTC to the microsecond; an id as
 * a JSON string, since JavaScript's numbers lose digits. */
void call_put_time(struct buf *out, usec_t time);
void call_put_id(struct buf *out, int64_t id);

/* Who asks, and where from, for the audit. */
struct call_who {
	char actor[32]; /* "key:7" */
	char source[64]; /* an address */
};

void call_who(struct call_who *out, const struct call *call);

/* The octet that "%XX" at `text` stands for; -1 if that is not there. */
int call_escaped(const char *text);

/* The number that an id or a query names; -1 if it is none that can be. */
int64_t call_number(const char *text, size_t len);

#endif
