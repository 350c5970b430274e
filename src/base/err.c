#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

int
err_set(struct err *err, enum err_code code, const char *format, ...)
{
	va_list args;

	err->code = code;
	err->sqlstate[0] = '\0';
	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return -1;
}

int
err_wrap(struct err *err, const char *format, ...)
{
	char text[sizeof(err->text)];
	size_t len;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	len = strlen(text);
	/* What does not fit is cut off at the end: the context matters. */
	(void)snprintf(text + len, sizeof(text) - len, ": %.*s",
	    (int)(sizeof(text) - len), err->text);
	memcpy(err->text, text, sizeof(text));
	return -1;
}

int
err_errno(struct err *err, enum err_code code, const char *format, ...)
{
	const char *why = strerror(errno);
	va_list args;
	int n;

	err->code = code;
	err->sqlstate[0] = '\0';
	va_start(args, format);
	n = vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		(void)snprintf(
		    err->text + n, sizeof(err->text) - (size_t)n, ": %s", why);
	return -1;
}
