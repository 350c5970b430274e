/*
 * tester: sends the test events that somebody waits for.
 *
 *	taken --endpoint known--> sending --answer--> done --recorded--> freed
 *
 * It has no connection of its own: it is a chore, whose steps write down what is
 * done, load endpoints for what was taken, and take more, all in one.  If we
 * vanish, who waits is told so when the row's time runs out; nothing is sent
 * again.
 */

#ifndef DISPATCH_TESTER_H
#define DISPATCH_TESTER_H

struct chore_step;
struct err;
struct pg_batch;
struct pg_rows;
struct tester;
struct worker;

/* A step has something to do.  Called from the loop, never from within the
 * functions below. */
typedef void tester_due_fn(void *arg);

int tester_open(struct tester **out, struct worker *worker, tester_due_fn *due,
    void *arg, struct err *err);

/* Requests under way are stopped.  NULL is fine. */
void tester_close(struct tester *tester);

/* Put a step into `batch`, the whole of it. */
void tester_put(struct tester *tester, struct pg_batch *batch);

/* It has succeeded: read the answers, and begin to send.  After an error the
 * next step does the same again, as long as somebody waits for it. */
void tester_answered(
    struct tester *tester, struct pg_rows *const *rows, struct chore_step *out);

#endif
