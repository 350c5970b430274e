#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "progress.h"

enum { WIDTH = 40 };

void
progress_begin(struct progress *progress)
{
	progress->is_shown = isatty(STDERR_FILENO) == 1;
}

void
progress_draw(const struct progress *progress, int64_t part, int64_t all,
    const char *format, ...)
{
	double done = all <= 0 ? 0 : (double)part / (double)all;
	char bar[WIDTH + 1];
	va_list args;

	if (!progress->is_shown)
		return;
	done = done < 0 ? 0 : done > 1 ? 1 : done;
	for (int i = 0; i < WIDTH; i++)
		bar[i] = (i + 1) <= (int)(done * WIDTH) ? '#' : '.';
	bar[WIDTH] = '\0';
	(void)fprintf(stderr, "\r[%s] %3d %%  ", bar, (int)(done * 100));
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	(void)fflush(stderr);
}

void
progress_end(const struct progress *progress)
{
	if (progress->is_shown)
		(void)fputc('\n', stderr);
}
