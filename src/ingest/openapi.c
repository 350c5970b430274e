#include "base/embed.h"
#include "file.h"
#include "openapi.h"

/* The one file in it. */
extern const struct embedded openapi_table[];

void
openapi_get(struct call *call)
{
	/* Kept, and asked about each time: an upgrade shows at once. */
	file_answer(
	    call, &openapi_table[0], "application/json", "public, no-cache");
}
