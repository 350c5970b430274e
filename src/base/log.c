#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

/* Set once by main, before anything runs. */
static const char *program_name = "postrider";
static enum log_level shown = LOG_LEVEL_INFO;

void
log_open(const char *program, enum log_level level)
{
	program_name = program;
	shown = level;
}

int
log_level_parse(const char *text)
{
	for (int i = 0; i <= LOG_LEVEL_DEBUG; i++)
		if (strcmp(text, level_names[i]) == 0)
			return i;
	return -1;
}

static void
add_quoted(struct buf *line, const char *value)
{
	buf_puts(line, "\"");
	for (const char *p = value; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '"' || c == '\\')
			buf_printf(line, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(line, "\\x%02x", c);
		else
			buf_add(line, p, 1);
	}
	buf_puts(line, "\"");
}

static void
add_time(struct buf *line)
{
	usec_t now = clock_wall();
	time_t seconds = (time_t)(now / USEC_PER_SEC);
	struct tm tm;
	char text[32];

	if (gmtime_r(&seconds, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	buf_printf(line, "ts=%s.%03dZ ", text,
	    (int)(now % USEC_PER_SEC / USEC_PER_MS));
}

static void
write_line(enum log_level level, const char *message, va_list pairs)
{
	struct buf line = { 0 };
	const char *key, *value;
	ssize_t written = 0;

	if (level > shown)
		return;
	add_time(&line);
	buf_printf(
	    &line, "level=%s prog=%s msg=", level_names[level], program_name);
	add_quoted(&line, message);
	while ((key = va_arg(pairs, const char *)) != NULL) {
		value = va_arg(pairs, const char *);
		if (value == NULL)
			continue;
		buf_printf(&line, " %s=", key);
		add_quoted(&line, value);
	}
	buf_puts(&line, "\n");
	/* One write, so that lines of several processes do not mix. */
	if (!line.failed)
		written = write(STDERR_FILENO, line.data, line.len);
	(void)written; /* nobody is left to tell */
	buf_fini(&line);
}

void
log_error(const char *message, ...)
{
	va_list pairs;

	va_start(pairs, message);
	write_line(LOG_LEVEL_ERROR, message, pairs);
	va_end(pairs);
}

void
log_warn(const char *message, ...)
{
	va_list pairs;

	va_start(pairs, message);
	write_line(LOG_LEVEL_WARN, message, pairs);
	va_end(pairs);
}

void
log_info(const char *message, ...)
{
	va_list pairs;

	va_start(pairs, message);
	write_line(LOG_LEVEL_INFO, message, pairs);
	va_end(pairs);
}

void
log_debug(const char *message, ...)
{
	va_list pairs;

	va_start(pairs, message);
	write_line(LOG_LEVEL_DEBUG, message, pairs);
	va_end(pairs);
}
