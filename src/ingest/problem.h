/* problem: errors as RFC 9457 has them, application/problem+json.  Their types
 * are in problem_kind.h. */

#ifndef INGEST_PROBLEM_H
#define INGEST_PROBLEM_H

struct buf;
struct call;
struct err;

/* Answer with a problem.  What it is about, its type, follows from the
 * status. */
void problem_reply(struct call *call, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, about the field at the JSON pointer `pointer`. */
void problem_reply_at(struct call *call, int status, const char *pointer,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same, with members of its own: `more` is JSON that begins with a comma.
 * It is used up. */
void problem_reply_with(
    struct call *call, int status, const char *detail, struct buf *more);

/* A form that is refused: what cannot be read at all is 400, a field that is
 * wrong 422. */
void problem_reply_form(
    struct call *call, const char *pointer, const struct err *err);

/* What the database said, in words for a stranger.  What only the operator can
 * mend is logged. */
void problem_reply_err(struct call *call, const struct err *err);
void problem_reply_err_with(
    struct call *call, const struct err *err, struct buf *more);

#endif
