/*
 * header: which headers of its own a subscription may have on its requests.
 *
 * Names are tokens (RFC 9110, 5.6.2).  Values are visible ASCII with spaces and
 * tabs between: what is beyond ASCII has no agreed meaning in a header.  What
 * frames the request, says where it goes, or is ours to say is reserved.
 */

#ifndef CORE_HEADER_H
#define CORE_HEADER_H

#include <stddef.h>

enum {
	HEADER_NAME_MAX = 64,
	HEADER_VALUE_MAX = 4096,
	HEADER_COUNT_MAX = 32, /* of one subscription, secret ones included */
	HEADER_TOTAL_MAX = 8192, /* octets of all names and values */
};

/*
 * What is wrong with a name, in whatever case, or a value: a constant for
 * people, "is ..." or "has ...", which never repeats what was given.  NULL:
 * nothing.
 */
const char *header_name_fault(const char *name, size_t len);
const char *header_value_fault(const char *value, size_t len);

#endif
