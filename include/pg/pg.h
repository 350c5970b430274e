/*
 * pg: one connection to PostgreSQL on the loop, in pipeline mode.
 *
 *	          connected       set up, listening
 *	CONNECTING ----> SETTING_UP ----> READY <----> BUSY
 *	     ^                |             |            |
 *	     +--- WAITING <---+-------------+------------+  lost, or too slow
 *	        (backoff)
 *
 * A batch is a list of prepared statements sent in one go.  One batch is in
 * flight at a time: the caller's queue is explicit.  Each statement is prepared
 * by its name when a connection first calls it, in the same go: a program calls
 * few of them, and to prepare a hundred takes a third of a second.  One that
 * cannot be prepared is ERR_BROKEN.  A batch has a deadline, since libpq has no
 * read timeout; past it the connection is dropped and opened again.
 *
 * Errors of the server become codes by their SQLSTATE: ERR_RETRY for what
 * passes (08, 40, 53, 55P03, 57, 58, a time-out or a standby in class 25),
 * ERR_REFUSED for input it does not take (22, 23, 54, P0), else ERR_BROKEN, as
 * are parameters of the wrong type or number (08P01, 22P03).  Their text names
 * the statement and never a parameter's value.  A statement whose columns have
 * changed since it was prepared is ERR_RETRY, on a new connection.
 *
 * Host names in the connection string are resolved by libpq, which holds up
 * the loop meanwhile; a socket or `hostaddr` does not.
 */

#ifndef PG_PG_H
#define PG_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/embed.h"

struct err;
struct event_base;
struct pg;
struct pg_batch;
struct pg_rows;

/* A session's setting, as SET takes it. */
struct pg_setting {
	const char *name; /* NULL ends a list */
	const char *value;
};

/*
 * The encoding (UTF8), the time zone (UTC) and statement_timeout (a little before
 * the batch's deadline) are set on every connection, before `settings`.  What
 * libpq's environment variables say fills the gaps of `conninfo`.
 */
struct pg_conf {
	const char *conninfo; /* as libpq takes it */
	const char *application; /* application_name, unless in `conninfo` */
	const char *role; /* SET ROLE after connecting; "" for none */
	const char *channel; /* LISTEN to it; "" for none */
	const struct embedded *statements; /* ended by a NULL name */
	const struct pg_setting *settings; /* or NULL */
	usec_t statement_timeout; /* for a batch, or a step of connecting */
	usec_t reconnect_min, reconnect_max; /* backoff between connects */
};

/* What the owner is told, always from the loop.  Each may be NULL. */
struct pg_events {
	/* Connected, for the first time or again: a batch can be submitted.
	 * Notifications may have been missed meanwhile. */
	void (*ready)(void *arg);
	/* The connection is gone, or could not be made.  It is tried again by
	 * itself, save after ERR_BROKEN before the first `ready`: then the
	 * owner has to close it.  A batch in flight has had its `done`. */
	void (*down)(void *arg, const struct err *err);
	/* One or more notifications came, some of them with a text or not. */
	void (*notified)(void *arg, bool has_text);
};

/*
 * `rows` has one entry a call, in order, ended by NULL, and is valid until
 * return; it is NULL after an error.  `err` is NULL on success, else the first
 * error; then nothing of the batch is kept, unless the code is ERR_UNKNOWN: the
 * answer to the commit was lost.  For a batch that only reads, that is as good as
 * ERR_RETRY.  The connection is ready for the next batch, unless it has gone: see
 * pg_is_ready().
 */
typedef void pg_done_fn(
    void *arg, struct pg_rows *const *rows, const struct err *err);

/* Begin connecting.  `conf` and `events` are copied, texts and lists in `conf`
 * must outlive the connection.  Only want of memory fails here. */
int pg_open(struct pg **out, struct event_base *loop,
    const struct pg_conf *conf, const struct pg_events *events, void *arg,
    struct err *err);

/* Close; the `done` of a batch in flight is not called.  It may be called from
 * any of the callbacks.  NULL is fine. */
void pg_close(struct pg *pg);

/* True when a batch can be submitted. */
bool pg_is_ready(const struct pg *pg);

/*
 * Send `batch`, which is taken over and freed in any case.  Returns 0 if
 * begun: then `done` is called exactly once, from the loop, unless pg_close()
 * comes first.
 */
int pg_submit(struct pg *pg, struct pg_batch *batch, pg_done_fn *done,
    void *arg, struct err *err);

/* For programs without other work: run the loop until the connection is ready,
 * or fails for good or for the `patience` given.  Not from a callback. */
int pg_wait_ready(struct pg *pg, usec_t patience, struct err *err);

/*
 * Submit, and run the loop until done.  On success `*out` has one entry a
 * call, ended by NULL; free it with pg_rows_free().  On failure `*out` is left
 * alone.  Not from a callback.
 */
int pg_run(struct pg *pg, struct pg_batch *batch, struct pg_rows ***out,
    struct err *err);
void pg_rows_free(struct pg_rows **rows);

/* A new batch; NULL if memory is short. */
struct pg_batch *pg_batch_new(void);
void pg_batch_free(struct pg_batch *batch);

/*
 * A batch is one transaction.  What is called after pg_commit() is one of its own,
 * which sees the first committed, and holds no lock of it while answers travel.  It
 * may only read: the server comes to it even if the first failed.  If it fails
 * itself, that is ERR_UNKNOWN.
 *
 * A sync ends each (PostgreSQL's manual, "Pipeline Mode"), so that there is no BEGIN
 * and no COMMIT to parse and to run.
 */
void pg_commit(struct pg_batch *batch);

/* Start a call of the statement with this index in `statements`. */
void pg_call(struct pg_batch *batch, int statement);

/* Its parameters in order, in PostgreSQL's binary format.  A failure of memory
 * sticks to the batch and comes out of pg_submit().  pg_bytes() is for bytea,
 * for uuid (16 bytes) and for text whose length is known. */
void pg_null(struct pg_batch *batch);
void pg_bool(struct pg_batch *batch, bool value);
void pg_int(struct pg_batch *batch, int32_t value);
void pg_bigint(struct pg_batch *batch, int64_t value);
void pg_text(struct pg_batch *batch, const char *text); /* NULL is null */
void pg_time(struct pg_batch *batch, usec_t time); /* below 0 is null */
void pg_bytes(struct pg_batch *batch, const void *bytes, size_t len);

/* An array parameter: begin, its elements, end.  Elements are added with the
 * functions above that fit `element`, or pg_null(). */
enum pg_type { PG_BOOL, PG_INT, PG_BIGINT, PG_TEXT, PG_BYTEA, PG_UUID };
void pg_array(struct pg_batch *batch, enum pg_type element);
void pg_array_end(struct pg_batch *batch);

#endif
