/* audit: GET /v1/audit, who changed what, for operators. */

#ifndef INGEST_AUDIT_H
#define INGEST_AUDIT_H

struct call;

/* GET /v1/audit?before=ID&limit=N&tenant=NAME&actor=A&action=A&subject=S
 * &since=TIME&until=TIME */
void audit_get(struct call *call);

#endif
