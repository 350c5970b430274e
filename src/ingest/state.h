/*
 * state: the routes that show how it goes, now and lately.
 *
 * To a tenant's key its tenant's; to an operator's all, or one tenant's by name.
 * What they say is what the views in psql say; counts stop, at numbers that then
 * mean that many or more.
 */

#ifndef INGEST_STATE_H
#define INGEST_STATE_H

struct call;

/* GET /v1/state[?limit=N]: what waits, what was delivered lately, and how
 * endpoints are, those in most trouble first. */
void state_get(struct call *call);

/* GET /v1/state/history?span=hour|day[&subscription=ID]: what was tried in each
 * minute of the last hour, or each quarter of an hour of the last day. */
void state_get_history(struct call *call);

#endif
