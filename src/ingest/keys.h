/* keys: the routes under /v1/keys, for operators. */

#ifndef INGEST_KEYS_H
#define INGEST_KEYS_H

struct call;

/* GET /v1/keys?tenant=NAME&after=ID&limit=N */
void keys_list(struct call *call);

/* GET /v1/keys/{id} */
void keys_get(struct call *call);

/* GET /v1/key: the one that asks, whatever its role, so that a client can know
 * what it may do before it tries. */
void keys_get_own(struct call *call);

/* POST /v1/keys: the key itself is in this answer and in no other. */
void keys_post(struct call *call);

/* POST /v1/keys/{id}/revoke: one that is revoked already stays as it is. */
void keys_revoke(struct call *call);

#endif
