/*
 * log: one line an occurrence, on standard error, as key=value.
 *
 *	ts=2026-01-02T03:04:05.678Z level=info prog=dispatch msg="ready" ...
 *
 * Only the top of a call chain logs: one failure, one line.  Values are quoted
 * and control characters escaped, so that what a stranger sent cannot forge a
 * line.  Secrets are never passed here.
 */

#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* Name the program (kept, not copied) and set what is shown. */
void log_open(const char *program, enum log_level level);

/* "error", "warn", "info", "debug" to a level, or -1. */
int log_level_parse(const char *text);

/*
 * `message` is a constant sentence; then pairs of `const char *` key and
 * `const char *` value, ended by NULL.  A NULL value is left out.
 */
void log_error(const char *message, ...) __attribute__((sentinel));
void log_warn(const char *message, ...) __attribute__((sentinel));
void log_info(const char *message, ...) __attribute__((sentinel));
void log_debug(const char *message, ...) __attribute__((sentinel));

#endif
