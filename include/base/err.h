/*
 * err: what went wrong, as data.
 *
 * Fallible functions return 0, or -1 with `*err` filled.  The code says what a
 * caller can do about it; the text is for people and never holds a secret.
 */

#ifndef BASE_ERR_H
#define BASE_ERR_H

enum err_code {
	ERR_NONE,
	ERR_RETRY, /* passing trouble: the same call may work later */
	ERR_REFUSED, /* the input is wrong: the same call will fail again */
	ERR_UNKNOWN, /* it may have been done: the answer was lost */
	ERR_BROKEN, /* the installation is wrong: a person has to act */
	ERR_NOMEM,
};

struct err {
	enum err_code code;
	char sqlstate[6]; /* PostgreSQL's code, or "" */
	char text[512]; /* one line, no newline */
};

/* Fill `*err`.  Returns -1, so that a failure is one statement. */
int err_set(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " in front of the text already there.  Returns -1. */
int err_wrap(struct err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As err_set(), with ": " and errno's text at the end.  Returns -1. */
int err_errno(struct err *err, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
