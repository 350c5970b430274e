-- subscription_rotate: a new secret to sign with, or a new signing key.
--
--   $1 bigint    tenant; null: whosever it is
--   $2 bigint    subscription, held by subscription_hold
--   $3 bigint[]  versions that it may have now; null: any
--   $4 text      actor, for the audit
--   $5 text      action, for the audit
--   $6 integer   seconds for which the old ones sign beside it
--   $7 integer   how many may sign at once
--   $8 text      id of the key that seals it
--   $9 text[]    its kind, the only one: 'secret' or 'signing_key'
--   $10 text[]   its header's name: null
--   $11 text[]   its public key, or null
--   $12 bytea[]  nonce
--   $13 bytea[]  sealed secret
--
-- Returns a row as subscription_update does; 'no_signing_key': it has none that
-- could be followed.  old_until: the last of the old ones signs until then, in
-- microseconds; null if none does.  None signs for longer than it would have,
-- and the oldest make room.  What signs no more is removed.

WITH old AS MATERIALIZED (
    SELECT *, coalesce(version = ANY ($3::bigint[]), true) AS is_fresh
      FROM postrider.subscription
     WHERE id = $2
       AND ($1::bigint IS NULL OR tenant_id = $1)
       AND state <> 'deleted'
), given AS MATERIALIZED (
    SELECT *
      FROM unnest($9::text[], $10::text[], $11::text[], $12::bytea[],
                  $13::bytea[])
           AS g (kind, name, public_key, nonce, sealed)
), kept AS MATERIALIZED (
    SELECT k.id, k.public_key,
           least(k.expires_at,
                 statement_timestamp()
                 + $6::integer * interval '1 second') AS expires_at,
           row_number() OVER (ORDER BY k.id DESC) AS nth
      FROM old o
     CROSS JOIN given g
      JOIN postrider.subscription_secret k
        ON k.subscription_id = o.id
       AND k.kind = g.kind
     WHERE k.expires_at IS NULL
        OR k.expires_at > statement_timestamp()
), lasting AS MATERIALIZED (
    SELECT *
      FROM kept
     WHERE nth < $7::integer
       AND $6 > 0
), judged AS MATERIALIZED (
    SELECT o.id,
           CASE
               WHEN g.kind = 'signing_key' AND NOT EXISTS (SELECT FROM kept)
               THEN 'no_signing_key'
           END AS refusal
      FROM old o
     CROSS JOIN given g
     WHERE o.is_fresh
), changed AS (
    UPDATE postrider.subscription s
       SET version = s.version + 1,
           updated_at = statement_timestamp()
      FROM judged n
     WHERE s.id = n.id
       AND n.refusal IS NULL
    RETURNING s.id, s.tenant_id
), removed AS (
    DELETE FROM postrider.subscription_secret k
     USING changed c, given g
     WHERE k.subscription_id = c.id
       AND k.kind = g.kind
       AND NOT EXISTS (SELECT FROM lasting WHERE id = k.id)
), aged AS (
    UPDATE postrider.subscription_secret k
       SET expires_at = l.expires_at
      FROM changed c
     CROSS JOIN lasting l
     WHERE k.id = l.id
), sealed AS (
    INSERT INTO postrider.subscription_secret
           (subscription_id, kind, name, public_key, key_id, nonce, sealed)
    SELECT c.id, g.kind, g.name, g.public_key, $8::text, g.nonce, g.sealed
      FROM changed c
     CROSS JOIN given g
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $4::text, c.tenant_id, 'subscription.' || $5::text, c.id::text,
           jsonb_strip_nulls(jsonb_build_object(
               'overlap_seconds', $6,
               'before', (SELECT jsonb_agg(public_key ORDER BY id)
                                 FILTER (WHERE public_key IS NOT NULL)
                            FROM kept),
               'after', g.public_key))
      FROM changed c
     CROSS JOIN given g
)
SELECT NOT o.is_fresh AS is_stale,
       n.refusal,
       false AS has_new_key,
       (SELECT (extract(epoch FROM max(expires_at)) * 1000000)::bigint
          FROM lasting) AS old_until
  FROM old o
  LEFT JOIN judged n ON true;
