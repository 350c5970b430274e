-- key_create: a new key, of which only the hash is kept.
--
--   $1 text      tenant's name, or null for an operator
--   $2 text      role: publisher, viewer, admin, operator
--   $3 text      name, for people
--   $4 bytea     SHA-256 of the key
--   $5 bigint    when it expires, microseconds since 1970, or null for never
--   $6 text      actor, for the audit
--
-- Returns its row as key_get does; none if there is no such tenant.

WITH made AS (
    INSERT INTO postrider.api_key (tenant_id, role, name, hash, expires_at)
    SELECT t.id, $2, $3, $4,
           timestamptz 'epoch' + $5::bigint * interval '1 microsecond'
      FROM (SELECT $1::text AS name) g
      LEFT JOIN postrider.tenant t ON t.name = g.name
     WHERE g.name IS NULL
        OR t.id IS NOT NULL
    RETURNING *
), noted AS (
    INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)
    SELECT $6::text, tenant_id, 'key.created', id::text,
           jsonb_build_object(
               'after', jsonb_build_object('role', role, 'name', name,
                                           'expires_at', expires_at))
      FROM made
)
SELECT id, $1 AS tenant, role, name,
       (extract(epoch FROM created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM expires_at) * 1000000)::bigint AS expires_at,
       (extract(epoch FROM revoked_at) * 1000000)::bigint AS revoked_at,
       (extract(epoch FROM last_used_at) * 1000000)::bigint AS last_used_at
  FROM made;
