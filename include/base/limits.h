/* limits: what the kernel lets this process have. */

#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

struct err;

/*
 * Take every descriptor that we may have: one a connection.  Where that is not
 * allowed the limit stays as it was, and what cannot be opened is reported by
 * whoever opens it.
 */
void limits_raise_descriptors(void);

/* ERR_REFUSED unless we may have a descriptor for each of `n` connections, and
 * some for ourselves; `setting` is what asks for so many. */
int limits_check_descriptors(const char *setting, int64_t n, struct err *err);

#endif
