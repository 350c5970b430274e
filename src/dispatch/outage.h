/* outage: say once that a connection is away, and once that it is back. */

#ifndef DISPATCH_OUTAGE_H
#define DISPATCH_OUTAGE_H

#include <stdbool.h>

#include "base/clock.h"

struct err;

struct outage {
	const char *purpose; /* what the connection is for */
	bool is_away;
	usec_t said_at; /* when a transaction's failure was last logged */
};

void outage_begin(struct outage *outage, const struct err *err);
void outage_end(struct outage *outage);

/* A transaction failed on a connection that is there: once a second at most. */
void outage_trouble(struct outage *outage, const struct err *err);

#endif
