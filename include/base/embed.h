/* embed: a file as an array, made at build time by scripts/cmake/embed.cmake. */

#ifndef BASE_EMBED_H
#define BASE_EMBED_H

#include <stddef.h>

struct embedded {
	const char *name; /* the file's, without `.sql`; NULL ends */
	const char *text; /* NUL-terminated */
	size_t len;
};

#endif
