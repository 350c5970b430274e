/* limits: what the kernel lets this process have. */

#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

/*
 * Take every descriptor that we may have: one a connection.  Where that is not
 * allowed the limit stays as it was, and what cannot be opened is reported by
 * whoever opens it.
 */
void limits_raise_descriptors(void);

#endif
