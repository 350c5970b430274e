/* assets: the route that shows where an asset stands. */

#ifndef INGEST_ASSETS_H
#define INGEST_ASSETS_H

struct call;

/* GET /v1/assets/{asset}[?subscription=ID&limit=N]: with each subscription that
 * has something of it unfinished, what goes next, why it waits, what waits
 * behind it and what went before.  An asset of which nothing waits has no lanes,
 * as one that nobody ever named. */
void assets_get(struct call *call);

#endif
