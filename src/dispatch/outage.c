#include <stddef.h>

#include "base/err.h"
#include "base/log.h"
#include "dispatch/outage.h"

void
outage_begin(struct outage *outage, const struct err *err)
{
	if (!outage->is_away)
		log_warn("database is away, trying again", "for",
		    outage->purpose, "error", err->text, NULL);
	outage->is_away = true;
}

void
outage_end(struct outage *outage)
{
	if (outage->is_away)
		log_info("database is back", "for", outage->purpose, NULL);
	outage->is_away = false;
}

void
outage_trouble(struct outage *outage, const struct err *err)
{
	usec_t now = clock_now();

	if (outage->is_away ||
	    (outage->said_at > 0 && now - outage->said_at < USEC_PER_SEC))
		return;
	outage->said_at = now;
	log_warn("a transaction failed", "for", outage->purpose, "error",
	    err->text, NULL);
}
