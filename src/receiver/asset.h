/* asset: the ordering key in the body of an event. */

#ifndef RECEIVER_ASSET_H
#define RECEIVER_ASSET_H

#include <stddef.h>

struct err;

/*
 * Set `*out` to a copy of the member "asset" of the JSON object in `body`, to
 * be freed; to NULL if there is none.  ERR_REFUSED if the body is no object,
 * or the asset no text of 1 to 256 bytes of UTF-8 without control characters.
 */
int asset_read(char **out, const void *body, size_t len, struct err *err);

#endif
