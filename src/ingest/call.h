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

#include "page.h"
#include "store/key.h"

struct buf;
struct call;
struct err;
struct ingest;
struct pg_batch;
struct pg_rows;
struct request;
struct route;

enum {
	CALL_ID_MAX = 128,
	CALL_NAME_MAX = 256, /* octets of an asset */
};

/* Goes on with a call when the database has answered: one entry a statement. */
typedef void call_told_fn(struct call *call, struct pg_rows *const *rows);

struct call {
	TAILQ_ENTRY(call) link; /* while it waits for its key */
	struct ingest *ingest;
	struct request *request;
	const struct route *route; /* NULL if it fits none */
	struct key key; /* who asks, where the route takes a key */
	char id[CALL_NAME_MAX + 1]; /* what stands for {id}, or {asset} */
	char inner_id[CALL_ID_MAX + 1]; /* and for a second {id} */
	struct page page; /* if page_read() was called */
	call_told_fn *told; /* while the database is asked */
};

TAILQ_HEAD(calls, call);

/* NULL if memory is short. */
struct call *call_new(struct ingest *ingest, struct request *request);

/* Answer with JSON.  `body` is used up, and wiped. */
void call_json(struct call *call, int status, struct buf *body);

/* Answer with anything, `type` being its content type. */
void call_answer(
    struct call *call, int status, const char *type, struct buf *body);

/* A batch for what the database is to be asked; NULL if memory is short, and
 * then the call is answered. */
struct pg_batch *call_batch(struct call *call);

/* Ask it.  `told` goes on, unless it fails: then the call is answered. */
void call_ask(struct call *call, struct pg_batch *batch, call_told_fn *told);

/* Add the header Location: where that which is made can be read. */
void call_add_location(struct call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Who asks, and where from, for the audit. */
struct call_who {
	char actor[32]; /* "key:7" */
	char source[64]; /* an address */
};

void call_who(struct call_who *out, const struct call *call);

/* The octet that "%XX" at `text` stands for; -1 if that is not there. */
int call_escaped(const char *text);

/* The number that an id or a query names; -1, which nothing has, if it is none
 * that can be. */
int64_t call_number(const char *text, size_t len);

/* The number that {id} stands for, and a second {id}. */
int64_t call_id(const struct call *call);
int64_t call_inner_id(const struct call *call);

#endif
