/* progress: a bar on standard error, if that is a terminal; else nothing. */

#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;
};

void progress_begin(struct progress *progress);

/* Draw it anew: so much of `all`, and what was done so far in words. */
void progress_draw(const struct progress *progress, int64_t part, int64_t all,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

void progress_end(const struct progress *progress);

#endif
